"""Proofs and what they stand on: the verdict on two calls, and the assumptions behind it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hccl_py.call.op_param import OpParam
from hccl_py.communicator.planning import Plan
from hccl_py.numerics.bit_witness import witness_inputs
from hccl_py.numerics.element_trees import ElementTrees, order_matters, trees_of
from hccl_py.numerics.sameness import Bits, Sameness, same_trees
from hccl_py.program.program import Program

_LOOKED_AT = 64
"""Pairs of trees for which an input is searched that tells them apart."""


def same_bits(one: Plan | Program, other: Plan | Program, *, shift: int = 0) -> Sameness:
    """Prove that the same elements of two calls have the same bits, or find that they do not.

    Element e of a rank's output in `one` is held against element e + `shift` in `other`. `SAME` is
    proved for all inputs; `DIFFER` and `OPEN` are only said where an input shows it. Raises
    ParameterError for calls that do not reduce the same way, NotSupportedError for programs that
    race, do not end, or compute something else than their op.
    """
    return verdict_on(*(trees_of(_program(call)) for call in (one, other)), shift=shift)


def verdict_on(one: ElementTrees, other: ElementTrees, *, shift: int = 0) -> Sameness:
    """Return the verdict on two calls by their trees, with an input behind every difference."""
    found = same_trees(one, other, shift=shift)
    if found.bits is Bits.SAME:
        return found
    op = one.op
    assert op.reduce is not None
    # The first pair that an input tells apart stands at the front, so that it can be run.
    for pair in [pair for pair in found.changed if pair.bits is found.bits][:_LOOKED_AT]:
        if witness_inputs(pair, op.dtype, op.reduce, one.ranks) is not None:
            others = tuple(p for p in found.pairs if p is not pair)
            return replace(found, pairs=(pair, *others))
    reason = f"{found.reason}, but no input was found that shows it"
    return replace(found, bits=Bits.UNKNOWN, reason=reason)


def boundary(
    trees_at: Callable[[int], ElementTrees], step: int, low: int, high: int
) -> tuple[int, int] | None:
    """Return two neighbouring numbers of steps, one with the bits of `low` steps and the other
    without; None where both ends have the same bits. A step is so many elements.
    """
    reference = trees_at(low * step)

    def is_same(count: int) -> bool:
        return same_trees(reference, trees_at(count * step)).bits is Bits.SAME

    if not is_same(low) or is_same(high):
        return None
    while abs(high - low) > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_same(middle) else (low, middle)
    return low, high


def assumptions(op: OpParam, device: str) -> list[str]:
    """Return the assumptions of a verdict on hardware, of which HCCL's documents say little."""
    kind = op.dtype.value
    found = []
    if order_matters(op):
        found.append(
            f"each addition or product rounds to {kind}, to the nearest, ties to even, denormals "
            "kept, as the emulator does; HCCL's documents do not say how inline reductions round"
        )
        found.append("of two NaNs either payload may be handed on: NaNs count as equal")
    elif op.dtype.is_float:
        found.append("NaNs count as equal, and so do zeros of both signs")
    else:
        found.append(f"{kind} wraps around; a unit that saturates would depend on the order")
    if device == "950":
        found.append(
            "kernels of the 950's CCU that are recorded from C++ add fp16 and bf16 in its buffers "
            "in fp32 and round once, as documents say; all other tasks add as SDMA does"
        )
    found.append("programs keep their order of tasks: `hccl-py check` finds races between calls")
    return found


def _program(call: Plan | Program) -> Program:
    return call.program if isinstance(call, Plan) else call

"""The calls and answers of `hccl-py numerics`: on one call, on all sizes, or on two calls."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

from hccl_py.cli.errors import say_warning
from hccl_py.cli.numerics_options import Other, Shown
from hccl_py.cli.options import ProgramOptions, given
from hccl_py.cli.request import CallRequest, Request
from hccl_py.cli.sizes import parse_size
from hccl_py.cli.sources import refuse_without_addresses, request_of
from hccl_py.communicator.planning import Plan
from hccl_py.errors import ParameterError, did_you_mean
from hccl_py.importers.installed import importer_of
from hccl_py.numerics.bit_witness import BitWitness, share_of_differing, shown
from hccl_py.numerics.certificates import Certificate, CertificateCheck, Proved, ProvedRange
from hccl_py.numerics.cures import Cure, Machine, cures_of
from hccl_py.numerics.element_trees import ElementTrees, order_matters, trees_of
from hccl_py.numerics.proofs import assumptions, boundary, verdict_on
from hccl_py.numerics.sameness import Bits, Sameness, always_same
from hccl_py.numerics.size_classes import SizeClass, TreesBySize, calls_of, selection_bounds

LARGEST = 1 << 30
"""Bytes of the largest call, where no size is given."""

AVERAGE = "avg is the sum, divided by the number of ranks: sums of the same bits give the same"


@dataclass(frozen=True)
class OneCall:
    """A call of one size: its request, plan and trees; `shape` where the user gave one."""

    request: Request
    plan: Plan
    trees: ElementTrees
    bytes: int
    shape: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """The call in a phrase: its size or shape, and what runs it."""
        size = " x ".join(map(str, self.shape)) if self.shape else f"{self.bytes} bytes"
        return f"{size}: {self.request.describe_executor(self.plan.selection)}"


@dataclass(frozen=True)
class BitsOfTwo:
    """The verdict on two calls, and what follows from it."""

    verdict: Sameness
    witness: BitWitness | None = None
    share: float = 0.0
    boundary: tuple[int, int] | None = None
    step_bytes: int = 0
    cures: tuple[Cure, ...] = ()


@dataclass(frozen=True)
class Answer:
    """The answer: classes of sizes, one call, or two calls with a verdict."""

    options: dict[str, Any]
    request: Request
    notes: tuple[str, ...]
    classes: tuple[SizeClass, ...] = ()
    step_bytes: int = 0
    calls: tuple[OneCall, ...] = ()
    compared: BitsOfTwo | None = None
    always: str = ""
    assumed: tuple[str, ...] = field(default=())

    @property
    def is_wrong(self) -> bool:
        """True if two calls were compared and their bits are not the same."""
        return self.compared is not None and self.compared.verdict.bits is not Bits.SAME

    def certificate(self) -> Certificate:
        """Return a certificate of the answer."""
        ranges = tuple(
            ProvedRange(
                first_bytes=one.first * self.step_bytes,
                last_bytes=one.last * self.step_bytes,
                executor=one.executor,
                trees=tuple(tree.digest.hex() for tree in one.trees),
                is_fixed=one.is_fixed,
            )
            for one in self.classes
        )
        return Certificate(
            call=self.options,
            ruleset=self.request.comm.config.ruleset,
            ranges=ranges,
            calls=tuple(
                Proved.of(one.bytes, one.request.describe_executor(one.plan.selection), one.trees)
                for one in self.calls
            ),
            verdict=self.compared.verdict.bits.value if self.compared else "",
            assumed=self.assumed,
        )


def answered(
    call: ProgramOptions, maxbytes: str | None, shape: str | None, other: Other, show: Shown
) -> Answer:
    """Answer the question that the options ask."""
    options = options_of(call, maxbytes, shape, other)
    notes: tuple[str, ...] = ()
    if call.reduce_op is not None and call.reduce_op.lower() == "avg":
        call, notes = replace(call, reduce_op="sum"), (AVERAGE,)
    if not call.op:
        raise ParameterError("No op is named.", "`hccl-py numerics all_reduce`, for example.")
    request = _request(call)
    if not request.operator.reduces:
        text = f"{request.operator.name} moves bytes as they are: every run has the same bits"
        return Answer(options, request, notes, always=text)
    size, dims = _size(call, shape)
    if size is None and other.is_asked and not request.is_fixed:
        size = request.minbytes
    answer = partial(Answer, options, request, notes)
    if other.is_asked:
        if maxbytes is not None:
            raise ParameterError(
                "-e asks for many sizes, and two calls have one each.", "Leave it out."
            )
        return _of_two(answer, call, request, size, dims, other, show)
    with request.comm:
        if request.is_fixed or (maxbytes is None and size is not None):
            one = _planned(request, size, dims)
            return answer(calls=(one,), **_kind(request, one.trees))
        return _of_sizes(answer, call, request, size, maxbytes)


def options_of(
    call: ProgramOptions, maxbytes: str | None, shape: str | None, other: Other
) -> dict[str, Any]:
    """Return the options that say what is proved, as a certificate keeps them."""
    found = {name: getattr(call, name) for name in given(call)}
    found |= {"maxbytes": maxbytes, "shape": shape}
    found |= {name: getattr(other, name) for name in given(other)}
    return {name: value for name, value in found.items() if value is not None}


def _kind(request: Request, trees: ElementTrees) -> dict[str, Any]:
    """Return the parts of an answer that follow from the kind of reduction."""
    device = request.topology.product.device
    always = "" if order_matters(trees.op) else always_same(trees)
    return {"always": always, "assumed": tuple(assumptions(trees.op, device))}


def _request(call: ProgramOptions) -> Request:
    request = request_of(call)
    if request.source is not None:
        refuse_without_addresses(request.source, "check")
    return request


def _size(call: ProgramOptions, shape: str | None) -> tuple[int | None, tuple[int, ...]]:
    """Return the bytes that the options ask for, and the shape if they give one."""
    if shape is not None and call.minbytes is not None:
        raise ParameterError("--shape and -b both say the size.", "Leave one of them out.")
    text = call.minbytes if shape is None else shape
    return (None, ()) if text is None else _parsed(text, call, "-b" if shape is None else "--shape")


def _parsed(text: str, call: ProgramOptions, option: str) -> tuple[int, tuple[int, ...]]:
    """Return the bytes of a size or of a shape, and the shape."""
    from hccl_py.enums import DataType

    if re.fullmatch(r"[0-9]{1,12}(x[0-9]{1,12})+", text.lower()):
        dims = tuple(map(int, text.lower().split("x")))
        size = DataType.parse(call.dtype).itemsize
        for dim in dims:
            size *= dim
        if not 0 < size <= 1 << 60:
            raise ParameterError(f"{option} {text} has {size} bytes.", "Give 1 to 2^60 bytes.")
        return size, dims
    return parse_size(text, option), ()


def _planned(request: Request, size: int | None, dims: tuple[int, ...]) -> OneCall:
    op = request.op(request.minbytes if size is None else size)
    plan = request.plan(op)
    trees = trees_of(plan.program, is_trusted=_is_trusted(request))
    return OneCall(request, plan, trees, request.data_size(plan.op), dims)


def _is_trusted(request: Request) -> bool:
    """Return True for executors that are installed: their tests verify that they do not race."""
    return isinstance(request, CallRequest) and (
        request.executor is None or isinstance(request.executor, str)
    )


def _step(request: Request) -> int:
    """Return the bytes by which the size of a call grows."""
    op = request.op(request.minbytes)
    slots = request.operator.facts.slots_in or request.operator.facts.slots_out
    return op.unit * (request.topology.size if slots else 1)


def _of_sizes(
    answer: Callable[..., Answer],
    call: ProgramOptions,
    request: Request,
    size: int | None,
    maxbytes: str | None,
) -> Answer:
    """Answer for all sizes of a range."""
    step = _step(request)
    first = step if size is None else size
    last = max(LARGEST, first) if maxbytes is None else parse_size(maxbytes, "-e/--maxbytes")
    if last < first:
        raise ParameterError(f"-e/--maxbytes {maxbytes} is less than the first size.", "Give more.")
    op = request.op(step)
    bounds = []
    if isinstance(request, CallRequest) and request.executor is None:
        bounds = selection_bounds(op, request.topology, request.comm.config)
    calls = calls_of(
        lambda count: request.plan(request.op(count * step)),
        lambda count: request.select(request.op(count * step)),
    )
    trees = TreesBySize(calls, is_trusted=_is_trusted(request))
    low, high = max(-(-first // step), 1), max(last // step, 1)
    found = trees.classes(low, high, bounds)
    return answer(classes=tuple(found), step_bytes=step, **_kind(request, trees.at(low)))


def _of_two(
    answer: Callable[..., Answer],
    call: ProgramOptions,
    request: Request,
    size: int | None,
    dims: tuple[int, ...],
    other: Other,
    show: Shown,
) -> Answer:
    """Answer for two calls."""
    second = _request(_second(call, other))
    size_b, dims_b = size, dims
    if other.same_as is not None:
        size_b, dims_b = _parsed(other.same_as, call, "--same-as")
    with request.comm, second.comm:
        one, two = _planned(request, size, dims), _planned(second, size_b, dims_b)
        verdict = verdict_on(one.trees, two.trees, shift=other.shift)
        only_sizes = not other.changes and other.against is None
        return answer(
            calls=(one, two),
            compared=_followed(verdict, one, two, other.shift, show, only_sizes=only_sizes),
            **_kind(request, one.trees),
        )


def _value(change: str, text: str, kind: str) -> int | bool | str:
    """Return an option's value from its text, by the type of its field."""
    if "int" in kind:
        if not text.isdecimal():
            raise ParameterError(f"--with {change!r}: {text!r} is no number.", "Give one.")
        return int(text)
    if "bool" in kind:
        if text not in ("true", "false"):
            raise ParameterError(f"--with {change!r}: {text!r} is neither.", "Give true or false.")
        return text == "true"
    return text


def _second(call: ProgramOptions, other: Other) -> ProgramOptions:
    """Return the options of the second call."""
    known = {one.name: one for one in fields(call)}
    for change in other.changes or []:
        name, _, value = change.partition("=")
        name = name.strip().lstrip("-").replace("-", "_")
        if name not in known or name in ("op", "minbytes"):
            raise ParameterError(
                f"--with {change!r}: there is no such option.", did_you_mean(name, known)
            )
        changed: dict[str, Any] = {name: _value(change, value, str(known[name].type))}
        call = replace(call, **changed)
    if other.against is None:
        return call
    if importer_of(other.against) is not None:
        place = replace(call, op=other.against, executor=None)
        taken = {"minbytes", "ranks", "servers", "devices", "superpods", "topology", "rank_table"}
        usual = ProgramOptions()
        left = {name: getattr(usual, name) for name in given(place) if name not in {*taken, "op"}}
        return replace(place, **left)
    return replace(call, executor=other.against)


def _followed(
    verdict: Sameness, one: OneCall, two: OneCall, shift: int, show: Shown, *, only_sizes: bool
) -> BitsOfTwo:
    """Return the verdict with what follows from it: for other bits a witness, their share, the
    boundary between the sizes, and cures.
    """
    if verdict.bits is Bits.SAME:
        return BitsOfTwo(verdict)
    op = one.plan.op
    witness = shown(one.plan.program, two.plan.program, verdict.changed[0], shift)
    share = share_of_differing(verdict.pairs, op.dtype, one.trees.ranks, verdict.elements)
    step, edge = _boundary(one, two) if only_sizes and not shift else (0, None)
    cures: tuple[Cure, ...] = ()
    request = one.request
    if isinstance(request, CallRequest) and only_sizes and not show.no_cures:
        comm = request.comm
        machine = Machine(comm.topology, comm.config, comm.registry)
        plans = [one.plan, two.plan]
        ops = [call.request.op(call.bytes) for call in (one, two)]
        cures = tuple(cures_of(machine, ops, plans, shift))
    return BitsOfTwo(verdict, witness, share, edge, step, cures)


def _boundary(one: OneCall, two: OneCall) -> tuple[int, tuple[int, int] | None]:
    """Return the step of sizes in bytes (a row of arrays that differ in rows), and the boundary."""
    step = _step(one.request)
    if one.shape and two.shape and one.shape[1:] == two.shape[1:]:
        row = one.bytes // one.shape[0]
        step = row if row % step == 0 else step
    if one.bytes % step or two.bytes % step:
        return step, None

    def trees_at(size: int) -> ElementTrees:
        plan = one.request.plan(one.request.op(size))
        return trees_of(plan.program, is_trusted=_is_trusted(one.request))

    return step, boundary(trees_at, step, one.bytes // step, two.bytes // step)


def checked(
    path: str, call: ProgramOptions, maxbytes: str | None, shape: str | None, other: Other
) -> CertificateCheck:
    """Prove again what a certificate says, under the options that are given beside it."""
    if maxbytes is not None or shape is not None or other.is_asked:
        raise ParameterError(
            "--check takes sizes and the second call from the certificate.", "Leave them out."
        )
    certificate = Certificate.read(path)
    kept = dict(certificate.call)
    changed = {name: getattr(call, name) for name in given(call)}
    if changed:
        say_warning(f"proved under other options than those of the certificate: {changed}")
    sizes = {name: kept.pop(name, None) for name in ("maxbytes", "shape")}
    seconds = {f.name: kept.pop(f.name) for f in fields(Other) if f.name in kept}
    try:
        asked, again = ProgramOptions(**kept | changed), Other(**seconds)
    except TypeError:
        raise ParameterError(
            f"{path} names options that this release does not have.", "Write it again."
        ) from None
    found = answered(asked, sizes["maxbytes"], sizes["shape"], again, Shown(no_cures=True))
    return certificate.held_against(found.certificate())

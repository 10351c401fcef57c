"""The compiled loops that copy and reduce: ranges of 16-bit floats, and the tiles of a plan of the
emulated platform (emulated/tiling.py).

Tiles see all memory as one array of bytes, a window over the addresses of every buffer involved,
and the same window once more in the type of the reductions. 16-bit floats are 16-bit words in it,
computed in fp32 and rounded once, as numpy and ml_dtypes do, but 8 to 15 times faster.

Results equal numpy's bit for bit, except where numpy leaves the choice to the processor: the sign
of zero in max and min, and which of two NaNs a sum takes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from hccl_py.enums import ReduceOp
from hccl_py.program.kernels import kernel_calling
from hccl_py.values import IntArray

Array: TypeAlias = npt.NDArray[Any]
Words: TypeAlias = npt.NDArray[np.uint16]

_SUM, _PROD, _MAX = int(ReduceOp.SUM), int(ReduceOp.PROD), int(ReduceOp.MAX)


@kernel_calling(
    lambda: (
        *(_reduce, _reduce_fp16, _reduce_bf16),
        *(_from_fp16, _to_fp16, _from_bf16, _to_bf16),
    )
)
def run_tiles(
    memory: npt.NDArray[np.uint8],
    typed: Array,
    is_bf16: bool | None,
    bases: IntArray,
    tiles: IntArray,
    first: IntArray,
    entries: IntArray,
    low: int,
    high: int,
) -> None:
    """Run tiles low .. high - 1, every one from its first entry to its last.

        memory, typed      all memory, as bytes and in the type of the reductions
        is_bf16            for 16-bit floats, whose `typed` are words; None for other types
        bases[slot]        position of a slot in `memory`, in bytes
        tiles[tile]        band; start and stop, bytes from the beginning of the band's entries
        first[band]        first entry of a band; the last is before first[band + 1]
        entries[entry]     destination slot and offset, source slot and offset, ReduceOp or -1

    Cost: the entries of a band times the bytes of its tiles, each moved once.
    """
    unit = typed.itemsize
    # Invariant: no two tiles of a phase touch the same byte (tiling.py), so other threads may run
    # other tiles of it meanwhile, without a lock.
    for tile in range(low, high):
        band, start, stop = tiles[tile, 0], tiles[tile, 1], tiles[tile, 2]
        size = stop - start
        # All moves of the program on this tile, in the program's order: the memory of the tile is
        # in the cache from the second move that touches it on.
        for entry in range(first[band], first[band + 1]):
            target = bases[entries[entry, 0]] + entries[entry, 1] + start
            source = bases[entries[entry, 2]] + entries[entry, 3] + start
            op = entries[entry, 4]
            if op < 0:
                _copy(memory, target, source, size)
                continue
            # Reductions begin and end at whole elements: a plan that cuts one is refused.
            into = typed[target // unit : (target + size) // unit]
            what = typed[source // unit : (source + size) // unit]
            if is_bf16 is None:
                _reduce(into, what, op)
            elif is_bf16:
                _reduce_bf16(into, what, op)
            else:
                _reduce_fp16(into, what, op)


@kernel_calling(
    lambda: (
        *(_reduce_fp16, _reduce_bf16),
        *(_from_fp16, _to_fp16, _from_bf16, _to_bf16),
    )
)
def reduce_words(into: Words, what: Words, is_bf16: bool, op: int) -> None:
    """Reduce 16-bit floats into others, element by element; both are given as words, `op` is a
    ReduceOp.
    """
    if is_bf16:
        _reduce_bf16(into, what, op)
    else:
        _reduce_fp16(into, what, op)


def compiled_tiles() -> Callable[..., None]:
    """Return the compiled form of run_tiles."""
    _teach_memcpy()
    return run_tiles.compiled


def _copy(memory: npt.NDArray[np.uint8], target: int, source: int, size: int) -> None:
    memory[target : target + size] = memory[source : source + size]


@cache
def _teach_memcpy() -> None:
    """Compile _copy to libc's memcpy, a quarter faster than the loop that numba generates."""
    from numba import types
    from numba.extending import overload

    memcpy = types.ExternalFunction("memcpy", types.voidptr(types.intp, types.intp, types.intp))

    def choose(memory: Array, target: int, source: int, size: int) -> Callable[..., None]:
        def copy(memory: Array, target: int, source: int, size: int) -> None:
            start = memory.ctypes.data
            memcpy(start + target, start + source, size)

        return copy

    overload(_copy)(choose)


# The three loops below reduce `what` into `into`, element i into element i; the branch on `op` is
# outside of the loops, so that each becomes vector code. In max and min NaN wins, as in numpy:
# `a != a` holds for NaN only, and a comparison with NaN as `b` is false.


def _reduce(into: Array, what: Array, op: int) -> None:
    """Reduce numbers that the processor computes with."""
    if op == _SUM:
        for i in range(len(into)):
            into[i] += what[i]
    elif op == _PROD:
        for i in range(len(into)):
            into[i] *= what[i]
    elif op == _MAX:
        for i in range(len(into)):
            a, b = into[i], what[i]
            into[i] = a if a >= b or a != a else b
    else:
        for i in range(len(into)):
            a, b = into[i], what[i]
            into[i] = a if a <= b or a != a else b


def _reduce_fp16(into: Words, what: Words, op: int) -> None:
    if op == _SUM:
        for i in range(len(into)):
            into[i] = _to_fp16(_from_fp16(into[i]) + _from_fp16(what[i]))
    elif op == _PROD:
        for i in range(len(into)):
            into[i] = _to_fp16(_from_fp16(into[i]) * _from_fp16(what[i]))
    elif op == _MAX:
        for i in range(len(into)):
            a, b = _from_fp16(into[i]), _from_fp16(what[i])
            into[i] = into[i] if a >= b or a != a else what[i]
    else:
        for i in range(len(into)):
            a, b = _from_fp16(into[i]), _from_fp16(what[i])
            into[i] = into[i] if a <= b or a != a else what[i]


def _reduce_bf16(into: Words, what: Words, op: int) -> None:
    if op == _SUM:
        for i in range(len(into)):
            into[i] = _to_bf16(_from_bf16(into[i]) + _from_bf16(what[i]))
    elif op == _PROD:
        for i in range(len(into)):
            into[i] = _to_bf16(_from_bf16(into[i]) * _from_bf16(what[i]))
    elif op == _MAX:
        for i in range(len(into)):
            a, b = _from_bf16(into[i]), _from_bf16(what[i])
            into[i] = into[i] if a >= b or a != a else what[i]
    else:
        for i in range(len(into)):
            a, b = _from_bf16(into[i]), _from_bf16(what[i])
            into[i] = into[i] if a <= b or a != a else what[i]


# In the conversions below every step is cast to 32 bits, and choices are made between finished
# values, not by branches: so the compiler converts whole vectors at once. `word` has the 16 bits of
# a float, `bits` the 32 bits of an fp32 number.


def _from_fp16(word: np.uint16) -> np.float32:
    """Widen: move the bits to fp32's places, then multiply by the ratio of the biases."""
    places = np.uint32(np.uint32(word & 0x7FFF) << 13)
    value = np.float32(places.view(np.float32) * np.float32(2.0**112))
    bits = value.view(np.uint32)
    bits = np.uint32(bits | 0x7F800000) if places >= 0x0F800000 else bits  # infinity, NaN
    bits = np.uint32(bits | np.uint32(np.uint32(word & 0x8000) << 16))
    return bits.view(np.float32)


def _to_fp16(value: np.float32) -> np.uint16:
    """Round to nearest, ties to even: by integers, or by adding 0.5 for a subnormal result."""
    bits = np.float32(value).view(np.uint32)
    sign = np.uint32(bits & 0x80000000)
    size = np.uint32(bits ^ sign)
    usual = np.uint32(size + np.uint32(0xC8000FFF) + np.uint32(np.uint32(size >> 13) & 1))
    usual = np.uint32(usual >> 13)
    aligned = np.float32(size.view(np.float32) + np.float32(0.5))
    subnormal = np.uint32(aligned.view(np.uint32) - np.uint32(0x3F000000))
    payload = np.uint32(np.uint32(size >> 13) & 0x3FF)
    payload = payload if payload > 0 else np.uint32(1)
    special = np.uint32(payload | 0x7C00) if size > 0x7F800000 else np.uint32(0x7C00)
    word = usual if size >= 0x38800000 else subnormal
    word = special if size >= 0x47800000 else word
    return np.uint16(word | np.uint32(sign >> 16))


def _from_bf16(word: np.uint16) -> np.float32:
    """Widen: bf16 is the upper half of fp32."""
    bits = np.uint32(np.uint32(word) << 16)
    return bits.view(np.float32)


def _to_bf16(value: np.float32) -> np.uint16:
    """Round to nearest, ties to even; NaN loses its payload, as in ml_dtypes."""
    bits = np.float32(value).view(np.uint32)
    nan = np.uint32(np.uint32(np.uint32(bits >> 16) & 0x8000) | 0x7FC0)
    rounded = np.uint32(bits + np.uint32(0x7FFF) + np.uint32(np.uint32(bits >> 16) & 1))
    return np.uint16(nan if value != value else np.uint32(rounded >> 16))

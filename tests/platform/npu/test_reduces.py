"""Reduces of the fake: bits as numpy and ml_dtypes have them, and nothing lost on the way."""

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.platform.npu.remote import KEY, MAX, MIN, POINTER, SUM, Npu
from tests.platform.npu.runtime import Machine

pytestmark = pytest.mark.npu

BF16 = ml_dtypes.bfloat16
TYPES: dict[int, Any] = {
    0: np.float32,
    1: np.float16,
    2: np.int8,
    3: np.int32,
    6: np.int16,
    27: BF16,
}
REDUCED = {SUM: np.add, MAX: np.maximum, MIN: np.minimum}


def pairs(dtype: Any) -> tuple[Any, Any]:
    """Operands of all bit patterns there are, or of many."""
    rng = np.random.default_rng(7)
    bits = np.dtype(dtype).itemsize
    if bits < 4:
        every = np.arange(1 << 8 * bits, dtype=f"u{bits}").view(dtype)
        return every, rng.permutation(every)
    words = rng.integers(0, 1 << 32, (2, 4096), dtype=np.uint32)
    return words[0].view(dtype), words[1].view(dtype)


def same(found: Any, wanted: Any) -> bool:
    """Bit by bit, but for which NaN it is, and which zero max and min pick."""
    with np.errstate(invalid="ignore"):
        floats = [x.astype(np.float64) for x in (found, wanted)]
    return bool(np.array_equal(floats[0], floats[1], equal_nan=True))


@pytest.mark.parametrize("number", TYPES, ids=lambda number: np.dtype(TYPES[number]).name)
def test_the_bits(machine: Machine, number: int) -> None:
    dtype = TYPES[number]
    a, b = pairs(dtype)
    with machine.process() as npu:
        to, source, stream = npu.malloc(a.nbytes), npu.malloc(b.nbytes), npu.stream()
        npu.poke(source, b.tobytes())
        for kind, ufunc in REDUCED.items():
            npu.poke(to, a.tobytes())
            npu.call("aclrtReduceAsync", to, source, a.nbytes, kind, number, stream, None)
            npu.synchronize(stream)
            found = np.frombuffer(npu.peek(to, a.nbytes), dtype)
            with np.errstate(all="ignore"):
                wanted = ufunc(a, b)
            assert same(found, wanted), (dtype, kind)
            if kind == SUM and dtype in (np.float16, BF16):
                real = ~np.isnan(wanted.astype(np.float32))
                assert found[real].tobytes() == wanted[real].tobytes()  # zeros have signs, too


STREAMS, ROUNDS, ELEMENTS = 4, 20, 256


def summed(machine: Machine, **knobs: object) -> list[float]:
    """What four processes have added into one place from several streams each, all at once."""
    values = np.ones(ELEMENTS, np.float32)
    with (
        machine.process(0, **knobs) as first,
        machine.process(1, **knobs) as second,
        machine.process(2, **knobs) as third,
        machine.process(0, **knobs) as fourth,
    ):
        npus = [first, second, third, fourth]
        place = first.malloc(values.nbytes)
        first.poke(place, bytes(values.nbytes))
        key = first.call("aclrtIpcMemGetExportKey", place, values.nbytes, KEY, 65, 1)
        places = [place] + [npu.call("aclrtIpcMemImportByKey", POINTER, key, 1) for npu in npus[1:]]
        started = [prepared(npu, to, values) for npu, to in zip(npus, places, strict=True)]
        for npu, (starter, gates, _) in zip(npus, started, strict=True):
            for gate in gates:
                npu.record(gate, starter)
        for npu, (_, _, streams) in zip(npus, started, strict=True):
            npu.synchronize(*streams)
        found: list[float] = np.frombuffer(first.peek(place, values.nbytes), np.float32).tolist()
        return found


def prepared(npu: Npu, to: int, values: Any) -> tuple[int, list[int], list[int]]:
    """Streams full of reduces, each behind a notify."""
    own = npu.malloc(values.nbytes)
    npu.poke(own, values.tobytes())
    streams, gates = [npu.stream() for _ in range(STREAMS)], [npu.notify() for _ in range(STREAMS)]
    for stream, gate in zip(streams, gates, strict=True):
        npu.wait(gate, stream)
    for _, stream in itertools.product(range(ROUNDS), streams):
        npu.call("aclrtReduceAsync", to, own, values.nbytes, SUM, 0, stream, None)
    return npu.stream(), gates, streams


def test_no_sum_is_lost_between_processes(machine: Machine) -> None:
    assert summed(machine) == [4.0 * STREAMS * ROUNDS] * ELEMENTS


def test_sums_would_be_lost_without_atomicity(machine: Machine) -> None:
    found = summed(machine, ATOMIC=0)
    assert max(found) < 4.0 * STREAMS * ROUNDS

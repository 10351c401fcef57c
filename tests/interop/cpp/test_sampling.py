"""Samples of a call at other sizes: how far its program stays the same, and which counts tell."""

from collections.abc import Callable

import pytest

from hccl_interop.cpp.export.host import shown_to_peers
from hccl_interop.cpp.export.sampling import sample_sizes
from hccl_py.enums import Mode
from hccl_py.errors import NotSupportedError
from hccl_py.program.program import Program
from tests.recording import op_of, recorded


def ring(ccl_bytes: int = 4096, dtype: str = "fp32") -> Callable[[int], Program]:
    """Return what records a ring over 4 ranks; data beyond the buffer takes a second round."""
    return lambda count: recorded(
        "AllReduceComm", op_of("all_reduce", count, dtype), ccl_bytes=ccl_bytes
    )


def counts(samples: tuple[Program, ...]) -> list[int]:
    return [sample.op.count for sample in samples]


def test_samples_lie_between_the_ends() -> None:
    samples = sample_sizes(ring(), 100, 5000)
    assert samples.exported.op.count == 100
    assert (samples.least, samples.most) == (1, 1024)
    # 2 ** (10 k / 7) for k = 0 .. 7, every second one odd; 100 + 1, 100 * 3 / 2, 100 * 2 - 1; the
    # end, and one less; small ones; and 1 + 1023 times the rest of 0.618 k for k = 13 .. 16.
    powers, near = {1, 3, 7, 19, 52, 141, 380}, {101, 150, 199, 1023, 1024}
    mixed = {36, 277, 668, 909}
    assert counts(samples.every) == [100, *sorted({*range(1, 25)} | powers | near | mixed)]


@pytest.mark.parametrize("room", [100, 101, 300, 1023, 1024, 1025])
def test_no_sample_is_beyond_the_room(room: int) -> None:
    samples = sample_sizes(ring(), 100, room)
    assert (samples.least, samples.most) == (1, min(room, 1024))
    assert max(counts(samples.every)) <= room


@pytest.mark.parametrize(("first", "last"), [(5, 700), (98, 103), (100, 100), (99, 100)])
def test_the_ends_are_found_exactly(first: int, last: int) -> None:
    """Another count is refused below one end, and gives another program beyond the other."""

    def record(count: int) -> Program:
        if count < first:
            raise NotSupportedError(f"{count} elements are too few.")
        return ring(4096 if count <= last else 64)(count)

    samples = sample_sizes(record, 100, 5000)
    assert (samples.least, samples.most) == (first, last)
    assert all(first <= count <= last for count in counts(samples.every))


@pytest.mark.parametrize("count", [100, 1000])
def test_another_program_between_the_ends_is_an_end(count: int) -> None:
    """From 200 to 900 elements the program is another one, and beyond them the first again."""

    def record(number: int) -> Program:
        return ring(64 if 200 <= number <= 900 else 4096)(number)

    samples = sample_sizes(record, count, 5000)
    assert (samples.least, samples.most) == ((1, 199) if count == 100 else (901, 1024))


@pytest.mark.parametrize(("dtype", "bytes_of_one"), [("fp32", 4), ("int8", 1)])
def test_chunks_are_told_from_each_other(dtype: str, bytes_of_one: int) -> None:
    """Four chunks of whole lines of 128 bytes, cut once or twice: the last lacks one element."""
    plain = sample_sizes(ring(4096, dtype), 100, 5000)
    told = sample_sizes(ring(4096, dtype), 100, 5000, chunks=(4,))
    lines = {128 * line // bytes_of_one - 1 for line in (1, 2, 3, 4, 8, 12, 16)}
    assert {*counts(told.every)} == {*counts(plain.every), *lines}


def test_few_of_many_telling_counts_are_recorded() -> None:
    """Of 64 chunks there are 127; the smallest 12 are kept, and every tenth of the others."""
    plain = sample_sizes(ring(1 << 20), 100, 1 << 18)
    told = sample_sizes(ring(1 << 20), 100, 1 << 18, chunks=(64,))
    lines = [*range(1, 65), *range(128, 4097, 64)]
    few = [*lines[:12], *lines[12::10]]
    assert {*counts(told.every)} == {*counts(plain.every), *(32 * line - 1 for line in few)}


@pytest.mark.parametrize(("count", "dtype"), [(1, "int8"), (3, "int16")])
def test_memory_that_peers_read_is_a_multiple_of_the_call(count: int, dtype: str) -> None:
    op = op_of("all_gather", count, dtype, mode=Mode.GRAPH)
    assert shown_to_peers(recorded("AllGatherMeshGraphExecutor", op)) == {"output": 4}
    staged = op_of("all_gather", count, dtype)
    assert shown_to_peers(recorded("AllGatherMeshOpbaseExecutor", staged)) == {}

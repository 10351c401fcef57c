"""npz program files: what was recorded comes back as it is; damage is refused in a sentence."""

import io
import json
import re
import time
import zipfile
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hccl_py.enums import Mode
from hccl_py.errors import ProgramFileError
from hccl_py.formats import from_json, from_npz, load, save, to_json, to_npz
from hccl_py.program.program import Program
from hccl_py.topology import topology_of
from hccl_py.values import PerRank
from tests.recording import MESH_ONLY, op_of, recorded

Arrays = dict[str, npt.NDArray[Any]]


FUZZ = settings(max_examples=10 * settings().max_examples)
"""As many examples as the profile says, tenfold: they are cheap."""


def ring(ranks: int, count: int = 100, **more: Any) -> Program:
    """Return a ring all-reduce."""
    return recorded("AllReduceComm", op_of("all_reduce", count), topology_of(ranks), **more)


def formula(value: object) -> object:
    """Return what says the same number for every rank: the number, or the formula's parts."""
    if not isinstance(value, PerRank):
        return value
    table = None if value.table is None else value.table.tolist()
    return (value.base.tolist(), value.add, value.mod, table, value.low, value.high)


def parts(program: Program) -> list[Any]:
    """Return everything that is in a program, as plain values."""
    transports, declared = program.transports, program.declared
    batches = [
        (batch.ranks.tolist(), [[formula(v) for v in i] for i in batch.instructions])
        for batch in program.batches
    ]
    stated = [getattr(part, f.name) for part in (transports, declared) for f in fields(part)]
    arrays = [program.buffer_sizes, *stated]
    plain = [array.tolist() if isinstance(array, np.ndarray) else array for array in arrays]
    texts = (program.labels, program.lines, program.splits, program.buffers)
    names = (program.op, program.executor, program.ranks, program.rounds)
    return [batches, plain, texts, names, program.local_notifies]


def arrays_of(data: bytes) -> Arrays:
    """Return the arrays of a file as numpy reads them."""
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        return dict(archive)


def packed(arrays: Arrays) -> bytes:
    """Return an npz file as numpy writes it."""
    out = io.BytesIO()
    np.savez(out, **arrays)  # type: ignore[arg-type]
    return out.getvalue()


def refusal(data: bytes, **more: Any) -> str:
    """Return the message of the error that a file gives."""
    with pytest.raises(ProgramFileError) as caught:
        from_npz(data, "x.npz", **more)
    check_sentence(caught.value)
    return caught.value.message


def check_sentence(error: ProgramFileError) -> None:
    assert error.message.startswith("x.npz: ")
    assert error.message.endswith(".")
    assert "\n" not in error.message
    assert len(error.message) < 400
    assert error.hint


@given(
    executor=st.sampled_from(["AllGatherComm", "AllReduceComm", *MESH_ONLY]),
    topology=st.sampled_from([topology_of(n) for n in (1, 2, 5, 8)])
    | st.sampled_from([topology_of(12), topology_of(servers=4, devices=1)]),
    count=st.sampled_from([0, 1, 1000]),
    mode=st.sampled_from(Mode),
    by_rank=st.booleans(),
)
def test_recordings_come_back_as_they_are(
    executor: str, topology: Any, count: int, mode: Mode, by_rank: bool
) -> None:
    if executor in MESH_ONLY:
        mode, topology = Mode.OP_BASE, topology_of(min(topology.size, 8))
    name = "all_gather" if executor.startswith("AllGather") else "all_reduce"
    program = recorded(executor, op_of(name, count, mode=mode), topology, by_rank=by_rank)
    data = to_npz(program)
    back = from_npz(data)
    assert parts(back) == parts(program)
    assert back.digest == program.digest
    assert to_npz(back) == data
    assert to_json(back) == to_json(program)


def test_programs_from_json_come_back_as_they_are() -> None:
    program = from_json(to_json(ring(9)))
    assert parts(from_npz(to_npz(program))) == parts(program)


def test_what_only_files_say_comes_back() -> None:
    document = """{"format": "hccl-py.program/1", "ranks": 2, "link": "sdma", "buffers": {},
        "op": {"name": "all_to_all_v", "dtype": "int8", "counts": [[0, 1], [2, 0]]},
        "resources": {"0": {"local_notifies": {"0": 1}, "channel_notifies": {"1": 1}}},
        "tasks": {"0": {"0": [["wait", 1, 9], ["local_wait", 4]]}}}"""
    program = from_json(document)
    back = from_npz(to_npz(program))
    assert parts(back) == parts(program)
    assert back.op.counts == ((0, 1), (2, 0))
    assert back.declared.stated.tolist() == [[False, True, True], [False] * 3]
    assert back.transports.stride == 10
    assert to_json(back) == to_json(program)


def test_splits_come_back() -> None:
    program = replace(ring(3), splits=("a.py:1", "b.py:2"))
    assert from_npz(to_npz(program)).splits == program.splits


def test_an_empty_program_comes_back() -> None:
    program = replace(ring(1), batches=())
    assert from_npz(to_npz(program)).task_count == 0


def test_equal_recordings_give_equal_bytes(tmp_path: Path) -> None:
    for name in ("a.npz", "b.npz"):
        save(ring(12), tmp_path / name)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.npz") as archive:
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_numpy_reads_and_writes_it_too() -> None:
    program = ring(5)
    arrays = arrays_of(to_npz(program))
    assert arrays["instructions"].shape == (11, sum(len(b.instructions) for b in program.batches))
    assert parts(from_npz(packed(arrays))) == parts(program)


def test_a_ring_of_1024_ranks_is_small_and_fast(tmp_path: Path) -> None:
    program = recorded(
        "AllReduceComm", op_of("all_reduce", 16 << 20), topology_of(1024, preset="ring"), 200 << 20
    )
    path = tmp_path / "ring.npz"
    started = time.process_time()
    save(program, path)
    back = load(path)
    taken = time.process_time() - started
    assert taken < 3  # CPU seconds; its 10 million tasks one by one would take tens of them
    assert path.stat().st_size < 100_000
    # Each rank and round (one): a copy in, 2 * 1023 steps of 5 tasks, a barrier of 4, a copy out.
    assert back.task_count == 1024 * (1 + 2 * 1023 * 5 + 4 + 1)
    assert to_npz(back) == path.read_bytes()


# --- damage --------------------------------------------------------------------------------------

DATA = to_npz(ring(9))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PK\x03\x04",
        b"x" * 1000,
        DATA[:-1],
        DATA[: len(DATA) // 2],
        b"PK\x05\x06" + bytes(18),  # an empty archive
        b'{"format": "hccl-py.program/1"}',
    ],
)
def test_what_is_no_archive_is_refused(data: bytes) -> None:
    assert refusal(data).startswith(("x.npz: $: ", "x.npz: header: "))


@FUZZ
@given(at=st.integers(0, len(DATA) - 1), value=st.integers(0, 255), length=st.integers(0, 3))
def test_damaged_bytes_never_give_a_traceback(at: int, value: int, length: int) -> None:
    data = DATA[:at] + bytes([value]) * length + DATA[at + 1 :]
    try:
        from_npz(data, "x.npz")
    except ProgramFileError as error:
        check_sentence(error)


def test_archives_of_others_are_refused() -> None:
    assert "header: expected an array, found nothing" in refusal(packed({"a": np.zeros(3)}))
    arrays = arrays_of(DATA)
    for name in arrays:
        less = {key: array for key, array in arrays.items() if key != name}
        assert f"{name}: expected an array, found nothing" in refusal(packed(less))


def test_pickles_are_refused() -> None:
    arrays = arrays_of(DATA)
    arrays["pool"] = np.array([{}, print], object)
    assert "no" in refusal(packed(arrays))


def test_archives_that_unpack_to_too_much_are_refused() -> None:
    arrays = arrays_of(DATA)
    out = io.BytesIO()
    arrays["pool"] = np.zeros(20_000_000, np.int64)
    np.savez_compressed(out, **arrays)  # type: ignore[arg-type]
    assert len(out.getvalue()) < 1_000_000
    assert "at most 100,000,000 bytes, found 16" in refusal(out.getvalue(), max_bytes=100_000_000)


def test_a_shape_that_is_not_there_is_refused() -> None:
    header = b"{'descr': '<i8', 'fortran_order': False, 'shape': (99999999999, 99999999999), }"
    header += b" " * (117 - len(header)) + b"\n"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("header.npy", b"\x93NUMPY\x01\x00" + bytes([118, 0]) + header)
    assert "does not hold" in refusal(out.getvalue())


def set_to(name: str, where: Any, value: Any) -> Callable[[Arrays], None]:
    """Return a change of one element."""

    def change(arrays: Arrays) -> None:
        arrays[name] = arrays[name].astype(np.int64)
        arrays[name][where] = value

    return change


def first_formula(arrays: Arrays) -> tuple[int, ...]:
    """Return where a formula stands."""
    return tuple(int(k) for k in np.argwhere(arrays["formula"] >= 0)[0])


CHANGES: dict[str, tuple[Callable[[Arrays], None], str]] = {
    "kind": (set_to("instructions", (0, 0), 11), "instructions.kind: .* found 11"),
    "stream": (set_to("instructions", (1, 0), -1), "instructions.stream"),
    "label": (set_to("instructions", (2, 0), 99), "instructions.label"),
    "line": (set_to("instructions", (3, 0), 99), "instructions.line"),
    "buffer": (set_to("instructions", (5, 0), -1), "instructions.src_buffer"),
    "dtype": (set_to("instructions", (7, 0), 18), "instructions.dtype"),
    "no dtype": (
        set_to("instructions", (7, 0), 13),
        "dtype: expected numbers of data types, found 13",
    ),
    "cell": (set_to("values", (0, 0), 10**6), "values.cell"),
    "size": (set_to("values", (5, 0), -1), "values.size"),
    "far": (set_to("ends", (4, 0), 0), "ends: expected every end's other side"),
    "rank": (set_to("ends", (0, 0), 9), "ends: expected numbers from 0 to 8, found 9"),
    "twice": (set_to("batch_ranks", 0, 1), "batch_ranks: expected every rank once"),
    "sizes": (set_to("batches", (1, 0), 0), "batches: expected 9 ranks"),
    "no formula": (lambda a: set_to("formula", first_formula(a), 10**4)(a), "formula: expected"),
    "base": (set_to("formulas", (0, 0), 999), "formulas: expected numbers"),
    "mod": (set_to("formulas", (0, 2), -5), "formulas: expected"),
    "add": (set_to("formulas", (slice(None), 1), 10**9), r"formula\.\w+: expected numbers"),
    "pool": (set_to("pool", slice(None), -(10**9)), r"formula\.\w+: expected numbers"),
    "pool sizes": (set_to("pool_sizes", 0, 1), "pool_sizes: expected"),
    "declared": (set_to("declared", (0, 0), -1), "declared"),
    "declared local": (set_to("declared_local", (0, 0), -1), "declared_local"),
    "streams": (set_to("declared", (0, 0), 5), "declared_local: expected 6 streams, found 1"),
    "stated": (set_to("stated", (0, 0), 2), "stated: expected numbers from 0 to 1"),
    "length": (set_to("instructions", (9, 0), -2), "instructions.dst_size: .* found -2"),
    "buffer size": (set_to("buffer_sizes", (0, 0), -1), "buffer_sizes"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_numbers_out_of_range_are_named(name: str) -> None:
    change, message = CHANGES[name]
    arrays = arrays_of(DATA)
    change(arrays)
    with pytest.raises(ProgramFileError, match=message):
        from_npz(packed(arrays), "x.npz")


RING = ring(9)

LAST: dict[str, tuple[str, Any, int]] = {
    "label": ("instructions", (2, 0), len(RING.labels) - 1),
    "line": ("instructions", (3, 0), len(RING.lines) - 1),
    "round": ("instructions", (4, 0), 2**31 - 2),
    "src_buffer": ("instructions", (5, 0), 4),
    "dst_buffer": ("instructions", (6, 0), 4),
    "dst_size": ("instructions", (9, 0), 2**62 - 1),
    "joined": ("instructions", (10, 0), 2),
    "values": ("values", (5, 0), 2**62 - 1),
    "ranks": ("ends", (0, slice(None)), 8),
    "plane": ("ends", (2, 0), len(RING.transports.planes) - 1),
    "link": ("ends", (3, 0), 1),
    "far": ("ends", (4, slice(None)), 17),
    "exports": ("exports", (0, 0), 4),
    "buffer sizes": ("buffer_sizes", (0, 0), 2**62 - 1),
    "declared": ("declared", (2, 0), 2**62 - 1),
    "sub streams": ("declared", (0, slice(None)), 2**15 - 1),
    "declared_local": ("declared_local", (0, 0), 2**15 - 1),
    "stated": ("stated", (0, 0), 1),
    "batch_ranks": ("batch_ranks", slice(None), 8),
    "base": ("formulas", (0, 0), 10),
    "add": ("formulas", (0, 1), 2**62 - 1),
    "mod": ("formulas", (0, 2), 2**62 - 1),
    "table": ("formulas", (0, 3), 10),
    "pool": ("pool", 0, 2**62 - 1),
    "formula": ("formula", first_formula(arrays_of(DATA)), 25),
}
"""The last number that each range holds: the ring has 9 ranks, 18 ends and 5 buffers."""


def complaint(arrays: Arrays) -> str:
    """Return the message of the error that arrays give, or nothing."""
    try:
        from_npz(packed(arrays), "x.npz")
    except ProgramFileError as error:
        return error.message
    return ""


@pytest.mark.parametrize("name", LAST)
def test_ranges_end_where_they_say(name: str) -> None:
    array, where, last = LAST[name]
    for value in (last, last + 1):
        arrays = arrays_of(DATA)
        set_to(array, where, value)(arrays)
        assert (f"to {last}, found {value}." in complaint(arrays)) == (value > last)


@pytest.mark.parametrize(
    ("array", "where", "name"),
    [
        ("exports", (0, 0), "exports"),
        ("formula", (0, 0), "formula"),
        ("formulas", (0, 3), "formulas"),
        ("instructions", (7, 0), "instructions.dtype"),
        ("instructions", (2, 0), "instructions.label"),
    ],
)
def test_minus_one_says_none(array: str, where: Any, name: str) -> None:
    arrays = arrays_of(DATA)
    set_to(array, where, -2)(arrays)
    assert re.match(
        rf"x\.npz: {name}: expected numbers from -1 to \d+, found -2", refusal(packed(arrays))
    )


@pytest.mark.parametrize(
    ("ranks", "instructions", "words"),
    [
        ((4, 5), (-1, 87), "batches: expected numbers from 0 to 86, found -1"),
        ((0, 9), (40, 46), "batches: expected numbers from 1 to 9, found 0"),
        ((4, 5), (40, 45), "batches: expected 9 ranks and 86 instructions"),
        ((4, 4), (40, 46), "batches: expected 9 ranks and 86 instructions"),
    ],
)
def test_batches_have_ranks_and_instructions(
    ranks: tuple[int, int], instructions: tuple[int, int], words: str
) -> None:
    arrays = arrays_of(DATA)
    arrays["batches"] = np.array([ranks, instructions])
    assert words in refusal(packed(arrays))


@pytest.mark.parametrize("duration", [-0.5, np.nan, np.inf])
def test_durations_that_no_task_takes_are_refused(duration: float) -> None:
    arrays = arrays_of(DATA)
    arrays["durations"][3] = duration
    assert "durations: expected a duration per instruction" in refusal(packed(arrays))


def test_durations_come_with_every_instruction() -> None:
    arrays = arrays_of(DATA)
    arrays["durations"] = arrays["durations"][:-1]
    assert "durations: expected a duration per instruction" in refusal(packed(arrays))


@pytest.mark.parametrize(
    ("member", "first", "last"),
    [("ranks", 1, 2**16), ("rounds", 1, 2**62 - 1), ("slots", 0, 2**15 - 1)],
)
def test_numbers_of_the_header_have_ranges(member: str, first: int, last: int) -> None:
    arrays = arrays_of(DATA)
    header = json.loads(arrays["header"].tobytes())
    for value in (first - 1, last + 1):
        text = json.dumps({**header, member: value}).encode()
        message = refusal(packed({**arrays, "header": np.frombuffer(text, np.uint8)}))
        assert f"header.{member}: expected numbers from {first} to {last}, found {value}" in message


def test_numbers_are_0_where_a_formula_stands() -> None:
    arrays = arrays_of(DATA)
    held = arrays["formula"] >= 0
    assert held.any()
    assert not arrays["values"][held].any()
    assert arrays["formula"].min() == -1


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (b"[]", "header: expected an object"),
        (b"{", "line 1 column 2"),
        (b"\xff", "line 1: expected UTF-8"),
        (
            b'{"format": "hccl-py.program.npz/1"}',
            r'header\.format: expected "hccl-py\.program\.npz/3", found "hccl-py\.program\.npz/1"',
        ),
        (b"{}", r"header\.format: expected .*, found null"),
    ],
)
def test_other_headers_are_refused(header: bytes, message: str) -> None:
    arrays = arrays_of(DATA)
    arrays["header"] = np.frombuffer(header, np.uint8)
    with pytest.raises(ProgramFileError, match=message):
        from_npz(packed(arrays), "x.npz")


MESH = to_npz(recorded("AllGatherMeshOpbaseExecutor", op_of("all_gather", 64), 4))


@FUZZ
@given(data=st.data())
def test_changed_arrays_load_or_are_refused_in_a_sentence(data: st.DataObject) -> None:
    arrays = arrays_of(data.draw(st.sampled_from([DATA, MESH])))
    name = data.draw(st.sampled_from([n for n in arrays if n not in ("header", "durations")]))
    flat = arrays[name].astype(np.int64).ravel()
    shape = arrays[name].shape
    action = data.draw(st.sampled_from(["set", "shift", "drop", "reshape", "type"]))
    if len(flat) and action in ("set", "shift"):
        at = data.draw(st.integers(0, len(flat) - 1))
        odd = data.draw(st.sampled_from([-(2**63), -2, -1, 0, 1, 2, 5, 9, 127, 2**31, 2**62]))
        flat[at] = odd if action == "set" else flat[at] + odd % 100
    arrays[name] = flat.reshape(shape)
    if action == "drop":
        arrays[name] = arrays[name][:-1]
    elif action == "reshape":
        arrays[name] = arrays[name].T
    elif action == "type":
        arrays[name] = arrays[name].astype(np.float64)
    try:
        program = from_npz(packed(arrays), "x.npz")
    except ProgramFileError as error:
        check_sentence(error)
    else:
        assert program.cells >= 1_000_000 or len(program.linked.order) <= len(program.tasks)

"""JSON program files: what is recorded comes back, what a verifier must see can be said."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_py.enums import DataType, LinkKind, Mode, ReduceOp, TaskKind
from hccl_py.errors import ProgramFileError
from hccl_py.formats import (
    from_json,
    from_npz,
    load,
    save,
    to_json,
    to_npz,
)
from hccl_py.program.describe import format_task
from hccl_py.program.instruction import Batch
from hccl_py.program.program import Program
from hccl_py.program.usage import usage_of
from hccl_py.topology import topology_of
from tests.recording import MESH_ONLY, op_of, recorded

# The example of the format's description.
EXAMPLE = """{
  "format": "hccl-py.program/1",
  "op": {"name": "all_gather", "dtype": "uint8", "count": 64, "reduce": null, "root": null,
         "in_place": false},
  "ranks": 4,
  "link": "sdma",
  "buffers": {"0": {"IN": 64, "OUT": 256, "CCL": 64}, "1": {"IN": 64, "OUT": 256, "CCL": 64}},
  "exported": ["CCL"],
  "resources": {"0": {"streams": 3, "local_notifies": {"0": 2, "1": 1, "2": 1},
                      "channel_notifies": {"1": 3, "2": 3, "3": 3}}},
  "tasks": {"0": {"0": [["copy", ["IN", 0, 64], ["CCL", 0, 64]], ["local_post", 1, 0],
                        ["post", 1, 0], ["wait", 1, 0],
                        ["read", 1, ["CCL", 0, 64], ["OUT", 64, 64]]]}}
}"""

SHORT: dict[str, Any] = {
    "format": "hccl-py.program/1",
    "op": {"name": "all_gather", "dtype": "fp32", "count": 1},
    "ranks": 2,
    "link": "sdma",
    "exported": ["CCL"],
    "buffers": {"0": {"IN": 4, "OUT": 8, "CCL": 4}, "1": {"IN": 4, "OUT": 8, "CCL": 4}},
    "tasks": {},
}

GENERAL: dict[str, Any] = {
    **{key: SHORT[key] for key in ("format", "op", "ranks", "buffers", "tasks")},
    "links": [
        {"id": 7, "ranks": [1, 0], "kind": "rdma", "exports": {"0": ["CCL"], "1": ["CCL", "OUT"]}},
        {"id": 2, "ranks": [0, 1], "kind": "sdma", "exports": {"0": ["IN"]}, "notifies": 2},
    ],
}

TOPOLOGIES = {
    "one": topology_of(1),
    "mesh": topology_of(5),
    "mixed": topology_of(12),
    "rdma": topology_of(servers=4, devices=1),
}

CASES = [
    (executor, name)
    for executor in ("AllGatherComm", "AllReduceComm", *MESH_ONLY)
    for name in TOPOLOGIES
    if executor not in MESH_ONLY or name in ("one", "mesh")
]


def call(executor: str, count: int = 100, dtype: str = "fp32", mode: Mode = Mode.OP_BASE) -> Any:
    """Return the op that an executor carries out."""
    name = "all_gather" if executor.startswith("AllGather") else "all_reduce"
    return op_of(name, count, dtype, mode=mode)


def by_stream(program: Program) -> Program:
    """Return the program with every rank's tasks stream by stream, as files list them."""
    batches = [
        Batch(batch.ranks, tuple(sorted(batch.instructions, key=lambda i: i.stream)))
        for batch in program.batches
    ]
    return replace(program, batches=tuple(batches))


def notes(program: Program) -> list[tuple[str, str, int]]:
    """Return label, source line and round of every task."""
    table, at = program.tasks.table, program.tasks.instruction
    return [
        (
            program.labels[label] if label >= 0 else "",
            program.lines[line] if line >= 0 else "",
            number,
        )
        for label, line, number in zip(
            table.label[at].tolist(), table.line[at].tolist(), table.round[at].tolist(), strict=True
        )
    ]


def with_tasks(*tasks: list[Any], base: dict[str, Any] = SHORT, **more: Any) -> Program:
    """Return the program of a file whose rank 0 has some tasks on its main stream."""
    return from_json(json.dumps({**base, "tasks": {"0": {"0": tasks}}, **more}))


@pytest.mark.parametrize(("executor", "name"), CASES)
@given(count=st.sampled_from([0, 1, 7, 1000]), ccl_bytes=st.sampled_from([1 << 11, 1 << 20]))
def test_recorded_programs_come_back(executor: str, name: str, count: int, ccl_bytes: int) -> None:
    small = executor not in MESH_ONLY  # the mesh reserves some KiB of its buffer
    topology = TOPOLOGIES[name]
    program = recorded(executor, call(executor, count), topology, ccl_bytes if small else 1 << 20)
    text = to_json(program)
    back = from_json(text)
    wanted = by_stream(program)
    assert back.digest == wanted.digest
    assert notes(back) == notes(wanted)
    assert back.executor == program.executor
    assert (back.declared.sub_streams == program.declared.sub_streams).all()
    assert (back.declared.notifies == program.declared.notifies).all()
    assert (back.declared.scratch_bytes == program.declared.scratch_bytes).all()
    assert (back.declared.local_notifies == program.declared.local_notifies).all()
    assert back.declared.stated.all()
    assert to_json(back) == text


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("dtype", ["int8", "bf16", "fp64", "uint16"])
def test_modes_and_dtypes_come_back(mode: Mode, dtype: str) -> None:
    program = recorded("AllReduceComm", call("AllReduceComm", 33, dtype, mode), 3)
    back = from_json(to_json(program))
    assert back.op == program.op
    assert back.digest == by_stream(program).digest


@pytest.mark.parametrize("executor", ["AllReduceComm", *MESH_ONLY])
def test_batching_does_not_show(executor: str) -> None:
    op = call(executor)
    together, alone = recorded(executor, op, 4), recorded(executor, op, 4, by_rank=True)
    assert to_json(together) == to_json(alone)


def test_rounds_come_back() -> None:
    program = recorded("AllReduceComm", call("AllReduceComm", 3000), 3, ccl_bytes=4096)
    assert program.rounds == 3
    assert '"round": 2' in to_json(program)
    assert from_json(to_json(program)).rounds == 3


def test_rounds_without_tasks_come_back() -> None:
    program = replace(recorded("AllReduceComm", call("AllReduceComm"), 2), rounds=5)
    back = from_json(to_json(program))
    assert back.rounds == 5
    assert back.digest == program.digest


def test_one_task_per_line() -> None:
    program = recorded("AllGatherComm", call("AllGatherComm"), 3)
    lines = to_json(program).splitlines()
    assert sum(line.startswith("        [") for line in lines) == program.task_count


def test_alike_links_take_the_short_form() -> None:
    text = json.loads(to_json(recorded("AllGatherMeshOpbaseExecutor", call("AllGather"), 3)))
    assert (text["link"], text["exported"]) == ("sdma", ["CCL_IN", "CCL_OUT"])
    assert text["resources"]["1"] == {
        "streams": 3,
        "local_notifies": {"0": 2, "1": 1, "2": 1},
        "channel_notifies": {"0": 3, "2": 3},
    }


def test_mixed_links_take_the_general_form() -> None:
    text = json.loads(to_json(recorded("AllGatherComm", call("AllGather"), topology_of(9))))
    assert "link" not in text
    assert {link["kind"] for link in text["links"]} == {"sdma", "rdma"}
    assert text["links"][0]["exports"] == {"0": ["CCL_IN", "CCL_OUT"], "1": ["CCL_IN", "CCL_OUT"]}


def test_the_example_of_the_format_loads() -> None:
    program = from_json(EXAMPLE)
    kinds = [TaskKind(kind).spelling for kind in program.tasks.kind.tolist()]
    assert kinds == ["copy", "notify_post", "notify_post", "notify_wait", "read"]
    assert program.declared.sub_streams.tolist() == [2, 0, 0, 0]
    assert program.transports.counts(4).tolist() == [3, 1, 1, 1]
    assert program.local_notifies.slots == ((0, 0), (0, 1), (1, 0), (2, 0))
    assert len(program.linked.stuck) == 1
    assert to_json(from_json(to_json(program))) == to_json(program)


def test_every_task_of_the_format() -> None:
    s: list[Any] = ["CCL", 0, 4]
    d: list[Any] = ["OUT", 4, 4]
    tasks: list[list[Any]] = [
        ["copy", s, d],
        ["reduce", "sum", s, d],
        ["read", 1, s, d],
        ["read_reduce", 1, "prod", s, d],
        ["write", 1, s, d],
        ["write_reduce", 1, "max", s, d],
        ["post", 1, 0],
        ["wait", 1, 1],
        ["compute", 2.5],
        ["local_post", 0, 0],
        ["local_wait", 0],
    ]
    program = with_tasks(*tasks)
    kinds = [TaskKind(kind).spelling for kind in program.tasks.kind.tolist()]
    assert kinds[:6] == ["copy", "reduce", "read", "read_reduce", "write", "write_reduce"]
    assert kinds[6:] == ["notify_post", "notify_wait", "compute", "notify_post", "notify_wait"]
    table = program.tasks.table
    assert table.duration_us[8] == 2.5
    assert table.reduce.tolist()[:6] == [-1, ReduceOp.SUM, -1, ReduceOp.PROD, -1, ReduceOp.MAX]
    assert json.loads(to_json(program))["tasks"]["0"]["0"] == tasks


def test_writes_over_rdma_are_rdma_writes() -> None:
    program = with_tasks(
        ["write", "link:7", ["IN", 0, 4], ["CCL", 0, 4]],
        ["write_reduce", "link:7", "sum", ["IN", 0, 4], ["CCL", 0, 4]],
        ["write", "link:2", ["IN", 0, 4], ["CCL", 0, 4]],
        base=GENERAL,
    )
    kinds = [TaskKind(kind) for kind in program.tasks.kind.tolist()]
    assert kinds == [TaskKind.RDMA_WRITE, TaskKind.RDMA_WRITE_REDUCE, TaskKind.WRITE]
    assert to_json(from_json(to_json(program))) == to_json(program)


def test_two_links_between_two_ranks() -> None:
    program = with_tasks(["post", "link:7", 0], ["post", "link:2", 0], base=GENERAL)
    transports = program.transports
    assert transports.rank.tolist() == [0, 0, 1, 1]
    assert transports.kind.tolist() == [LinkKind.RDMA, LinkKind.SDMA] * 2
    assert transports.far.tolist() == [2, 3, 0, 1]
    assert transports.notifies.tolist() == [3, 2, 3, 2]
    names = [[program.buffers[b] if b >= 0 else "" for b in row] for row in transports.exports]
    assert names == [["CCL", "CCL"], ["IN", "IN"], ["CCL", "OUT"], ["", ""]]
    assert program.tasks.end.tolist() == [0, 1]
    assert (program.tasks.cell // transports.stride).tolist() == [2, 3]


def test_a_name_that_no_rank_has_is_not_exported() -> None:
    program = with_tasks(["read", 1, ["CCL", 0, 4], ["OUT", 4, 4]], exported=["CLL", "CCL"])
    assert {program.buffers[b] for b in np.unique(program.transports.exports)} == {"CCL"}
    program = with_tasks(["read", 1, ["IN", 0, 4], ["OUT", 4, 4]], exported=["CLL"])
    assert (program.transports.exports == -1).all()
    assert json.loads(to_json(program))["exported"] == []
    links = [{**link, "exports": {"0": ["CLL"], "1": ["CLL", "IN"]}} for link in GENERAL["links"]]
    program = with_tasks(["post", "link:2", 0], base={**GENERAL, "links": links})
    transports = program.transports
    assert (transports.exports[transports.rank == 0] == -1).all()
    assert (transports.exports[transports.rank == 1] == program.buffers.index("IN")).all()


BARE = {key: value for key, value in GENERAL.items() if key != "links"}


def test_tasks_reach_peers_without_a_link() -> None:
    """Over ends that nobody requested, sorted in among the others."""
    wide = {"id": 0, "ranks": [1, 2], "kind": "rdma", "exports": {"1": ["CCL", "IN", "OUT"]}}
    base = {**BARE, "ranks": 3, "links": [{**wide, "plane": "x"}]}
    program = with_tasks(
        *(["post", 2, 1], ["read", 1, ["CCL", 0, 4], ["OUT", 0, 4]], ["wait", 2, 0]), base=base
    )
    transports = program.transports
    assert transports.rank.tolist() == [0, 0, 1, 2, 1, 2]
    assert transports.peer.tolist() == [1, 2, 0, 0, 2, 1]
    assert transports.far.tolist() == [2, 3, 0, 1, 5, 4]
    assert transports.kind.tolist() == [LinkKind.SDMA] * 4 + [LinkKind.RDMA] * 2
    assert transports.notifies.tolist() == [0] * 4 + [3] * 2
    assert [transports.planes[p] for p in transports.plane] == [*["flat"] * 4, "x", "x"]
    assert [sorted({*row} - {-1}) for row in transports.exports.tolist()] == [
        *[[]] * 4,
        [program.buffers.index(name) for name in ("IN", "OUT", "CCL")],
        [],
    ]
    assert program.tasks.end.tolist() == [1, 0, 1]
    assert program.tasks.peer.tolist() == [2, 1, 2]
    assert (program.tasks.cell // transports.stride).tolist() == [3, -1, 1]
    assert from_json(to_json(program)).digest == program.digest


@pytest.mark.parametrize("links", [[], GENERAL["links"]])
def test_links_that_are_missing_come_back(links: list[Any]) -> None:
    base = {**BARE, "ranks": 4, "links": links}
    tasks = [["wait", 3, 0], ["write", 2, ["IN", 0, 4], ["CCL", 0, 4]]]
    base["buffers"] = {**base["buffers"], "2": base["buffers"]["0"]}
    program = with_tasks(*tasks, base=base)
    back = from_json(to_json(program))
    assert back.digest == program.digest
    assert to_json(back) == to_json(program)
    assert from_npz(to_npz(program)).digest == program.digest
    assert back.transports.notifies[back.tasks.end].tolist() == [0, 0]


def test_a_barrier_needs_no_data_type() -> None:
    program = from_json(json.dumps({**SHORT, "op": {"name": "barrier"}}))
    assert (program.op.dtype, program.op.count) == (DataType.UINT8, 0)
    assert from_json(to_json(program)).op == program.op


def test_planes_keep_links_apart() -> None:
    links = [{**link, "plane": plane} for link, plane in zip(GENERAL["links"], "xy", strict=True)]
    program = with_tasks(["wait", "link:2", 0], base={**GENERAL, "links": links})
    assert [program.transports.planes[p] for p in program.transports.plane] == list("xxyy")
    assert to_json(from_json(to_json(program))) == to_json(program)


def test_notifies_that_nobody_requested_load() -> None:
    requests = {
        "0": {"streams": 1, "local_notifies": {}, "channel_notifies": {"1": 1}},
        "1": {"streams": 1, "local_notifies": {"0": 2}, "channel_notifies": {}},
    }
    tasks = [["wait", 1, 5], ["local_wait", 3], ["local_post", 4, 0]]
    program = with_tasks(*tasks, resources=requests)
    assert program.transports.notifies.tolist() == [1, 0]  # rank 1 left its end out
    assert program.transports.stride == 6
    assert program.tasks.cell.tolist()[0] == 5
    assert program.declared.local_notifies[:, 0].tolist() == [0, 2]
    assert {(0, 3), (4, 0)} <= set(program.local_notifies.slots)
    assert len(set(program.tasks.cell.tolist())) == 3
    assert json.loads(to_json(program))["resources"] == requests
    assert from_json(to_json(program)).digest == program.digest


def test_streams_that_nobody_requested_load() -> None:
    tasks = {"0": {"0": [], "3": [["compute", 1]]}}
    program = from_json(json.dumps({**SHORT, "tasks": tasks, "resources": {"0": {"streams": 2}}}))
    assert program.declared.sub_streams.tolist() == [1, 0]
    assert program.streams == 4


def test_without_resources_nothing_is_undeclared() -> None:
    tasks = {"0": {"2": [["local_wait", 1], ["post", 1, 7]]}}
    program = from_json(json.dumps({**SHORT, "tasks": tasks}))
    assert program.declared.sub_streams.tolist() == [2, 0]
    assert program.declared.local_notifies.tolist() == [[0, 0, 2], [0, 0, 0]]
    assert program.transports.notifies.tolist() == [8, 8]
    assert not program.declared.stated.any()
    assert json.loads(to_json(program))["resources"] == {}


@pytest.mark.parametrize(
    ("requests", "stated"),
    [
        ({"streams": 1}, [True, False, False]),
        ({"local_notifies": {}}, [False, True, False]),
        ({"channel_notifies": {"1": 2}}, [False, False, True]),
    ],
)
def test_what_is_left_out_stays_left_out(requests: dict[str, Any], stated: list[bool]) -> None:
    tasks = {"0": {"2": [["local_wait", 1], ["post", 1, 7]]}}
    program = from_json(json.dumps({**SHORT, "tasks": tasks, "resources": {"0": requests}}))
    assert program.declared.stated.tolist() == [stated, [False] * 3]
    assert json.loads(to_json(program))["resources"] == {"0": requests}
    assert from_json(to_json(program)).digest == program.digest


def test_links_state_their_notifies_themselves() -> None:
    program = with_tasks(["post", "link:2", 9], base=GENERAL)
    assert program.declared.stated.tolist() == [[False, False, True]] * 2
    assert program.transports.notifies.tolist() == [3, 2, 3, 2]
    assert program.transports.slots == program.transports.stride == 10


@pytest.mark.parametrize(("base", "peers"), [(SHORT, "10"), (GENERAL, ("link:7", "link:7"))])
def test_ends_that_were_not_requested_alike_load(base: dict[str, Any], peers: str) -> None:
    requests = {str(rank): {"channel_notifies": {peers[rank]: 3 + rank}} for rank in (0, 1)}
    program = with_tasks(["post", peers[0] if base is GENERAL else 1, 0], base=base,
                         resources=requests)  # fmt: skip
    back = from_json(to_json(program))
    for found in (program, back):
        transports = found.transports
        assert transports.notifies[transports.rank == 0].max() == 3
        assert transports.notifies[transports.rank == 1].max() == 4
    assert back.digest == program.digest


def test_requesting_no_notify_of_an_end_is_requesting_no_end() -> None:
    program = from_json(json.dumps({**SHORT, "resources": {"0": {"channel_notifies": {"1": 0}}}}))
    assert len(program.transports) == 0
    assert json.loads(to_json(program))["resources"] == {"0": {"channel_notifies": {}}}


@pytest.mark.parametrize(
    "task",
    [
        ["copy", ["IN", 0, 64], ["OUT", 0, 64]],  # beyond both
        ["copy", ["IN", 2**61, 1], ["OUT", 0, 1]],
        ["read", 1, ["IN", 0, 4], ["OUT", 0, 4]],  # not exported
        ["copy", ["OUT", 0, 8], ["OUT", 4, 8]],  # overlaps itself
        ["copy", ["IN", 4, 0], ["OUT", 8, 0]],  # nothing
    ],
)
def test_what_the_verifier_judges_loads(task: list[Any]) -> None:
    program = with_tasks(task)
    assert program.task_count == 1
    assert json.loads(to_json(program))["tasks"]["0"]["0"] == [task]


@pytest.mark.parametrize("tasks", [{}, {"0": {}}, {"1": {"0": []}}])
def test_silent_ranks_load(tasks: dict[str, Any]) -> None:
    program = from_json(json.dumps({**SHORT, "tasks": tasks}))
    assert len(program.tasks) == 0
    program.linked.check(program)
    assert program.tasks.first.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("name", "src", "dst"),
    [("copy", 8, 4), ("copy", 4, 8), ("copy", 0, 4), ("copy", 4, 0), ("read", 2**61, 1)],
)
def test_sides_of_different_lengths_load(name: str, src: int, dst: int) -> None:
    peer = [1] if name == "read" else []
    task = [name, *peer, ["CCL", 0, src], ["OUT", 0, dst]]
    even = [name, *peer, ["CCL", 0, src], ["OUT", 0, src]]
    program = with_tasks(even, task)
    tasks = program.tasks
    assert tasks.size.tolist() == [src, src]
    assert tasks.dst_size.tolist() == [src, dst]
    assert tasks.table.dst_size.tolist() == [-1, dst]
    assert tasks.table.has_dst_size.tolist() == [False, True]
    assert program.digest != with_tasks(even, even).digest
    assert json.loads(to_json(program))["tasks"]["0"]["0"] == [even, task]
    assert from_npz(to_npz(program)).digest == program.digest
    assert f"CCL[0:{src}] to user_out[0:{dst}]" in format_task(program, 1)


def test_scratch_is_reached_by_both_lengths() -> None:
    buffers = {"0": {"IN": 4, "OUT": 4, "SCRATCH": 64}}
    tasks = ["copy", ["IN", 0, 4], ["SCRATCH", 8, 40]]
    program = with_tasks(tasks, buffers=buffers, exported=[])
    assert usage_of(program).scratch_bytes.tolist() == [48, 0]


def test_notes_are_kept() -> None:
    note = {"round": 2, "label": "Schritt – 一", "source": "a.py:1", "dtype": "int8"}
    program = with_tasks(["copy", ["IN", 0, 4], ["OUT", 0, 4], note], ["compute", 1.0, {}])
    assert notes(program)[0] == ("Schritt – 一", "a.py:1", 2)
    assert program.tasks.table.dtype.tolist() == [DataType.INT8.number, -1]
    assert program.rounds == 3
    assert json.loads(to_json(program))["tasks"]["0"]["0"][0][3] == note


def test_waiting_for_another_streams_notify_is_kept() -> None:
    program = with_tasks(["local_wait", 0, {"owner": 2}])
    slot = int(program.tasks.cell[0]) - program.transports.cells
    assert program.local_notifies.slots[slot] == (2, 0)
    assert json.loads(to_json(program))["tasks"]["0"]["0"] == [["local_wait", 0, {"owner": 2}]]


def test_key_order_and_layout_do_not_matter() -> None:
    text = to_json(recorded("AllReduceComm", call("AllReduceComm"), 3))
    shuffled = json.dumps(dict(reversed(json.loads(text).items())), indent=3)
    assert to_json(from_json(shuffled)) == text
    assert to_json(from_json("\ufeff" + shuffled)) == text
    assert to_json(from_json(shuffled.encode())) == text


def test_a_cell_of_nobody_cannot_be_written() -> None:
    program = recorded("AllGatherComm", call("AllGatherComm"), 2)
    batch = program.batches[0]
    odd = tuple(i._replace(cell=99) if i.kind == TaskKind.NOTIFY_POST else i for i in batch[1])
    broken = replace(program, batches=(Batch(batch.ranks, odd),))
    with pytest.raises(ProgramFileError, match=r"rank 0 main task .*none of its transport"):
        to_json(broken)


def test_save_and_load_choose_by_suffix(tmp_path: Path) -> None:
    program = recorded("AllReduceComm", call("AllReduceComm"), 3)
    for name in ("a.json", "b.NPZ"):
        save(program, tmp_path / name)
        assert load(str(tmp_path / name)).digest == program.digest


def test_half_characters_can_be_written(tmp_path: Path) -> None:
    program = replace(recorded("AllReduceComm", call("AllReduceComm"), 2), executor="\ud800")
    save(program, tmp_path / "a.json")
    with pytest.raises(ProgramFileError, match=r"executor: expected a string"):
        load(tmp_path / "a.json")


@pytest.mark.parametrize("name", ["a.txt", "a", "a.jsn"])
def test_other_suffixes_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ProgramFileError, match=r"kept in \.json and \.npz files"):
        load(tmp_path / name)
    with pytest.raises(ProgramFileError, match=r"kept in \.json and \.npz files"):
        save(from_json(EXAMPLE), tmp_path / name)


def test_unusable_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(ProgramFileError, match=r"none\.json.* No such file"):
        load(tmp_path / "none.json")
    with pytest.raises(ProgramFileError, match=r"folder\.json.* it is a folder"):
        load(tmp_path / "folder.json")
    with pytest.raises(ProgramFileError, match=r"written: there is no folder"):
        save(from_json(EXAMPLE), tmp_path / "no" / "a.json")
    with pytest.raises(ProgramFileError, match=r"null"):
        load("a\0.json")


@pytest.mark.parametrize("end", [".json", ".npz", ".tx\nt", "/none.json"])
def test_names_of_files_are_on_one_line(end: str, tmp_path: Path) -> None:
    name = f"a\nb\x1b[31m\u2028{end}"
    if end in (".json", ".npz"):
        (tmp_path / name).write_text("{")
    with pytest.raises(ProgramFileError) as caught:
        load(tmp_path / name)
    assert "a\\nb\\x1b[31m\\u2028" in caught.value.message
    assert caught.value.message.isprintable()
    (tmp_path / "a\nb.json").write_text("{}")
    with pytest.raises(ProgramFileError, match=r"a\\nb.* at most 0 bytes") as caught:
        load(tmp_path / "a\nb.json", max_bytes=0)
    assert caught.value.message.isprintable()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.touch(mode=0)
    with pytest.raises(ProgramFileError, match=r"a\.json.* Permission denied"):
        load(path)


def test_large_files_are_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    with path.open("wb") as file:
        file.truncate(40 << 30)  # sparse: reading it would take minutes
    with pytest.raises(ProgramFileError, match=r"at most 33,554,432 bytes, found 42,949,672,960"):
        load(path)
    path.write_text(EXAMPLE)
    with pytest.raises(ProgramFileError, match=r"at most 100 bytes"):
        load(path, max_bytes=100)
    assert load(path, max_bytes=len(EXAMPLE)).ranks == 4


def test_files_of_many_ranks_stay_small_in_memory() -> None:
    program = from_json(json.dumps({**SHORT, "ranks": 65536}))
    assert program.ranks == 65536
    assert len(program.transports) == 0
    assert len(program.batches) == 1
    assert np.shape(program.buffer_sizes) == (65536, 3)

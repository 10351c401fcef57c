"""Links and requests in JSON program files: the short form, the general one, what is left out."""

import json
from typing import Any

import numpy as np
import pytest

from hccl_py.enums import LinkKind, TaskKind
from hccl_py.formats import from_json, from_npz, to_json, to_npz
from tests.formats.documents import GENERAL, SHORT, with_tasks


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


def test_an_end_that_uses_more_notifies_than_the_other_side_states_has_them() -> None:
    """Rank 1 says nothing; rank 0 states 2 for its own end, and posts rank 1's fourth one."""
    requests = {"0": {"channel_notifies": {"1": 2}}}
    for index, notifies in ((0, 2), (1, 2), (3, 4)):
        program = with_tasks(["post", 1, index], resources=requests)
        assert program.transports.rank.tolist() == [0, 1]
        assert program.transports.notifies.tolist() == [2, notifies]


def test_a_stream_without_tasks_is_none() -> None:
    """Rank 0 lists streams 0 to 2 and 5, and only stream 1 has a task."""
    tasks: dict[str, Any] = {"0": {"0": [], "1": [["compute", 1]], "2": [], "5": []}}
    program = from_json(json.dumps({**SHORT, "tasks": tasks}))
    assert program.declared.sub_streams.tolist() == [1, 0]
    assert program.streams == 2

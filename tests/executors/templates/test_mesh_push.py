"""Push: everybody writes to everybody, whatever the links and however few the streams."""

from typing import Any

import pytest

from hccl_executors.templates.mesh_push import beside, collect
from hccl_py.enums import Buffer, TaskKind
from hccl_py.orchestration import Region
from hccl_py.plugins.executor import (
    OpParam,
    PlaneRequest,
    Rank,
    RankView,
    ResourceRequest,
    Topology,
)
from hccl_py.topology import topology_of
from hccl_py.verifier import verify
from hccl_py.verifier.numeric import run_numeric
from tests.executors.flat import in_turn
from tests.recording import op_of, recorded


class Collect:
    """ReduceScatter by collecting, over so many streams beside main."""

    op = "reduce_scatter"
    algorithm = "level0:NA"
    subs = 0

    def suits(self, op: OpParam, topology: Topology) -> bool:
        return True

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        return ResourceRequest((PlaneRequest("flat", "mesh"),), sub_streams=self.subs)

    def orchestrate(self, op: OpParam, rank: Rank[Any, Any]) -> None:
        size, n = rank.user_in.largest, rank.size
        memories = [rank.ccl_in, rank.ccl_out]
        pieces = collect(rank, rank.flat, rank.user_in, beside(memories, size, n - 1))
        rank.main.copy(rank.user_out, rank.user_in[rank.id])
        for piece in pieces:
            rank.main.reduce(rank.user_out, piece)


LAYOUTS = [(1,), (2,), (5,), (8,), (1, 1, 1), (3, 2), (4, 4)]


@pytest.mark.parametrize("servers", LAYOUTS)
@pytest.mark.parametrize("subs", [0, 1, 3])
def test_it_is_right_and_clean(servers: tuple[int, ...], subs: int) -> None:
    class Some(Collect):
        pass

    Some.subs = min(subs, sum(servers) - 1)
    topology = Topology(topology_of().product, servers)
    program = recorded(Some, op_of("reduce_scatter", 96), topology)
    found = verify(program, product=topology.product)
    # Over few streams, some answers follow from those before them.
    assert not [f.message for f in found if f.name != "REDUNDANT_SYNC"]
    assert run_numeric(program, in_turn(subs + len(servers))).wrong is None


def test_streams_share_the_peers() -> None:
    class Three(Collect):
        subs = 3

    tasks = recorded(Three, op_of("reduce_scatter", 96), 8).tasks
    writes = tasks.kind == int(TaskKind.WRITE)
    mine = tasks.stream[writes & (tasks.rank == 0)].tolist()
    assert sorted(mine.count(stream) for stream in range(4)) == [1, 2, 2, 2]


def test_places_lie_apart_and_aligned() -> None:
    memories = [Region(Buffer.CCL_IN, 0, 1024), Region(Buffer.CCL_OUT, 0, 1024)]
    places = beside(memories, 200, 5)
    assert [(p.buffer, p.offset, p.size) for p in places] == [
        *((Buffer.CCL_IN, at, 200) for at in (0, 256, 512)),
        *((Buffer.CCL_OUT, at, 200) for at in (0, 256)),
    ]

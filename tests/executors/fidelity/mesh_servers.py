"""HCCL's executors with meshes in the servers and a template between them, written from its
sources, as one rank runs them.

Files are those of libochao-huawei/hcomm @ 8958adb under src/legacy/ascend910/algorithm/impl/
coll_executor. On devices other than 910B servers have another mesh.
"""

from collections.abc import Callable, Sequence

from tests.executors.fidelity.meshes import (
    Mesh,
    all_gather_mesh,
    all_gather_mesh_atomic,
    reduce_scatter_mesh_atomic,
)
from tests.executors.fidelity.streams import sliced
from tests.executors.fidelity.transports import Across, Slice, even

Level1 = Callable[..., None]


class Seat(Mesh):
    """A rank of servers alike; CalcStreamNum: a stream for every peer but main's."""

    def __init__(
        self, rank: int, devices: int, joined: Sequence[int], *, subs: int | None = None
    ) -> None:
        self.server, device = divmod(rank, devices)
        given = max(devices - 2, 0) if subs is None else subs
        super().__init__(device, devices, given, self.server * devices)
        around = range(device, len(joined), devices)
        self.between = Across(self.streams[0], around, rank, joined)

    def run(self, template: Level1, *call: object) -> None:
        """RunTemplate between servers; there is nothing to do in one."""
        if self.between.size > 1:
            template(self.between, *call)


def all_gather(me: Seat, size: int, level1: Level1, *, on_910b: bool) -> None:
    """coll_all_gather/coll_all_gather_mesh_executor.cc:91 KernelRun: every rank has `size`."""
    own = [Slice((me.first + i) * size, size) for i in range(me.size)]
    (all_gather_mesh_atomic if on_910b else all_gather_mesh)(me, own)
    me.run(level1, even(me.between.size, me.size * size))


def reduce_scatter(me: Seat, size: int, level1: Level1) -> None:
    """coll_reduce_scatter/coll_reduce_scatter_mesh_executor.cc:147 KernelRun."""
    me.run(level1, even(me.between.size, me.size * size))
    reduce_scatter_mesh_atomic(me, [Slice((me.first + i) * size, size) for i in range(me.size)])


def all_reduce(me: Seat, size: int, level1: Level1, *, is_cut: bool) -> None:
    """coll_all_reduce/coll_all_reduce_mesh_executor.cc:88 KernelRun; a template may take slices of
    what it works on.
    """
    parts = sliced(size, me.size)
    mine = parts[me.rank]
    reduce_scatter_mesh_atomic(me, parts)
    me.run(level1, sliced(mine.size, me.between.size, mine.offset) if is_cut else mine)
    all_gather_mesh_atomic(me, parts)

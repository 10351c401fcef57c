"""Small data over several superpods of Atlas A3, held against models of HCCL's executors.

all_reduce_mid_count_for_910_93_executor.cc:72-165, all_gather_mid_count_for_910_93_executor.cc:
95-240 and broadcast_midcount_for_910_93_executor.cc:80-175 of libochao-huawei/hcomm @ 8958adb under
src/legacy/ascend910/algorithm/impl/coll_executor: main alone, the ranks of a superpod, and those of
the same place in all superpods.
"""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from hccl_executors import EXECUTORS
from hccl_py.enums import Mode
from hccl_py.topology import Topology, topology_of
from tests.executors.fidelity import trees
from tests.executors.fidelity.held import Held, Holders, form_of
from tests.executors.fidelity.recorded import events_of
from tests.executors.fidelity.transports import Event, Part, Slice
from tests.recording import op_of, recorded

KINDS = {executor.__name__: executor.fidelity.kind for executor in EXECUTORS}
SIZE = 640
WHOLE = Slice(0, SIZE)


class OnSuperpods:
    """A rank of `pods` superpods with `ranks` each."""

    def __init__(self, rank: int, pods: int, ranks: int) -> None:
        self.events: list[Event] = []
        self.pods, self.ranks = pods, ranks
        self.pod, self.place = divmod(rank, ranks)
        home = range(self.pod * ranks, (self.pod + 1) * ranks)
        self.inside = Part(self.events, home, rank, rdma=False)
        same = range(self.place, pods * ranks, ranks)
        self.between = Part(self.events, same, rank, rdma=True)

    def all_reduce(self) -> None:
        """KernelRun."""
        for part in (self.inside, self.between):
            trees.nhr_all_reduce_one_shot(part, WHOLE)

    def all_gather(self) -> None:
        """RunLevel2ByNHR, RunLevel1ByNHR."""
        places = range(self.place, self.pods * self.ranks, self.ranks)
        trees.nhr_all_gather(self.between, [Slice(SIZE * place, SIZE) for place in places])
        for pod in range(self.pods):
            first = pod * self.ranks
            slots = [Slice(SIZE * (first + i), SIZE) for i in range(self.ranks)]
            trees.nhr_all_gather(self.inside, slots)

    def broadcast(self, root: int) -> None:
        """KernelRun: level1 where the root is, level2 everywhere."""
        pod, place = divmod(root, self.ranks)
        if self.pod == pod:
            trees.nhr_broadcast_one_shot(self.inside, WHOLE, place)
        trees.nhr_broadcast_one_shot(self.between, WHOLE, pod)


NAMES = {
    "AllReduceMidCountFor91093Executor": "all_reduce",
    "AllGatherMidCountFor91093Executor": "all_gather",
    "BroadcastMidCountFor91093Executor": "broadcast",
}


def _held(name: str, at: Topology, mode: Mode) -> Iterator[Held]:
    """What a rank does, for the last root but one."""
    op, form = NAMES[name], form_of(at)
    root = at.size - 2 if op == "broadcast" else None

    def streams(rank: int) -> list[list[Event]]:
        me = OnSuperpods(rank, form.pods, form.servers * form.devices)
        getattr(me, op)(*[root] * (root is not None))
        return [me.events]

    yield Held(replace(op_of(op, SIZE // 4, mode=mode), root=root), streams)


HELD: Holders = dict.fromkeys(NAMES, _held)


def check(pods: int, servers: int, devices: int, op: str, root: int = 0) -> None:
    name = next(name for name in NAMES if NAMES[name] == op)
    assert KINDS[name] == "same"
    topology = topology_of(superpods=pods, servers=servers, devices=devices, preset="atlas-900-a3")
    call = op_of(op, SIZE // 4)
    if op == "broadcast":
        call = replace(call, root=root)
    program = recorded(name, call, topology)
    assert program.streams == 1
    for rank in range(topology.size):
        me = OnSuperpods(rank, pods, servers * devices)
        if op == "broadcast":
            me.broadcast(root)
        else:
            getattr(me, op)()
        assert events_of(program, rank).get(0, []) == me.events


@pytest.mark.parametrize(
    ("pods", "servers", "devices", "root"), [(2, 1, 8, 11), (2, 2, 3, 4), (3, 2, 2, 0)]
)
@pytest.mark.parametrize("op", ["all_reduce", "all_gather", "broadcast"])
def test_two_planes(op: str, pods: int, servers: int, devices: int, root: int) -> None:
    check(pods, servers, devices, op, root)


@pytest.mark.sweep
@pytest.mark.parametrize("op", ["all_reduce", "all_gather", "broadcast"])
def test_other_shapes(op: str) -> None:
    for pods in range(2, 6):
        for servers, devices in ((1, 1), (1, 2), (1, 5), (2, 4), (3, 3)):
            for root in range(pods * servers * devices) if op == "broadcast" else (0,):
                check(pods, servers, devices, op, root)

"""Every setting does something."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from hccl_platform.device import DevicePlatform
from hccl_platform.distributed.platform import DistributedPlatform
from hccl_platform.distributed.session import SharedSession
from hccl_platform.emulated.scheduler import WaitLimit
from hccl_platform.emulated.session import EmulatedSession
from hccl_platform.processes.world import World
from hccl_py.call.call_spec import CallSpec, ClusterSpec
from hccl_py.call.config import Config
from hccl_py.clocks.cost import CostModel
from hccl_py.communicator.communicator import Communicator
from hccl_py.communicator.planning import Plan
from hccl_py.enums import TaskKind
from hccl_py.errors import ExecTimeoutError, HcclResult, NotSupportedError
from hccl_py.plugins.platforms import Group, Schedule
from hccl_py.topology import Topology, topology_of
from hccl_py.tuning.points import Point, evaluate
from tests.groups import group_of
from tests.planned import A2, A3, DUO, PODS, ROCE, planned

SERVERS = Topology(A2, (2, 2))
ONE_POD = Topology(A3, (4,))
CARDS = Topology(DUO, (4,))
NINE_FIFTY = topology_of(8, preset="ascend950")


def kinds(plan: Plan) -> set[TaskKind]:
    return {TaskKind(kind) for kind in plan.program.tasks.kind.tolist()}


def buffers(plan: Plan) -> set[str]:
    """Return the buffers that some task reads."""
    program, tasks = plan.program, plan.program.tasks
    moves = tasks.size > 0
    return {program.buffers[b] for b in tasks.table.src_buffer[tasks.instruction[moves]].tolist()}


def rdma(topology: Topology, **settings: Any) -> bool:
    """Whether a program runs over RDMA; the topology says the same."""
    config = Config.load({}, **settings)
    found = kinds(planned(topology, **settings))
    runs = bool(found & {TaskKind.RDMA_WRITE, TaskKind.RDMA_WRITE_REDUCE})
    assert config.linked(topology).has_rdma == runs
    return runs


def waits_too_long(seconds: int) -> bool:
    """Whether a scheduled run fails where the clock makes a jump of 100 s at every look."""
    plan = planned(SERVERS)
    clock = iter(range(0, 10**9, 100)).__next__
    limit = WaitLimit(Config.load({}, exec_timeout=seconds).wait_seconds(A2), clock)
    session = EmulatedSession(4, 1 << 20, Schedule(), waits=limit)
    data = [np.ones(4096, np.float32) for _ in range(4)]
    outputs = [np.zeros_like(values) for values in data]
    if not seconds:  # for ever
        session.run("tag", plan.program, data, outputs)
        return False
    with pytest.raises(ExecTimeoutError, match=f"EXEC_TIMEOUT allows {seconds} s") as caught:
        session.run("tag", plan.program, data, outputs)
    assert caught.value.result is HcclResult.E_TIMEOUT
    assert "EI0002" in caught.value.hint
    return True


@dataclass
class OneProcess:
    """The store of a job of one process."""

    values: dict[str, bytes] = field(default_factory=dict)

    def set(self, key: str, value: bytes) -> None:
        self.values[key] = value

    def get(self, key: str, timeout_s: float) -> bytes:
        return self.values[key]


def asks_for_mpi(**settings: Any) -> bool:
    """Whether a process that shares memory with all others wants MPI nevertheless."""
    platform = DistributedPlatform(World(0, 1, OneProcess()))
    config = Config.load({}, **settings)
    open_session = partial(platform.open, Topology(A2, (1,)), config, None, Group.world(1))
    if config.wire == "mpi":
        with pytest.raises(NotSupportedError, match="processes that MPI has started"):
            open_session()
        return True
    session = open_session()
    assert isinstance(session, SharedSession)
    session.close()
    return False


def takes_a_device() -> bool:
    """Whether the CPU is taken where it is asked for, and what nobody has is refused."""
    pytest.importorskip("torch", reason="devices need torch: pip install hccl-py[torch]")

    def likes(device: str) -> object:
        config = Config.load({}, device=device)
        session = DevicePlatform().open(Topology(A2, (1,)), config, None, Group.world(1))
        session.close()
        return getattr(session, "likes", None)

    try:
        return likes("cpu") is None and likes("npu") is not None
    except NotSupportedError as error:
        return "finds no npu device" in error.message


EFFECTS: dict[str, Callable[[], bool]] = {
    "buffsize_mb": lambda: (
        planned(SERVERS, count=1 << 19, buffsize_mb=1).program.rounds
        > planned(SERVERS, count=1 << 19).program.rounds
    ),
    "algo": lambda: (
        planned(SERVERS, algo="level0:NA;level1:NHR").program.digest
        != planned(SERVERS, algo="level0:NA;level1:ring").program.digest
    ),
    "deterministic": lambda: (
        planned(Topology(A2, (4,)), count=1 << 22, deterministic="strict").selection.executor
        != planned(Topology(A2, (4,)), count=1 << 22).selection.executor
    ),
    "mode": lambda: (
        "CCL_IN" in buffers(planned(SERVERS))
        and "CCL_IN" not in buffers(planned(SERVERS, mode="graph"))
    ),
    "op_expansion_mode": lambda: (
        planned(ONE_POD).selection.hccl_executor
        != planned(ONE_POD, op_expansion_mode="AIV").selection.hccl_executor
    ),
    "new_selector": lambda: (
        planned(NINE_FIFTY, count=1 << 10, new_selector=True).selection.hccl_executor
        != planned(NINE_FIFTY, count=1 << 10).selection.hccl_executor
    ),
    "exec_timeout": lambda: waits_too_long(99) and not waits_too_long(0),
    "intra_pcie_enable": lambda: (
        rdma(CARDS.linked(inter_hccs=True, intra_roce=True))
        and not rdma(CARDS.linked(inter_hccs=True, intra_roce=True), intra_pcie_enable=True)
    ),
    "intra_roce_enable": lambda: rdma(CARDS, intra_roce_enable=True) and not rdma(CARDS),
    "inter_hccs_disable": lambda: rdma(PODS, inter_hccs_disable=True) and not rdma(PODS),
    "wire": lambda: asks_for_mpi(wire="mpi") and not asks_for_mpi(),
    "device": takes_a_device,
    "strict": lambda: refuses_strictly(),
    "ruleset": lambda: (
        planned(ONE_POD, "all_gather", 1 << 19, ruleset="cann-2025.07").selection.hccl_executor
        != planned(ONE_POD, "all_gather", 1 << 19, ruleset="cann-2026.08").selection.hccl_executor
    ),
    "zero_copy": lambda: (
        planned(ONE_POD, count=1 << 25, zero_copy=True).selection.hccl_executor
        != planned(ONE_POD, count=1 << 25).selection.hccl_executor
    ),
}


def refuses_strictly() -> bool:
    planned(ONE_POD, op_expansion_mode="AIV")
    with pytest.raises(NotSupportedError, match="HCCL would take"):
        planned(ONE_POD, op_expansion_mode="AIV", strict=True)
    return True


def test_every_setting_is_among_those_whose_effect_is_seen() -> None:
    assert set(EFFECTS) == {setting.name for setting in fields(Config)}


@pytest.mark.parametrize("setting", EFFECTS)
def test_a_setting_has_an_effect(setting: str) -> None:
    assert EFFECTS[setting]()


@pytest.mark.parametrize(
    ("variable", "value", "topology"),
    [("HCCL_INTER_HCCS_DISABLE", "TRUE", PODS), (ROCE, "1", CARDS)],
)
def test_a_communicator_has_the_links_that_the_environment_asks_for(
    variable: str, value: str, topology: Topology, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not Communicator(topology=topology).topology.has_rdma
    monkeypatch.setenv(variable, value)
    with Communicator(topology=topology) as comm:
        assert comm.topology.has_rdma
        result = comm.all_reduce([np.ones(4, np.int32)] * 4)
        group = group_of(comm, [0, 2])
        assert group.topology.has_rdma
    assert (result.outputs[0] == 4).all()
    assert result.program.transports.is_rdma.any()


def test_a_point_is_timed_over_the_links_that_it_asks_for() -> None:
    model = CostModel.of("atlas-900-a3")
    cluster = ClusterSpec("atlas-900-a3", servers=2, devices=2)
    even = Point(call=CallSpec("all_reduce", cluster=cluster), cost=model)
    call = replace(even.call, config=Config(inter_hccs_disable=True))
    apart = even.model_copy(update={"call": call})
    assert evaluate(apart).time_us != evaluate(even).time_us
    assert apart.call.topology().has_rdma

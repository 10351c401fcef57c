"""Settings from the environment, and what is refused."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_platform.device import DevicePlatform
from hccl_platform.distributed.platform import DistributedPlatform
from hccl_platform.distributed.session import SharedSession
from hccl_platform.emulated import EmulatedSession
from hccl_platform.emulated.scheduler import WaitLimit
from hccl_platform.processes.world import World
from hccl_py.call_spec import CallSpec, ClusterSpec
from hccl_py.communicator import Communicator
from hccl_py.config import Config
from hccl_py.cost import CostModel
from hccl_py.discovery import installed_executors
from hccl_py.enums import DataType, ReduceOp, TaskKind
from hccl_py.errors import ConfigError, ExecTimeoutError, HcclResult, NotSupportedError
from hccl_py.op_param import OpParam
from hccl_py.operators import make_operator
from hccl_py.planning import Plan, Planner
from hccl_py.platforms import Group, Schedule
from hccl_py.selection.tags import GROUP_NAME
from hccl_py.topology import PRESETS, Product, Topology
from hccl_py.tuning.points import Point, evaluate
from tests.groups import group_of

A2, A3 = PRESETS["atlas-800t-a2"], PRESETS["atlas-900-a3"]
A910, DUO = PRESETS["atlas-800-9000"], PRESETS["300i-duo"]

MODE, TIMEOUT = "HCCL_OP_EXPANSION_MODE", "HCCL_EXEC_TIMEOUT"
PCIE, ROCE = "HCCL_INTRA_PCIE_ENABLE", "HCCL_INTRA_ROCE_ENABLE"


def test_defaults_are_hccl_s() -> None:
    config = Config.load({})
    assert config.ccl_bytes == 200 << 20
    assert (config.deterministic, config.algo) == ("false", "")
    assert not config.intra_roce_enable
    assert not config.inter_hccs_disable
    assert not config.strict


def test_the_environment_is_read_and_overridden() -> None:
    environment = {"HCCL_BUFFSIZE": " 7 ", "HCCL_DETERMINISTIC": "TRUE", "UNRELATED": "x"}
    assert Config.load(environment).buffsize_mb == 7
    assert Config.load(environment).deterministic == "true"
    assert Config.load(environment, buffsize_mb=9, deterministic=None).buffsize_mb == 9


def test_every_variable_is_read() -> None:
    config = Config.load(
        {
            "HCCL_ALGO": "level0:NA;level1:ring",
            "HCCL_DETERMINISTIC": "strict",
            MODE: "AIV",
            TIMEOUT: "100",
            PCIE: "0",
            ROCE: "1",
            "HCCL_INTER_HCCS_DISABLE": "TRUE",
        }
    )
    assert (config.algo, config.deterministic) == ("level0:NA;level1:ring", "strict")
    assert (config.op_expansion_mode, config.exec_timeout) == ("AIV", 100)
    assert (config.intra_pcie_enable, config.intra_roce_enable) == (False, True)
    assert config.inter_hccs_disable


def test_roce_alone_replaces_pcie() -> None:
    assert Config.load({ROCE: "1"}).intra_roce_enable
    assert Config.load({PCIE: "1", ROCE: "0"}).intra_pcie_enable
    assert not Config.load({PCIE: "1"}, intra_roce_enable=False).intra_roce_enable
    both_off = Config.load({PCIE: "0", ROCE: "0"})
    cards = Topology(DUO, (4,))
    assert not both_off.linked(cards).has_rdma
    assert not both_off.linked(cards.linked(inter_hccs=True, intra_roce=True)).has_rdma
    assert "both 0: PCIe is on" in both_off.notes(DUO.device)[0]


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"HCCL_BUFFSIZE": "abc"}, "HCCL_BUFFSIZE has the illegal value 'abc'"),
        ({"HCCL_BUFFSIZE": "0"}, "whole number of MB, 1 to 1048576"),
        ({"HCCL_BUFFSIZE": "1.5"}, "HCCL_BUFFSIZE"),
        ({"HCCL_BUFFSIZE": "-1"}, "HCCL_BUFFSIZE has the illegal value '-1'"),
        ({"HCCL_BUFFSIZE": "9" * 30}, "HCCL_BUFFSIZE"),
        ({"HCCL_DETERMINISTIC": "yes"}, "false, true or strict"),
        ({"HCCL_ALGO": "level1:rnig"}, "Did you mean ring"),
        ({"HCCL_ALGO": "allreduce=level0:null"}, "level0 cannot be set to null"),
        ({MODE: "HOSTS"}, "HCCL_OP_EXPANSION_MODE has the illegal value 'HOSTS'"),
        ({MODE: ""}, "HOST, HOST_TS, AI_CPU"),
        ({TIMEOUT: "-1"}, "HCCL_EXEC_TIMEOUT has the illegal value '-1'"),
        ({TIMEOUT: "1e3"}, "seconds with up to two decimals, 0 to 2147483647"),
        ({TIMEOUT: "1.234"}, "HCCL_EXEC_TIMEOUT has the illegal value '1.234'"),
        ({TIMEOUT: "1."}, "HCCL_EXEC_TIMEOUT"),
        ({TIMEOUT: ".5"}, "HCCL_EXEC_TIMEOUT"),
        ({TIMEOUT: "2147483648"}, "HCCL_EXEC_TIMEOUT"),
        ({PCIE: "2"}, "HCCL_INTRA_PCIE_ENABLE has the illegal value '2'"),
        ({PCIE: "true"}, "0 or 1"),
        ({ROCE: "yes"}, "HCCL_INTRA_ROCE_ENABLE has the illegal value 'yes'"),
        ({PCIE: "1", ROCE: "1"}, "HCCL_INTRA_PCIE_ENABLE and HCCL_INTRA_ROCE_ENABLE are both 1"),
        ({PCIE: "0"}, "HCCL_INTRA_PCIE_ENABLE is 0 and HCCL_INTRA_ROCE_ENABLE is not set"),
        ({ROCE: "0"}, "HCCL_INTRA_ROCE_ENABLE is 0 and HCCL_INTRA_PCIE_ENABLE is not set"),
        ({"HCCL_INTER_HCCS_DISABLE": "1"}, "TRUE or FALSE"),
    ],
)
def test_illegal_values_name_variable_value_and_range(
    environment: dict[str, str], words: str
) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        Config.load(environment)
    assert caught.value.result is HcclResult.E_PARA
    assert "EI0001" in caught.value.hint


def test_illegal_arguments_name_the_setting() -> None:
    with pytest.raises(ConfigError, match="Setting buffsize_mb has the illegal value 0"):
        Config.load({"HCCL_BUFFSIZE": "4"}, buffsize_mb=0)
    with pytest.raises(ConfigError, match="Setting buffsize_mb has the illegal value True"):
        Config.load({}, buffsize_mb=True)
    with pytest.raises(ConfigError, match="Setting mode"):
        Config.load({}, mode="eager")
    with pytest.raises(ConfigError, match="Known settings: buffsize_mb, algo"):
        Config.load({}, colour="red")


CLASSIC = ("HOST", "HOST_TS", "AI_CPU", "AICPU_CacheDisable", "AIV")


@pytest.mark.parametrize(
    ("product", "modes"),
    [
        (A2, CLASSIC),
        (A3, ("AI_CPU", "AICPU_CacheDisable", "AIV", "HOST")),
        (A910, ("HOST",)),
        (DUO, ("HOST",)),  # AI_CPU for all_reduce alone, see below
    ],
)
def test_expansion_modes_by_product(product: Product, modes: tuple[str, ...]) -> None:
    """Modes that a product does not have are its default, with a warning."""
    assert Config.load({}).expansion(product, "all_gather") == modes[0]
    for mode in CLASSIC:
        config = Config.load({MODE: mode})
        config.check(product)
        found = config.expansion(product, "all_gather")
        assert found == (mode if mode in modes else modes[0])
        if product is not DUO:
            assert bool(config.notes(product.device)) == (mode not in modes)
    note = "HCCL_OP_EXPANSION_MODE HOST_TS has no meaning on 910_93: it is AI_CPU, the default"
    assert Config.load({MODE: "HOST_TS"}).notes(A3.device) == (note,)


@pytest.mark.parametrize("product", [A2, A3, A910, DUO])
@pytest.mark.parametrize("mode", ["AICPU_TS", "CCU_MS", "CCU_SCHED"])
def test_modes_of_the_950_are_errors_elsewhere(product: Product, mode: str) -> None:
    with pytest.raises(ConfigError, match=f"{MODE} has the illegal value '{mode}'") as caught:
        Config.load({MODE: mode}).check(product)
    assert product.title in caught.value.message
    assert "HOST_TS" in caught.value.hint


@pytest.mark.parametrize("mode", ["HOST", "HOST_TS"])
def test_the_950_takes_no_mode_of_the_host(mode: str) -> None:
    with pytest.raises(ConfigError, match=f"{MODE} has the illegal value '{mode}'"):
        Config.load({MODE: mode}).check(PRESETS["ascend950"])
    Config.load({MODE: "AI_CPU"}).check(PRESETS["ascend950"])


def test_a2_and_duo_make_tasks_on_the_device_for_few_ops() -> None:
    for mode in ("AI_CPU", "AICPU_CacheDisable"):
        config = Config.load({MODE: mode})
        assert config.expansion(A2, "all_gather") == config.expansion(A2, "all_to_all_v") == mode
        assert config.expansion(A2, "all_reduce") == "HOST"
        assert config.expansion(A3, "all_reduce") == mode
        assert config.expansion(DUO, "all_reduce") == mode
        assert config.expansion(DUO, "all_gather") == "HOST"


def test_a_host_that_makes_the_tasks_of_a3_leaves_the_rows_of_the_ai_cpu() -> None:
    """SemiRing of one server in graph mode needs HCCL's aicpuUnfoldMode; AIV leaves it on."""
    kept: dict[str, Any] = {"mode": "graph", "op": "all_gather", "count": 1 << 24}
    row = "AllGatherSemiRing"
    server = Topology(A3, (16,))
    unfolded = planned(server, **kept).selection
    hosted = planned(server, op_expansion_mode="HOST", **kept).selection
    assert str(unfolded.hccl_executor).startswith(row)
    assert not str(hosted.hccl_executor).startswith(row)
    assert unfolded.tag.endswith("_device")
    assert hosted.tag.endswith("_host")


def test_what_hccl_warns_of_is_among_the_reasons() -> None:
    kept: dict[str, Any] = {"op_expansion_mode": "HOST_TS", "algo": "level0:ring;level1:ring"}
    reasons = " ".join(planned(PODS, **kept).selection.reasons)
    assert "HOST_TS has no meaning on 910_93" in reasons
    assert "level0:ring is ignored" in reasons


@pytest.mark.parametrize("product", [A910, DUO])
def test_rank_order_is_for_a2_and_later(product: Product) -> None:
    with pytest.raises(NotSupportedError, match="HCCL_DETERMINISTIC is strict"):
        Config.load({}, deterministic="strict").check(product)
    Config.load({}, deterministic="true").check(product)
    Config.load({}, deterministic="strict").check(A3)


@pytest.mark.parametrize(
    ("product", "text", "seconds"),
    [
        (A910, None, 1836),
        (A910, "1", 68),
        (A910, "68", 68),
        (A910, "135", 68),
        (DUO, "136", 136),
        (A910, "17340", 17340),
        (A2, None, 1836),
        (A2, "135", 135),
        (A3, "0", None),
        (A2, "2147483647", 2147483647),
        (A2, "0.05", 1),
        (A2, "135.01", 136),
        (A910, "0.5", 68),
        (A910, "136.99", 136),
    ],
)
def test_how_long_a_wait_may_take(product: Product, text: str | None, seconds: int | None) -> None:
    config = Config.load({} if text is None else {TIMEOUT: text})
    config.check(product)
    assert config.wait_seconds(product) == seconds


@given(st.integers(1, 17340))
def test_old_timers_tick_in_68_seconds(seconds: int) -> None:
    found = Config.load({}, exec_timeout=seconds).wait_seconds(A910)
    assert found is not None
    assert found % 68 == 0
    assert found == 68 or found <= seconds < found + 68


@pytest.mark.parametrize(
    ("product", "text"), [(A910, "0"), (DUO, "17341"), (DUO, "17340.01"), (A910, "0.0")]
)
def test_time_outs_by_product(product: Product, text: str) -> None:
    config = Config.load({TIMEOUT: text})
    with pytest.raises(ConfigError, match=f"{TIMEOUT} has the illegal value {text} for") as caught:
        config.check(product)
    assert "1 to 17340 seconds" in caught.value.hint
    Config.load({TIMEOUT: text}).check(A2)


@pytest.mark.parametrize(
    ("text", "seconds"), [(None, 1091), ("0", 1091), ("1836", 1091), ("0.05", 0.05), ("7", 7)]
)
def test_vector_cores_wait_for_hundredths_and_1091_seconds_at_most(
    text: str | None, seconds: float
) -> None:
    config = Config.load({MODE: "AIV"} | ({} if text is None else {TIMEOUT: text}))
    config.check(A3)
    assert config.wait_seconds(A2) == config.wait_seconds(A3) == seconds
    warned = [f"HCCL_EXEC_TIMEOUT {text} is 1091 s for vector cores"]
    assert list(config.notes(A2.device)) == (warned if text in ("0", "1836") else [])


# ---- what each setting does ----

PODS = Topology(A3, (2, 2))
SERVERS = Topology(A2, (2, 2))
ONE_POD = Topology(A3, (4,))
CARDS = Topology(DUO, (4,))


def planned(topology: Topology, op: str = "all_reduce", count: int = 4096, **settings: Any) -> Plan:
    config = Config.load({}, **settings)
    call = make_operator(op).variants()[0](
        OpParam(op, count, DataType.FP32, ReduceOp.SUM if op == "all_reduce" else None),
        topology.size,
    )
    call = replace(call, mode=config.mode)
    return Planner(topology, config, installed_executors(), GROUP_NAME).plan(call, None)


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
        planned(ONE_POD, count=1 << 25, ruleset="cann-2025.07").selection.hccl_executor
        != planned(ONE_POD, count=1 << 25, ruleset="cann-2026.08").selection.hccl_executor
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
    assert set(EFFECTS) == set(Config.model_fields)


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

"""Settings from the environment, and what is refused."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_py.call.config import Config
from hccl_py.errors import ConfigError, HcclResult, NotSupportedError
from hccl_py.topology import PRESETS, Product, Topology
from tests.planned import A2, A3, A910, DUO, PCIE, PODS, ROCE, planned

MODE, TIMEOUT = "HCCL_OP_EXPANSION_MODE", "HCCL_EXEC_TIMEOUT"


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

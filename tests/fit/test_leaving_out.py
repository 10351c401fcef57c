"""Groups that are left out of a fit: floors and links of two made-up machines."""

from dataclasses import replace

import pytest

from hccl_py.clocks.cost import EngineCost, Engines
from hccl_py.errors import ParameterError
from hccl_py.fit.fit import fit
from hccl_py.fit.leaving_out import held_out_errors, leave_out
from hccl_py.fit.parameters import Parameter, TimedCall
from hccl_py.simulator import COSTS, CostModel, LinkCost, simulate
from hccl_py.simulator.entry import NETWORKS, Network
from hccl_py.topology import topology_of
from tests.recording import op_of, recorded

MESH = topology_of(4)
BASE = COSTS["study"]
TRUTH = BASE.model_copy(
    update={
        "hccs": LinkCost(alpha_us=4.0, gbps=30.0),
        "engines": Engines(ccu=EngineCost(call_us=25.0)),
    }
)
ASKED = [Parameter.parse(n) for n in ("engines.ccu.call_us", "hccs.alpha_us", "hccs.gbps")]


def calls(counts: tuple[int, ...], factor: float = 1.0) -> list[TimedCall]:
    """Return calls of an all-gather on the CCU with the times of the truth."""
    found = []
    for count in counts:
        program = replace(
            recorded("AllGatherComm", op_of("all_gather", count), MESH, 1 << 28), engine="ccu"
        )
        time_us = simulate(program, MESH, TRUTH, network="contended").total_us
        found.append(TimedCall(program, MESH, time_us * factor))
    return found


SMALL, LARGE = (32, 256, 1024), (1 << 17, 1 << 18, 1 << 20, 1 << 22)


@pytest.mark.parametrize("network", NETWORKS)
def test_a_floor_comes_back_where_times_lie_on_both_sides(network: Network) -> None:
    found = fit(calls(SMALL + LARGE), BASE, ASKED, network)
    values = {e.parameter.name: e.value for e in found.estimates}
    wanted = {"engines.ccu.call_us": 25.0, "hccs.alpha_us": 4.0, "hccs.gbps": 30.0}
    assert values == pytest.approx(wanted, rel=2e-3)
    (floor,) = (e for e in found.estimates if e.parameter.engine)
    assert {row for row, _ in floor.decided_by} == {0, 1, 2}


@pytest.mark.parametrize("network", NETWORKS)
def test_a_floor_that_all_calls_are_above_is_not_determined(network: Network) -> None:
    found = fit(calls(LARGE), BASE, ASKED, network)
    (held,) = found.held
    assert (held.parameter.engine, held.why) == ("ccu", "all 4 of its calls take longer")


def test_groups_are_predicted_by_the_others() -> None:
    groups = [(c, "small") for c in calls(SMALL)] + [(c, "large") for c in calls(LARGE)]
    groups += [(c, "slow") for c in calls((1 << 19, 1 << 21), factor=1.5)]
    full = fit([c for c, _ in groups], BASE, ASKED, "contended").cost
    found = {one.group: one for one in leave_out(groups, BASE, ASKED, "contended", full)}
    assert list(found) == ["small", "large", "slow"]
    assert found["slow"].deviations == pytest.approx([0.5, 0.5], abs=0.02)
    assert [k.parameter.name for k in found["small"].held] == ["engines.ccu.call_us"]
    assert not found["slow"].held


def test_an_odd_time_bends_the_links_less_than_least_squares_would() -> None:
    rows = calls((1 << 17, 1 << 18, 1 << 19, 1 << 20, 1 << 21, 1 << 22))
    rows[2] = replace(rows[2], time_us=3 * rows[2].time_us)
    found = fit(rows, BASE, ASKED[1:], "contended")
    assert found.cost.hccs.gbps == pytest.approx(30.0, rel=0.03)
    assert found.weights[2] == min(found.weights) < 0.3


def test_one_group_leaves_nothing_to_fit() -> None:
    with pytest.raises(ParameterError, match="All rows are of one group, 'a'"):
        list(leave_out([(c, "a") for c in calls(SMALL)], BASE, ASKED, "contended", BASE))


def test_errors_of_held_out_times() -> None:
    found = held_out_errors([0.1, -0.3, 0.2, 0.0])
    assert (found.points, found.worst) == (4, 0.3)
    assert found.median == pytest.approx(0.15)
    assert found.p90 == 0.3


def test_the_model_s_fields_are_parameters() -> None:
    names = {"protocols.ll128.launch_us", "roce.start_us", "hccs.device_gbps"}
    for name in names | {"engines.aicpu_ts.call_us"}:
        parameter = Parameter.parse(name)
        changed = parameter.put(CostModel.of("study"), 0.5)
        assert parameter.microseconds(changed) == pytest.approx(0.5)
    with pytest.raises(ParameterError, match="no parameter 'call_us'"):
        Parameter.parse("call_us")

"""Costs of an engine stand in the place of the model's own, and nowhere else."""

from dataclasses import replace

import pytest

from hccl_py import simulate
from hccl_py.clocks.cost import CostModel, EngineCost, Engines
from hccl_py.topology import topology_of
from tests.recording import op_of, recorded


def model(**own: float) -> CostModel:
    plain = CostModel.of("ascend950").formula()
    return plain.model_copy(update={"engines": Engines(ccu=EngineCost(**own))})


def test_an_engine_without_costs_of_its_own_changes_nothing() -> None:
    cost = CostModel.of("ascend950")
    assert cost.run_by("", "aicpu_ts") == cost


def test_costs_of_an_engine_count_for_its_programs_alone() -> None:
    program = recorded("AllGatherComm", op_of("all_gather", 1 << 16), 4)
    topology = topology_of(ranks=4, preset="ascend950")
    for engine, more in (("ccu", 7.0), ("aicpu_ts", 0.0)):
        own = replace(program, engine=engine)
        before = simulate(own, topology, cost=model()).total_us
        assert simulate(own, topology, cost=model(launch_us=7.0)).total_us == pytest.approx(
            before + more
        )


def test_rates_and_starts_of_links() -> None:
    found = model(task_us=2.0, hccs_us=3.0, roce_us=1.0, hccs_gbps=40.0, notify_us=0.5).run_by(
        "", "ccu"
    )
    assert (found.task_us, found.hccs.start_us, found.roce.start_us) == (2.0, 1.0, -1.0)
    assert (found.hccs.gbps, found.hccs.alpha_us, found.notify_us) == (40.0, 0.5, 0.5)
    assert found.roce.gbps == model().roce.gbps


def test_reductions_inside_transfers_have_a_rate_of_their_own() -> None:
    found = model(memory_gbps=1000.0, inline_gbps=100.0).run_by("", "ccu")
    assert found.gamma_us == found.copy_us == pytest.approx(1e-6)
    assert found.inline_gamma_us == pytest.approx(1e-5)

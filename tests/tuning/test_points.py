"""Points: what their keys tell apart, and what evaluating them gives."""

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hccl_py import Communicator, OpParam
from hccl_py.call.call_spec import CallSpec
from hccl_py.call.config import Config
from hccl_py.enums import DataType, ReduceOp
from hccl_py.errors import ParameterError
from hccl_py.orchestration.allowance import Allowance
from hccl_py.simulator import CostModel, simulate
from hccl_py.tuning.points import Outcome, Point, evaluate, keyed_cost
from tests.tuning.evaluations import point

COST = CostModel.of("study")
BASE = point(1 << 16)


def varied(update: dict[str, Any]) -> Point:
    given = {"size": 1 << 16} | update
    given["size"] = given.pop("bytes", given["size"])
    return point(**given)


@pytest.mark.parametrize(
    "update",
    [
        {"op": "all_gather"},
        {"bytes": 1 << 17},
        {"dtype": "fp16"},
        {"reduce_op": "max"},
        {"ranks": 8},
        {"topology": "ring"},
        {"config": Config(buffsize_mb=100)},
        {"executor": "AllReduceComm"},
        {"levels": {"level1": "ring"}},
        {"cost": COST.model_copy(update={"notify_us": 1.0})},
        {"network": "contended"},
        {"slow": ("rank=1:2x",)},
    ],
    ids=lambda update: next(iter(update)),
)
def test_the_key_tells_apart_what_matters(update: dict[str, Any]) -> None:
    assert varied(update).key != BASE.key


def test_the_key_does_not_depend_on_what_is_for_people() -> None:
    renamed = COST.model_copy(update={"name": "mine", "sources": "measured"})
    assert BASE.model_copy(update={"cost": renamed}).key == BASE.key
    assert Point.model_validate_json(BASE.model_dump_json()).key == BASE.key
    assert pickle.loads(pickle.dumps(BASE)).key == BASE.key


def rank_table(path: Path, ranks: int) -> Path:
    devices = [
        {"device_id": str(n), "device_ip": f"192.0.2.{n + 1}", "rank_id": str(n)}
        for n in range(ranks)
    ]
    table = {
        "version": "1.0",
        "server_count": "1",
        "server_list": [{"server_id": "192.0.2.100", "device": devices}],
        "status": "completed",
    }
    path.write_text(json.dumps(table))
    return path


def test_the_key_and_the_outcome_follow_the_files(tmp_path: Path) -> None:
    path = tmp_path / "ranks.json"
    first = point(1 << 16, ranks=None, rank_table=str(rank_table(path, 2)))
    key, two = first.key, evaluate(first)
    rank_table(path, 4)
    again = Point.model_validate(first.model_dump())
    assert again.key != key
    assert evaluate(again).tasks != two.tasks
    assert evaluate(again).simulated_us == evaluate(BASE).simulated_us


def test_rulesets_have_outcomes_of_their_own() -> None:
    """Where the rules choose the executor or its levels; elsewhere they do not matter."""
    old = replace(BASE.call, config=Config(ruleset="cann-2025.07"))
    for executor, levels, differs in (
        (None, {}, True),
        ("AllReduceComm", {}, True),
        ("AllReduceComm", {"level1": "NHR"}, False),
        ("AllReduceMeshOneshotLoopExecutor", {}, False),
    ):
        one = BASE.model_copy(update={"executor": executor, "levels": levels})
        assert (one.model_copy(update={"call": old}).key != one.key) == differs


@pytest.mark.parametrize("network", ["uncontended", "contended"])
def test_the_time_is_that_of_the_simulator(network: Any) -> None:
    outcome = evaluate(BASE.model_copy(update={"network": network, "executor": "AllReduceComm"}))
    comm = Communicator(ranks=4)
    op = OpParam("all_reduce", 1 << 14, DataType.FP32, ReduceOp.SUM)
    program = comm.plan(op, "AllReduceComm").program
    wanted = simulate(program, comm.topology, COST, network=network).total_us
    assert outcome.simulated_us == wanted
    assert outcome.tasks == program.task_count
    assert outcome.algbw_gbps == pytest.approx((1 << 16) / wanted * 1e-3)
    assert outcome.busbw_gbps == pytest.approx((1 << 16) / wanted * 1e-3 * 1.5)
    assert outcome.lower_bound_us is not None
    assert outcome.lower_bound_us <= wanted


def test_words_for_open_levels_are_taken() -> None:
    times = {
        word: evaluate(
            BASE.model_copy(update={"executor": "AllReduceComm", "levels": {"level1": word}})
        )
        for word in ("ring", "NHR")
    }
    assert times["ring"].algorithm["level1"] == "ring"
    assert times["NHR"].simulated_us != times["ring"].simulated_us


@pytest.mark.parametrize(
    ("update", "error"),
    [
        ({"op": "all_redoos"}, "all_redoos"),
        ({"executor": "AllReduceCom"}, "Executor 'AllReduceCom' is unknown."),
        ({"levels": {"level1": "ring"}}, "levels are those of an executor."),
        (
            {"executor": "AllReduceComm", "levels": {"level1": "rung"}},
            "AllReduceComm does not do rung on level1.",
        ),
        (
            {"executor": "AllReduceRing", "levels": {"level2": "ring"}},
            "AllReduceRing does not do ring on level2.",
        ),
        ({"executor": "AllReduceSingleExecutor"}, "needs one rank"),
        ({"slow": ("rank=9:2x",)}, "--slow rank=9 names no rank."),
        ({"topology": "rong"}, "rong"),
        ({"rank_table": "none.json"}, "A rank table says where the ranks are."),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_errors_are_outcomes(update: dict[str, Any], error: str) -> None:
    outcome = evaluate(varied(update))
    assert outcome.error is not None
    assert error in outcome.error
    assert outcome.simulated_us is None


def test_no_data_takes_no_time() -> None:
    outcome = evaluate(point(0))
    assert (outcome.simulated_us, outcome.lower_bound_us, outcome.error) == (0, 0, None)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"op": "all_reduce", "bytes": 8, "ranks": 4}, "A point takes its call as one value."),
        ({"call": CallSpec("all_to_all_v", counts=(1, 2))}, "A point has the usual amounts"),
        ({"call": CallSpec("all_reduce", in_place=True)}, "and is not in place."),
        ({"call": CallSpec("all_reduce", -1)}, "A point has -1 bytes."),
    ],
)
def test_a_point_refuses(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        Point.model_validate(given | {"cost": COST})


def test_effort_is_limited() -> None:
    slow = point(1 << 20, ranks=64, executor="AllReduceOrderPreservedExecutor")
    assert evaluate(slow, Allowance(1000)).error == "It records more than 1 000 instructions."
    shared = BASE.model_copy(update={"network": "contended", "executor": "AllReduceComm"})
    few = evaluate(shared, shared_tasks=10)
    assert few.error is not None
    assert few.error.endswith("tasks that share links are more than 10.")
    assert evaluate(shared, Allowance(10**6), 1000).error is None


def test_outcomes_survive_json() -> None:
    outcome = evaluate(BASE)
    assert Outcome.model_validate_json(outcome.model_dump_json()) == outcome


def test_keys_of_old_sweeps_stay_as_they_are() -> None:
    """What cost models state since counts only where it is stated."""
    old = {"name", "hccs", "sio", "pcie", "roce", "reduce_gbps", "copy_gbps", "notify_us"}
    old |= {"task_us", "hop_us", "memory_gbps", "sources", "uncertain", "measured"}
    assert set(keyed_cost(COST.model_dump(mode="json"))) == old
    for field, value in (("alpha_by", "message"), ("joined_tasks", "longest"), ("wait_us", 1.0)):
        stated = COST.model_copy(update={field: value})
        assert set(keyed_cost(stated.model_dump(mode="json"))) == old | {field}
        assert varied({"cost": stated}).key != BASE.key

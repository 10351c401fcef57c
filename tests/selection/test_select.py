"""Selection by HCCL's tables: rows, reasons, substitutes."""

from typing import Any

import numpy as np
import pytest

from hccl_executors import EXECUTORS
from hccl_py.config import Config
from hccl_py.discovery import Registry
from hccl_py.enums import Mode, ReduceOp
from hccl_py.errors import NotSupportedError, ParameterError
from hccl_py.op_param import OpParam
from hccl_py.selection import Selection, select
from hccl_py.topology import Topology, topology_of
from tests.recording import op_of

KIB, MIB = 1 << 10, 1 << 20
CONFIG = Config.load({})
DETERMINISTIC = Config.load({}, deterministic="true")


def registry(*more: Any) -> Registry:
    found = Registry()
    for executor in (*EXECUTORS, *more):
        found.add(executor, "test")
    return found


def chosen(
    op: OpParam, topology: Topology, config: Config = CONFIG, executor: str | None = None
) -> Selection:
    return select(op, topology, config, registry(), executor)[0]


def of_size(name: str, size: int, mode: Mode = Mode.OP_BASE, dtype: str = "fp32") -> OpParam:
    return op_of(name, size // op_of(name, dtype=dtype).unit, dtype, mode=mode)


def graph(name: str, size: int) -> OpParam:
    return of_size(name, size, Mode.GRAPH)


sized, topo = of_size, topology_of
AG_MESH, AR_MESH = "AllGatherMesh", "AllReduceMesh"

# One row of a decision table a line: op, topology, configuration, HCCL's executor.
ROWS = [
    (sized("all_gather", KIB), topo(1), CONFIG, "AllGatherSingleExecutor"),
    (sized("all_gather", KIB), topo(4), CONFIG, AG_MESH + "OpbaseExecutor"),
    (sized("all_gather", 64 * MIB), topo(8), CONFIG, AG_MESH + "OpbaseExecutor"),
    (sized("all_gather", KIB), topo(16), CONFIG, AG_MESH + "Executor"),
    (sized("all_gather", 32 * KIB), topo(16), CONFIG, AG_MESH + "OpbasePipelineExecutor"),
    (sized("all_gather", 32 * KIB - 4), topo(16), CONFIG, AG_MESH + "Executor"),
    (graph("all_gather", MIB), topo(4), CONFIG, AG_MESH + "GraphExecutor"),
    (graph("all_gather", MIB + 4), topo(4), CONFIG, AG_MESH + "Executor"),
    (sized("all_gather", KIB), topo(12), CONFIG, "AllGatherComm"),
    (sized("all_reduce", KIB), topo(1), CONFIG, "AllReduceSingleExecutor"),
    (sized("all_reduce", 256 * KIB), topo(2), CONFIG, AR_MESH + "SmallCountExecutor"),
    (sized("all_reduce", 256 * KIB + 4), topo(2), CONFIG, AR_MESH + "OpbaseLoopExecutor"),
    (sized("all_reduce", MIB, dtype="int64"), topo(2), CONFIG, AR_MESH + "Executor"),
    (graph("all_reduce", 64 * KIB), topo(2), CONFIG, AR_MESH + "SmallCountExecutor"),
    (graph("all_reduce", 64 * KIB + 4), topo(2), CONFIG, AR_MESH + "Executor"),
    (sized("all_reduce", 256 * KIB), topo(8), CONFIG, AR_MESH + "SmallCountExecutor"),
    (sized("all_reduce", 256 * KIB + 4), topo(8), CONFIG, AR_MESH + "OpbaseLoopExecutor"),
    (sized("all_reduce", 128 * KIB), topo(4), DETERMINISTIC, AR_MESH + "SmallCountExecutor"),
    (sized("all_reduce", MIB), topo(4), DETERMINISTIC, AR_MESH + "OneshotLoopExecutor"),
    (sized("all_reduce", MIB), topo(8), DETERMINISTIC, AR_MESH + "MidCountLoopExecutor"),
    (graph("all_reduce", MIB), topo(8), CONFIG, AR_MESH + "Executor"),
    (sized("all_reduce", 64 * MIB), topo(16), CONFIG, AR_MESH + "OpbasePipelineExecutor"),
    (sized("all_reduce", MIB), topo(16), CONFIG, AR_MESH + "Executor"),
    (sized("all_reduce", 64 * MIB), topo(16), DETERMINISTIC, AR_MESH + "Executor"),
    (sized("all_reduce", MIB), topo(9), CONFIG, "AllReduceComm"),
    (sized("all_reduce", MIB), topo(9, preset="ring"), CONFIG, "AllReduceRingExecutor"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "topology", "config", "executor"), ROWS)
def test_the_tables_rows(op: OpParam, topology: Topology, config: Config, executor: str) -> None:
    selection = chosen(op, topology, config)
    assert selection.hccl_executor == executor
    offered = {cls.__name__ for cls in EXECUTORS}
    if executor in offered:
        assert selection.executor == executor
    else:
        assert executor in selection.reasons[-1]
        assert "is not offered here" in selection.reasons[-1]
    assert {r.executor for r in selection.rejected} | {selection.executor} == {
        cls.__name__ for cls in EXECUTORS if cls.op == op.name
    }
    assert all(r.reason for r in selection.rejected)


@pytest.mark.parametrize(
    ("servers", "level1"), [(2, "ring"), (3, "ring"), (4, "NHR"), (8, "NHR"), (9, "NHR")]
)
def test_level1_between_servers_is_the_cheapest(servers: int, level1: str) -> None:
    selection = chosen(of_size("all_reduce", MIB), topology_of(servers=servers, devices=8))
    assert f"world_group{level1}AllReduce" in selection.tag


def test_the_article_s_choice_explains_itself() -> None:
    selection = chosen(of_size("all_gather", KIB), topology_of(4))
    assert selection.reasons == ("level0 is mesh", "mode is op_base", "servers is 1")
    assert selection.algorithm == {"level0": "mesh"}
    assert selection.tag == "AllGather_hccl_world_groupringAllGatherMeshOpbaseExecutor_host"
    assert selection.rejected[0].reason == (
        "suits, but AllGatherMeshOpbaseExecutor comes first in classic-910B/1"
    )


def test_tags_follow_the_mode() -> None:
    assert chosen(graph("all_gather", KIB), topology_of(4)).tag == "AllGather_hccl_world_group_host"
    assert chosen(of_size("all_gather", KIB), topology_of(1)).tag == ""


def test_a_named_executor_wins_or_says_why_not() -> None:
    op = of_size("all_gather", KIB)
    selection = chosen(op, topology_of(4), executor="AllGatherComm")
    assert selection.executor == "AllGatherComm"
    assert selection.hccl_executor == "AllGatherMeshOpbaseExecutor"
    assert "the tables' choice" in selection.rejected[0].reason
    with pytest.raises(NotSupportedError, match="one server, there are 2"):
        chosen(op, topology_of(16), executor="AllGatherMeshOpbaseExecutor")
    with pytest.raises(ParameterError, match="Did you mean AllGatherComm"):
        chosen(op, topology_of(4), executor="AllGatherCom")
    with pytest.raises(ParameterError, match="executes all_reduce, not all_gather"):
        chosen(op, topology_of(4), executor="AllReduceComm")


def test_configured_level1_turns_the_automatic_choice_off() -> None:
    config = Config.load({}, algo="level0:NA;level1:H-D_R")
    assert "groupH-DAllReduce" in chosen(of_size("all_reduce", MIB), topology_of(32), config).tag
    flat = Config.load({}, algo="level0:null;level1:ring")
    assert (
        chosen(of_size("all_reduce", MIB), topology_of(16), flat).hccl_executor == "AllReduceComm"
    )


def test_nothing_suits() -> None:
    class Never:
        op = "all_gather"
        algorithm = "level0:ring"

        def suits(self, op: Any, topology: Any) -> bool:
            return False

        def resources(self, op: Any, rank: Any) -> Any: ...

        def orchestrate(self, op: Any, rank: Any) -> None: ...

    only = Registry()
    only.add(Never, "test")
    op = of_size("all_gather", KIB)
    with pytest.raises(NotSupportedError, match="No executor suits"):
        select(op, topology_of(4), CONFIG, only)
    with pytest.raises(NotSupportedError, match=r"its suits\(\) says no"):
        select(op, topology_of(4), CONFIG, only, "Never")
    rejected = select(op, topology_of(4), CONFIG, registry(Never))[0].rejected
    assert ("Never", "its suits() says no") in [(r.executor, r.reason) for r in rejected]


def test_a_suits_that_raises_rejects_its_executor_only() -> None:
    class Raises:
        op = "all_gather"
        algorithm = "level0:ring"

        def suits(self, op: Any, topology: Any) -> bool:
            raise KeyError("rank table")

        def resources(self, op: Any, rank: Any) -> Any: ...

        def orchestrate(self, op: Any, rank: Any) -> None: ...

    op = of_size("all_gather", KIB)
    selection = select(op, topology_of(4), CONFIG, registry(Raises))[0]
    assert selection.executor == "AllGatherMeshOpbaseExecutor"
    reasons = {r.executor: r.reason for r in selection.rejected}
    assert reasons["Raises"].startswith("its suits() raised KeyError: 'rank table' (selection/")


@pytest.mark.parametrize("verdict", ["no way", None, np.array([True, False]), 1])
def test_a_suits_that_answers_neither_yes_nor_no(verdict: Any) -> None:
    class Vague:
        op = "all_gather"
        algorithm = "level0:ring"

        def suits(self, op: Any, topology: Any) -> Any:
            return verdict

        def resources(self, op: Any, rank: Any) -> Any: ...

        def orchestrate(self, op: Any, rank: Any) -> None: ...

    op = of_size("all_gather", KIB)
    reasons = select(op, topology_of(4), CONFIG, registry(Vague))[0].rejected
    assert any("instead of True or False" in r.reason for r in reasons if r.executor == "Vague")


def test_reduce_op_matters_for_inline() -> None:
    op = OpParam("all_reduce", MIB, op_of("all_reduce").dtype, ReduceOp.PROD)
    assert chosen(op, topology_of(2)).hccl_executor == "AllReduceMeshExecutor"

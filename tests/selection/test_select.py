"""Selection by HCCL's tables: rows, reasons, substitutes."""

import re
from typing import Any

import numpy as np
import pytest

from hccl_executors import EXECUTORS
from hccl_py.call.config import Config
from hccl_py.call.op_param import OpParam
from hccl_py.enums import Mode, ReduceOp
from hccl_py.errors import ConfigError, NotSupportedError, ParameterError
from hccl_py.plugins.discovery import Registry
from hccl_py.selection import Selection, select
from hccl_py.topology import Topology, topology_of
from tests.recording import BY_NAME, op_of
from tests.selection.calls import Anything, call, registry
from tests.selection.calls import chosen as take

KIB, MIB = 1 << 10, 1 << 20
OLD = {"ruleset": "cann-2025.07"}
CONFIG = Config.load({}, **OLD)
DETERMINISTIC = Config.load({}, deterministic="true", **OLD)


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
    (sized("all_gather", 2 * MIB), topo(16), CONFIG, AG_MESH + "OpbasePipelineExecutor"),
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
    (sized("all_reduce", MIB), topo(9, preset="ring"), CONFIG, "AllReduceComm"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "topology", "config", "executor"), ROWS)
def test_the_tables_rows(op: OpParam, topology: Topology, config: Config, executor: str) -> None:
    selection = chosen(op, topology, config)
    assert selection.hccl_executor == executor
    offered = {cls.__name__ for cls in EXECUTORS}
    if executor in offered:
        assert selection.executor == executor
    else:
        said = f"HCCL would take {executor}, which is not offered here"
        assert any(reason.startswith(said) for reason in selection.reasons)
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
    assert selection.reasons == ("level0 is mesh", "mode is op_base", "single_mesh is true")
    assert selection.algorithm == {"level0": "mesh"}
    assert selection.tag == "AllGather_hccl_world_groupringAllGatherMeshOpbaseExecutor_host"
    against = {r.executor: r.reason for r in selection.rejected}
    assert against["AllGatherComm"] == (
        "suits, but AllGatherMeshOpbaseExecutor comes first in cann-2025.07"
    )


def test_tags_follow_the_mode() -> None:
    assert chosen(graph("all_gather", KIB), topology_of(4)).tag == "AllGather_hccl_world_group_host"
    assert chosen(of_size("all_gather", KIB), topology_of(1)).tag == ""


def test_a_named_executor_wins_or_says_why_not() -> None:
    op = of_size("all_gather", KIB)
    selection = chosen(op, topology_of(4), executor="AllGatherComm")
    assert selection.executor == "AllGatherComm"
    assert selection.hccl_executor == "AllGatherMeshOpbaseExecutor"
    against = {r.executor: r.reason for r in selection.rejected}
    assert "the tables' choice" in against["AllGatherMeshOpbaseExecutor"]
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
    rejected = select(op, topology_of(4), CONFIG, registry(*EXECUTORS, Never))[0].rejected
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
    selection = select(op, topology_of(4), CONFIG, registry(*EXECUTORS, Raises))[0]
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
    reasons = select(op, topology_of(4), CONFIG, registry(*EXECUTORS, Vague))[0].rejected
    assert any("instead of True or False" in r.reason for r in reasons if r.executor == "Vague")


def test_reduce_op_matters_for_inline() -> None:
    op = OpParam("all_reduce", MIB, op_of("all_reduce").dtype, ReduceOp.PROD)
    assert chosen(op, topology_of(2)).hccl_executor == "AllReduceMeshExecutor"


# ---- substitutes, strictness, determinism, levels ----


def offered(name: str, **members: Any) -> Any:
    """Return a class that takes every call of all ops, named like one of HCCL's executors."""
    return type(name, (Anything,), members)


COMM = offered("AllReduceComm", algorithm="level0:NA;level1:ring|NHR|NB", op="all_reduce")


def test_a_substitute_is_the_next_row_that_holds() -> None:
    """Neither vector-core kernels nor the pipeline, whose row does not hold, but the loop."""
    names = (
        "AllReduceComm",
        "AllReduceMeshOpbasePipelineExecutor",
        "AllReduceMeshOpbaseLoopExecutor",
    )
    selection = select_from(*names, op_expansion_mode="AIV")
    assert selection.hccl_executor == "AllReduceMeshAivExecutor"
    assert selection.executor == "AllReduceMeshOpbaseLoopExecutor"
    assert selection.reasons[-1] == (
        "HCCL would take AllReduceMeshAivExecutor, which is not offered here; "
        "AllReduceMeshOpbaseLoopExecutor is the next that suits"
    )


def select_from(*names: str, size: int = MIB, ranks: int = 8, **settings: Any) -> Selection:
    classes = [
        offered(name, op="all_reduce", algorithm="level0:mesh", order=BY_NAME[name].order)
        for name in names
    ]
    return take(of_size("all_reduce", size), topology_of(ranks), *classes, **settings)


def test_strict_refuses_substitutes() -> None:
    with pytest.raises(NotSupportedError, match="AllReduceMeshAivExecutor, which is not offered"):
        select_from("AllReduceComm", op_expansion_mode="AIV", strict=True)
    assert select_from("AllReduceMeshOpbaseLoopExecutor", strict=True).executor


def test_strict_as_an_argument() -> None:
    found = registry()
    op = of_size("all_reduce", MIB)
    config = Config.load({}, deterministic="true")
    with pytest.raises(NotSupportedError, match="AllReduceMeshMidCountLoopExecutor"):
        select(op, topology_of(8), config, only(found, "AllReduceComm"), strict=True)


def only(found: Registry, *names: str) -> Registry:
    kept = Registry()
    kept.executors = {name: found.executors[name] for name in names}
    return kept


def test_a_refused_call_runs_anyway_and_says_so() -> None:
    op = call("all_gather_v", KIB, ranks=16)
    selection = take(op, topology_of(16), Anything)
    assert selection.executor == "Anything"
    assert (selection.hccl_executor, selection.result) == (None, "HCCL_E_NOT_SUPPORT")
    assert selection.reasons == (
        "single_mesh is false",
        "HCCL refuses this call with HCCL_E_NOT_SUPPORT: AllGatherV stays within one module",
        "Anything runs instead",
    )
    with pytest.raises(NotSupportedError, match="HCCL refuses all_gather_v") as caught:
        take(op, topology_of(16), Anything, strict=True)
    assert "Without --strict-hccl Anything runs" in caught.value.hint
    named = take(op, topology_of(16), Anything, executor="Anything")
    assert named.reasons[0] == "named by the caller"
    assert "HCCL refuses this call" in named.reasons[1]


def test_others_than_the_substitute_of_a_refused_call() -> None:
    op = call("all_gather_v", KIB, ranks=16)
    mesh = offered("AllGatherVMeshOpbaseExecutor", op="all_gather_v")
    selection = take(op, topology_of(16), Anything, mesh)
    assert selection.executor == "AllGatherVMeshOpbaseExecutor"
    assert [r.reason for r in selection.rejected] == ["suits, but no row of cann-2025.07 names it"]
    named = take(op, topology_of(16), Anything, mesh, executor="Anything")
    assert [r.reason for r in named.rejected] == ["suits, but cann-2025.07 refuses the call before"]


def test_determinism_avoids_sums_in_order_of_arrival() -> None:
    names = ("AllReduceMeshOpbaseLoopExecutor", "AllReduceComm")
    assert select_from(*names).executor == names[0]
    selection = select_from(*names, deterministic="true")
    assert selection.hccl_executor == "AllReduceMeshMidCountLoopExecutor"
    assert selection.executor == "AllReduceComm"
    alone = select_from(names[0], deterministic="true")
    assert "though it adds in the order in which data arrives" in alone.reasons[-1]
    two = select_from(*names, deterministic="true", ranks=2)
    assert two.executor == names[0]


def test_strict_determinism_prefers_rank_order() -> None:
    names = ("AllReduceMeshOneshotLoopExecutor", "AllReduceOrderPreservedExecutor")
    chosen_ = select_from(*names, deterministic="strict", ruleset="cann-2026.08")
    assert chosen_.executor == chosen_.hccl_executor == names[1]
    alone = select_from(names[0], deterministic="strict")
    assert "though it does not add in rank order" in alone.reasons[-1]


def test_an_executor_may_say_in_which_order_it_adds() -> None:
    loop = "AllReduceMeshOpbaseLoopExecutor"
    arrival = offered("Eager", op="all_reduce", order="arrival")
    ranked = offered("Ranked", op="all_reduce", order="rank")
    op = of_size("all_reduce", MIB)
    eager = take(op, topology_of(8), arrival, ranked, deterministic="true")
    assert eager.executor == "Ranked"
    strict = take(op, topology_of(8), arrival, ranked, deterministic="strict")
    assert strict.executor == "Ranked"
    assert "though" not in strict.reasons[-1]
    plain = take(op, topology_of(8), offered(loop, op="all_reduce", order="fixed"))
    assert plain.executor == loop


def test_levels_are_hccl_s_where_the_executor_has_them() -> None:
    op = of_size("all_reduce", MIB)
    ring = take(op, topology_of(9), COMM)
    assert (ring.algorithm, ring.levels) == (
        {"level0": "NA", "level1": "ring"},
        {"level1": "ring"},
    )
    flat = take(op, topology_of(9), COMM, algo="level0:null;level1:NB")
    assert flat.levels == {"level1": "NB"}
    assert "world_groupNBAllReduceComm" in flat.tag
    unknown = take(op, topology_of(32), COMM, algo="level0:NA;level1:NHR_V1")
    assert unknown.levels == {"level1": "ring"}
    assert unknown.reasons[-1] == (
        "AllReduceComm does not do NHR_V1 on level1, but ring, NHR, NB: ring runs"
    )


def test_a_row_may_force_the_algorithm_between_servers() -> None:
    where = topology_of(servers=2, devices=8, preset="atlas-900-a3")
    selection = take(of_size("all_reduce", KIB), where, COMM, algo="level0:NA;level1:NB")
    assert selection.hccl_executor == "AllReduceComm"
    assert selection.levels == {"level1": "NHR"}
    assert "this row takes NHR on level1" in selection.reasons


def test_what_suits_sees_has_its_levels() -> None:
    seen = []

    def suits(self: Any, op: OpParam, topology: Topology) -> bool:
        seen.append((op.level1, op.level2))
        return True

    spy = offered(
        "Spy", op="all_reduce", algorithm="level0:NA;level1:ring|NHR;level2:NB", suits=suits
    )
    take(of_size("all_reduce", MIB), topology_of(32), spy)
    assert set(seen) == {("NHR", "NB")}


def test_a_barrier_takes_all_reduce_s_executors() -> None:
    op = call("barrier", 32)
    selection = take(op, topology_of(8), COMM)
    assert (selection.op, selection.executor) == ("barrier", "AllReduceComm")
    assert selection.hccl_executor == "AllReduceMeshSmallCountExecutor"
    named = take(op, topology_of(8), COMM, executor="AllReduceComm")
    assert named.executor == "AllReduceComm"
    with pytest.raises(ParameterError, match="Did you mean AllReduceComm"):
        take(op, topology_of(8), COMM, executor="AllReduceCom")


def test_settings_that_the_product_does_not_take_are_refused() -> None:
    with pytest.raises(ConfigError, match="HCCL_OP_EXPANSION_MODE has the illegal value 'CCU_MS'"):
        take(
            of_size("all_reduce", MIB),
            topology_of(8, preset="atlas-900-a3"),
            COMM,
            op_expansion_mode="CCU_MS",
        )


def test_ruleset_and_group_are_named() -> None:
    for preset in ("atlas-800-9000", "atlas-800t-a2", "atlas-900-a3", "300i-duo"):
        where = topology_of(4, preset=preset)
        for ruleset in ("cann-2025.07", "cann-2026.08"):
            selection = take(of_size("all_reduce", KIB), where, COMM, ruleset=ruleset)
            assert selection.ruleset == ruleset
            assert re.search(r"/all_reduce_operator\.cc:\d+(-\d+)?$", selection.source)
    assert Config.load({}).ruleset == "cann-2026.08"
    config = Config.load({})
    found = select(
        of_size("all_reduce", KIB), topology_of(4), config, registry(COMM), group="tp_0"
    )[0]
    assert found.tag.startswith("AllReduce_tp_0ring")


def test_what_no_executor_keeps_of_determinism_is_said() -> None:
    op = of_size("reduce", MIB)
    lost = "HCCL_DETERMINISTIC is not kept: ReduceMeshExecutor does not add in rank order"
    for name in (None, "ReduceMeshExecutor"):
        strict = Config.load({}, deterministic="strict")
        assert lost in chosen(op, topology_of(8), strict, executor=name).reasons
        fixed = Config.load({}, deterministic="true")
        assert lost not in chosen(op, topology_of(8), fixed, executor=name).reasons


def test_an_executor_that_breaks_the_order_gives_way_with_a_reason() -> None:
    selection = chosen(of_size("reduce_scatter_v", MIB), topology_of(8), DETERMINISTIC)
    assert selection.executor == "ReduceScatterVDeterExecutor"
    assert selection.reasons[-1] == (
        "HCCL would take ReduceScatterVMeshOpbaseExecutor, which adds in the order in which data "
        "arrives; ReduceScatterVDeterExecutor is the next that suits"
    )


def test_a_substitute_is_none_of_another_product_s() -> None:
    selection = chosen(of_size("all_gather_v", MIB), topology_of(16))
    assert (selection.hccl_executor, selection.executor) == (None, "AllGatherVMeshExecutor")


@pytest.mark.parametrize(("op", "why"), [("gather", "HCCL refuses"), ("send_recv", "the only row")])
def test_a_row_without_conditions(op: str, why: str) -> None:
    assert chosen(of_size(op, MIB), topology_of(4)).reasons[0].startswith(why)


class Registered(Anything):
    """Works on user memory that all ranks have registered."""

    zero_copy = True


def test_registered_memory_is_used_only_where_there_is_some() -> None:
    op, topology = call("all_gather", KIB), topology_of(4)
    mine = registry(Registered, Anything)
    assert select(op, topology, CONFIG, mine)[0].executor == "Anything"
    with pytest.raises(NotSupportedError, match="all ranks have registered: zero_copy"):
        select(op, topology, CONFIG, mine, "Registered")
    told = Config.load({}, zero_copy=True)
    assert select(op, topology, told, mine, "Registered")[0].executor == "Registered"

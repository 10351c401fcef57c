"""HCCL's decision tables of AllGather and ReduceScatter, with their V forms, row by row."""

from pathlib import Path

import pytest

from tests.selection.explaining import K, M, Row, explain, row

AIV = {"HCCL_OP_EXPANSION_MODE": "AIV"}
FIXED = {"HCCL_DETERMINISTIC": "true"}
GRAPH = {"mode": "graph"}
HOST = {"HCCL_OP_EXPANSION_MODE": "HOST"}
NO_HCCS = {"HCCL_INTER_HCCS_DISABLE": "TRUE"}
AG, RS = "AllGather", "ReduceScatter"
DETER, SMALL_GATHER = "ReduceScatterDeterExecutor", "AllGatherSmallCount"
AG_DOUBLE = "AlignedAllGatherDoubleRingFor91093Executor"
RS_DOUBLE = "ReduceScatterFastDoubleRingFor91093Executor"


def ag(where: str, size: int, executor: str, level1: str = "", **options: str) -> Row:
    """Return a row of AllGather."""
    return row(where, "all_gather", size, executor, level1, **options)


def rs(where: str, size: int, executor: str | None, level1: str = "", **options: str) -> Row:
    """Return a row of ReduceScatter."""
    return row(where, "reduce_scatter", size, executor, level1, **options)


ALL_GATHER = [
    ag("A2 1", K, "AllGatherSingleExecutor"),
    # 910A, 310P3
    ag("910A 2x4", K, "AllGatherMeshExecutor"),
    ag("910A 2x8", K, "AllGatherRingExecutor"),
    ag("910A 1x2", K, "AllGatherRingExecutor"),
    ag("Duo 8", K, "AllGatherFor310PExecutor"),
    ag("Duo 32", K, "AllGatherFor310PExecutor"),
    # 910B
    ag("A2 1x8", K, "AllGatherMeshOpbaseExecutor"),
    ag("A2 1x2", 64 * M, "AllGatherMeshOpbaseExecutor"),
    ag("A2 2x8", 2 * M, "AllGatherMeshOpbasePipelineExecutor", "pipeline"),
    ag("A2 2x8", 2 * M - 4, "AllGatherMeshExecutor", "ring"),
    ag("A2 4x8", K, "AllGatherMeshExecutor", "NHR"),
    ag("A2 4x1", 64 * M, "AllGatherRingExecutor", "NHR"),
    ag("A2 1x8", M, "AllGatherMeshGraphExecutor", **GRAPH),
    ag("A2 2x8", M, "AllGatherMeshGraphExecutor", "H-D_R", **GRAPH),
    ag("A2 2x8", M + 4, "AllGatherMeshExecutor", **GRAPH),
    ag("ring 5", K, "AllGatherRingExecutor"),
    ag("A2 12", K, "AllGatherComm"),
    # 910B, vector cores
    ag("A2 1x8", 700 * K, "AllGatherMeshAivSmallCountExecutor", **AIV),
    ag("A2 1x8", 700 * K + 4, "AllGatherMeshAivExecutor", **AIV),
    ag("A2 1x8", 256 * M, "AllGatherMeshAivExecutor", **AIV),
    ag("A2 1x8", 256 * M + 4, "AllGatherMeshOpbaseExecutor", **AIV),
    ag("A2 1x8", K, "AllGatherMeshAivExecutor", **AIV, **GRAPH),
    ag("A2 2x8", 256 * K, "AllGatherAivRdmaExecutor", **AIV),
    ag("A2 2x8", 256 * K + 4, "AllGatherMeshExecutor", **AIV),
    ag("A2 3x8", 128 * K, "AllGatherAivRdmaExecutor", **AIV),
    ag("A2 3x8", 128 * K + 4, "AllGatherMeshExecutor", **AIV),
    ag("A2 16x8", 128 * K, "AllGatherAivRdmaExecutor", **AIV),
    ag("A2 16x8", 128 * K + 4, "AllGatherMeshExecutor", **AIV),
    # 910_93
    ag("A3 20", K, "AllGatherComm"),
    ag("A3 2x8", 4 * M, SMALL_GATHER),
    ag("A3 2x8", 4 * M + 4, AG_DOUBLE, "NHR"),
    ag("A3 2x6", M, SMALL_GATHER),
    ag("A3 2x6", M + 4, AG_DOUBLE),
    ag("A3 2x8", M, SMALL_GATHER, buffsize="8"),
    ag("A3 2x8", M + 4, AG_DOUBLE, buffsize="8"),
    ag("A3 2x3", M, SMALL_GATHER, buffsize="6"),
    ag("A3 2x3", M, "AllGatherRingFor91093Executor", buffsize="5"),
    ag("A3 2x6", M, SMALL_GATHER, buffsize="6"),
    ag("A3 2x6", M, AG_DOUBLE, buffsize="5"),
    ag("A3 1x8", K, AG_DOUBLE, **NO_HCCS),
    ag("A3 2x8", K, AG_DOUBLE, **NO_HCCS),
    ag("A3 2x2x8", K, AG_DOUBLE),
    ag("A3 1x8", 2 * M, "AllGatherMeshOpbaseExecutor"),
    ag("A3 1x8", K, "AllGatherSemiRingExecutor", **GRAPH),
    ag("A3 1x8", 2 * M, "AllGatherMeshExecutor", **GRAPH, **HOST),
    ag("A3 1x8", 2 * M + 4, AG_DOUBLE, **GRAPH, **HOST),
    ag("A3 1x8", 2 * M + 4, "AllGatherSemiRingExecutor", **GRAPH),
    ag("A3 2x8", 8 * M, AG_DOUBLE, **GRAPH),
    ag("A3 1x8", 2 * M + 4, AG_DOUBLE),
    ag("A3 1x2", K, "AllGatherRingFor91093Executor"),
    ag("A3 1x3", 2 * M + 4, "AllGatherRingFor91093Executor"),
    ag("A3 1x8", 4 * M, "AllGatherMeshAivExecutor", **AIV, **GRAPH),
    ag("A3 1x8", 760 * K, "AllGatherMeshAivSmallCountExecutor", **AIV, **GRAPH),
    ag("A3 1x8", 760 * K + 4, "AllGatherMeshAivExecutor", **AIV, **GRAPH),
    ag("A3 1x8", 4 * M + 4, "AllGatherSemiRingExecutor", **AIV, **GRAPH),
    ag("A3 1x8", 512 * K, "AllGatherMeshAivSmallCountExecutor", **AIV),
    ag("A3 1x8", 512 * K + 4, "AllGatherMeshOpbaseExecutor", **AIV),
    ag("A3 2x8", 8 * M, "AllGatherComm", "ring", algo="level0:null;level1:ring"),
]

REDUCE_SCATTER = [
    rs("A2 1", K, "ReduceScatterSingleExecutor"),
    rs("Duo 8", K, "ReduceScatterRing"),
    rs("910A 2x4", K, "ReduceScatterMeshExecutor"),
    rs("910A 2x8", K, "ReduceScatterRingExecutor"),
    # 910B
    rs("A2 1x8", K, "ReduceScatterMeshDmaEliminationExecutor"),
    rs("A2 1x8", K, DETER, **FIXED),
    rs("A2 1x2", K, DETER, **FIXED),
    rs("A2 1x8", K, "ReduceScatterMeshExecutor", dtype="int64"),
    rs("A2 2x8", 2 * M, "ReduceScatterMeshOpbasePipelineExecutor", "pipeline"),
    rs("A2 2x8", 2 * M - 4, "ReduceScatterMeshExecutor", "ring"),
    rs("A2 2x8", M, "ReduceScatterMeshExecutor", **FIXED),
    rs("A2 2x8", M, "ReduceScatterMeshExecutor", reduce_op="prod"),
    rs("A2 1x8", M, "ReduceScatterMeshGraphExecutor", **GRAPH),
    rs("A2 1x8", M + 4, "ReduceScatterMeshExecutor", **GRAPH),
    rs("A2 1x8", M, DETER, **GRAPH, **FIXED),
    rs("A2 1x2", M, "ReduceScatterMeshGraphExecutor", **GRAPH, **FIXED),
    rs("ring 5", K, "ReduceScatterRingExecutor"),
    rs("A2 12", K, "ReduceScatterComm"),
    rs("A2 1x8", 2 * M, "ReduceScatterMeshAivSmallCountExecutor", **AIV),
    rs("A2 1x8", 2 * M + 4, "ReduceScatterMeshAivExecutor", **AIV),
    rs("A2 2x8", 256 * K, "ReduceScatterAivRdmaExecutor", **AIV),
    # 910_93
    rs("A3 20", K, "ReduceScatterComm"),
    rs("A3 3x8", 256 * K, "ReduceScatterComm", "H-D_R"),
    rs("A3 3x8", 256 * K + 4, RS_DOUBLE, "ring"),
    rs("A3 2x8", 512 * K, DETER),
    rs("A3 2x8", 512 * K + 4, RS_DOUBLE, "NHR"),
    rs("A3 2x2x8", K, RS_DOUBLE),
    rs("A3 1x8", 2 * M, DETER),
    rs("A3 1x8", 2 * M + 4, RS_DOUBLE),
    rs("A3 1x8", 2 * M + 4, "ReduceScatterSemiRingExecutor", **GRAPH),
    rs("A3 1x3", 2 * M + 4, "ReduceScatterRingFor91093Executor"),
    rs("A3 1x8", M, "ReduceScatterMeshAivSmallCountExecutor", **AIV),
    rs("A3 1x8", 4 * M, "ReduceScatterMeshAivExecutor", **AIV, **GRAPH),
    rs("A3 2x8", 512 * K, DETER, buffsize="4"),
    rs("A3 2x8", 512 * K, RS_DOUBLE, buffsize="3"),
    rs("A3 1x8", K, "ReduceScatterSemiRingExecutor", **GRAPH),
    rs("A3 1x8", 2 * M, DETER, **GRAPH, **HOST),
    rs("A3 1x12", 760 * K, "ReduceScatterMeshAivSmallCountExecutor", **AIV, **GRAPH),
    rs("A3 1x12", 760 * K + 4, "ReduceScatterMeshAivExecutor", **AIV, **GRAPH),
    rs("A3 1x14", K, "ReduceScatterMeshAivExecutor", **AIV, **GRAPH),
]

V_OPS = [
    row("A2 1x8", "all_gather_v", K, "AllGatherVMeshOpbaseExecutor"),
    row("A2 1x8", "all_gather_v", K, "AllGatherVMeshExecutor", **GRAPH),
    row("A2 2x8", "all_gather_v", K, None),
    row("A2 12", "all_gather_v", K, None),
    row("910A 1x8", "all_gather_v", K, None),
    row("A3 1x8", "all_gather_v", K, None),
    row("Duo 4", "all_gather_v", K, "AllGatherVFor310PExecutor"),
    row("Duo 5", "all_gather_v", K, "AllGatherVFor310PExecutor"),
    row("A2 1x8", "all_gather_v", K, "AllGatherVMeshAivSmallCountExecutor", **AIV),
    row("A2 1x8", "all_gather_v", M, "AllGatherVMeshAivExecutor", **AIV),
    row("A2 1x8", "reduce_scatter_v", K, "ReduceScatterVMeshOpbaseExecutor"),
    row("A2 1x8", "reduce_scatter_v", K, "ReduceScatterVMeshExecutor", **GRAPH),
    row("A2 2x8", "reduce_scatter_v", K, None),
    row("A3 1x8", "reduce_scatter_v", K, None),
    row("Duo 4", "reduce_scatter_v", K, "ReduceScatterVFor310PRing"),
    row("A2 1x8", "reduce_scatter_v", K, "ReduceScatterVMeshAivSmallCountExecutor", **AIV),
    # Parts differ: the largest one counts, and may have 2 MB.
    row("A2 1x8", "reduce_scatter_v", M, "ReduceScatterVMeshAivSmallCountExecutor", **AIV),
    row("A2 1x8", "reduce_scatter_v", 2 * M, "ReduceScatterVAIVBigCountExecutor", **AIV),
]


@pytest.mark.parametrize("row", [*ALL_GATHER, *REDUCE_SCATTER, *V_OPS], ids=str)
def test_a_row(row: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = explain(row, tmp_path, monkeypatch)
    assert document["hccl_executor"] == row.executor
    assert row.level1 in ("", document["hccl_algorithm"]["level1"])
    refused = row.executor is None
    assert document["hccl_result"] == ("HCCL_E_NOT_SUPPORT" if refused else None)
    assert bool(document["refusal"]) == refused

"""HCCL's decision table of AllReduce, row by row, through `explain --json`."""

from pathlib import Path

import pytest

from tests.selection.explaining import K, M, Row, explain, row

AIV = {"HCCL_OP_EXPANSION_MODE": "AIV"}
FIXED = {"HCCL_DETERMINISTIC": "true"}
STRICT = {"HCCL_DETERMINISTIC": "strict"}
GRAPH = {"mode": "graph"}
MESH, SMALL = "AllReduceMeshExecutor", "AllReduceMeshSmallCountExecutor"
LOOP, ONESHOT = "AllReduceMeshOpbaseLoopExecutor", "AllReduceMeshOneshotLoopExecutor"
MID, PIPE = "AllReduceMeshMidCountLoopExecutor", "AllReduceMeshOpbasePipelineExecutor"
RING, COMM = "AllReduceRingExecutor", "AllReduceComm"
FAST = "AllReduceFastDoubleRingFor91093Executor"


def ar(where: str, size: int, executor: str | None, level1: str = "", **options: str) -> Row:
    """Return a row of AllReduce."""
    return row(where, "all_reduce", size, executor, level1, **options)


ROWS = [
    # any device, one rank
    ar("A2 1", K, "AllReduceSingleExecutor"),
    ar("910A 1", K, "AllReduceSingleExecutor"),
    ar("A3 1", K, "AllReduceSingleExecutor"),
    ar("A3 1", K, "AllReduceRingFor91093Executor", **GRAPH),
    ar("Duo 1", K, "AllReduceSingleExecutor"),
    ar("A2 1", K, RING, **GRAPH),
    ar("A2 1", M, RING, **GRAPH),
    # 310P3 Duo
    ar("Duo 4", 128 * K, "AllReduceDoublingDirect"),
    ar("Duo 4", 128 * K, "AllReduceDoubling", **GRAPH),
    ar("Duo 4", 128 * K + 4, "AllReduceRing"),
    ar("Duo 6", 128 * K, "AllReduceRing"),
    ar("Duo 2", M, "AllReduceDoublingDirect"),
    ar("Duo 2", M, "AllReduceDoubling", **GRAPH),
    ar("Duo 4", 4 * K, "AllReduceRing", dtype="int32"),
    ar("Duo 2", 4 * K, "AllReduceRing", reduce_op="max"),
    # 910A
    ar("910A 1x4", M, MESH),
    ar("910A 2x4", M, MESH),
    ar("910A 1x8", M, RING),
    ar("910A 2x8", M, RING),
    ar("910A 1x2", M, RING),
    ar("910A 2x1", M, RING),
    ar("910A 11", M, COMM, "ring"),
    # 910B, two devices or one
    ar("A2 1x2", 256 * K, SMALL),
    ar("A2 1x2", 256 * K + 4, LOOP),
    ar("A2 1x2", 256 * K + 4, LOOP, **FIXED),
    ar("A2 1x2", M, MESH, dtype="int64"),
    ar("A2 1x2", M, MESH, reduce_op="prod"),
    ar("A2 1x2", 64 * K, SMALL, **GRAPH),
    ar("A2 1x2", 64 * K + 4, MESH, **GRAPH),
    ar("A2 2x2", 8 * M, PIPE, "pipeline"),
    ar("A2 2x2", 8 * M, MESH, **FIXED),
    ar("A2 2x2", 8 * M, MESH, dtype="int64"),
    ar("A2 2x2", 8 * M - 4, MESH, "ring"),
    ar("A2 2x2", 8 * M, MESH, "H-D_R", **GRAPH),
    ar("A2 4x1", 64 * M, RING, "NHR"),
    ar("ring 2", M, RING),
    ar("A2 3x2", M, COMM, "ring", algo="level0:null;level1:ring"),
    # 910B, more than two devices, any order
    ar("A2 1x8", 256 * K, SMALL),
    ar("A2 1x8", 256 * K + 4, LOOP),
    ar("A2 1x3", 64 * M, LOOP),
    ar("A2 2x8", 32 * M, PIPE, "pipeline"),
    ar("A2 2x8", 32 * M - 4, MESH, "ring"),
    ar("A2 1x8", 4 * K, MESH, **GRAPH),
    ar("A2 2x8", M, MESH, **GRAPH),
    # 910B, more than two devices, deterministic
    ar("A2 1x4", 64 * K, SMALL, **FIXED, **GRAPH),
    ar("A2 1x4", 64 * K + 4, ONESHOT, **FIXED, **GRAPH),
    ar("A2 1x4", 128 * K, SMALL, **FIXED),
    ar("A2 1x4", 128 * K + 4, ONESHOT, **FIXED),
    ar("A2 1x8", 128 * K + 4, MID, **FIXED),
    ar("A2 1x8", 256 * M, MID, **FIXED),
    ar("A2 1x8", 4 * M, MID, **FIXED, **GRAPH),
    ar("A2 1x8", 4 * M + 4, ONESHOT, **FIXED, **GRAPH),
    ar("A2 2x8", 64 * M, MESH, **FIXED),
    # 910B, more than two devices that are no mesh
    ar("ring 3", M, COMM),
    ar("ring 9", M, COMM),
    ar("A2 9", M, COMM, "ring"),
    ar("A2 2x8", M, COMM, "ring", algo="level0:null;level1:ring"),
    ar("A2 2x8", M, COMM, "NHR", algo="level0:null;level1:NHR"),
    ar("A2 2x8", M, COMM, "H-D_R", algo="level0:null;level1:H-D_R"),
    ar("A2 2x8", M, None, algo="level0:NA;level1:AHC"),
    ar("A2 2x8", M, COMM, "AHC_BROKE", algo="level0:null;level1:AHC"),
    # 910B, links that cannot reduce
    ar("A2 1x4", K, MESH, dtype="int64"),
    ar("A2 1x8", K, MESH, reduce_op="prod"),
    ar("A2 1x4", K, MESH, dtype="int64", **FIXED),
    ar("A2 1x2", 64 * K, MESH, dtype="int64", **GRAPH),
    # sums know no rank order yet
    ar("A2 1x8", M, None, **STRICT),
    ar("A3 1x8", M, None, dtype="int32", **STRICT),
    # 910B, vector cores
    ar("A2 2x8", 8 * 190 * K, "AllReduceSmallCountAivRdmaExecutor", **AIV),
    ar("A2 2x8", 8 * 190 * K + 8, "AllReduceMidCountAivRdmaExecutor", **AIV),
    ar("A2 3x8", K, "AllReduceMidCountAivRdmaExecutor", **AIV),
    ar("A2 2x8", 32 * M, PIPE, "pipeline", **AIV),
    ar("A2 3x8", 16 * M + 4, MESH, "ring", **AIV),
    ar("A2 1x8", 16 * M, "AllReduceMeshOpbaseBigCountAivExecutor", **AIV),
    ar("A2 1x8", 16 * M - 4, "AllReduceMeshAivExecutor", **AIV),
    ar("A2 1x8", 64 * M, "AllReduceMeshAivExecutor", **AIV, **GRAPH),
    ar("A2 1x8", K, SMALL, **AIV, **FIXED),
    ar("A2 1x8", K, MESH, dtype="int64", **AIV),
    ar("A2 1x8", K, SMALL, buffsize="15", **AIV),
    ar("A2 1x8", K, "AllReduceMeshAivExecutor", buffsize="16", **AIV),
    # 910_93
    ar("A3 2x8", 16 * 256 * K, COMM, "NHR"),
    ar("A3 2x8", 16 * 256 * K + 4, FAST, "NHR"),
    ar("A3 2x2", K, "AllReduceRingFor91093Executor", "NHR"),
    ar("A3 2x2x8", K, FAST, "NHR"),
    ar("A3 1x8", 8 * M, SMALL),
    ar("A3 1x8", 8 * M + 4, FAST),
    ar("A3 1x8", 8 * M, SMALL, buffsize="32"),
    ar("A3 1x8", 8 * M, FAST, buffsize="31"),
    ar("A3 1x8", K, FAST, dtype="int64"),
    ar("A3 1x2", K, "AllReduceRingFor91093Executor"),
    ar("A3 1x3", 64 * M, "AllReduceRingFor91093Executor"),
    ar("A3 20", 64 * M, COMM, "ring"),
    ar("A3 1x8", M, "AllReduceMeshAivExecutor", **AIV),
    ar("A3 1x8", 8 * M, "AllReduceMeshAivExecutor", **AIV),
    ar("A3 1x8", 8 * M + 8, FAST, **AIV),
    ar("A3 1x16", 16 * M, "AllReduceMeshOpbaseBigCountAivExecutor", **AIV),
    ar("A3 1x16", 16 * M - 4, "AllReduceMeshAivExecutor", **AIV),
    ar("A3 1x16", 16 * M, "AllReduceMeshAivExecutor", **AIV, **GRAPH),
    ar("A3 1x8", K, FAST, **GRAPH),
    ar("A3 1x8", K, SMALL, **GRAPH, HCCL_OP_EXPANSION_MODE="HOST"),
    ar("A3 1x8", K, FAST, "ring", dtype="int64"),
    # a barrier is an all-reduce of 32 bytes
    row("A2 1x8", "barrier", 32, SMALL),
    row("A3 2x8", "barrier", 32, COMM, "NHR"),
    row("910A 1x8", "barrier", 32, RING),
    row("A2 1x8", "barrier", 32, "AllReduceMeshAivExecutor", **AIV),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_row(row: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = explain(row, tmp_path, monkeypatch)
    assert document["hccl_executor"] == row.executor
    assert row.level1 in ("", document["hccl_algorithm"]["level1"])
    assert (document["hccl_result"] is None) == (row.executor is not None)

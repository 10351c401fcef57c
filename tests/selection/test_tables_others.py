"""HCCL's decision tables of the ops with a root, AlltoAll, and point to point, row by row."""

from pathlib import Path

import pytest

from tests.selection.calls import call, chosen, topology
from tests.selection.explaining import K, M, Row, explain, row

AIV = {"HCCL_OP_EXPANSION_MODE": "AIV"}
GRAPH = {"mode": "graph"}
HOST = {"HCCL_OP_EXPANSION_MODE": "HOST"}
NO_HCCS = {"HCCL_INTER_HCCS_DISABLE": "TRUE"}
BCAST_RING, FULL = "BroadCastRingFor91093Executor", "RunAlltoAllVFullMesh"
DIRECT, STAGED = "RunAlltoAllDirectFullmesh", "RunAlltoAllVStaged"
TWO_LEVEL = "RunAlltoAllVTwoLevelPipeline"


def algo(level1: str) -> dict[str, str]:
    """Return the option for an algorithm between servers."""
    return {"algo": f"level0:NA;level1:{level1}"}


ROOTED = [
    row("910A 2x4", "broadcast", K, "BroadCastMeshExecutor", "H-D_R"),
    row("910A 2x8", "broadcast", K, "BroadCastRingExecutor", "H-D_R"),
    row("A2 1x8", "broadcast", K, "BroadCastMeshExecutor", "H-D_R"),
    row("A2 3x8", "broadcast", K, "BroadCastMeshExecutor", "H-D_R"),
    row("A2 3x8", "broadcast", K, "BroadCastMeshExecutor", "H-D_R", **algo("ring")),
    row("A2 3x8", "broadcast", K, "BroadCastMeshExecutor", "NHR", **algo("NHR")),
    row("A2 3x8", "broadcast", K, "BroadCastMeshExecutor", "NHR_V1", **algo("NHR_V1")),
    row("A2 3x8", "broadcast", K, "BroadCastMeshExecutor", "NB", **algo("NB")),
    row("ring 5", "broadcast", K, "BroadCastRingExecutor"),
    row("A2 12", "broadcast", K, "BroadCastComm"),
    row("Duo 4", "broadcast", K, "BroadCastCommFor310P"),
    row("A3 20", "broadcast", K, "BroadCastComm"),
    row("A3 2x8", "broadcast", 16 * 256 * K, "BroadCastComm", "NHR", **algo("NB")),
    row("A3 2x8", "broadcast", 16 * 256 * K + 4, BCAST_RING, "NHR"),
    row("A3 2x8", "broadcast", 16 * M, BCAST_RING, "NB", **algo("NB")),
    row("A3 2x8", "broadcast", 16 * M, BCAST_RING, "NHR", **algo("ring")),
    row("A3 1x8", "broadcast", 16 * M, "BroadCastSmallCountExecutor"),
    row("A3 1x8", "broadcast", 16 * M + 4, BCAST_RING),
    row("A3 1x3", "broadcast", 16 * M, BCAST_RING),
    # Reduce
    row("A2 1", "reduce", K, "ReduceSingleExecutor"),
    row("910A 1x4", "reduce", K, "ReduceMeshExecutor"),
    row("910A 1x8", "reduce", K, "ReduceRingPlusHd"),
    row("A2 2x8", "reduce", K, "ReduceMeshExecutor", "H-D_R"),
    row("A2 3x8", "reduce", K, "ReduceMeshExecutor", "ring"),
    row("A2 3x8", "reduce", K, "ReduceMeshExecutor", "H-D_R", **algo("NHR")),
    row("A2 3x8", "reduce", K, "ReduceMeshExecutor", "H-D_R", **algo("NB")),
    row("A2 3x8", "reduce", K, "ReduceMeshExecutor", "H-D_R", **algo("pipeline")),
    row("ring 5", "reduce", K, "ReduceRingPlusHd"),
    row("A2 12", "reduce", K, "ReduceComm"),
    row("A3 1x8", "reduce", K, "ReduceRingFor91093Executor", "ring"),
    row("A3 8x8", "reduce", K, "ReduceRingFor91093Executor", "ring"),
    row("A3 8x8", "reduce", K, "ReduceRingFor91093Executor", "ring", **algo("NHR")),
    row("A3 20", "reduce", K, "ReduceComm"),
    row("Duo 4", "reduce", K, None),
    # Scatter
    row("A2 1", "scatter", K, "ScatterSingleExecutor"),
    row("A2 2x8", "scatter", K, "ScatterMeshExecutor", "ring"),
    row("A2 2x8", "scatter", K, "ScatterMeshExecutor", "NB", **algo("NB")),
    row("A2 2x8", "scatter", K, "ScatterMeshExecutor", "NHR", **algo("NHR")),
    row("A2 2x8", "scatter", K, "ScatterMeshExecutor", "ring", **algo("H-D_R")),
    row("A2 12", "scatter", K, "ScatterCommExecutor"),
    row("910A 2x8", "scatter", K, "ScatterRingExecutor"),
    row("910A 1x4", "scatter", K, "ScatterMeshExecutor"),
    row("A3 2x8", "scatter", K, "ScatterRingFor91093Executor"),
    row("A3 1x3", "scatter", K, "ScatterRingFor91093Executor"),
    row("A3 20", "scatter", K, "ScatterCommExecutor"),
    row("Duo 4", "scatter", K, None),
    row("A2 1x8", "gather", K, None),
]

ALL_TO_ALL = [
    row("A2 1", "all_to_all", K, "RunAlltoAllSingleExecutor"),
    row("A3 1", "all_to_all_vc", K, DIRECT),
    row("A3 1", "all_to_all_vc", K, "RunAlltoAllSingleExecutor", **HOST),
    row("Duo 4", "all_to_all", K, "RunAlltoAllVFor310PExecutor"),
    row("Duo 8", "all_to_all", K, "RunAlltoAllVFor310PExecutor"),
    row("Duo 2", "all_to_all", K, DIRECT),
    row("Duo 5", "all_to_all", K, DIRECT),
    row("Duo 4", "all_to_all_vc", K, None),
    row("A2 1x8", "all_to_all", 64 * M, "AlltoAllMeshAivExecutor", **AIV),
    row("A2 1x8", "all_to_all", K, "AlltoAllMeshAivExecutor", **AIV, buffsize="8"),
    row("A2 1x8", "all_to_all", K, STAGED, **AIV, buffsize="7"),
    row("A2 1x8", "all_to_all_v", K, "AlltoAllMeshAivExecutor", **AIV, **GRAPH),
    row("A2 2x8", "all_to_all", 190 * K, "AlltoAllStagedAIVRdmaExecutor", **AIV),
    row("A2 2x8", "all_to_all", 190 * K + 4, STAGED, **AIV),
    row("A2 2x8", "all_to_all_v", K, STAGED, **AIV),
    row("A2 9x8", "all_to_all", K, STAGED, **AIV),
    row("A3 1x8", "all_to_all", 512 * K, "AlltoAllMeshAivExecutor", **AIV),
    row("A3 1x8", "all_to_all", 512 * K + 4, DIRECT, **AIV),
    row("A3 1x8", "all_to_all_v", M, "AlltoAllMeshAivExecutor", **AIV),
    row("A3 2x8", "all_to_all", 64 * M, "AlltoAllMeshAivFor91093Executor", **AIV),
    row("A3 2x8", "all_to_all", K, DIRECT),
    row("A3 2x8", "all_to_all_v", K, DIRECT),
    row("A3 1x8", "all_to_all", K, DIRECT),
    row("A2 1x8", "all_to_all", 25 * M, STAGED),
    row("A2 1x8", "all_to_all", 25 * M + 4, DIRECT),
    row("A2 1x8", "all_to_all_vc", 25 * M, STAGED),
    row("A2 1x8", "all_to_all_v", K, DIRECT),
    row("A2 1x8", "all_to_all", K, STAGED, **GRAPH),
    row("A2 2x8", "all_to_all", K, TWO_LEVEL, "pipeline", **algo("pipeline")),
    row("A2 2x8", "all_to_all_v", K, TWO_LEVEL, **algo("pipeline")),
    row("A2 2x8", "all_to_all", K, STAGED, buffsize="79", **algo("pipeline")),
    row("A2 2x8", "all_to_all", K, TWO_LEVEL, buffsize="80", **algo("pipeline")),
    row("A2 2x8", "all_to_all", K, STAGED, **algo("pipeline"), **GRAPH),
    row("A3 2x8", "all_to_all", K, DIRECT, **GRAPH),
    row("A3 5x8", "all_to_all", K, DIRECT, **NO_HCCS),
    row("A3 2x8", "all_to_all", K, STAGED, **GRAPH, **HOST),
    row("A3 2x8", "all_to_all", K, DIRECT, **HOST),
    row("A3 2x8", "all_to_all", K, STAGED, **NO_HCCS, **HOST),
    row("A3 1x8", "all_to_all", K, STAGED, **NO_HCCS, **HOST),
    row("A2 2x8", "all_to_all", K, FULL, "pairwise", **algo("pairwise")),
    row("A2 4x1", "all_to_all", K, FULL),
    row("A2 1x2", "all_to_all", K, FULL, **GRAPH),
    row("A2 12", "all_to_all", K, FULL),
    row("A2 2x8", "all_to_all", K, STAGED),
    row("A2 2x8", "all_to_all_vc", K, STAGED),
    row("910A 2x8", "all_to_all", K, STAGED),
    row("910A 1x8", "all_to_all", K, STAGED),
    row("910A 3x1", "all_to_all", K, FULL),
]

POINT_TO_POINT = [
    row("A2 1x8", "send_recv", K, "SendExecutor"),
    row("A3 2x8", "send_recv", K, "SendExecutor"),
    row("910A 1x8", "batch_send_recv", K, "BatchSendRecv"),
    row("Duo 4", "batch_send_recv", K, "BatchSendRecv"),
]


@pytest.mark.parametrize("row", [*ROOTED, *ALL_TO_ALL, *POINT_TO_POINT], ids=str)
def test_a_row(row: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = explain(row, tmp_path, monkeypatch)
    assert document["hccl_executor"] == row.executor
    assert row.level1 in ("", document["hccl_algorithm"]["level1"])
    assert bool(document["refusal"]) == (row.executor is None)


@pytest.mark.parametrize("quiet", ["", "rank 0 sends nothing", "rank 0 receives nothing"])
def test_every_rank_has_to_send_and_receive_more_than_the_buffer(quiet: str) -> None:
    """Every rank sends and receives 3 MiB or more, but for one; a CCL buffer holds 1 MiB."""
    counts = [[256 * K] * 4 for _ in range(4)]
    for peer in range(4):
        if quiet == "rank 0 sends nothing":
            counts[0][peer] = 0
        if quiet == "rank 0 receives nothing":
            counts[peer][0] = 0
    op = call("all_to_all_vc", 4, ranks=4, matrix=tuple(map(tuple, counts)))
    found = chosen(op, topology(1, 4), buffsize_mb=1).hccl_executor
    assert found == (STAGED if quiet else DIRECT)

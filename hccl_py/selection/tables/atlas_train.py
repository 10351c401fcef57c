"""The tables of 910A (Atlas training series). [C]"""

from __future__ import annotations

from hccl_py.selection.rules import DecisionTable, Rule, refuse, rule
from hccl_py.selection.tables.cells import (
    MESH,
    NO_GATHER,
    POINT_TO_POINT,
    RING,
    SINGLE,
    for_family,
)

__all__ = ["TABLE_910A"]


def _by_level0(mesh: str, ring: str, flat: str) -> tuple[Rule, ...]:
    return rule(mesh, MESH), rule(ring, RING), rule(flat)


TABLE_910A = DecisionTable(
    "classic-910A/1",
    {
        "all_reduce": (
            rule("AllReduceSingleExecutor", SINGLE, ("direct", "==", True)),
            *_by_level0("AllReduceMeshExecutor", "AllReduceRingExecutor", "AllReduceComm"),
        ),
        "all_gather": (
            rule("AllGatherSingleExecutor", SINGLE),
            *_by_level0("AllGatherMeshExecutor", "AllGatherRingExecutor", "AllGatherComm"),
        ),
        "reduce_scatter": (
            rule("ReduceScatterSingleExecutor", SINGLE),
            *_by_level0(
                "ReduceScatterMeshExecutor", "ReduceScatterRingExecutor", "ReduceScatterComm"
            ),
        ),
        "broadcast": _by_level0("BroadCastMeshExecutor", "BroadCastRingExecutor", "BroadCastComm"),
        "reduce": (
            rule("ReduceSingleExecutor", SINGLE),
            *_by_level0("ReduceMeshExecutor", "ReduceRingPlusHd", "ReduceComm"),
        ),
        "scatter": (
            rule("ScatterSingleExecutor", SINGLE),
            *_by_level0("ScatterMeshExecutor", "ScatterRingExecutor", "ScatterCommExecutor"),
        ),
        "all_gather_v": (refuse("AllGatherV exists on 910B, within one module"),),
        "reduce_scatter_v": (refuse("ReduceScatterV exists on 910B, within one module"),),
        **for_family(
            rule("RunAlltoAllSingleExecutor", SINGLE),
            rule("RunAlltoAllVFullMesh", ("pairwise", "==", True)),
            rule("RunAlltoAllVFullMesh", ("one_plane", "==", True)),
            rule("RunAlltoAllVFullMesh", ("ranks", "<=", 2)),
            rule("RunAlltoAllVFullMesh", ("symmetric", "==", False)),
            rule("RunAlltoAllVStaged"),
        ),
        **NO_GATHER,
        **POINT_TO_POINT,
    },
)

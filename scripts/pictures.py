#!/usr/bin/env python3
"""Draw the pictures of docs/algorithms/pictures/ anew, from what the executors record.

    scripts/pictures.py            draws them all
    scripts/pictures.py FOLDER     draws them there

A test compares them with what is checked in, byte for byte.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from hccl_executors import EXECUTORS
from hccl_py.call.op_param import OpParam
from hccl_py.enums import DataType, ReduceOp
from hccl_py.operators import make_operator
from hccl_py.orchestration.record import record
from hccl_py.topology import Topology
from hccl_py.topology.presets import PRESETS
from hccl_py.trace.pictures import draw_steps

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "algorithms" / "pictures"
BY_NAME = {cls.__name__: cls for cls in EXECUTORS}
CCL_BYTES = 1 << 24


class Picture(NamedTuple):
    """A call: `chunks` pieces of 128 bytes, or of `kib` KiB, are its count."""

    file: str
    title: str
    executor: str
    op: str
    servers: tuple[int, ...]
    chunks: int = 1
    level1: str = ""
    product: str = "mesh"
    kib: int = 0
    deterministic: bool = False
    superpods: tuple[int, ...] = ()


def _four_and_five(
    file: str, title: str, executor: str, op: str, level1: str = "", kib: int = 0
) -> list[Picture]:
    """Return the pictures of a flat executor for 4 and 5 ranks."""
    chunks = {"all_reduce": True, "broadcast": True, "reduce": True}
    return [
        Picture(
            f"{file}_{ranks}",
            f"{title}, {ranks} ranks",
            executor,
            op,
            (ranks,),
            ranks if op in chunks else 1,
            level1,
            kib=kib,
        )
        for ranks in (4, 5)
    ]


PICTURES = [
    *_four_and_five("ring", "Ring all-reduce", "AllReduceComm", "all_reduce", "ring"),
    Picture(
        "slim_ring_4",
        "Slim ring all-gather, 4 ranks",
        "AllGatherSlimRingFor310PExecutor",
        "all_gather",
        (4,),
    ),
    Picture(
        "slim_ring_5",
        "Slim ring reduce-scatter, 5 ranks",
        "ReduceScatterSlimRing",
        "reduce_scatter",
        (5,),
    ),
    *_four_and_five("ring_broadcast", "Ring broadcast", "BroadCastComm", "broadcast", "ring"),
    *_four_and_five(
        "mesh_all_gather", "Mesh all-gather", "AllGatherMeshOpbaseExecutor", "all_gather"
    ),
    *_four_and_five(
        "mesh", "Mesh all-reduce", "AllReduceMeshOpbaseLoopExecutor", "all_reduce", kib=16
    ),
    Picture(
        "mesh_star_4",
        "All-reduce at rank 0 of a mesh, 4 ranks",
        "AllReduceMeshSmallCountExecutor",
        "all_reduce",
        (4,),
    ),
    Picture(
        "mesh_star_fixed_5",
        "All-reduce at rank 0 of a mesh in a fixed order, 5 ranks",
        "AllReduceMeshSmallCountExecutor",
        "all_reduce",
        (5,),
        deterministic=True,
    ),
    Picture(
        "mesh_in_turn_4",
        "Mesh reduce-scatter in turn, 4 ranks",
        "ReduceScatterMeshExecutor",
        "reduce_scatter",
        (4,),
        3,
        "ring",
        deterministic=True,
    ),
    Picture(
        "rhd_4",
        "Halving and doubling, 4 ranks",
        "AllReduceRingExecutor",
        "all_reduce",
        (1,) * 4,
        4,
        "H-D_R",
    ),
    Picture(
        "rhd_5",
        "Halving and doubling, 5 ranks",
        "AllReduceRingExecutor",
        "all_reduce",
        (1,) * 5,
        4,
        "H-D_R",
    ),
    Picture(
        "halving_reads_4",
        "Halving with reads, 4 ranks",
        "ReduceScatterDeterExecutor",
        "reduce_scatter",
        (4,),
    ),
    Picture(
        "halving_servers_8",
        "Reduce-scatter of small data, 2 servers of 4",
        "ReduceScatterMeshOpbaseSmallCountDeterministicExecutor",
        "reduce_scatter",
        (4, 4),
        level1="ring",
        product="atlas-800t-a2",
    ),
    Picture(
        "doubling_servers_8",
        "All-reduce of small data, 2 servers of 4",
        "AllReduceMeshOpbaseSmallCountDeterministicExecutor",
        "all_reduce",
        (4, 4),
        level1="ring",
        product="atlas-800t-a2",
    ),
    Picture("doubling_4", "Doubling, 4 ranks", "AllReduceDoubling", "all_reduce", (4,)),
    Picture("doubling_8", "Doubling, 8 ranks", "AllReduceDoubling", "all_reduce", (8,)),
    Picture(
        "ars_6",
        "ARS all-gather, servers of 4 and 2",
        "AllGatherARSFor91093Executor",
        "all_gather",
        (4, 2),
        level1="ring",
        product="atlas-900-a3",
    ),
    Picture(
        "ars_all_reduce_6",
        "ARS all-reduce, servers of 4 and 2",
        "AllReduceARSFor91093Executor",
        "all_reduce",
        (4, 2),
        6,
        level1="ring",
        product="atlas-900-a3",
    ),
    *(
        Picture(
            f"doubling_in_slots_{ranks}",
            f"Doubling in slots, {ranks} ranks",
            "AllReduceMeshSmallCountExecutor",
            "all_reduce",
            (ranks,),
            product="atlas-900-a3",
        )
        for ranks in (4, 6)
    ),
    *_four_and_five("nhr", "NHR all-reduce", "AllReduceComm", "all_reduce", "NHR", kib=128),
    *_four_and_five(
        "nhr_reduce_scatter", "NHR reduce-scatter", "ReduceScatterComm", "reduce_scatter", "NHR"
    ),
    Picture(
        "superpod_trees_6",
        "All-reduce over trees, 2 superpods of 3 ranks",
        "AllReduceMidCountFor91093Executor",
        "all_reduce",
        (3, 3),
        product="atlas-900-a3",
        superpods=(1, 1),
    ),
    *_four_and_five("trees", "All-reduce over trees", "AllReduceComm", "all_reduce", "NHR"),
    Picture(
        "mesh_tree_6",
        "Broadcast over the tree of a mesh, 6 ranks",
        "BroadCastSmallCountExecutor",
        "broadcast",
        (6,),
    ),
    *_four_and_five("nhr_v1", "NHR_V1 all-reduce", "AllReduceComm", "all_reduce", "NHR_V1"),
    *_four_and_five("nb", "NB all-reduce", "AllReduceComm", "all_reduce", "NB"),
    *(
        Picture(
            f"hd_stage_{ranks}",
            f"All-gather in stages, {ranks} ranks",
            "AllGatherSmallCount",
            "all_gather",
            (ranks,),
        )
        for ranks in (6, 8)
    ),
    *(
        Picture(
            f"{word.lower()}_{sum(pods)}",
            f"{word}, superpods of {' and '.join(map(str, pods))} servers",
            "AllReduceRingFor91093Executor",
            "all_reduce",
            (1,) * sum(pods),
            chunks,
            word,
            "atlas-900-a3",
            kib=128,
            superpods=pods,
        )
        for word, pods, chunks in (
            ("AHC", (1, 3), 4),
            ("AHC", (2, 3), 12),
            ("AHC_BROKE", (2, 3), 4),
        )
    ),
    *(
        Picture(
            f"double_ring_{ranks}",
            f"Double ring all-gather, {ranks} ranks",
            "AlignedAllGatherDoubleRingFor91093Executor",
            "all_gather",
            (ranks,),
            2,
            "ring",
            "atlas-900-a3",
        )
        for ranks in (4, 6)
    ),
    *(
        Picture(
            f"semi_ring_{ranks}",
            f"Semi ring all-gather, {ranks} ranks",
            "AllGatherSemiRingExecutor",
            "all_gather",
            (ranks,),
            2,
            product="atlas-900-a3",
        )
        for ranks in (4, 6)
    ),
    Picture(
        "pipeline_4",
        "Pipeline all-gather, 2 servers of 2 ranks",
        "AllGatherMeshOpbasePipelineExecutor",
        "all_gather",
        (2, 2),
    ),
    Picture(
        "pipeline_6",
        "Pipeline all-gather, 3 servers of 2 ranks",
        "AllGatherMeshOpbasePipelineExecutor",
        "all_gather",
        (2, 2, 2),
    ),
    *_four_and_five("pairwise", "Pairwise all-to-all", "RunAlltoAllVFullMesh", "all_to_all"),
    *(
        Picture(
            f"{file}_{2 * servers}",
            f"{title}, {servers} servers of 2 ranks",
            executor,
            "all_to_all",
            (2,) * servers,
        )
        for file, title, executor in (
            ("staged", "Staged all-to-all", "RunAlltoAllVStaged"),
            ("two_level_pipeline", "Two-level pipeline", "RunAlltoAllVTwoLevelPipeline"),
        )
        for servers in (2, 3)
    ),
    Picture(
        "continuous_pipeline_6",
        "Continuous pipeline, 3 servers of 2 ranks",
        "RunAlltoAllVPipelineFor91093",
        "all_to_all",
        (2, 2, 2),
        product="atlas-900-a3",
        superpods=(1, 1, 1),
    ),
    *_four_and_five(
        "direct_full_mesh", "Direct full mesh", "RunAlltoAllDirectFullmesh", "all_to_all"
    ),
    *_four_and_five("star", "Star all-reduce", "AllReduceStar", "all_reduce"),
]


def draw(picture: Picture) -> str:
    """Record the call and draw its steps."""
    op = OpParam(
        picture.op,
        picture.chunks * (picture.kib << 8 or 32),
        DataType.FP32,
        ReduceOp.SUM if make_operator(picture.op).reduces else None,
        root=0 if picture.op == "broadcast" else None,
        level1=picture.level1,
        deterministic=picture.deterministic,
    )
    topology = Topology(PRESETS[picture.product], picture.servers, picture.superpods or None)
    executor = BY_NAME[picture.executor]()
    program = record(executor, op, topology, make_operator(op.name), CCL_BYTES)
    return draw_steps(program, picture.title, topology)


def drawn() -> Iterator[tuple[str, str]]:
    """Yield every picture's file name and text."""
    for picture in PICTURES:
        yield f"{picture.file}.svg", draw(picture)


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in drawn():
        (folder / name).write_text(text, "utf-8")

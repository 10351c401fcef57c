"""HCCL's choice of the algorithms between servers (level1) and between superpods (level2).

In this order: one ring, or AHC, where servers or superpods differ in size; what HCCL_ALGO says,
where the op takes it; for some ops of 910B in op-base mode the pipeline or the cheapest by a cost
formula; otherwise a default by the number of servers. Then ops that know fewer algorithms fall back
to one of theirs, without an error; `notes` says so.

Sources: the selection of the classic repositories (2025 and 2026) and the public documents of
HCCL_ALGO.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hccl_py.enums import Mode
from hccl_py.op_param import OpParam
from hccl_py.ops import ALL_TO_ALL
from hccl_py.selection.shape import WHOLE_RING, TopologyShape

__all__ = ["Levels", "choose_levels"]

KIB, MIB = 1 << 10, 1 << 20

RING, HD, NHR, NHR_V1, NB = "ring", "H-D_R", "NHR", "NHR_V1", "NB"
AHC, AHC_BROKE, PIPELINE, PAIRWISE = "AHC", "AHC_BROKE", "pipeline", "pairwise"

MOST_IN_RING = 3
"""Servers of which a ring has no more steps than NHR: 1 of 2, 2 of 3."""

PIPELINE_MIN = {
    "all_gather": (32 * KIB, 2 * MIB),
    "all_gather_v": (32 * KIB, 2 * MIB),
    "reduce_scatter": (32 * KIB, 2 * MIB),
    "all_reduce": (MIB, 2 * MIB),
}
"""Bytes from which the pipeline pays, with RDMA-lite and without: all_reduce per slice, the others
per rank. These are the ops with a choice per call.
"""

_ANY = (RING, HD, NHR, NHR_V1, NB, PIPELINE)
_FLAT = (RING, NHR, NB)
_JOINED = (NHR, RING, NB, AHC, AHC_BROKE)

LEVEL1: dict[str, dict[str, tuple[str, ...]]] = {
    "910B": {
        "all_reduce": _ANY,
        "all_gather": _ANY,
        "reduce_scatter": _ANY,
        "all_gather_v": (*_FLAT, PIPELINE),
        "reduce_scatter_v": _FLAT,
        "broadcast": (HD, NHR, NHR_V1, NB),
        "reduce": (HD, RING),
        "scatter": _FLAT,
        "gather": (RING, HD),
        "all_to_all": (PAIRWISE, PIPELINE),
    },
    "910_93": {
        "all_reduce": _JOINED,
        "all_gather": _JOINED,
        "reduce_scatter": _JOINED,
        "all_gather_v": (NHR, RING, NB),
        "reduce_scatter_v": (NHR, RING, NB),
        "broadcast": (NHR, NB),
        "reduce": (RING,),
        "scatter": _FLAT,
        "gather": (RING,),
        "all_to_all": (PAIRWISE,),
    },
}
"""What an op takes at level1 by device; the first where neither setting nor default is among it.
"""

LEVEL1["910A"] = {
    op: tuple(word for word in words if word != PIPELINE) for op, words in LEVEL1["910B"].items()
}

_AUTOMATIC = ("all_reduce", "all_gather", "reduce_scatter", "all_gather_v", "reduce_scatter_v")
"""Where a setting that the op does not take on 910A and 910B is ignored, as if there were none."""

_LEVEL2 = {
    "all_reduce": (RING, HD, NHR, NB),
    "reduce": (RING, HD, NHR, NB),
    "broadcast": (HD, NHR, NB),
}
_LEVEL2_OTHERS = (RING, NHR, NB)

_UNSET = ("", "NA", "null", "fullmesh")
_POINT_TO_POINT = ("send_recv", "batch_send_recv")


@dataclass(frozen=True)
class Levels:
    """Algorithms in HCCL_ALGO's words; `level2` is empty with one superpod. `refusal` is what HCCL
    would fail with.
    """

    level0: str
    level1: str
    level2: str
    notes: tuple[str, ...] = ()
    refusal: str = ""


def choose_levels(
    op: OpParam, shape: TopologyShape, given: Mapping[str, str], *, pipelines: bool
) -> Levels:
    """Choose for one call. `given` is HCCL_ALGO's setting, `pipelines` whether links can do its
    reduction in any order, which the pipelines of reductions need.
    """
    notes: list[str] = []
    level0 = shape.pod_level0 if _joins_pods(op, shape) else shape.level0
    if given.get("level0") == "null":
        level0 = WHOLE_RING
        notes.append("HCCL_ALGO's level0:null makes all ranks one ring")
    if op.name in _POINT_TO_POINT:
        return Levels(level0, RING, "", tuple(notes))
    level1 = _level1(op, shape, level0, given, pipelines, notes)
    level2 = _level2(op, shape, given, notes) if shape.superpods > 1 else ""
    refusal = ""
    if level0 == WHOLE_RING and level1 == HD == given.get("level1"):
        refusal = "level1:H-D_R needs servers: all ranks are one ring here"
    return Levels(level0, level1, level2, tuple(notes), refusal)


def _level1(
    op: OpParam,
    shape: TopologyShape,
    level0: str,
    given: Mapping[str, str],
    pipelines: bool,
    notes: list[str],
) -> str:
    kind = "all_to_all" if op.name in ALL_TO_ALL else op.name
    allowed = LEVEL1.get(shape.device, {}).get(kind, (RING,))
    wanted = _forced(op, shape, given, allowed, notes) or _wanted(op, shape, given, allowed, notes)
    if wanted:
        chosen = wanted
    elif kind == "all_to_all":
        chosen = PAIRWISE
    else:
        chosen = _default(op, shape, level0, pipelines)
        if chosen not in allowed:
            chosen = allowed[0]
    if chosen == PIPELINE and _contexts(op.name, shape) > shape.contexts:
        notes.append(
            f"the pipeline would take {_contexts(op.name, shape)} FFTS contexts of "
            f"{shape.contexts}: level1 becomes H-D_R"
        )
        return HD
    return chosen


def _joins_pods(op: OpParam, shape: TopologyShape) -> bool:
    """Whether HCCL concatenates superpods with different numbers of servers."""
    return shape.unequal_pods and op.name == "all_reduce"


def _forced(
    op: OpParam,
    shape: TopologyShape,
    given: Mapping[str, str],
    allowed: tuple[str, ...],
    notes: list[str],
) -> str:
    """Return what servers or superpods of different sizes leave; empty where there is a choice."""
    word = given.get("level1", "")
    joins = _joins_pods(op, shape)
    if shape.symmetric or given.get("level0") == "null" or op.name in ALL_TO_ALL:
        return ""
    if not joins and word in (AHC, AHC_BROKE) and word in allowed:
        return word
    forced = AHC if joins else RING if RING in allowed else allowed[0]
    if word not in (*_UNSET, forced):
        sizes = "numbers of servers" if shape.unequal_pods else "numbers of devices"
        notes.append(f"different {sizes}: level1 is {forced}, whatever HCCL_ALGO says")
    return forced


def _wanted(
    op: OpParam,
    shape: TopologyShape,
    given: Mapping[str, str],
    allowed: tuple[str, ...],
    notes: list[str],
) -> str:
    """Return what HCCL_ALGO says, or what the op makes of it; empty where the default counts."""
    word = given.get("level1", "")
    if word in _UNSET or (word == PAIRWISE and PAIRWISE not in allowed):
        return ""
    eager = shape.device == "910B" and op.mode is Mode.OP_BASE
    legal = eager if word == PIPELINE else word not in (AHC, AHC_BROKE) or word in allowed
    if word in allowed and legal:
        return word
    ignored = not legal or (op.name in _AUTOMATIC and shape.device != "910_93")
    instead = "" if ignored else allowed[0]
    graph = word == PIPELINE and op.mode is Mode.GRAPH
    where = "in graph mode" if graph else f"on {shape.device}"
    notes.append(
        f"HCCL_ALGO's level1:{word} is none of {op.name}'s {where}: "
        + ("HCCL chooses as without it" if ignored else f"{instead} runs")
    )
    return instead


def _default(op: OpParam, shape: TopologyShape, level0: str, pipelines: bool) -> str:
    if _joins_pods(op, shape):
        return AHC
    if level0 == WHOLE_RING:
        return RING
    several = shape.device == "910B" and shape.servers > 1
    if several and op.mode is Mode.OP_BASE and op.name in PIPELINE_MIN:
        if _pays_to_pipeline(op, shape, level0, pipelines):
            return PIPELINE
        return _cheapest(shape.servers)
    found = _by_number(shape.pod_servers)
    return NHR if found == HD and shape.device == "910_93" else found


def _by_number(groups: int) -> str:
    power = groups > 1 and groups & (groups - 1) == 0
    return HD if groups >= 8 or power else RING


def _level2(op: OpParam, shape: TopologyShape, given: Mapping[str, str], notes: list[str]) -> str:
    allowed = _LEVEL2.get(op.name, _LEVEL2_OTHERS)
    word = given.get("level2", "")
    if word in allowed:
        return word
    default = _by_number(shape.superpods)
    chosen = default if default in allowed else allowed[0]
    if word not in (*_UNSET, PAIRWISE):
        notes.append(f"HCCL_ALGO's level2:{word} is none of {op.name}'s: {chosen} runs")
    return chosen


def _contexts(op: str, shape: TopologyShape) -> int:
    """Return the FFTS contexts of a pipeline; they do not depend on the data."""
    copies = 1 + shape.servers if op in ALL_TO_ALL else 1
    contexts = shape.servers * (5 * (shape.devices - 1) + 7 + copies) + 4 + 1
    return 2 * contexts if op == "all_reduce" else contexts


def _pays_to_pipeline(op: OpParam, shape: TopologyShape, level0: str, pipelines: bool) -> bool:
    lite, plain = PIPELINE_MIN[op.name]
    least = lite if shape.rdma_lite else plain
    slices = shape.servers * shape.devices if op.name == "all_reduce" else 1
    return (
        level0 == "mesh"
        and shape.devices > 1
        and _contexts(op.name, shape) <= shape.contexts
        and (pipelines or op.reduce is None)
        and op.extent * op.unit >= least * slices
    )


def _cheapest(servers: int) -> str:
    """Return what takes the least seconds by HCCL's formulas, of which ring comes first, then NHR.

    All move the same share of the data. Ring takes servers - 1 steps, NHR and H-D the logarithm,
    rounded up, and H-D moves more where servers are no power of two: so it never wins, and ring
    does where NHR has as many steps. Neither sizes nor rates matter.
    """
    return RING if servers <= MOST_IN_RING else NHR

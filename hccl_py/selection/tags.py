"""HCCL's newTag: the key under which ranks reuse resources."""

from __future__ import annotations

import zlib

from hccl_py.call.config import GROUP_NAME
from hccl_py.call.op_param import OpParam
from hccl_py.call.ops import ALL_TO_ALL
from hccl_py.enums import Mode
from hccl_py.selection.facts import Facts
from hccl_py.selection.tables.cells import BLOCK_RINGS, UNCOPIED, UNTAGGED

_BASES = {
    "all_reduce": "AllReduce",
    "all_gather": "AllGather",
    "all_gather_v": "AllGatherV",
    "reduce_scatter": "ReduceScatter",
    "reduce_scatter_v": "ReduceScatterV",
    "broadcast": "Broadcast",
    "reduce": "Reduce",
    "scatter": "Scatter",
    "gather": "Gather",
    "all_to_all": "AlltoAll",
    "all_to_all_v": "AlltoAllV",
    "all_to_all_vc": "AlltoAllVC",
    "batch_send_recv": "worldBatchSendRecv",
}

_HD = "H-D_R"
_LEVEL1_NAMES = {_HD: "H-D"}


def tag_of(
    facts: Facts, executor: str, level1: str, group: str = GROUP_NAME, *, by_level: bool = True
) -> str:
    """Return the tag of a call that an executor runs with an algorithm between servers.

    `by_level`: ops with a root say on which side of halving-doubling's pairs it is level by level,
    as since April 2026, and broadcast names its executor besides. Some executors of one rank are
    taken before there is a tag.
    """
    if facts.device == "950":
        return _tag_of_950(facts, executor, group)
    if executor in UNTAGGED:
        return ""
    op = facts.op
    base = _base(op, facts.ranks, group)
    place = "_device" if facts.unfolded else "_host"
    if executor in BLOCK_RINGS:
        place = f"{facts.ring_size(level1)}{place}"
    if op.mode is Mode.GRAPH:
        return base + ("" if op.name in ALL_TO_ALL else place)
    if op.name == "batch_send_recv":
        return base + place
    return base + _eager(facts, executor, level1, by_level) + place


_SEND = "SendRecv"
_BASES_950 = {
    "all_to_all": "ALLTOALL",
    "all_to_all_v": "ALLTOALLV",
    "all_to_all_vc": "ALLTOALLVC",
    "batch_send_recv": "Batch" + _SEND,
    "send_recv": _SEND,
}
_DTYPES_950 = {"fp16": "float16", "fp32": "float32", "fp64": "float64", "bf16": "bfloat16"}


def _tag_of_950(facts: Facts, executor: str, group: str) -> str:
    """Return the tag on an Ascend 950: SetOpParamAlgTag, `op_common.cc:3139-3178`. Kernels of the
    CCU depend on the data type, the reduction and the root, too.
    """
    op = facts.op
    base = "Barrier" if facts.barrier else _BASES_950.get(op.name) or _BASES[op.name]
    ends = "".join(f"_{end}" for end in op.pairs[0][:2]) if len(op.pairs) == 1 else ""
    on_host = executor.startswith(("Ccu", "Aiv"))
    tag = f"{base}_{group}{ends}_{executor}_{'host' if on_host else 'device'}"
    if not executor.startswith("Ccu"):
        return tag
    further = [_DTYPES_950.get(facts.dtype, facts.dtype), facts.reduce]
    further += [] if op.root is None else [f"r{op.root}"]
    return "_".join([tag, *filter(None, further)])


def _base(op: OpParam, ranks: int, group: str) -> str:
    if op.name != "send_recv":
        return f"{_BASES[op.name]}_{group}"
    pairs = op.pairs or tuple((rank, (rank + 1) % ranks) for rank in range(ranks))
    if len(pairs) == 1:
        return f"worldCommSendRecv_{pairs[0][0]}_{pairs[0][1]}_{group}"
    # HCCL has one tag per pair; all of them together would be too long for one.
    checksum = zlib.crc32(repr([pair[:2] for pair in pairs]).encode())
    return f"worldCommSendRecv_{len(pairs)}_pairs_{checksum:08x}_{group}"


def _eager(facts: Facts, executor: str, level1: str, by_level: bool) -> str:
    """Return the addition of op-base mode to the base tag."""
    op, name = facts.op, _LEVEL1_NAMES.get(level1, level1)
    if op.name in ALL_TO_ALL:
        return executor + _copies(facts, executor, by_level)
    if op.name == "broadcast":
        return _broadcast(facts, executor, level1, by_level)
    inline = ""
    if op.name == "reduce_scatter" and not (facts.inline and facts.rdma_inline):
        inline = "_no_inline"
    if op.name == "reduce_scatter_v" and not facts.inline:
        inline = "_no_inline"
    if facts.device == "310P3" or op.name == "send_recv":
        return executor + inline
    if op.name == "scatter":
        return _root_parity(facts, facts.levels.early, by_level) + executor
    if op.name == "reduce":
        return _root_parity(facts, facts.levels.early, by_level) + name + executor
    return name + executor + inline


def _copies(facts: Facts, executor: str, by_level: bool) -> str:
    """Return the part of a tag for an all-to-all's way through the CCL buffers; empty for none."""
    tasks_of_a2 = by_level and facts.unfolded and facts.device == "910B"
    if (facts.unfolded or _exchanges_directly(facts, by_level)) and not tasks_of_a2:
        return ""
    return "ZCopy" if facts.fits_ccl and executor not in UNCOPIED else "BCopy"


def _exchanges_directly(facts: Facts, by_level: bool) -> bool:
    """Return True if HCCL finds an all-to-all fit for direct exchange, whether it takes it or not:
    IsSupportDirectFullmeshForAlltoallv.
    """
    if facts.device == "910_93":
        return facts.inter_hccs or (by_level and facts.servers == 1)
    large = facts.op.name == "all_to_all_v" or facts.exceeds_ccl
    return facts.device == "910B" and facts.single_mesh and large


def _broadcast(facts: Facts, executor: str, level1: str, by_level: bool) -> str:
    is_310p = facts.device == "310P3"
    if by_level and is_310p and level1 != _HD:
        return executor
    parity = _root_parity(facts, level1, by_level)
    if parity:
        return executor + parity if by_level else parity
    return executor if is_310p else _LEVEL1_NAMES.get(level1, level1) + executor


def _root_parity(facts: Facts, level1: str, by_level: bool) -> str:
    """Return the root's side of halving-doubling, where that is the algorithm.

    Scatter and reduce say it before they look at the call: reduce of A3 comes with
    halving-doubling and then takes a ring. Scatter has taken a ring by then. HCCL_ALGO's word for
    level2 counts with one superpod, too, but not where servers or superpods differ.
    """
    server = (facts.op.root or 0) // facts.devices
    if not by_level:
        return f"_{_side(server, facts.modules)}" if level1 == _HD else ""
    per_pod = facts.modules // facts.superpods
    parts = []
    if level1 == _HD:
        parts.append(f"L1_{_side(server % per_pod, per_pod)}")
    is_one_ring = not facts.symmetric and facts.level0 != "null"
    if facts.given_level2 == _HD and not is_one_ring:
        parts.append(f"L2_{_side(server // per_pod, facts.superpods)}")
    return "".join(f"_{part}" for part in parts)


def _side(place: int, places: int) -> int:
    """Return 1 where a place stays in recursive halving: of the first ones, which fold in pairs to
    leave a power of two, the even ones do, of the others all.
    """
    folded = 2 * (places - (1 << (places.bit_length() - 1)))
    return int(place >= folded or place % 2 == 0)

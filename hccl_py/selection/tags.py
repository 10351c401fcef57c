"""HCCL's newTag: the key under which ranks reuse resources."""

from __future__ import annotations

import zlib

from hccl_py.enums import Mode
from hccl_py.op_param import OpParam
from hccl_py.ops import ALL_TO_ALL
from hccl_py.selection.facts import Facts
from hccl_py.selection.tables.cells import UNCOPIED

__all__ = ["GROUP_NAME", "tag_of"]

GROUP_NAME = "hccl_world_group"

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

_LEVEL1_NAMES = {"H-D_R": "H-D"}


def tag_of(facts: Facts, executor: str, level1: str, group: str = GROUP_NAME) -> str:
    """Return the tag of a call that an executor runs with an algorithm between servers.

    One rank needs no resources, so it has none.
    """
    if facts.ranks == 1:
        return ""
    op = facts.op
    base = _base(op, facts.ranks, group)
    place = "_device" if facts.unfolded else "_host"
    if op.mode is Mode.GRAPH:
        return base + ("" if op.name in ALL_TO_ALL else place)
    if op.name == "batch_send_recv":
        return base + place
    return base + _eager(facts, executor, level1) + place


def _base(op: OpParam, ranks: int, group: str) -> str:
    if op.name != "send_recv":
        return f"{_BASES[op.name]}_{group}"
    pairs = op.pairs or tuple((rank, (rank + 1) % ranks) for rank in range(ranks))
    if len(pairs) == 1:
        return f"worldCommSendRecv_{pairs[0][0]}_{pairs[0][1]}_{group}"
    # HCCL has one tag per pair; all of them together would be too long for one.
    checksum = zlib.crc32(repr([pair[:2] for pair in pairs]).encode())
    return f"worldCommSendRecv_{len(pairs)}_pairs_{checksum:08x}_{group}"


def _eager(facts: Facts, executor: str, level1: str) -> str:
    """Return what op-base mode adds to the base tag."""
    op, name = facts.op, _LEVEL1_NAMES.get(level1, level1)
    parity = _root_parity(facts) if level1 == "H-D_R" else ""
    if op.name in ALL_TO_ALL:
        copies = "ZCopy" if facts.fits_ccl else "BCopy"
        return executor + ("" if executor in UNCOPIED else copies)
    inline = ""
    if op.name == "reduce_scatter" and not (facts.inline and facts.rdma_inline):
        inline = "_no_inline"
    if op.name == "reduce_scatter_v" and not facts.inline:
        inline = "_no_inline"
    if facts.shape.device == "310P3" or op.name == "send_recv":
        return executor + inline
    if op.name == "broadcast" and parity:
        return parity
    if op.name == "scatter":
        return parity + executor
    if op.name == "reduce":
        return parity + name + executor
    return name + executor + inline


def _root_parity(facts: Facts) -> str:
    """Return _1 or _0: which server of a folded pair stays in recursive halving depends on the
    root's.
    """
    server = (facts.op.root or 0) // facts.devices
    folded = 2 * (facts.servers - (1 << (facts.servers.bit_length() - 1)))
    return f"_{int(server >= folded or server % 2 == 0)}"

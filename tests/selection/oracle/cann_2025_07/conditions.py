"""Conditions and algorithms that several ops of July 2025 share."""

from __future__ import annotations

from tests.selection.oracle.facts import (
    AHC,
    AHC_BROKE,
    ALL_TO_ALL,
    DOUBLE_RING,
    FFTS_CAPACITY,
    HD,
    JOINED,
    KB,
    MB,
    MESH,
    MESH_OF_4,
    NULL,
    PIPELINE,
    RING_OF_8,
    SINGLE_RING,
    Call,
    cheapest,
    groups,
    topology,
)


def contexts(call: Call) -> int:
    """CalcContextNumForPipeline."""
    each = 5 * (call.devices - 1) + 7 + 1
    if call.op in ALL_TO_ALL:
        return call.module_num * each + 4 + 1 + call.module_num
    return (call.module_num * each + 4 + 1) * (2 if call.op == "all_reduce" else 1)


def default_by_call(call: Call, *, aiv: bool = False) -> str:
    """GetDefaultAlgoLevel1V2; RDMA lite makes links cheap to ask."""
    least, whole = (32 * KB, MB) if call.lite else (2 * MB, 2 * MB)
    fits = contexts(call) <= FFTS_CAPACITY
    reduces = call.inline and call.rdma_inline and call.deterministic == "false"
    if call.devices != 1 and topology(call) == MESH and fits:
        if call.op == "reduce_scatter" and reduces and call.bytes >= least:
            return PIPELINE
        if call.op == "all_gather" and call.bytes >= least:
            return PIPELINE
        part = call.bytes // (call.module_num * call.devices)
        if call.op == "all_reduce" and reduces and not aiv and part >= whole:
            return PIPELINE
    return cheapest(call)


def limited(call: Call, level1: str) -> str:
    return HD if level1 == PIPELINE and contexts(call) > FFTS_CAPACITY else level1


def with_ahc(call: Call, level1: str) -> str | None:
    """SelectAlgforAHC and PrepareAHCSubGroups; None for HCCL_E_PARA."""
    if level1 not in JOINED:
        return level1
    if call.device == "910B" and call.level0 != NULL:
        return None
    sizes = groups(call)
    least, most = min(sizes), max(sizes)
    whole = all(size % least == 0 for size in sizes)
    return AHC_BROKE if level1 == AHC_BROKE or whole or (most - least) / least < 0.05 else AHC


def classic(op: str, call: Call) -> str:
    """910A: by the topology alone."""
    found = topology(call)
    if found == MESH_OF_4:
        return f"{op}MeshExecutor"
    return f"{op}RingExecutor" if found in (SINGLE_RING, RING_OF_8) else f"{op}Comm"


def suits_rdma(call: Call) -> bool:
    return (
        not call.single_mesh
        and not call.uneven_servers
        and (call.power_of_servers or call.bytes <= 128 * KB)
        and call.bytes * call.ranks <= 16 * MB
        and call.bytes <= 256 * KB
    )


def is_unified(call: Call) -> bool:
    """IsSupportUnifiedMarch."""
    return (
        call.unfolded
        and topology(call) == DOUBLE_RING
        and call.graph
        and (call.server_num, call.pod_num) == (1, 1)
    )

"""Conditions and algorithms that several ops of August 2026 share."""

from __future__ import annotations

from tests.selection.oracle.facts import (
    AHC,
    AHC_BROKE,
    ALL_TO_ALL,
    DOUBLE_RING,
    FFTS_CAPACITY,
    FLOATS,
    HD,
    JOINED,
    KB,
    MB,
    MESH,
    NB,
    NHR,
    NULL,
    PIPELINE,
    RING,
    Call,
    cheapest,
    groups,
    topology,
)


def contexts(call: Call) -> int:
    """CalcContextNumForPipeline."""
    ordered = call.deterministic == "true" and call.op in ("all_reduce", "reduce_scatter")
    each = 5 * (call.devices - 1) + 7 + 1 + (call.devices - 1 if ordered else 0)
    if call.op in ALL_TO_ALL:
        return call.module_num * each + 4 + 1 + call.module_num
    found = call.module_num * each + 4 + 1
    found += found if call.op == "all_reduce" else 0
    return found + (call.module_num - 1 if ordered else 0)


def default_by_call(call: Call, *, aiv: bool = False) -> str:
    """GetDefaultAlgoLevel1V2."""
    few, whole = (32 * KB, MB) if call.lite else (2 * MB, 2 * MB)
    if call.devices == 1 or topology(call) != MESH or contexts(call) > FFTS_CAPACITY:
        return cheapest(call)
    reduces = call.inline and call.rdma_inline
    if call.op in ("all_gather", "all_gather_v") and call.bytes >= few:
        return PIPELINE
    if call.op == "reduce_scatter" and reduces:
        least = {"false": few, "true": max(few, 256 * KB)}.get(call.deterministic)
        if least is not None and call.bytes >= least:
            return PIPELINE
    part = call.bytes // (call.module_num * call.devices)
    orders = call.deterministic != "strict"
    enough = part >= (whole if call.deterministic == "false" else MB)
    if call.op == "all_reduce" and reduces and not aiv and orders and enough:
        return PIPELINE
    return cheapest(call)


def limited(call: Call, level1: str, instead: str = HD) -> str:
    return instead if level1 == PIPELINE and contexts(call) > FFTS_CAPACITY else level1


def with_ahc(call: Call, level1: str) -> str | None:
    """SelectAlgforAHC and AHCAlgSelect; None for HCCL_E_PARA. Groups come cut to the smallest one,
    the rest of each in its last part (AHCSubGroupInit).
    """
    if level1 not in JOINED or call.uneven_servers:
        return level1
    if call.device == "910B" and call.level0 != NULL:
        return None
    sizes = groups(call)
    alike = all(size % min(sizes) == 0 for size in sizes)
    planes = call.host_devices[0] != 1 and call.op != "all_reduce"
    return AHC_BROKE if level1 == AHC_BROKE or alike or planes else AHC


def mesh_inline(call: Call) -> bool:
    """SingleMeshInlineReduce."""
    return topology(call) == MESH and call.ranks != 1 and call.inline and call.single_mesh


def across_inline(call: Call) -> bool:
    """IsMultiMeshInlineReduce."""
    return (
        call.device == "910B"
        and topology(call) == MESH
        and call.inline
        and call.rdma_inline
        and not call.single_mesh
    )


def needs_strict(call: Call) -> bool:
    """IsNeedStrictMode."""
    types = call.dtype in (*FLOATS, "fp64") and call.reduce in ("sum", "prod")
    return call.deterministic == "strict" and types and call.ranks >= 3


def can_strict(call: Call) -> bool:
    """CheckStrictCondition."""
    uneven = call.uneven_servers or call.uneven_pod_devices or call.uneven_pods
    return not (uneven or call.reduce == "prod" or call.dtype == "fp64" or call.no_inter_hccs)


def with_adapted_rings(call: Call, level1: str) -> str:
    """The words of ARS, where servers differ and superpods do not."""
    if call.uneven_servers and not call.uneven_pod_devices and level1 not in (NB, RING):
        return NHR
    return level1


def is_tiny_across(call: Call, most: int) -> bool:
    apart = call.pod_num > 1 or (call.no_inter_hccs and call.server_num > 1)
    return apart and (call.pod_num, call.server_num) != (2, 2) and call.bytes <= most


def suits_rdma(call: Call) -> bool:
    return (
        not call.single_mesh
        and not call.uneven_servers
        and (call.power_of_servers or call.bytes <= 128 * KB)
        and call.bytes * call.ranks <= 16 * MB
        and call.bytes <= 256 * KB
    )


def crosses_by_aiv(call: Call, most: int) -> bool:
    """isAivCrossNode: sizes by the number of ranks."""
    fits = (
        (call.ranks <= 6 and call.bytes <= MB)
        or (call.ranks <= 16 and call.bytes <= 512 * KB)
        or call.bytes <= most
    )
    return call.pod_num == 1 and call.server_num > 1 and not call.no_inter_hccs and fits


def zero_copy_form(call: Call, level1: str, before: str) -> str:
    """Pipelines across superpods, where level2 is not set from 2 MB."""
    asked = call.level2 == PIPELINE or (not call.level2 and call.bytes >= 2 * MB)
    if call.pod_num > 1 and call.ranks // call.pod_num > 1 and asked:
        return f"{before}Pipeline"
    return "" if call.server_num < 4 or level1 in JOINED else "Exchange"


def is_unified(call: Call) -> bool:
    """IsSupportUnifiedMarch."""
    alone = (call.server_num, call.pod_num) == (1, 1)
    return call.unfolded and topology(call) == DOUBLE_RING and call.graph and alone

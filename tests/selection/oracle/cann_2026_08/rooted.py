"""Ops with a root of August 2026: the files of broadcast, reduce and scatter."""

from __future__ import annotations

from tests.selection.oracle.cann_2026_08.conditions import is_tiny_across
from tests.selection.oracle.facts import (
    COMMON,
    DOUBLE_RING,
    HD,
    KB,
    MB,
    MESH,
    MESH_OF_4,
    NB,
    NHR,
    NHR_V1,
    PIPELINE,
    RING,
    RING_OF_8,
    SINGLE_RING,
    WHOLE,
    Call,
    Taken,
    topology,
)


def broadcast(call: Call, level1: str, automatic: bool) -> Taken:
    level1 = level1 if level1 in (NHR, NHR_V1, NB, WHOLE) else HD
    found = topology(call)
    if call.device == "910_93":
        return _broadcast_a3(call, level1 if level1 in (NHR, NB) else NHR)
    aiv = call.device == "910B" and call.aiv and call.single_mesh and call.op_base
    if aiv and call.ccl >= 16 * MB and call.aiv_copies and call.bytes <= 4096 * MB:
        return "BroadcastMeshAivExecutor", level1
    if found in (MESH, MESH_OF_4):
        return "BroadCastMeshExecutor", level1
    if found in (SINGLE_RING, RING_OF_8):
        return "BroadCastRingExecutor", level1
    return "BroadCastComm", level1


def _broadcast_a3(call: Call, level1: str) -> Taken:
    large = call.op_base and call.ccl >= 16 * MB
    graph = call.graph and call.bytes <= 16 * MB
    fits = call.bytes <= (512 * KB if call.ranks <= 8 else MB)
    inside = call.server_num == 1 and (
        (call.single_mesh and large and call.bytes <= 4096 * MB) or graph
    )
    joined = call.pod_num == 1 and call.server_num > 1
    cross = joined and not call.no_inter_hccs and ((large and fits) or graph)
    if call.aiv and call.aiv_copies and (inside or cross):
        return f"BroadcastMeshAiv{'' if inside else 'For91093'}Executor", level1
    if call.uneven_servers or call.uneven_pods:
        return "BroadCastComm", level1
    tiny = 16 * KB * call.devices
    if call.devices > 2 and joined and call.bytes <= MB * call.devices:
        return "BroadCastComm", NHR
    if is_tiny_across(call, tiny):
        return "BroadCastComm", NHR
    if (call.pod_num, call.server_num) == (2, 2) and call.op_base and call.bytes <= tiny:
        return "BroadcastMidCountFor91093Executor", level1
    single = call.server_num == 1 and (call.op_base or not call.unfolded) and call.devices > 2
    if single and call.bytes <= 512 * KB * call.ranks:
        return "BroadCastSmallCountExecutor", level1
    found = topology(call)
    if call.zero_copy and (found == DOUBLE_RING or call.bytes > 16 * MB * call.server_num):
        return "BroadCastRingZerocopyExecutor", level1
    return ("BroadCastComm" if found == COMMON else "BroadCastRingFor91093Executor"), level1


def reduce(call: Call, level1: str, automatic: bool) -> Taken:
    level1 = HD if level1 in (NHR, NHR_V1, NB, PIPELINE) else level1
    if call.ranks == 1:
        return "ReduceSingleExecutor", level1
    found = topology(call)
    if call.device == "910_93":
        whole = call.uneven_servers or call.uneven_pods or found == COMMON
        return ("ReduceComm" if whole else "ReduceRingFor91093Executor"), RING
    if found in (MESH, MESH_OF_4):
        return "ReduceMeshExecutor", level1
    if found in (SINGLE_RING, RING_OF_8):
        return "ReduceRingPlusHd", level1
    return "ReduceComm", level1


def scatter(call: Call, level1: str, automatic: bool) -> Taken:
    level1 = level1 if level1 in (NHR, NB, RING) else RING
    if call.ranks == 1:
        return "ScatterSingleExecutor", level1
    found = topology(call)
    if call.uneven_servers or call.uneven_pods or found == COMMON:
        return "ScatterCommExecutor", level1
    if found in (MESH, MESH_OF_4):
        return "ScatterMeshExecutor", level1
    a3 = call.device == "910_93"
    return ("ScatterRingFor91093Executor" if a3 else "ScatterRingExecutor"), level1

"""Ops with a root of July 2025: the files of broadcast, reduce and scatter."""

from __future__ import annotations

from tests.selection.oracle.facts import (
    COMMON,
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
    Call,
    Taken,
    topology,
)


def broadcast(call: Call, level1: str, automatic: bool) -> Taken:
    level1 = level1 if level1 in (NHR, NHR_V1, NB) else HD
    found = topology(call)
    if call.device != "910_93":
        if found in (MESH, MESH_OF_4):
            return "BroadCastMeshExecutor", level1
        if found in (SINGLE_RING, RING_OF_8):
            return "BroadCastRingExecutor", level1
        return "BroadCastComm", level1
    level1 = level1 if level1 in (NHR, NB) else NHR
    single = (
        call.server_num == 1
        and (call.op_base or not call.unfolded)
        and call.devices > 2
        and call.bytes <= 2 * MB * call.ranks
    )
    several = (
        call.devices > 2
        and call.server_num != 1
        and call.pod_num == 1
        and call.bytes <= 256 * KB * call.ranks
    )
    if call.uneven_servers or call.uneven_pods:
        return "BroadCastComm", level1
    if several:
        return "BroadCastComm", NHR
    if single:
        return "BroadCastSmallCountExecutor", level1
    return ("BroadCastComm" if found == COMMON else "BroadCastRingFor91093Executor"), level1


def reduce(call: Call, level1: str, automatic: bool) -> Taken:
    level1 = HD if level1 in (NHR, NHR_V1, NB, PIPELINE) else level1
    if call.ranks == 1 and (call.op_base or call.unfolded):
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
    if call.ranks == 1 and call.op_base:
        return "ScatterSingleExecutor", level1
    found = topology(call)
    if call.uneven_servers or call.uneven_pods or found == COMMON:
        return "ScatterCommExecutor", level1
    if found in (MESH, MESH_OF_4):
        return "ScatterMeshExecutor", level1
    a3 = call.device == "910_93"
    return ("ScatterRingFor91093Executor" if a3 else "ScatterRingExecutor"), level1

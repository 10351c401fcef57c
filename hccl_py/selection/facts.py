"""What the decision tables look at, and HCCL's choice of the algorithm between servers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from hccl_py.config import Config
from hccl_py.enums import Mode
from hccl_py.op_param import OpParam
from hccl_py.selection.algo import parse_algo
from hccl_py.topology.topology import Topology

__all__ = ["Facts", "gather_facts"]

KIB, MIB = 1 << 10, 1 << 20

STEP_SECONDS = 60e-6
"""HCCL's latency of one step between servers."""

BANDWIDTH = 20.0 * 2**30
"""Bytes per second between servers of 910B: RDMA of 25 GB/s at 80 %."""

HOST_BANDWIDTH = 54.4 * 2**30
"""The same where two modules share one host: PCIe 5 at 85 %."""

PIPELINE_MIN = {"all_gather": 32 * KIB, "all_reduce": MIB}
"""Bytes from which the pipeline pays (with RDMA-lite): all_gather per rank, all_reduce per slice.
"""

FFTS_CONTEXTS = 65535


@dataclass(frozen=True)
class Facts:
    """One value per column of the decision tables; sizes in bytes, `bytes` per rank."""

    ranks: int
    servers: int
    devices: int
    level0: str
    level1: str
    mode: str
    bytes: int
    inline: bool
    deterministic: bool

    def get(self, name: str) -> Any:
        """Return a fact by name."""
        return getattr(self, name)


def gather_facts(op: OpParam, topology: Topology, config: Config) -> Facts:
    """Collect the facts for one call."""
    level0 = topology.product.level0 if topology.is_even else "whole_ring"
    inline = topology.product.reduces_inline(op.dtype, op.reduce)
    deterministic = config.deterministic != "false"
    given = parse_algo(config.algo, op.name)
    if given.get("level0") == "null":
        level0 = "whole_ring"
    configured = given.get("level1", "NA")
    auto = configured in ("NA", "null", "fullmesh", "pairwise")
    level1 = _choose_level1(op, topology, config, inline, deterministic) if auto else configured
    if level0 == "whole_ring" and auto:
        level1 = "ring"
    return Facts(
        ranks=topology.size,
        servers=len(topology.servers),
        devices=topology.servers[0],
        level0=level0,
        level1=level1,
        mode=op.mode.value,
        bytes=op.size,
        inline=inline,
        deterministic=deterministic,
    )


def _choose_level1(
    op: OpParam, topology: Topology, config: Config, inline: bool, deterministic: bool
) -> str:
    """Default by the number of servers; in op-base mode by the cost of each algorithm, pipeline
    first.
    """
    servers, devices = len(topology.servers), topology.servers[0]
    if op.mode is Mode.GRAPH or servers == 1:
        power = servers > 1 and servers & (servers - 1) == 0
        return "H-D_R" if servers >= 8 or power else "ring"
    if _pipelines(
        op, servers, devices, topology.product.level0 == "mesh", inline and not deterministic
    ):
        return "pipeline"
    return _cheapest(op, servers, devices, topology.size, config.ccl_bytes)


def _pipelines(op: OpParam, servers: int, devices: int, mesh: bool, reduces_freely: bool) -> bool:
    contexts = servers * (5 * (devices - 1) + 8) + 5
    slice_bytes = op.size / (servers * devices) if op.name == "all_reduce" else op.size
    if op.name == "all_reduce":
        contexts *= 2
    allowed = op.name == "all_gather" or reduces_freely
    enough = slice_bytes >= PIPELINE_MIN.get(op.name, math.inf)
    return mesh and devices > 1 and contexts <= FFTS_CONTEXTS and allowed and enough


def _cheapest(op: OpParam, servers: int, devices: int, ranks: int, ccl_bytes: int) -> str:
    """Compare seconds; ties go to ring, then NHR, then H-D."""
    bandwidth = HOST_BANDWIDTH if ranks == 2 * devices else BANDWIDTH
    if op.name == "all_reduce":
        data, twice = min(op.size, ccl_bytes) / devices, 2
    else:
        data, twice = min(op.size, ccl_bytes // ranks) * ranks, 1
    log = math.ceil(math.log2(servers))
    share = (servers - 1) / servers * data / bandwidth
    power = servers & (servers - 1) == 0
    seconds = {
        "ring": (servers - 1) * STEP_SECONDS + share,
        "NHR": log * STEP_SECONDS + share,
        "H-D_R": log * STEP_SECONDS
        + (share if power else (2 * servers - 1) / servers * data / bandwidth),
    }
    return min(seconds, key=lambda name: twice * seconds[name])

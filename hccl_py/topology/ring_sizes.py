"""The number of neighbouring ranks in HCCL's rings where servers of Atlas A3 differ in size (ARS).

All ranks of a superpod, numbered through, are cut to blocks of as many; inside a block data goes
round in two rings, between blocks by the algorithm of level1. HCCL takes the divisor of the ranks
with the shortest time by a model of its own: 13 µs a step, and bytes by the rates below.

Source: CollCommExecutor::CalcOptimalIntraRingsize and GetBandWidthPerNPU of libochao-huawei/hcomm @
8958adb (coll_comm_executor.cc, device_capacity.cc), in single and double precision where it is.
"""

from __future__ import annotations

from functools import lru_cache
from math import log2

import numpy as np

from hccl_py.call.op_param import OpParam

HCCS, HBM, SIO = np.float32(18.3), np.float32(585), np.float32(204)
"""GB/s between packages, of a copy, and between the dies of a package."""

STEP_MS = np.float32(13) / np.float32(1000)
MS = np.float32(1000)
GIB = 1 << 30


def ring_size(op: OpParam, ranks: int, level1: str, *, whole_packages: bool) -> int:
    """Return the ranks of a ring for a call on superpods of `ranks` each, 1 where packages are torn
    apart: then there is no ring.
    """
    if not whole_packages:
        return 1
    return _fastest(op.name, op.count * op.unit, ranks, level1 == "ring")


@lru_cache(maxsize=256)
def _fastest(op: str, size: int, ranks: int, ring: bool) -> int:
    total = np.float32(size / GIB)
    if op in ("all_gather", "reduce_scatter"):
        total = total * np.float32(ranks)
    found, best = 1, 0.0
    for inside in (n for n in range(1, ranks + 1) if ranks % n == 0):
        rate = float(total) / _time_ms(op, total, inside, ranks // inside, ring)
        if rate > best:
            found, best = inside, rate
    return found


def _time_ms(op: str, total: np.float32, inside: int, between: int, ring: bool) -> float:
    n, m = np.float32(inside), np.float32(between)
    steps = (between - 1 if ring else log2(between)) + inside - 1
    if inside == 2:
        around = total * MS / np.float32(2) / SIO
    else:
        around = (n - 1) * total * MS / n / HCCS
        if inside % 2 == 0:
            around = around / np.float32(2)
    across = (m - 1) * total * MS / n / m / HCCS
    copied = total * MS / HBM
    passes = 2 if op == "all_reduce" else 1
    return passes * (steps * float(STEP_MS) + float(around) + float(across)) + float(copied)

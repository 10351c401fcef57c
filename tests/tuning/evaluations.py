"""What sweeps evaluate in tests; worker processes import it."""

import logging
import os
from dataclasses import fields
from pathlib import Path
from typing import Any

from hccl_py.call.call_spec import CallSpec, ClusterSpec
from hccl_py.clocks.cost import CostModel
from hccl_py.tuning.points import Outcome, Point

COST = CostModel.of("study")


def point(size: int, op: str = "all_reduce", **about: Any) -> Point:
    """Return a point of 4 ranks, unless `about` has other members of it, its call or cluster."""
    cluster, call = ({f.name for f in fields(kind)} & {*about} for kind in (ClusterSpec, CallSpec))
    where = ClusterSpec(**({"ranks": 4} | {name: about.pop(name) for name in cluster}))
    spec = CallSpec(op, size, cluster=where, **{name: about.pop(name) for name in call})
    return Point.model_validate({"call": spec, "cost": COST} | about)


def doubled(point: Point) -> Outcome:
    size = point.call.bytes
    return Outcome(bytes=size, executor="Doubled", simulated_us=2.0 * size)


def fails_at_odd_sizes(point: Point) -> Outcome:
    if point.call.bytes % 2:
        raise ValueError(f"{point.call.bytes} is odd,\nsadly")
    return doubled(point)


def dies_at_five(point: Point) -> Outcome:
    if point.call.bytes == 5:
        os._exit(1)
    return doubled(point)


def blocks_from_three(point: Point) -> Outcome:
    """Never return from size 3 on: nobody ever writes to the pipe."""
    if (size := point.call.bytes) >= 3:
        os.mkfifo(f"pipe{size}")
        Path(f"pipe{size}").read_bytes()
    return doubled(point)


def told() -> None:
    logging.getLogger("hccl_py.told").info("compiling")

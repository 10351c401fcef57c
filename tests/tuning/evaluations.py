"""What sweeps evaluate in tests; worker processes import it."""

import logging
import os
from pathlib import Path

from hccl_py.cost import CostModel
from hccl_py.tuning.points import Outcome, Point

COST = CostModel.of("atlas-800t-a2")


def point(size: int, **about: object) -> Point:
    given = {"op": "all_reduce", "bytes": size, "ranks": 4, "cost": COST} | about
    return Point.model_validate(given)


def doubled(point: Point) -> Outcome:
    return Outcome(bytes=point.bytes, executor="Doubled", simulated_us=2.0 * point.bytes)


def fails_at_odd_sizes(point: Point) -> Outcome:
    if point.bytes % 2:
        raise ValueError(f"{point.bytes} is odd,\nsadly")
    return doubled(point)


def dies_at_five(point: Point) -> Outcome:
    if point.bytes == 5:
        os._exit(1)
    return doubled(point)


def blocks_from_three(point: Point) -> Outcome:
    """Never return from size 3 on: nobody ever writes to the pipe."""
    if point.bytes >= 3:
        os.mkfifo(f"pipe{point.bytes}")
        Path(f"pipe{point.bytes}").read_bytes()
    return doubled(point)


def told() -> None:
    logging.getLogger("hccl_py.told").info("compiling")

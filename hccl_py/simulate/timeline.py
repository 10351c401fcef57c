"""When every task of a program starts and ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hccl_py.program.program import Program
from hccl_py.simulate.links import Links

__all__ = ["Timeline"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Timeline:
    """Microseconds, one value per task row: when it starts and ends on its stream, and when it
    takes effect.

    `effect_us` differs from `end_us` for posts (their latency) and RDMA writes (their time on the
    wire). `links` says what the times were computed with.
    """

    program: Program
    links: Links
    start_us: Floats
    end_us: Floats
    effect_us: Floats

    @property
    def total_us(self) -> float:
        """When everything is done."""
        return float(max(self.end_us.max(initial=0.0), self.effect_us.max(initial=0.0)))

"""Lots of streams and connections for the scheduler's draw of the next turn.

Without stragglers every candidate has one lot. A candidate that is slow by a factor has as many
times fewer lots than the rest, at most 1000 times fewer. Lots are whole numbers, so that a draw is
a number that replays and shrinks like every choice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hccl_py.clocks.cost import CostModel
from hccl_py.clocks.links import Links
from hccl_py.clocks.stragglers import EVEN, Stragglers
from hccl_py.errors import ParameterError
from hccl_py.program.program import Program
from hccl_py.program.transports import Transports
from hccl_py.topology.topology import Topology
from hccl_py.values import Floats, IntArray

_MOST_LOTS = 1000


@dataclass(frozen=True, eq=False)
class Turns:
    """Lots of a stream before each task row, and of the RDMA connection of each transport end.

    A slow rank is slow in all its tasks. A slow link is slow in moves and posts over it: over SDMA
    the stream is slow, over RDMA the connection. `are_even` if every candidate has one lot.
    """

    on_stream: list[int]
    on_connection: list[int]
    are_even: bool = False

    @staticmethod
    def of(program: Program, topology: Topology | None = None, slow: Stragglers = EVEN) -> Turns:
        """Return the lots of a program; slow links need a topology."""
        tasks, transports = program.tasks, program.transports
        if not slow:
            return Turns([1] * len(tasks), [1] * len(transports), are_even=True)
        rank = slow.of_ranks(program.ranks)
        link = np.ones(len(transports))
        if topology is not None and slow.links:
            link = _factors(transports, topology, slow)
        moved = np.ones(len(tasks))
        linked = np.flatnonzero(tasks.end >= 0)
        moved[linked] = np.where(transports.is_rdma, 1.0, link)[tasks.end[linked]]
        lots = _lots(np.concatenate([rank[tasks.rank] * moved, rank[transports.rank] * link]))
        return Turns(lots[: len(tasks)].tolist(), lots[len(tasks) :].tolist())


def check_slow(topology: Topology, slow: Stragglers) -> None:
    """Raise ParameterError for ranks and links that do not exist."""
    slow.of_ranks(topology.size)
    if slow.lost:
        raise ParameterError(
            f"--slow {' '.join(slow.options())}: a run with a lost link may have no end.",
            "`hccl-py simulate` says what goes over it.",
        )
    if slow.links:
        links = Links(topology, CostModel.of(topology.product.name), slow)
        links.capacities(np.zeros(0, np.int64))  # looks every slow link up


def _factors(transports: Transports, topology: Topology, slow: Stragglers) -> Floats:
    """Return the factor by which the α of each transport end grows."""
    cost = CostModel.of(topology.product.name)
    even, uneven = (Links(topology, cost, s).classes(transports) for s in (EVEN, slow))
    return uneven.alpha_us[uneven.of_end] / even.alpha_us[even.of_end]


def _lots(factors: Floats) -> IntArray:
    """Return the smallest whole numbers in proportion to 1 / factor; rounded to at least 1 if they
    would be too large.
    """
    found, place = np.unique(factors, return_inverse=True)
    scale = 1
    while scale < _MOST_LOTS and not _whole(scale / found).all():
        scale += 1
    return np.maximum(np.rint(scale / found), 1).astype(np.int64)[place.reshape(factors.shape)]


def _whole(numbers: Floats) -> npt.NDArray[np.bool_]:
    return (numbers > 0.5) & np.isclose(numbers, np.rint(numbers), rtol=1e-9, atol=0)

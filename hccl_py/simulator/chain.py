"""The counts of closed formulas: steps, bytes and reduced bytes of the longest chain.

α, β and γ are multiplied with these. Each is found alone, as the time of a program in which nothing
else costs anything.
"""

from __future__ import annotations

from typing import NamedTuple

from hccl_py.clocks.cost import CostModel, LinkCost
from hccl_py.program.program import Program
from hccl_py.simulator.tasks import simulate_tasks


class Chain(NamedTuple):
    """The factors of α, β and γ: steps, bytes over a link, bytes reduced."""

    steps: int
    moved: int
    reduced: int


def longest_chain(program: Program) -> Chain:
    """Return the longest chains of a program, each by its own measure.

    The three may be different chains: where they are, their costs together are more than the
    program's time.
    """
    return Chain(_time(program, alpha=1), _time(program, beta=1), _time(program, gamma=1))


def _time(program: Program, alpha: float = 0, beta: float = 0, gamma: float = 0) -> int:
    link = LinkCost(alpha_us=alpha, gbps=_rate(beta))
    model = CostModel(
        name="chain",
        hccs=link,
        sio=link,
        pcie=link,
        roce=link,
        reduce_gbps=_rate(gamma),
        copy_gbps=None,
    )
    return round(simulate_tasks(program, None, model).total_us)


def _rate(per_byte_us: float) -> float | None:
    return 1e-3 / per_byte_us if per_byte_us else None

"""Fits without one group of measured times each, and how well they predict that group.

What a model says of times that it was fitted to says little about others. Where each group is a
team, a machine or an op of its own, the errors of all groups left out are those of calls like them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hccl_py.clocks.cost import CostModel
from hccl_py.clocks.measured import HeldOut
from hccl_py.errors import ParameterError
from hccl_py.fit.fit import HeldParameter, fit
from hccl_py.fit.parameters import Parameter, TimedCall
from hccl_py.fit.simulated import simulated
from hccl_py.simulator.entry import Network


@dataclass(frozen=True)
class HeldOutGroup:
    """A group, the deviations of its times from those of the model fitted to all others (measured
    over model, minus 1), and the parameters that the others do not determine.
    """

    group: str
    deviations: tuple[float, ...]
    held: tuple[HeldParameter, ...]

    def document(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {
            "group": self.group,
            "deviations": list(self.deviations),
            **held_out_errors(self.deviations).model_dump(),
            "not_determined": [k.parameter.name for k in self.held],
        }


def leave_out(
    calls: Sequence[tuple[TimedCall, str]],
    base: CostModel,
    parameters: Sequence[Parameter] | None,
    network: Network,
    near: CostModel,
) -> Iterator[HeldOutGroup]:
    """Yield each group, left out; calls stand with the names of theirs. What the others do not
    determine keeps its value in `base`; `near` is the model fitted to all, where searches begin.

    Raises ParameterError for a single group, and as `fit` where the others determine nothing.
    """
    groups = list(dict.fromkeys(group for _, group in calls))
    if len(groups) < 2:
        raise ParameterError(
            f"All rows are of one group, {groups[0]!r}: nothing is left to fit without it.",
            "Give rows of several groups, or leave out by another column.",
        )
    for group in groups:
        others = [call for call, name in calls if name != group]
        own = [call for call, name in calls if name == group]
        found = fit(others, base, parameters, network, near)
        model_us = simulated(own, found.cost, network)
        measured = np.array([call.time_us for call in own])
        yield HeldOutGroup(group, tuple((measured / model_us - 1).tolist()), found.held)


def held_out_errors(deviations: Sequence[float]) -> HeldOut:
    """Return the sizes of deviations: their median, the least that nine of ten are below, and the
    largest.
    """
    sizes = np.abs(np.asarray(deviations))
    p90 = np.quantile(sizes, 0.9, method="higher")
    return HeldOut(
        points=len(sizes), median=float(np.median(sizes)), p90=float(p90), worst=float(sizes.max())
    )

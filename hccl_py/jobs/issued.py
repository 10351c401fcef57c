"""Where communicators lie in a job, and what each of their ranks has issued so far."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hccl_py.communicator import Communicator
from hccl_py.errors import ParameterError
from hccl_py.jobs.steps import Group
from hccl_py.op_param import OpParam
from hccl_py.planning import Plan
from hccl_py.topology import Topology
from hccl_py.values import IntArray

__all__ = ["Issued", "plan_of", "ranks_of"]


class Issued:
    """Where communicators lie in the job, and the calls that each of their ranks has issued."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._groups: dict[Communicator, Group] = {}
        self._streams: dict[Communicator, str] = {}
        self._plans: dict[Communicator, list[Plan]] = {}
        self._issued: dict[Communicator, IntArray] = {}

    def placed(
        self, communicators: Communicator | Sequence[Communicator], members: Sequence[int] | None
    ) -> list[Group]:
        """Return the communicators with their ranks in the job."""
        listed = _listed(communicators)
        if not listed or (members is not None and len(listed) > 1):
            raise ParameterError(
                f"run got {len(listed)} communicators{' and members' * bool(members)}.",
                "Give one or more; members say the ranks of one.",
            )
        groups = [self._placed(communicator, members) for communicator in listed]
        ranks, times = np.unique(np.concatenate([g.members for g in groups]), return_counts=True)
        if (times > 1).any():
            raise ParameterError(
                f"Rank {ranks[times > 1][0]} is in two of the communicators of one call.",
                "Run those that share ranks one after the other, or on two streams.",
            )
        return groups

    def issue(self, group: Group, plan: Plan, stream: str, ranks: IntArray) -> None:
        """Count a call of some ranks; refuse what does not meet the calls of the others."""
        who = group.communicator
        first = self._streams.setdefault(who, stream)
        if first != stream:
            raise ParameterError(
                f"{who.name} runs on stream {first}, and is called on stream {stream}.",
                "The calls of a communicator share its buffers and notifies: take one stream for "
                "them all, or another communicator of the same ranks (create_group).",
            )
        plans = self._plans.setdefault(who, [])
        issued = self._issued.setdefault(who, np.zeros(who.size, np.int64))
        mine = np.flatnonzero(np.isin(group.members, ranks))
        for number in np.unique(issued[mine]).tolist():
            if number == len(plans):
                plans.append(plan)
            if _what(plans[number]) != _what(plan):
                rank = int(group.members[mine[issued[mine] == number][0]])
                raise ParameterError(
                    f"Call {number + 1} of {who.name} is {_spelled(plans[number])} on other "
                    f"ranks, and {_spelled(plan)} on rank {rank}.",
                    "All ranks of a communicator make the same calls in the same order.",
                )
        issued[mine] += 1

    def _placed(self, communicator: Communicator, members: Sequence[int] | None) -> Group:
        known = self._groups.get(communicator)
        if known is not None and members is None:
            return known
        ranks = ranks_of(communicator.ranks if members is None else members)
        if not self._is_part(communicator, ranks):
            raise ParameterError(
                f"{communicator.name} is not made of ranks {_first(ranks)} of "
                f"{self._topology.description}.",
                "Take groups of a communicator of the whole topology; for groups of groups say "
                "their ranks in it: run(..., members=[...]).",
            )
        if known is not None and not np.array_equal(known.members, ranks):
            raise ParameterError(
                f"{communicator.name} lies on ranks {_first(known.members)}, "
                f"not on ranks {_first(ranks)}.",
                "Say the same members in every call of a communicator.",
            )
        return self._groups.setdefault(communicator, Group(communicator, ranks))

    def _is_part(self, communicator: Communicator, ranks: IntArray) -> bool:
        """Whether these ranks of the topology are placed as those of the communicator."""
        whole, part = self._topology, communicator.topology
        if len(ranks) != part.size or len(np.unique(ranks)) < len(ranks):
            return False
        if ranks.min() < 0 or ranks.max() >= whole.size or whole.product != part.product:
            return False
        there = whole.subset(ranks.tolist())
        return all(
            np.array_equal(getattr(there, name), getattr(part, name))
            for name in ("server", "superpod", "device_id")
        )


def _listed(communicators: Communicator | Sequence[Communicator]) -> list[Communicator]:
    given = communicators if isinstance(communicators, (list, tuple)) else [communicators]
    for communicator in given:
        if not isinstance(communicator, Communicator):
            raise ParameterError(
                f"run got {communicator!r:.80} as communicator.", "Give one, or a list of some."
            )
    return list(given)


def plan_of(communicator: Communicator, op: OpParam | Plan) -> Plan:
    """Return the plan of a call of a communicator."""
    if isinstance(op, OpParam):
        return communicator.plan(op)
    if not isinstance(op, Plan) or op.program.ranks != communicator.size:
        raise ParameterError(
            f"{communicator.name} cannot run {op!r:.80}.",
            f"Give an OpParam, or a plan of its {communicator.size} ranks.",
        )
    return op


def ranks_of(given: Iterable[Any] | npt.NDArray[Any]) -> IntArray:
    """Return ranks as an array, -1 for what is no rank at all."""
    try:
        found = np.asarray(list(given))
    except (TypeError, ValueError):
        return np.array([-1])
    is_whole = found.dtype.kind in "iu" and found.ndim == 1
    return found.astype(np.int64) if is_whole else np.array([-1])


def _first(ranks: IntArray) -> str:
    return ", ".join(map(str, ranks[:8].tolist())) + " ..." * (len(ranks) > 8)


def _what(plan: Plan) -> tuple[OpParam, str]:
    return plan.op, plan.selection.executor


def _spelled(plan: Plan) -> str:
    op = plan.op
    return f"{op.name} of {op.count} {op.dtype.value} by {plan.selection.executor}"

"""Communicators of a job: their ranks in it, and the calls that each rank has issued so far."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hccl_py.call.op_param import OpParam
from hccl_py.communicator.communicator import Communicator
from hccl_py.communicator.planning import Plan
from hccl_py.enums import LinkKind
from hccl_py.errors import ParameterError
from hccl_py.jobs.steps import JobGroup
from hccl_py.topology import Topology
from hccl_py.values import IntArray


class JobCommunicators:
    """The communicators of a job, their stream, their ranks and their calls."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._groups: dict[Communicator, JobGroup] = {}
        self._streams: dict[Communicator, str] = {}
        self._plans: dict[Communicator, list[Plan]] = {}
        self._issued: dict[Communicator, IntArray] = {}
        self._checked: dict[tuple[Communicator, int], Plan] = {}

    def placed(
        self, communicators: Communicator | Sequence[Communicator], members: Sequence[int] | None
    ) -> list[JobGroup]:
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

    def issue(self, group: JobGroup, plan: Plan, stream: str, ranks: IntArray) -> None:
        """Count a call of some ranks; refuse one that differs from the other ranks' call."""
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
            if _call_of(plans[number]) != _call_of(plan):
                rank = int(group.members[mine[issued[mine] == number][0]])
                raise ParameterError(
                    f"Call {number + 1} of {who.name} is {_format(plans[number])} on other "
                    f"ranks, and {_format(plan)} on rank {rank}.",
                    "All ranks of a communicator make the same calls in the same order.",
                )
        issued[mine] += 1

    def plan(self, group: JobGroup, op: OpParam | Plan) -> Plan:
        """Return the plan of a call of a communicator, whose links the job must have."""
        who = group.communicator
        plan = who.plan(op) if isinstance(op, OpParam) else op
        if not isinstance(plan, Plan) or plan.program.ranks != who.size:
            raise ParameterError(
                f"{who.name} cannot run {op!r:.80}.",
                f"Give an OpParam, or a plan of its {who.size} ranks.",
            )
        if (who, id(plan)) not in self._checked:
            self._check_links(group, op, plan)
            self._checked[who, id(plan)] = plan  # which keeps its id
        return plan

    def _check_links(self, group: JobGroup, op: OpParam | Plan, plan: Plan) -> None:
        """Refuse links of another kind than the job's. Where RDMA joins some members, an executor
        may use it for all of them.
        """
        who = group.communicator
        links = plan.program.transports
        ranks, peers = group.members[links.rank], group.members[links.peer]
        kinds = self._topology.link_kinds(ranks, peers)
        may_differ = who.topology.has_rdma & (links.kind == LinkKind.RDMA)
        for end in np.flatnonzero((links.kind != kinds) & ~may_differ)[:1].tolist():
            planned, found = LinkKind(links.kind[end]), LinkKind(kinds[end])
            raise ParameterError(
                f"{who.name} cannot run {op!r:.80}: it takes {planned.name} from rank {ranks[end]} "
                f"to rank {peers[end]} of the job, which {found.name} joins.",
                f"Give an OpParam, or a plan that {who.name} made.",
            )

    def _placed(self, communicator: Communicator, members: Sequence[int] | None) -> JobGroup:
        known = self._groups.get(communicator)
        said = None if members is None else ranks_of(members)
        own = self._own_ranks(communicator) if known is None else known.members
        ranks = said if own is None else own
        if ranks is None or not (known or self._is_part(communicator.topology, ranks)):
            which = "" if ranks is None else f"ranks {_first(ranks)} of "
            raise ParameterError(
                f"{communicator.name} is not made of {which}{self._topology.description}.",
                "Take a communicator of the job's topology or a group of one, or say on which "
                "ranks, that are placed alike, it lies: run(..., members=[...]).",
            )
        if said is not None and not np.array_equal(ranks, said):
            raise ParameterError(
                f"{communicator.name} lies on ranks {_first(ranks)}, not on ranks {_first(said)}.",
                "Leave members out: it knows its ranks.",
            )
        return self._groups.setdefault(communicator, JobGroup(communicator, ranks))

    def _own_ranks(self, communicator: Communicator) -> IntArray | None:
        """Return the communicator's ranks in the job, followed from parent to parent up to the
        job's topology; None where no parent is on that topology.
        """
        ranks, whole = np.arange(communicator.size), communicator
        while whole.topology is not self._topology and whole.parent is not None:
            ranks, whole = np.array(whole.ranks)[ranks], whole.parent
        is_met = whole.size == self._topology.size
        is_met = is_met and self._is_part(whole.topology, np.arange(whole.size))
        return ranks if is_met else None

    def _is_part(self, part: Topology, ranks: IntArray) -> bool:
        """True if these ranks of the job are placed as the ranks of topology `part`."""
        whole = self._topology
        if part is whole:
            return np.array_equal(ranks, np.arange(whole.size))
        if len(ranks) != part.size or len(np.unique(ranks)) < len(ranks):
            return False
        if ranks.min() < 0 or ranks.max() >= whole.size or whole.product != part.product:
            return False
        there = whole.subset(ranks.tolist())
        return _network(there) == _network(part) and all(
            np.array_equal(getattr(there, name), getattr(part, name))
            for name in ("server", "superpod", "device_id")
        )


def _network(topology: Topology) -> str:
    return "" if topology.network is None else topology.network.name


def _listed(communicators: Communicator | Sequence[Communicator]) -> list[Communicator]:
    given = communicators if isinstance(communicators, (list, tuple)) else [communicators]
    for communicator in given:
        if not isinstance(communicator, Communicator):
            raise ParameterError(
                f"run got {communicator!r:.80} as communicator.", "Give one, or a list of some."
            )
    return list(given)


def ranks_of(given: Iterable[Any] | npt.NDArray[Any]) -> IntArray:
    """Return ranks as an array, [-1] where the value is no list of integers."""
    try:
        found = np.asarray(list(given))
    except (TypeError, ValueError):
        return np.array([-1])
    is_whole = found.dtype.kind in "iu" and found.ndim == 1
    return found.astype(np.int64) if is_whole else np.array([-1])


def _first(ranks: IntArray) -> str:
    return ", ".join(map(str, ranks[:8].tolist())) + " ..." * (len(ranks) > 8)


def _call_of(plan: Plan) -> tuple[OpParam, str]:
    return plan.op, plan.selection.executor


def _format(plan: Plan) -> str:
    op = plan.op
    return f"{op.name} of {op.count} {op.dtype.value} by {plan.selection.executor}"

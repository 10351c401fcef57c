"""A small communicator inside a plane: some of its members, over the links that the plane has.

    halves = Subplane(rank.flat, [range(4), range(4, 8)])
    ring_all_gather(rank.main, halves, slots)

Every rank is in its own group, with an index and a size there; a rank outside of all groups is
alone, so that templates record nothing for it. Transports are the plane's, requested there: two
subplanes that reach the same peer share its notifies, so they may not work at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hccl_py.errors import OrchestrationError
from hccl_py.orchestration.plane import Membership, Plane
from hccl_py.orchestration.recorder import orchestration_error
from hccl_py.orchestration.transport import Link
from hccl_py.values import IntArray, PerRank, RankInt, values_of


class Subplane(Plane):
    """A group of a plane's members, usable wherever a plane is.

    `groups` lists members by their indices in the plane, in the group's own order. Groups may share
    members if `which` gives the number of each rank's group; without it, a member may be in one
    group only.
    """

    def __init__(
        self, parent: Plane, groups: Sequence[Sequence[int]], which: RankInt | None = None
    ) -> None:
        grouped = _MemberLists(groups, parent.name, int(parent.size))
        me = np.asarray(values_of(parent.id))
        if which is None:
            chosen = grouped.home()[me]
        else:
            chosen = np.broadcast_to(np.asarray(values_of(which)), me.shape)
        membership = Membership(
            PerRank.of(chosen),
            PerRank.of(grouped.position(chosen, me)),
            PerRank.of(np.append(grouped.sizes, 1)[chosen]),  # the last: alone
        )
        super().__init__(parent._rank, f"part of {parent.name}", membership)
        self._parent = parent
        self._members = grouped.members
        self._first = PerRank.of(np.append(grouped.first, 0)[chosen])

    def _link(self, index: RankInt) -> Link:
        places = values_of(self._first) + values_of(self._inside(index))
        return self._parent[PerRank.of(self._members[places])]


class _MemberLists:
    """Lists of members, one after the other: group g is `members[first[g] : first[g] + sizes[g]]`.

    Group -1 is that of a member that is alone.
    """

    def __init__(self, groups: Sequence[Sequence[int]], plane: str, total: int) -> None:
        self.total = total
        self.sizes: IntArray = np.array([len(group) for group in groups], np.int64)
        if not self.sizes.size or not self.sizes.all():
            raise _error(
                f"Group {np.argmin(self.sizes)} is empty" if groups else "There are no groups"
            )
        self.first: IntArray = np.cumsum(self.sizes) - self.sizes
        self.number: IntArray = np.repeat(np.arange(len(groups)), self.sizes)
        self.members = np.concatenate([np.asarray(group, np.int64) for group in groups])
        outside = (self.members < 0) | (self.members >= total)
        if outside.any():
            place = int(np.argmax(outside))
            raise _error(
                f"Group {self.number[place]} names member {self.members[place]} "
                f"of plane {plane}, which has {total}"
            )
        self._keys = self.number * total + self.members
        self._check_unlike(self._keys)

    def home(self) -> IntArray:
        """Return every member's group; none may be in two."""
        self._check_unlike(self.members)
        home = np.full(self.total, -1, np.int64)
        home[self.members] = self.number
        return home

    def position(self, groups: IntArray, members: IntArray) -> IntArray:
        """Return the index of members in their groups; OrchestrationError for a wrong group."""
        order = np.argsort(self._keys)
        wanted = groups * self.total + members
        near = np.minimum(np.searchsorted(self._keys, wanted, sorter=order), len(order) - 1)
        place = order[near]
        missing = (self._keys[place] != wanted) & (groups >= 0)
        if missing.any():
            member, group = (np.atleast_1d(x)[np.argmax(missing)] for x in (members, groups))
            raise _error(f"Member {member} is not in group {group}, said to be its own")
        return np.where(groups < 0, 0, place - self.first[groups])

    def _check_unlike(self, keys: IntArray) -> None:
        order = np.argsort(keys, kind="stable")
        again = np.nonzero(keys[order][1:] == keys[order][:-1])[0]
        if len(again):
            one, other = self.number[order[again[0] : again[0] + 2]]
            where = f"twice in group {one}" if one == other else f"in groups {one} and {other}"
            raise _error(f"Member {self.members[order[again[0]]]} is {where}")


def _error(message: str) -> OrchestrationError:
    return orchestration_error(
        message,
        "Groups list indices of the plane, 0 to plane.size - 1; a rank takes part in one group.",
        finding="UNDECLARED_CHANNEL",
    )

"""A plane of a rank: a small communicator with its own index, size and links."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hccl_py.orchestration.recorder import orchestration_error
from hccl_py.orchestration.stream import Stream
from hccl_py.orchestration.transport import Link
from hccl_py.topology.topology import Topology
from hccl_py.values import OutOfBoundsError, PerRank, RankInt, values_of

if TYPE_CHECKING:
    from hccl_py.orchestration.rank import Rank


class Membership(NamedTuple):
    """The place of ranks in a plane: the number of their plane, their index in it, its size."""

    number: RankInt
    id: RankInt
    size: RankInt

    @staticmethod
    def of(topology: Topology, name: str, ids: RankInt) -> Membership:
        """Look up the membership of ranks in a plane of the topology."""
        number, index, size = (column[values_of(ids)] for column in topology.plane(name))
        own = ids if name == "flat" else PerRank.of(index)
        return Membership(PerRank.of(number), own, PerRank.of(size))


class PlaneView:
    """Index and size of a plane; `plane.size` differs by rank where servers are uneven."""

    def __init__(self, topology: Topology, name: str, membership: Membership) -> None:
        self.name = name
        self.number, self.id, self.size = membership
        self._topology = topology

    def index_of(self, rank: int) -> int:
        """Return the index of a rank in its own plane of this kind."""
        return int(self._topology.plane(self.name)[1][rank])

    @property
    def order(self) -> tuple[int, ...]:
        """The indices in level0 of this plane's members: the path of a ring inside a server."""
        number = np.atleast_1d(values_of(self.number))[0]
        members = self._topology.members(self.name)[number, : int(self.size)]
        return tuple(self._topology.plane("level0")[1][members].tolist())

    @property
    def groups(self) -> tuple[int, ...]:
        """The number of members in each server (flat plane) or superpod (level12), in order; on
        other planes all are one group.
        """
        numbers = np.unique(values_of(self.number)).tolist()
        found = {self._topology.groups(self.name, number) for number in numbers}
        return (
            found.pop() if len(found) == 1 else self._topology.groups(self.name, int(self.number))
        )


class Plane(PlaneView):
    """A plane with its links, looked up when first used: one rank needs no special case."""

    def __init__(
        self, rank: Rank[Any, Any], name: str, membership: Membership | None = None
    ) -> None:
        topology = rank.fabric.topology
        super().__init__(topology, name, membership or Membership.of(topology, name, rank.id))
        self._rank = rank
        self._links: dict[object, tuple[Link, RankInt]] = {}

    def __getitem__(self, index: RankInt) -> Link:
        """Return the link to the member with this index; a negative index counts from the end."""
        # The index is kept with its link: its arrays must outlive the key made of their ids.
        key = index.key() if isinstance(index, PerRank) else index
        if key not in self._links:
            self._links[key] = (self._link(index), index)
        return self._links[key][0]

    @cached_property
    def right(self) -> Link:
        """The link to the next member."""
        return self[(self.id + 1) % self.size]

    @cached_property
    def left(self) -> Link:
        """The link to the previous member."""
        return self[(self.id - 1) % self.size]

    def others(self) -> Iterator[tuple[RankInt, Link]]:
        """Yield index and link of every other member, nearest below first and wrapping (HCCL's
        BackwardRank).
        """
        for distance in range(1, int(self.size)):
            index = (self.id - distance) % self.size
            yield index, self[index]

    @contextmanager
    def fork(
        self, subs: Iterable[int | Stream] | None = None
    ) -> Iterator[list[tuple[Stream, RankInt, Link]]]:
        """Wake one sub stream per other member, the first ones or those that `subs` names; yield
        (sub, index, link) of each; wait for all at the end.

        Raises the errors of `Rank.fork`, and OrchestrationError where the number of `subs` is not
        that of the other members.
        """
        needed, chosen = int(self.size) - 1, None if subs is None else list(subs)
        if chosen is not None and len(chosen) != needed:
            raise orchestration_error(
                f"{len(chosen)} sub streams are named for the {needed} other members of plane "
                f"{self.name}",
                "Name one for each: subs=range(plane.size - 1).",
            )
        with self._rank.fork(needed if chosen is None else None, subs=chosen) as streams:
            yield [
                (sub, index, link)
                for sub, (index, link) in zip(streams, self.others(), strict=True)
            ]

    def barrier(self, stream: Stream) -> None:
        """Wait on `stream` until every member has come here: all earlier tasks of every member on
        the stream that it gives are over before any member goes on.

        All members post to the first one, which posts back: 2(n - 1) tasks there, two at the
        others. The notifies are the barrier's own, so exchanges under way on the same links do not
        matter; they are requested with `PlaneRequest(..., barrier=True)`. Nothing is recorded for a
        member that is alone. Raises OrchestrationError where it was not requested.
        """
        with stream.phase("barrier"):
            if self.size == 1:
                return
            if self.id == 0:
                links = [link for _, link in self.others()]
                for link in links:
                    link.wait_barrier(stream)
                for link in links:
                    link.post_barrier(stream)
            else:
                self[0].post_barrier(stream)
                self[0].wait_barrier(stream)

    def _inside(self, index: RankInt) -> RankInt:
        """Return the index of a member from 0 on; refuse one outside of the plane."""
        size = int(self.size)
        try:
            if isinstance(index, PerRank):
                index = index.wrapped(size, "member")
            elif not -size <= index < size:
                raise OutOfBoundsError(f"member {index} of {size}")
        except OutOfBoundsError as error:
            raise orchestration_error(
                f"Plane {self.name} has no {error}",
                f"Members are numbered 0 to {size - 1}; take indices modulo plane.size.",
                finding="UNDECLARED_CHANNEL",
            ) from None
        return index % size

    def _link(self, index: RankInt) -> Link:
        table = self._rank.fabric.topology.members(self.name)
        ranks = table[values_of(self.number), values_of(self._inside(index))]
        return Link(self._rank, self.name, PerRank.of(ranks))

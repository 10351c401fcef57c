"""The rings inside a server: every slot is cut, and each part goes round on a stream of its own."""

from __future__ import annotations

from collections.abc import Sequence

from hccl_executors.templates.double_ring import (
    Cut,
    parts_of_rings,
    rings_all_gather,
    rings_reduce_scatter,
)
from hccl_executors.templates.ring import ring_gather, ring_scatter
from hccl_py.orchestration import Chunks, Plane
from hccl_py.plugins.executor import AnyRank


class Rings:
    """A rank's rings, or some of them: main runs the last one, sub streams the others. Work is in
    place, with one slot per device, of which a reduce-scatter gives each ring what `cut` says.
    """

    def __init__(
        self, rank: AnyRank, rings: Sequence[Plane] | None = None, cut: Cut = parts_of_rings
    ) -> None:
        self.rank = rank
        self.rings = rank.rings if rings is None else rings
        self.cut = cut

    def all_gather(self, slots: Chunks) -> None:
        """Leave in every device all slots."""
        rings_all_gather(self.rank, self.rings, slots)

    def reduce_scatter(self, slots: Chunks) -> None:
        """Leave in slot d of device d the reduction of all slots d."""
        rings_reduce_scatter(self.rank, self.rings, slots, self.cut)

    def scatter(self, slots: Chunks, root: int) -> None:
        """Leave slot d of the device that rank `root` has in its server in slot d of device d."""
        with self.rank.fork(len(self.rings) - 1) as subs:
            parts = parts_of_rings(self.rings, slots)
            for stream, ring, part in zip((*subs, self.rank.main), self.rings, parts, strict=True):
                ring_scatter(stream, ring, part, ring.index_of(root))

    def gather(self, slots: Chunks, root: int) -> None:
        """Leave slot d of device d in slot d of the device that rank `root` has in its server.

        As in HCCL, a ring without data does nothing, unless it is main's.
        """
        with self.rank.fork(len(self.rings) - 1) as subs:
            parts = parts_of_rings(self.rings, slots)
            for stream, ring, part in zip((*subs, self.rank.main), self.rings, parts, strict=True):
                if stream is self.rank.main or bool(part[0].size):
                    ring_gather(stream, ring, part, ring.index_of(root))

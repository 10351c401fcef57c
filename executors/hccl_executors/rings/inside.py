"""The rings inside a server: every slot is cut, and each part goes round on a stream of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hccl_executors.templates.double_ring import rings_all_gather, rings_reduce_scatter
from hccl_executors.templates.ring import ring_gather, ring_scatter
from hccl_py.executor import Rank
from hccl_py.orchestration import Chunks

__all__ = ["Rings"]


class Rings:
    """A rank's rings: main runs the last one, sub streams the others. Work is in place, with one
    slot per device.
    """

    def __init__(self, rank: Rank[Any, Any]) -> None:
        self.rank = rank
        self.rings = rank.rings

    def all_gather(self, slots: Chunks) -> None:
        """Leave in every device all slots."""
        rings_all_gather(self.rank, self.rings, slots)

    def reduce_scatter(self, slots: Chunks) -> None:
        """Leave in slot d of device d the reduction of all slots d."""
        rings_reduce_scatter(self.rank, self.rings, slots)

    def scatter(self, slots: Chunks, root: int) -> None:
        """Leave slot d of the device that rank `root` has in its server in slot d of device d."""
        self._rooted(ring_scatter, slots, root)

    def gather(self, slots: Chunks, root: int) -> None:
        """Leave slot d of device d in slot d of the device that rank `root` has in its server."""
        self._rooted(ring_gather, slots, root)

    def _rooted(self, template: Callable[..., None], slots: Chunks, root: int) -> None:
        with self.rank.fork(len(self.rings) - 1) as subs:
            parts = slots.parts(len(self.rings))
            for stream, ring, part in zip((*subs, self.rank.main), self.rings, parts, strict=True):
                template(stream, ring, part.renumbered(ring.order), ring.index_of(root))

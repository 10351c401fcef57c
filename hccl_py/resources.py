"""What an executor needs before it can run, and what a platform allocates for it.

HCCL computes resources once per tag and reuses them: scratch memory, sub streams, notifies between
main and sub streams, and transports to the peers that the algorithm talks to. Notifies of
transports come with the transports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hccl_py.enums import Buffer

__all__ = ["PlaneRequest", "ResourceRequest", "ResourceResponse"]

Pattern = str | Callable[[int, int], Iterable[int]]
"""`mesh`, `ring`, `nhr` or `rhd`, or a function of (index, size) that yields the peers' indices."""


@dataclass(frozen=True)
class PlaneRequest:
    """Transports on one plane.

    `level` is one of `hccl_py.topology.PLANES`, such as `flat`, `level0` or `ring1`. `input_mem`
    and `output_mem` are the two memories that each end exposes, by default CCL_In and CCL_Out in
    op-base mode and user memory in graph mode.
    `extra_notifies` come on top of the transport's own Ack, DataSignal and DataAck.
    """

    level: str
    pattern: Pattern
    input_mem: Buffer | None = None
    output_mem: Buffer | None = None
    extra_notifies: int = 0


@dataclass(frozen=True)
class ResourceRequest:
    """What one rank asks for.

    `notifies` defaults to HCCL's two per sub stream (main wakes it, it reports back). `max_count`
    is how many elements of the op's count one round can take; None means that one round takes
    everything, and so does graph mode, which works in user memory.
    """

    planes: tuple[PlaneRequest, ...] = ()
    sub_streams: int = 0
    notifies: int | None = None
    scratch_bytes: int = 0
    max_count: int | None = None

    @property
    def notify_count(self) -> int:
        """Notifies between the streams of this rank."""
        return 2 * self.sub_streams if self.notifies is None else self.notifies


@dataclass(frozen=True)
class ResourceResponse:
    """What a platform holds for a tag, per local rank; reused by every call with that tag."""

    tag: str
    sub_streams: tuple[int, ...]
    notifies: tuple[int, ...]
    transports: tuple[int, ...]
    scratch_bytes: tuple[int, ...]

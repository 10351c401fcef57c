"""Messages between hosts: in order for every pair of ranks, over a library that is there already.

gloo    torch.distributed's, over TCP
mpi     MPI's, over whatever the cluster has
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from hccl_platform.lowering.moves import Bytes
from hccl_platform.processes.world import World
from hccl_py.errors import NotSupportedError
from hccl_py.plugins.platforms import Group

__all__ = ["Messages", "needs_mpi", "open_messages"]


class Messages(Protocol):
    """What the ranks of one session send each other. Arrays stay as they are until waited for."""

    def isend(self, rank: int, data: Bytes) -> Any:
        """Begin to send to a rank; PeerLostError where it has gone."""

    def irecv(self, rank: int, into: Bytes) -> Any:
        """Begin to receive from a rank what is no longer than this; PeerLostError likewise."""

    def wait(self, works: Sequence[tuple[int, Any]]) -> None:
        """Return when all that was begun, given with its rank, is over: ExecTimeoutError after the
        session's limit, PeerLostError where a rank has gone, or what made it fail.
        """

    def fail(self, error: BaseException) -> None:
        """Let all others know why this rank sends nothing any more, and close."""

    def close(self) -> None:
        """Release everything."""


def open_messages(
    wire: str | None, world: World, group: Group, key: str, limit_s: float | None
) -> Messages:
    """Return the messages of a group of which this process is a member; all members call this.

    `key` is the session's in the store; `wire` is `gloo` or `mpi`, by default what started the job.
    NotSupportedError where it is not installed, or MPI has not started the job.
    """
    if (wire or ("gloo" if world.mpi is None else "mpi")) == "gloo":
        from hccl_platform.distributed.messages.gloo import GlooMessages

        return GlooMessages(world, group, key, limit_s)
    if world.mpi is None:
        raise needs_mpi()
    from hccl_platform.distributed.messages.mpi import MpiMessages

    return MpiMessages(world, group, key, limit_s)


def needs_mpi() -> NotSupportedError:
    """Return the error of messages over MPI where MPI has not started the job."""
    return NotSupportedError(
        "Messages over MPI need processes that MPI has started.",
        "Start the job with `mpiexec -n N ...` or srun, or leave --wire mpi (HCCL_PY_WIRE) out.",
    )

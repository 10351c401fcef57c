"""Messages between hosts: in order for every pair of ranks, over a library that is there already.

gloo    of torch.distributed, over TCP
mpi     over the cluster's network, as MPI is set up for it
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from hccl_platform.lowering.moves import Bytes
from hccl_platform.processes.world import World
from hccl_py.errors import HcclError, NotSupportedError
from hccl_py.plugins.platforms import Group

__all__ = ["Messenger", "needs_mpi", "open_messenger"]


class Messenger(Protocol):
    """Sends and receives the messages of one session. Arrays stay unchanged until waited for."""

    def isend(self, rank: int, data: Bytes) -> Any:
        """Begin to send to a rank; PeerLostError if it has ended."""

    def irecv(self, rank: int, into: Bytes) -> Any:
        """Begin to receive a message of at most these bytes from a rank; PeerLostError if it has
        ended.
        """

    def wait(self, works: Sequence[tuple[int, Any]]) -> None:
        """Wait until these sends and receives, each given with its peer, are over. ExecTimeoutError
        after the session's limit; PeerLostError, or a rank's own error, if the rank has ended.
        """

    def published(self, seconds: float) -> HcclError | None:
        """Return an error that another rank has published, or does within so many seconds."""

    def fail(self, error: BaseException) -> None:
        """Publish the error that ends this rank's messages to all others, and close."""

    def close(self) -> None:
        """Close all connections."""


def open_messenger(
    wire: str | None, world: World, group: Group, key: str, limit_s: float | None
) -> Messenger:
    """Return the messenger of a group of which this process is a member; all members call this.

    `key` is the session's key in the store; `wire` is `gloo` or `mpi`, by default mpi if MPI has
    started the job. NotSupportedError if it is not installed, or MPI has not started the job.
    """
    if (wire or ("gloo" if world.mpi is None else "mpi")) == "gloo":
        from hccl_platform.distributed.messages.gloo import GlooMessenger

        return GlooMessenger(world, group, key, limit_s)
    if world.mpi is None:
        raise needs_mpi()
    from hccl_platform.distributed.messages.mpi import MpiMessenger

    return MpiMessenger(world, group, key, limit_s)


def needs_mpi() -> NotSupportedError:
    """Return the error of messages over MPI in a job that MPI has not started."""
    return NotSupportedError(
        "Messages over MPI need processes that MPI has started.",
        "Start the job with `mpiexec -n N ...` or srun, or leave --wire mpi (HCCL_PY_WIRE) out.",
    )

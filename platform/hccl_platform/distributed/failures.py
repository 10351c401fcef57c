"""The reason why a rank has failed, as text for the other ranks."""

from __future__ import annotations

from contextlib import suppress

from hccl_py import errors
from hccl_py.errors import ExecTimeoutError, HcclError, PeerLostError
from hccl_py.plugins.platforms import Store

MOST_BYTES = 4000
"""Longest text of a reason, in bytes."""

_LOOK_S = 0.5
"""Seconds that a rank whose connection has closed leaves to the rank that failed."""
_ITS_OUTPUT = "Its own output says more."


def as_text(error: BaseException, rank: int) -> bytes:
    """Return the error that made a rank fail, as text for the others."""
    if isinstance(error, HcclError):
        parts = [type(error).__name__, error.message, error.hint]
    else:
        text = f"{type(error).__name__}: {error}".rstrip(": ")
        parts = [PeerLostError.__name__, f"Rank {rank} has failed: {text}", _ITS_OUTPUT]
    return b"\0".join(part.encode()[: MOST_BYTES // 4] for part in parts)


def from_text(text: bytes) -> HcclError:
    """Return the error of a text, of the same class."""
    name, message, hint = (part.decode(errors="ignore") for part in text.split(b"\0"))
    kind = getattr(errors, name, PeerLostError)
    error: HcclError = kind(message, hint)
    return error


class Failures:
    """The reason in the job's store, left by the first rank of a group that failed."""

    def __init__(self, store: Store, key: str, rank: int) -> None:
        self._store, self._rank = store, rank
        self._key = f"{key}/failed"

    def publish(self, error: BaseException) -> None:
        """Leave the reason why this rank has failed."""
        with suppress(HcclError):  # the store may have gone with its process
            self._store.set(self._key, as_text(error, self._rank))

    def published(self, seconds: float) -> HcclError | None:
        """Return the reason that a rank has left, or leaves within so many seconds; else None."""
        with suppress(ExecTimeoutError, PeerLostError):
            return from_text(self._store.get(self._key, seconds))
        return None

    def reason(self, rank: int, seen: str) -> HcclError:
        """Return the error of a connection to a rank that has ended: the published reason, else a
        PeerLostError with the text `seen`.
        """
        return self.published(_LOOK_S) or PeerLostError(
            f"Rank {rank} has gone: {seen}", "Its own output says why. Start the job anew."
        )

"""Why a rank has failed, as the others hear of it."""

from __future__ import annotations

from contextlib import suppress

from hccl_py import errors
from hccl_py.errors import ExecTimeoutError, HcclError, PeerLostError
from hccl_py.plugins.platforms import Store

MOST_BYTES = 4000
"""What a reason takes at most."""

_LOOK_S = 0.2
_ITS_OUTPUT = "Its own output says more."


def as_text(error: BaseException, rank: int) -> bytes:
    """Return what made a rank fail, for others to read."""
    if isinstance(error, HcclError):
        parts = [type(error).__name__, error.message, error.hint]
    else:
        said = f"{type(error).__name__}: {error}".rstrip(": ")
        parts = [PeerLostError.__name__, f"Rank {rank} has failed: {said}", _ITS_OUTPUT]
    return b"\0".join(part.encode()[: MOST_BYTES // 4] for part in parts)


def from_text(text: bytes) -> HcclError:
    """Return an error of the same class."""
    name, message, hint = (part.decode(errors="ignore") for part in text.split(b"\0"))
    kind = getattr(errors, name, PeerLostError)
    error: HcclError = kind(message, hint)
    return error


class Failures:
    """What the first rank of a group that failed has left in the store."""

    def __init__(self, store: Store, key: str, rank: int) -> None:
        self._store, self._rank = store, rank
        self._key = f"{key}/failed"

    def publish(self, error: BaseException) -> None:
        """Say why this rank has failed."""
        with suppress(HcclError):  # the store may have gone with its process
            self._store.set(self._key, as_text(error, self._rank))

    def reason(self, rank: int, seen: str) -> HcclError:
        """Return why a rank's connection has ended: what was published, or that it has gone."""
        with suppress(ExecTimeoutError, PeerLostError):
            return from_text(self._store.get(self._key, _LOOK_S))
        return PeerLostError(
            f"Rank {rank} has gone: {seen}", "Its own output says why. Start the job anew."
        )

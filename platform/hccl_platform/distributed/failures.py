"""Why a rank has failed, as the other hosts hear of it."""

from __future__ import annotations

import json
from contextlib import suppress

from hccl_py import errors
from hccl_py.errors import ExecTimeoutError, HcclError, PeerLostError
from hccl_py.platforms import Store

__all__ = ["Failures", "as_text", "from_text"]

_LOOK_S = 0.2
_MOST = 1000
"""Characters of a message or a hint that are kept."""


def as_text(error: BaseException, rank: int) -> bytes:
    """Return what made a rank fail, to be sent."""
    if isinstance(error, HcclError):
        parts = [type(error).__name__, error.message, error.hint]
    else:
        said = f"{type(error).__name__}: {error}".rstrip(": ")
        parts = [
            PeerLostError.__name__,
            f"Rank {rank} has failed: {said}",
            "Its own output says more.",
        ]
    return json.dumps([part[:_MOST] for part in parts]).encode()


def from_text(text: bytes) -> HcclError:
    """Return an error of the same class."""
    name, message, hint = json.loads(text)
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

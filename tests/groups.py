"""Groups whose ranks are all in this process."""

from __future__ import annotations

from collections.abc import Iterable

from hccl_py import Communicator


def group_of(
    comm: Communicator,
    ranks: Iterable[int],
    *,
    name: str | None = None,
    buffsize_mb: int | None = None,
    deterministic: str | None = None,
) -> Communicator:
    """Return a group that has a rank in this process."""
    group = comm.create_group(
        ranks, name=name, buffsize_mb=buffsize_mb, deterministic=deterministic
    )
    assert group is not None
    return group

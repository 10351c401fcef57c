"""Checks of the request that `resources()` returned, before anything is built from it."""

from __future__ import annotations

from typing import Any

import numpy as np

from hccl_py.enums import Buffer
from hccl_py.errors import OrchestrationError
from hccl_py.plugins.resources import (
    ChannelRequest,
    ChannelResources,
    PlaneRequest,
    ResourceRequest,
)
from hccl_py.values import PerRank

MOST = {"sub_streams": 1 << 14, "notifies": 1 << 16, "scratch_bytes": 1 << 46, "max_count": 1 << 62}
"""More than any product has; a larger number is a mistake."""

MOST_NOTIFIES = 1 << 12


def checked_request(request: object) -> ResourceRequest | ChannelResources:
    """Return the request in plain ints; a value that differs by rank splits the batch here, but
    for the peers of channels.

    Raises OrchestrationError, which names the field that is wrong.
    """
    if isinstance(request, ChannelResources):
        return _checked_channels(request)
    if not isinstance(request, ResourceRequest):
        raise OrchestrationError(
            f"returned a {type(request).__name__}.",
            "Return a ResourceRequest, or ChannelResources.",
        )
    _check_list(request.planes, "planes", "Give a tuple, also of one: planes=(PlaneRequest(...),).")
    numbers = {field: _number(getattr(request, field), field) for field in MOST}
    return ResourceRequest(
        planes=tuple(_checked_plane(plane) for plane in request.planes),
        sub_streams=numbers["sub_streams"] or 0,
        notifies=numbers["notifies"],
        scratch_bytes=numbers["scratch_bytes"] or 0,
        max_count=numbers["max_count"],
        first_rounds=_rounds(request.first_rounds),
    )


def _rounds(counts: Any) -> tuple[int, ...]:
    hint = "Give the elements of each of the first rounds: first_rounds=(100, 200)."
    _check_list(counts, "first_rounds", hint)
    return tuple(_whole(count, "the elements of a round", MOST["max_count"]) for count in counts)


def _check_list(value: object, field: str, hint: str) -> None:
    if not isinstance(value, (tuple, list)):
        raise OrchestrationError(f"{field} is a {type(value).__name__}.", hint)


def _checked_channels(request: ChannelResources) -> ChannelResources:
    for field in ("channels", "threads"):
        _check_list(getattr(request, field), field, "Give a tuple, also of one.")
    threads = tuple(
        _whole(notifies, f"the number of notifies of thread {k}", MOST["notifies"])
        for k, notifies in enumerate(request.threads)
    )
    if not 1 <= len(threads) <= MOST["sub_streams"]:
        raise OrchestrationError(
            f"threads has {len(threads)} numbers.",
            "Give the notifies of the main thread, then those of every worker: threads=(3, 1, 1).",
        )
    channels = tuple(_checked_channel(channel) for channel in request.channels)
    most, first = _number(request.max_count, "max_count"), _rounds(request.first_rounds)
    return ChannelResources(channels, threads, most, first)


def _checked_channel(channel: object) -> ChannelRequest:
    if not isinstance(channel, ChannelRequest):
        raise OrchestrationError(
            f"channels holds a {type(channel).__name__}.", "Give ChannelRequest(peer, notifies=1)."
        )
    peer: object = channel.peer
    if isinstance(peer, bool) or not isinstance(peer, (int, np.integer, PerRank)):
        raise OrchestrationError(f"the peer {peer!r} is no rank.", "Give the peer's number.")
    memory: object = channel.memory
    if not isinstance(memory, (tuple, list)) or set(memory) - {Buffer.USER_IN, Buffer.USER_OUT}:
        raise OrchestrationError(
            f"the memory {memory!r} of a channel is no user memory.",
            "Name what the peer may reach beside the HCCL buffer: memory=(Buffer.USER_OUT,).",
        )
    return ChannelRequest(
        peer if isinstance(peer, PerRank) else int(peer),
        _whole(channel.notifies, "the number of notifies of a channel", MOST_NOTIFIES),
        None if channel.layer is None else _whole(channel.layer, "the layer of a channel", 1),
        tuple(dict.fromkeys(memory)),
    )


def _number(value: Any, field: str) -> int | None:
    if value is None and field in ("notifies", "max_count"):
        return None
    return _whole(value, field, MOST[field])


def _whole(value: Any, what: str, most: int) -> int:
    if isinstance(value, (float, str, bool)) or not hasattr(value, "__index__"):
        raise OrchestrationError(f"{what} is {value!r}.", "Give a whole number.")
    number = int(value)
    if not 0 <= number <= most:
        raise OrchestrationError(f"{what} is {number}.", f"Give 0 to {most}.")
    return number


def _checked_plane(plane: object) -> PlaneRequest:
    if not isinstance(plane, PlaneRequest):
        raise OrchestrationError(
            f"planes holds a {type(plane).__name__}.", 'Give PlaneRequest("flat", "ring").'
        )
    pattern: object = plane.pattern
    if not isinstance(plane.level, str) or not (isinstance(pattern, str) or callable(pattern)):
        raise OrchestrationError(
            f"PlaneRequest({plane.level!r}, {pattern!r}) names no plane or no pattern.",
            "A level such as flat, and a pattern such as ring or a function of (index, size).",
        )
    for memory in (plane.input_mem, plane.output_mem):
        if memory is not None and not isinstance(memory, Buffer):
            raise OrchestrationError(
                f"the memory {memory!r} is none.", "Give a Buffer, such as Buffer.CCL_IN."
            )
    for field in ("barrier", "rdma"):
        value: object = getattr(plane, field)
        if not isinstance(value, bool):
            raise OrchestrationError(f"{field} is {value!r}.", "Give True or False.")
    return PlaneRequest(
        plane.level,
        plane.pattern,
        plane.input_mem,
        plane.output_mem,
        _whole(plane.extra_notifies, "extra_notifies", MOST_NOTIFIES),
        plane.barrier,
        plane.rdma,
    )

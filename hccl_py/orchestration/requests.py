"""Checking what `resources()` returned, before anything is built from it."""

from __future__ import annotations

from typing import Any

from hccl_py.enums import Buffer
from hccl_py.errors import OrchestrationError
from hccl_py.resources import PlaneRequest, ResourceRequest

__all__ = ["checked_request"]

MOST = {"sub_streams": 1 << 14, "notifies": 1 << 16, "scratch_bytes": 1 << 46, "max_count": 1 << 62}
"""More than any product has; beyond lies a mistake."""

MOST_NOTIFIES = 1 << 12


def checked_request(request: object) -> ResourceRequest:
    """Return the request in plain ints; a value that differs by rank splits the batch here.

    Raises OrchestrationError, which names the field that is wrong.
    """
    if not isinstance(request, ResourceRequest):
        raise OrchestrationError(
            f"returned a {type(request).__name__}.", "Return a ResourceRequest."
        )
    planes: object = request.planes
    if not isinstance(planes, (tuple, list)):
        raise OrchestrationError(
            f"planes is a {type(planes).__name__}.",
            "Give a tuple, also of one: planes=(PlaneRequest(...),).",
        )
    numbers = {field: _number(getattr(request, field), field) for field in MOST}
    return ResourceRequest(
        planes=tuple(_checked_plane(plane) for plane in planes),
        sub_streams=numbers["sub_streams"] or 0,
        notifies=numbers["notifies"],
        scratch_bytes=numbers["scratch_bytes"] or 0,
        max_count=numbers["max_count"],
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
    return PlaneRequest(
        plane.level,
        plane.pattern,
        plane.input_mem,
        plane.output_mem,
        _whole(plane.extra_notifies, "extra_notifies", MOST_NOTIFIES),
    )

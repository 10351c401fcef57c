"""What a session has handed out for every tag."""

from __future__ import annotations

from hccl_py.plugins.resources import ResourceResponse
from hccl_py.program.program import Program


class Responses:
    """Responses by tag: the first one stays, until a program needs more scratch."""

    def __init__(self) -> None:
        self._held: dict[str, ResourceResponse] = {}

    def of(self, tag: str, program: Program) -> ResourceResponse:
        """Return what a tag holds, enough for a program."""
        declared, held = program.declared, self._held.get(tag)
        if held is None or declared.scratch_bytes.max() > max(held.scratch_bytes):
            columns = (
                declared.sub_streams,
                declared.notifies,
                program.transports.counts(program.ranks),
                declared.scratch_bytes,
            )
            held = ResourceResponse(tag, *(tuple(c.tolist()) for c in columns))
            self._held[tag] = held
        return held

    def clear(self) -> None:
        """Let go of all."""
        self._held.clear()

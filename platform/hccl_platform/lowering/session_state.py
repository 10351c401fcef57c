"""The state that every session keeps: resources and runs by tag, and whether it can be used."""

from __future__ import annotations

import os
from collections import Counter

from hccl_py.errors import HcclError, ParameterError
from hccl_py.plugins.resources import ResourceResponse
from hccl_py.program.program import Program


class SessionState:
    """Resources and run counts by tag, the error that ended the session, and whether it is closed.

    A session that `is_of_process` belongs to the process that opens it, and to none forked off it.
    """

    def __init__(self, *, is_of_process: bool = False) -> None:
        self.is_closed = False
        self.error: BaseException | None = None
        self._owner = os.getpid() if is_of_process else None
        self._responses: dict[str, ResourceResponse] = {}
        self._runs: Counter[str] = Counter()

    @property
    def is_in_owner(self) -> bool:
        """True unless this process was forked off the one that owns the session."""
        return self._owner in (None, os.getpid())

    def check(self) -> None:
        """Raise ParameterError if the session is closed or belongs to another process, HcclError if
        it has failed.
        """
        if self.is_closed:
            raise ParameterError("The session is closed.", "Open a new one.")
        if not self.is_in_owner:
            raise ParameterError(
                f"This session belongs to process {self._owner}, and {os.getpid()} was forked off "
                "it.",
                "Make communicators after the fork, in the processes of the job.",
            )
        if self.error is not None:
            text = str(self.error).splitlines()
            raise HcclError(
                f"The session has failed: {text[0] if text else type(self.error).__name__}",
                "Close it, and start the job anew.",
            )

    def response(self, tag: str, program: Program) -> ResourceResponse:
        """Return the resources of a tag; the first response stays until a program needs more
        scratch.
        """
        self.check()
        declared, held = program.declared, self._responses.get(tag)
        if held is None or declared.scratch_bytes.max() > max(held.scratch_bytes):
            columns = (
                declared.sub_streams,
                declared.notifies,
                program.transports.counts(program.ranks),
                declared.scratch_bytes,
            )
            held = ResourceResponse(tag, *(tuple(c.tolist()) for c in columns))
            self._responses[tag] = held
        return held

    def next_half(self, tag: str, program: Program) -> int:
        """Count a run of a tag; return which half of its alternating buffers the run works in.

        0 for runs 0, 2, 4, ..., 1 for those between. Programs without alternating buffers are
        always in half 0, and are not counted.
        """
        if not program.alternating:
            return 0
        self._runs[tag] += 1
        return (self._runs[tag] - 1) % 2

    def close(self) -> bool:
        """Close the session; return False if it was closed before."""
        was_open = not self.is_closed
        self.is_closed = True
        self._responses.clear()
        return was_open

"""The ranks that hold up a call which takes too long: those that are in no wait of their own.

A rank that waits is asleep, and waits for a rank that may wait itself. So the rank that a blocked
rank waits for is often a victim, too. The cause is at the end of such a chain: a process that is
stopped, a rank that has not begun the call, or one that has and is in no wait.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from hccl_platform.distributed.header import ASLEEP, CALL, DONE, Header

_STOPPED = "tT"
"""States of a process that a signal or a debugger has stopped (proc(5))."""


class HeldUp(NamedTuple):
    """The ranks of this host that hold up a call, in words, and the way out."""

    cause: str
    hint: str


def held_up(number: int, headers: Sequence[Header], processes: Mapping[int, int]) -> HeldUp | None:
    """Return the ranks that hold up a call by its number; None if all that can be seen wait.

    `processes` has the other ranks of this host by the descriptor of their process. Where the group
    has ranks on other hosts, too, a rank may be in a wait that its header does not show.
    """
    stopped = stopped_ranks(processes)
    if stopped is not None:
        return stopped
    here = sorted(processes.values())
    late = [rank for rank in here if headers[rank].words[CALL] < number]
    if late:
        return HeldUp(f"{_named(late)} has not begun this call.", _LATE)
    busy = [rank for rank in here if _is_in_no_wait(headers[rank], number)]
    if busy and len(here) + 1 == len(headers):
        return HeldUp(f"{_named(busy)} has begun this call and is in no wait.", _BUSY)
    return None


def stopped_ranks(processes: Mapping[int, int]) -> HeldUp | None:
    """Return the ranks whose processes are stopped; None if none is."""
    stopped = {
        processes[descriptor]: process
        for descriptor in processes
        if (process := _stopped_process(descriptor))
    }
    if not stopped:
        return None
    numbers = " ".join(str(stopped[rank]) for rank in sorted(stopped))
    return HeldUp(
        f"{_named(stopped)} is stopped, by a signal or a debugger, in or before this call.",
        f"Let it go on with `kill -CONT {numbers}`, or start the job anew.",
    )


_LATE = (
    "It is busy, or in another call: its own output, or `py-spy dump`, says where. Raise "
    "HCCL_EXEC_TIMEOUT where it only takes long."
)
_BUSY = "It copies much data, or gets too little of a processor: raise HCCL_EXEC_TIMEOUT."


def _named(ranks: Mapping[int, int] | Sequence[int]) -> str:
    return f"Rank {', '.join(map(str, sorted(ranks)))}"


def _is_in_no_wait(header: Header, number: int) -> bool:
    words = header.words
    return words[CALL] == number > words[DONE] and not words[ASLEEP]


def _stopped_process(descriptor: int) -> int:
    """Return the number of a pidfd's process if it is stopped, else 0."""
    try:
        fields = Path(f"/proc/self/fdinfo/{descriptor}").read_text("ascii").split()
        process = int(fields[fields.index("Pid:") + 1])
        stat = Path(f"/proc/{process}/stat").read_text("utf-8", "replace")
    except (OSError, ValueError):  # it has just ended
        return 0
    return process if stat.rpartition(")")[2].split()[0] in _STOPPED else 0

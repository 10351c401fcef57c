"""Operations between which a `nop` is missing. All threads of a threadblock move data, but only
some of them signal and wait: without a nop or a barrier between, others may be ahead or behind.

    data, signal    the signal may come before other threads have moved their part
    wait, data      other threads may move theirs before the wait is over
    data, data      a thread may touch what another one still reads or writes, unless both
                    operations deal out the same bytes to threads in the same way

Signals and waits are about what others touch, too: data that only the threadblock has needs none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from hccl_interop.common.defects import Defect
from hccl_interop.mscclpp.operations import FORMS, MAX_OPS
from hccl_interop.mscclpp.overlaps import Overlaps
from hccl_interop.mscclpp.plan import PlanOp
from hccl_interop.mscclpp.steps import PlanSlice, PlanStep

_MEETS = ("nop", "barrier")
_SAYS = ("signal", "rlxsignal", "sem_release")
_WAITS = ("wait", "rlxwait", "sem_acquire")
_NAME = "MISSING_NOP"

_Owner = tuple[int, int]


def missing_nops(steps: Mapping[_Owner, list[PlanStep]]) -> Iterator[Defect]:
    """Yield the operations that need a nop before them, with the first that they need it for.
    Threadblocks of more operations than the executor takes are not looked at.
    """
    shared = _Shared(steps)
    for owner, listed in steps.items():
        most = 2 * len({id(step.op) for step in listed})  # two passes of a pipeline
        if most > 2 * MAX_OPS:
            continue
        looked_at: set[tuple[int, int, int]] = set()  # every pass does the same on other bytes
        since: list[PlanStep] = []
        for step in listed:
            if step.op.name in _MEETS:
                since = []
                continue
            for number, before in enumerate(since, 1):
                pair = id(before.op), id(step.op), step.number - before.number
                if pair in looked_at:
                    continue
                looked_at.add(pair)
                why = _why(shared, owner, before, since[number:], step)
                if why:
                    yield _defect(owner, before.op, step.op, why)
                    break
            since = [*since[1 - most :], step]


def _defect(owner: _Owner, before: PlanOp, after: PlanOp, why: str) -> Defect:
    rank, block = owner
    message = (
        f"Between {before} (line {before.line}) and {after} of threadblock {block} of GPU {rank} "
        f"there is no nop: {why}."
    )
    return Defect(
        _NAME, (rank,), after.line, message, "Put a nop between them: threads meet there."
    )


class _StepAccess(NamedTuple):
    """Bytes that a step touches."""

    begin: int
    stop: int
    writes: bool
    owner: _Owner


class _Shared:
    """Accesses of all threadblocks, by buffer and address."""

    def __init__(self, steps: Mapping[_Owner, list[PlanStep]]) -> None:
        found: dict[tuple[int, str], set[_StepAccess]] = defaultdict(set)
        for owner, listed in steps.items():
            for step in listed:
                for slice_, writes in _touched(step):
                    access = _StepAccess(slice_.offset, slice_.stop, writes, owner)
                    found[slice_.rank, slice_.buffer].add(access)
        self._accesses = {
            key: Overlaps((access.begin, access.stop, access) for access in value)
            for key, value in found.items()
        }

    def concerns_others(self, owner: _Owner, step: PlanStep) -> bool:
        """Return True if a step touches memory of a peer, or bytes that another threadblock
        touches, one of the two to write.
        """
        return any(
            slice_.rank != owner[0] or self._conflicts(owner, slice_, writes)
            for slice_, writes in _touched(step)
        )

    def _conflicts(self, owner: _Owner, slice_: PlanSlice, writes: bool) -> bool:
        accesses = self._accesses[slice_.rank, slice_.buffer]
        return any(
            other.owner != owner and (writes or other.writes)
            for other in accesses.with_bytes_of(slice_.offset, slice_.stop)
        )


def _touched(step: PlanStep) -> Iterator[tuple[PlanSlice, bool]]:
    """Yield the slices that a step touches, and True for those that it writes. Packets for which it
    waits are left out, as flags say when they are there.
    """
    yield from ((slice_, False) for slice_ in step.src if slice_ not in step.reads)
    yield from ((slice_, True) for slice_ in step.dst)


def _why(
    shared: _Shared, owner: _Owner, before: PlanStep, between: list[PlanStep], after: PlanStep
) -> str:
    """Return the danger of two steps without a nop between them; "" where there is none."""
    moves_before, moves_after = FORMS[before.op.name].moves, FORMS[after.op.name].moves
    if moves_before and after.op.name in _SAYS and _is_by_all(before):
        if shared.concerns_others(owner, before):
            return "the signal may come before all threads have moved their part"
    elif before.op.name in _WAITS and moves_after and _is_by_all(after):
        if shared.concerns_others(owner, after):
            return "threads that do not wait may move their part before the wait is over"
    elif moves_before and moves_after and _conflict(owner[0], before, between, after):
        return "threads may touch what others still read or write"
    return ""


def _is_by_all(step: PlanStep) -> bool:
    """Return True if all threads do a step; one thread asks for transfers over a port channel."""
    return step.op.channel_type != "port" or FORMS[step.op.name].src_packets == 0


def _conflict(rank: int, before: PlanStep, between: list[PlanStep], after: PlanStep) -> bool:
    """Return True if two steps touch the same local bytes in different ways, one of them to write,
    and no packets keep them in order: packets of the first for which the second waits, or for which
    a step between them waits, after which the same threads go on with the same bytes.
    """
    if _follows(before, after):
        return False
    handed = [step for step in between if _follows(before, step)]
    for one, first in _touched(before):
        for other, second in _touched(after):
            if one.rank != rank or not (first or second) or not one.overlaps(other):
                continue
            in_order = any(
                _alike(step, after, slice_, other)
                for step in handed
                for slice_, _ in _touched(step)
            )
            if not (in_order or _alike(before, after, one, other)):
                return True
    return False


def _follows(before: PlanStep, after: PlanStep) -> bool:
    """Return True if a step waits for packets of another one."""
    return any(read.overlaps(written) for read in after.reads for written in before.packets)


def _alike(before: PlanStep, after: PlanStep, one: PlanSlice, other: PlanSlice) -> bool:
    """Return True if each byte is moved by the same thread in both steps."""
    by_all = _is_by_all(before) and _is_by_all(after)
    packets = FORMS[before.op.name].has_packets, FORMS[after.op.name].has_packets
    return by_all and one == other and packets[0] == packets[1]

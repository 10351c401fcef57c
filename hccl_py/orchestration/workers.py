"""Waking sub streams and waiting for them, with the notifies for both.

Sub stream k is woken by a notify of its own and reports with notify k of main, so any two of them
may be awake at the same time, woken by one fork or by several.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from hccl_py.lines import Line, author_line, format_line
from hccl_py.orchestration.recorder import orchestration_error
from hccl_py.orchestration.stream import Notify, Stream


class Workers:
    """The sub streams of one recording: `subs`, and `notifies` as `Rank` has them."""

    def __init__(self, main: Stream, subs: Sequence[Stream], notifies: Sequence[Notify]) -> None:
        self._main, self._subs, self._notifies = main, subs, notifies
        self._awake: dict[int, Line] = {}  # the streams that are awake, with what woke them

    @contextmanager
    def fork(
        self,
        count: int | None,
        subs: Iterable[int | Stream] | None,
        by: Stream | None,
    ) -> Iterator[tuple[Stream, ...]]:
        """Wake some sub streams, and wait for them when the block ends."""
        numbers = self._chosen(count, subs)
        waker = self._main if by is None else by
        self._wake(numbers, waker)
        yield tuple(self._subs[number] for number in numbers)
        self._join(numbers, waker)

    def wake(self, sub: int | Stream, by: Stream | None) -> Stream:
        """Wake one sub stream."""
        number = self._number(sub)
        self._wake([number], self._main if by is None else by)
        return self._subs[number]

    def join(self, sub: int | Stream, to: Stream | None) -> None:
        """Wait for one sub stream."""
        self._join([self._number(sub)], self._main if to is None else to)

    def _wake(self, numbers: Sequence[int], waker: Stream) -> None:
        self._mark_awake(numbers, waker)
        notifies = [self._notifies[len(self._subs) + number] for number in numbers]
        for notify in notifies:
            waker.post(notify)
        for number, notify in zip(numbers, notifies, strict=True):
            self._subs[number].wait(notify)

    def _join(self, numbers: Sequence[int], waker: Stream) -> None:
        self._mark_asleep(numbers)
        for number in numbers:
            self._subs[number].post(self._notifies[number])
        for number in numbers:
            waker.wait(self._notifies[number])

    def _mark_awake(self, numbers: Sequence[int], waker: Stream) -> None:
        """Keep the line that wakes each sub stream; refuse those that are awake already."""
        self._check_notifies(len(numbers))
        here = author_line()
        for number in numbers:
            if number in self._awake:
                since = format_line(self._awake[number])
                raise orchestration_error(
                    f"Sub stream {number} is awake already, since {since}",
                    "Join it first, or take others: rank.fork(subs=range(4, 8)) is open beside "
                    "rank.fork(subs=range(4)).",
                )
            if self._subs[number].index == waker.index:
                raise orchestration_error(
                    f"Sub stream {number} cannot wake itself", "Wake it from another stream."
                )
            self._awake[number] = here

    def _mark_asleep(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            if number not in self._awake:
                raise orchestration_error(
                    f"Sub stream {number} is not awake, so nothing can wait for its end",
                    "Wake it with rank.wake() or rank.fork(), and join it once.",
                )
            del self._awake[number]

    def _chosen(self, count: int | None, subs: Iterable[int | Stream] | None) -> list[int]:
        """Return the numbers of the sub streams that a fork names."""
        if subs is None:
            needed = len(self._subs) if count is None else operator.index(count)
            self._check_count(needed)
            return list(range(needed))
        if count is not None:
            raise orchestration_error(
                "fork() takes how many sub streams, or which ones, not both",
                "Write rank.fork(4) for the first four, or rank.fork(subs=range(4, 8)).",
            )
        numbers = [self._number(sub) for sub in subs]
        for place, number in enumerate(numbers):
            if number in numbers[:place]:
                raise orchestration_error(
                    f"Sub stream {number} is named twice", "Name each of them once."
                )
        return numbers

    def _number(self, sub: int | Stream) -> int:
        """Return a sub stream's number; refuse main and streams that were not requested."""
        if not isinstance(sub, Stream):
            return self._subs[operator.index(sub)].index - 1
        sub.check_recorder(self._main.recorder)
        if sub.index == 0:
            raise orchestration_error(
                "The main stream is always awake", "Wake and join rank.subs, by number or as such."
            )
        return sub.index - 1

    def _check_count(self, needed: int) -> None:
        if needed < 0:
            raise orchestration_error(
                f"{needed} sub streams cannot be woken", "Give 0 or more, or nothing for all."
            )
        declared = len(self._subs)
        if needed > declared:
            raise orchestration_error(
                f"{needed} sub streams are needed, {declared} were requested",
                "Ask for them with ResourceRequest(sub_streams=...).",
                finding="UNDECLARED_STREAM",
            )

    def _check_notifies(self, needed: int) -> None:
        declared = len(self._subs)
        if needed and len(self._notifies) < 2 * declared:
            raise orchestration_error(
                f"{declared} sub streams need {2 * declared} notifies, "
                f"{len(self._notifies)} were requested",
                "Leave ResourceRequest.notifies out: the default is two per sub stream.",
                finding="NOTIFY_INDEX_OUT_OF_RANGE",
            )

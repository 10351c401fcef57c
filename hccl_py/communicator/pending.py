"""Results of calls, and calls that run while their caller goes on.

    caller: all_reduce ─► planned ─┐ async_op                      wait ─► Result
    worker:                        └─► its turn ─► runs ─► Pending ──┘

The calls of a communicator run one at a time, in the order in which they were made: a call that its
caller waits for in the caller's thread, the others in one worker.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from hccl_py.communicator.arrays import Output
from hccl_py.errors import ExecTimeoutError, ParameterError
from hccl_py.program.program import Program

if TYPE_CHECKING:
    from concurrent.futures import Future

    from hccl_py.selection import Selection

T = TypeVar("T")

LAST_CALLBACKS_S = 1.0
"""How long closing waits for the worker to end, which may have a callback to finish."""

LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class Result:
    """The result of a call; `outputs` has one array per local rank, None where a rank has none.
    They are tensors where the inputs were.

    Where a count of 0 left nothing to do, the selection names no executor and the program has no
    task.
    """

    outputs: list[Output]
    selection: Selection
    program: Program


class QueuedCall(Protocol):
    """A call that waits in a queue for its turn."""

    def run(self) -> Callable[[], None]:
        """Make the call; return a function that wakes the threads that wait for it."""

    def fail(self, error: BaseException) -> None:
        """End a call that was never made."""


class _CallersTurn:
    """The place in a queue of a thread that waits to make its call itself."""


class Pending:
    """A call with `async_op=True`: it runs when those before it have run.

    Until it has ended, its inputs may not be changed and its outputs hold anything.
    """

    def __init__(self, name: str, queue: CallQueue, call: Callable[[], Result]) -> None:
        from concurrent.futures import Future  # only programs with such calls pay for it

        self._name, self._queue = name, queue
        self._call: Callable[[], Result] | None = call
        self._future: Future[Result] = Future()

    def wait(self, timeout_s: float | None = None) -> Result:
        """Return the result, or raise what the call raised; ExecTimeoutError after `timeout_s`
        seconds, while the call goes on.
        """
        from concurrent.futures import TimeoutError as FutureTimeoutError

        self._queue.help(self._future.done)
        try:
            return self._future.result(timeout_s)
        except FutureTimeoutError:
            if self._future.done():  # the call's own
                raise
        raise ExecTimeoutError(
            f"{self._name} has not ended after {timeout_s} s.",
            "It goes on: wait longer, or see whether all ranks have made this call.",
        )

    def is_completed(self) -> bool:
        """Return True if the call has ended, with a result or an error."""
        return self._future.done()

    @property
    def result(self) -> Result:
        """The result of a call that has ended, or what it raised."""
        if not self._future.done():
            raise ParameterError(f"{self._name} has not ended.", "Call wait() first.")
        return self._future.result()

    def add_done_callback(self, function: Callable[[Pending], object]) -> None:
        """Call a function when the call has ended, at once where it has: in the worker's thread,
        which may make further calls and wait for them. What it raises is logged.
        """

        def call(_: Future[Result]) -> None:
            try:
                function(self)
            except (Exception, SystemExit):
                LOGGER.exception("a callback of %s ended with an error", self._name)

        self._future.add_done_callback(call)

    def run(self) -> Callable[[], None]:
        """Make the call; return a function that wakes the threads that wait for it."""
        call, self._call = self._call, None
        assert call is not None
        try:
            result = call()
        except BaseException as error:
            raised = error
            return lambda: self._future.set_exception(raised)
        return lambda: self._future.set_result(result)

    def fail(self, error: BaseException) -> None:
        """End a call that was never made."""
        self._call = None
        self._future.set_exception(error)


class CallQueue:
    """Lets one call run at a time, first come, first served.

    No lock is held while a call runs. A call in a call runs at once.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._waiting: deque[QueuedCall | _CallersTurn] = deque()
        self._runs = 0  # the thread whose call runs, 0 where none does
        self._worker: threading.Thread | None = None
        self._ends = False

    @property
    def is_running(self) -> bool:
        """True while a call runs."""
        return bool(self._runs)

    def run(self, call: Callable[[], T]) -> T:
        """Make a call in this thread when its turn has come."""
        me = threading.get_ident()
        if self._runs == me:
            return call()
        with self._lock:
            is_free = not self._runs and not self._waiting
            if is_free:
                self._runs = me
        if not is_free:
            self._wait_for_turn(me)
        try:
            return call()
        finally:
            self._pass_on()

    def start(self, name: str, call: Callable[[], Result]) -> Pending:
        """Make a call in the worker when its turn has come."""
        pending = Pending(name, self, call)
        self.add(pending)
        return pending

    def add(self, call: QueuedCall) -> None:
        """Have the worker make a call when its turn has come."""
        with self._lock:
            if self._ends:
                raise ParameterError("The communicator is closed.", "Make a new one.")
            self._waiting.append(call)
            if self._worker is None:
                self._worker = threading.Thread(
                    target=self._work, args=(lambda: False,), name="hccl-py calls", daemon=True
                )
                self._worker.start()
            self._changed.notify_all()

    def help(self, is_over: Callable[[], bool]) -> None:
        """Make pending calls until `is_over`, where this thread is the worker: no other thread
        makes them.
        """
        if threading.current_thread() is self._worker:
            self._work(is_over)

    def fail_pending(self) -> None:
        """End the calls whose turn has not come with an error."""
        with self._lock:
            dropped = [call for call in self._waiting if not isinstance(call, _CallersTurn)]
            self._waiting = deque(call for call in self._waiting if isinstance(call, _CallersTurn))
        for pending in dropped:
            pending.fail(ParameterError("The communicator was closed.", "Wait for its calls."))
        with self._lock:
            self._changed.notify_all()  # the worker may wait for one of them

    def end(self) -> None:
        """Let the worker end after the last call."""
        with self._lock:
            self._ends = True
            self._changed.notify_all()

    def join(self) -> None:
        """Wait for the worker's end."""
        if self._worker is not None and self._worker is not threading.current_thread():
            self._worker.join(LAST_CALLBACKS_S)

    def _wait_for_turn(self, me: int) -> None:
        turn = _CallersTurn()

        def has_come() -> bool:
            return not self._runs and self._waiting[0] is turn

        with self._lock:
            self._waiting.append(turn)
        try:
            self.help(has_come)
            with self._lock:
                self._changed.wait_for(has_come)
                self._waiting.popleft()
                self._runs = me
        except BaseException:
            with self._lock:
                if turn in self._waiting:
                    self._waiting.remove(turn)
                if self._runs == me:
                    self._runs = 0
                self._changed.notify_all()
            raise

    def _work(self, is_over: Callable[[], bool]) -> None:
        """Make pending calls until something is over, or no more will come."""
        while (pending := self._next(is_over)) is not None:
            try:
                settle = pending.run()
            finally:
                self._pass_on()
            settle()
            del pending, settle

    def _next(self, is_over: Callable[[], bool]) -> QueuedCall | None:
        """Take the next call, once it is its turn; None where it is over."""

        def is_ready() -> bool:
            waiting = self._waiting
            return not self._runs and bool(waiting) and not isinstance(waiting[0], _CallersTurn)

        with self._lock:
            self._changed.wait_for(
                lambda: is_over() or is_ready() or (self._ends and not self._waiting)
            )
            if is_over() or not is_ready():
                return None
            self._runs = threading.get_ident()
            pending = self._waiting.popleft()
            assert not isinstance(pending, _CallersTurn)
            return pending

    def _pass_on(self) -> None:
        with self._lock:
            self._runs = 0
            if self._waiting or self._ends:
                self._changed.notify_all()


class BoundCall:
    """A planned call on arrays that stay where they are, to be made any number of times."""

    def __init__(self, queue: CallQueue, result: Result, call: Callable[[], None]) -> None:
        self.result = result
        """The result after every call: the same arrays."""
        self._queue, self._call = queue, call

    def run(self) -> None:
        """Make the call when its turn has come."""
        self._queue.run(self._call)

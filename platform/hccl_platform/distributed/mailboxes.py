"""Messages between two ranks of one host, apart from the calls of all.

    sender      heading, data ─► ring in the receiver's file ─► the receive that waits for its tag,
                                                               or memory until such a receive comes

Every rank has a ring for each other one in its file. A message is sent once its last byte is in
the ring, so one that fits waits for no receive. A receive takes the first message of its source and
tag; messages before it are kept in memory.

Bytes move in the threads that send, receive and wait. One thread at a time *leads*: it moves the
bytes of all messages, and sleeps until a peer wakes it. A helper leads where messages have not
ended and no thread waits.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache

import numpy as np

from hccl_platform.distributed.fences import fence
from hccl_platform.distributed.header import CLOSED, MAIL_ASLEEP, Header
from hccl_platform.distributed.late_ranks import stopped_ranks
from hccl_platform.distributed.pauses import Pauses
from hccl_platform.distributed.rendezvous import Descriptors
from hccl_platform.distributed.rings import ByteRing, Heading
from hccl_platform.lowering.moves import Bytes
from hccl_py.enums import DataType
from hccl_py.errors import ExecTimeoutError, HcclError, MismatchError, ParameterError, PeerLostError

YIELDS = 3
"""Yields of a thread that waits for a message before it sleeps."""

HELP_S = 2e-3
"""Seconds between looks of the helper whether a thread leads, while messages have not ended."""

_IDLE = 8
"""Looks without such a message after which the helper sleeps until one comes."""

_FOR_DATA, _FOR_ROOM = 1, 2
"""What a sleeping thread waits for."""

_ITS_OUTPUT = "Its own output says why. Start the job anew."

AtEnd = Callable[["RingMessage"], object]


class RingMessage:
    """A send of `rank` to a `peer`, or its receive from one, with None from any rank.

    It ends once: then `peer` is the rank at the other end, `error` None or the reason why it has
    failed, and `at_end` has been called.
    """

    def __init__(
        self, rank: int, peer: int | None, heading: Heading, data: Bytes, at_end: AtEnd
    ) -> None:
        self.rank, self.peer, self.heading, self.data = rank, peer, heading, data
        self.error: BaseException | None = None
        self.is_over, self.is_send, self.has_begun = False, False, False
        self.since = time.monotonic()
        self.ended = threading.Lock()  # held until the message has ended: the cheapest event
        self.ended.acquire()
        self._at_end = at_end

    def end(self) -> None:
        """Let all threads know that the message has ended."""
        self._at_end(self)
        self.is_over = True
        self.ended.release()

    def takes(self, source: int, heading: Heading) -> bool:
        """Return True if this receive takes a message; MismatchError if it has room for another."""
        if self.heading.tag != heading.tag or self.peer not in (None, source):
            return False
        if self.heading != heading:
            raise MismatchError(
                f"Ranks differ in a message with tag {heading.tag}: rank {source} sends "
                f"{heading.words}; rank {self.rank} receives {self.heading.words}.",
                "Give the receive as many elements of the same type as are sent.",
            )
        return True

    @property
    def waits(self) -> str:
        """The wait of this message's rank, in words."""
        rank, peer, tag = self.rank, self.peer, self.heading.tag
        if self.is_send:
            return f"Rank {rank} has waited for rank {peer} to take a message with tag {tag}"
        if peer is None:
            return f"Rank {rank} has waited for a message of any rank with tag {tag}"
        return f"Rank {rank} has waited for a message of rank {peer} with tag {tag}"


class _Arrival:
    """A message that comes out of a ring, into a receive, or into memory of its own until a receive
    takes it; `left` is the part of the memory that waits for bytes.
    """

    def __init__(self, source: int, heading: Heading, receive: RingMessage | None) -> None:
        self.source, self.heading, self.receive = source, heading, receive
        self.into = receive.data if receive else np.empty(heading.size, np.uint8)
        self.left = self.into


class RingMailboxes(Pauses):
    """The messages of one rank. An error of one ends the session of all ranks.

    `ring` gives the ring in a rank's file for the messages of another; `publish` tells all ranks an
    error.
    """

    def __init__(
        self,
        rank: int,
        headers: Sequence[Header],
        descriptors: Sequence[Descriptors],
        limit_s: float | None,
        ring: Callable[[int, int], ByteRing],
        publish: Callable[[BaseException], object],
    ) -> None:
        events = [d.mail for d in descriptors]
        super().__init__(rank, headers, descriptors, events, MAIL_ASLEEP, YIELDS)
        self._limit_s, self._publish = limit_s, publish
        self._to = cache(lambda peer: ring(peer, rank))
        self._from = cache(lambda peer: ring(rank, peer))
        self._others = [peer for peer in range(len(events)) if peer != rank]
        self._sends: dict[int, deque[RingMessage]] = {peer: deque() for peer in self._others}
        self._receives: list[RingMessage] = []
        self._arriving: dict[int, _Arrival] = {}
        self._untaken: list[_Arrival] = []
        self._over: deque[RingMessage] = deque()
        self.error: BaseException | None = None
        """The error that has ended all messages."""
        self._state, self._leads = threading.RLock(), threading.Lock()
        self._leader = 0
        self._needed = threading.Event()
        self._helper: threading.Thread | None = None
        self._is_closed = False

    def send(self, peer: int, tag: int, dtype: DataType, data: Bytes, at_end: AtEnd) -> RingMessage:
        """Begin to send data, which stays as it is until the message has ended."""
        message = RingMessage(self.rank, peer, Heading(tag, len(data), dtype.number), data, at_end)
        message.is_send = True
        return self._post(message, self._sends[peer].append)

    def receive(
        self, peer: int | None, tag: int, dtype: DataType, into: Bytes, at_end: AtEnd
    ) -> RingMessage:
        """Begin to receive the next message with a tag from a rank, with None from any."""
        message = RingMessage(self.rank, peer, Heading(tag, len(into), dtype.number), into, at_end)
        return self._post(message, self._take)

    def wait(self, message: RingMessage, timeout_s: float | None = None) -> bool:
        """Wait until a message has ended, at most for so long; return whether it has."""
        end = None if timeout_s is None else time.monotonic() + timeout_s
        while not message.is_over:
            left_s = HELP_S if end is None else min(HELP_S, end - time.monotonic())
            if left_s < 0:
                return False
            if not self._lead(lambda: message.is_over, end) and message.ended.acquire(
                timeout=left_s
            ):
                message.ended.release()
        return True

    def finish(self) -> None:
        """Wait until all messages have ended."""
        while pending := self._pending():
            self.wait(pending[0])

    def fail(self, error: BaseException) -> None:
        """End all messages with an error, which all ranks are told."""
        self._publish(error)
        with self._state:
            self.error = self.error or error
            pending = self._pending()
            self._arriving.clear()
            self._receives.clear()
            for queue in self._sends.values():
                queue.clear()
            for message in pending:
                message.error = error
            self._over += pending
        self._settle()

    def close(self) -> None:
        """End the helper, and let go of all memory; messages that have not ended fail."""
        closed = ParameterError("The communicator is closed.", "Wait for its messages before.")
        if self._pending():
            self.fail(closed)
        self.error = self.error or closed
        self._is_closed = True
        self._needed.set()
        if self._helper is not None and self._helper is not threading.current_thread():
            self.wake(self.rank)
            self._helper.join()
        self.headers.clear()
        self._to.cache_clear()
        self._from.cache_clear()

    # ---- messages that have not ended ----

    def _post(self, message: RingMessage, add: Callable[[RingMessage], object]) -> RingMessage:
        """Add a message, and move what can be moved at once."""
        if self.error is not None:
            raise self.error

        def post() -> bool:
            with self._state:
                add(message)
                return self._advance()

        self._guarded(post)
        if not message.is_over:
            self._wake_leader()  # which may wait for something else
            self._ask_for_help()
        return message

    def _take(self, receive: RingMessage) -> None:
        """Give a receive the first message that has come for it, else let it wait."""
        self._receives.append(receive)
        for arrival in self._untaken:
            if receive.takes(arrival.source, arrival.heading):
                self._receives.remove(receive)
                self._untaken.remove(arrival)
                arrival.receive, receive.peer = receive, arrival.source
                if not len(arrival.left):
                    self._arrived(arrival)
                return

    def _pending(self) -> list[RingMessage]:
        """Return the messages that have not ended."""
        with self._state:
            found = [message for queue in self._sends.values() for message in queue]
            found += self._receives
            return found + [a.receive for a in self._arriving.values() if a.receive is not None]

    def _settle(self) -> None:
        """End the messages whose bytes have been moved, or that have failed."""
        while self._over:
            with suppress(IndexError):  # another thread has been faster
                self._over.popleft().end()
                self._wake_leader()  # which may wait for this one

    # ---- bytes ----

    def _advance(self) -> bool:
        """Move all bytes that can be moved; return whether there were any."""
        with self._state:
            moved = [self._push(peer, queue) for peer, queue in self._sends.items() if queue]
            moved += [self._pull(peer) for peer in self._others if self._is_wanted(peer)]
            return any(moved)

    def _push(self, peer: int, queue: deque[RingMessage]) -> bool:
        """Write messages to a ring while there is room."""
        ring, has_moved = self._to(peer), False
        while queue and (queue[0].has_begun or ring.begin(queue[0].heading)):
            message = queue[0]
            message.has_begun = True
            size = ring.write(message.data)
            message.data = message.data[size:]
            if not len(message.data):
                self._over.append(queue.popleft())
            elif not size:
                break
            has_moved = True
            fence()  # the bytes are published before MAIL_ASLEEP is read
            self.wake_if_asleep(peer, _FOR_DATA)
        return has_moved

    def _pull(self, peer: int) -> bool:
        """Read messages from a ring while a receive waits for one."""
        ring, has_moved = self._from(peer), False
        while self._is_wanted(peer):
            arrival = self._arriving.get(peer)
            if arrival is None:
                heading = ring.heading()
                if heading is None:
                    break
                arrival = self._arriving[peer] = self._arrival(peer, heading)
            size = ring.read(arrival.left)
            arrival.left = arrival.left[size:]
            if not len(arrival.left):
                del self._arriving[peer]
                self._arrived(arrival)
            elif not size:
                break
            has_moved = True
            fence()
            self.wake_if_asleep(peer, _FOR_ROOM)
        return has_moved

    def _is_wanted(self, peer: int) -> bool:
        """Return True if a receive waits for bytes of a rank."""
        arrival = self._arriving.get(peer)
        is_taken = arrival is not None and arrival.receive is not None
        return is_taken or any(receive.peer in (None, peer) for receive in self._receives)

    def _arrival(self, source: int, heading: Heading) -> _Arrival:
        """Return the arrival of a message that has begun to come."""
        for receive in self._receives:
            if receive.takes(source, heading):
                self._receives.remove(receive)
                receive.peer = source
                return _Arrival(source, heading, receive)
        arrival = _Arrival(source, heading, None)
        self._untaken.append(arrival)
        return arrival

    def _arrived(self, arrival: _Arrival) -> None:
        receive = arrival.receive
        if receive is not None:
            if arrival.into is not receive.data:
                receive.data[...] = arrival.into
            self._over.append(receive)

    # ---- threads ----

    def _guarded(self, work: Callable[[], bool | None]) -> bool:
        """Do some work; an error, also an interrupt, ends all messages."""
        try:
            return bool(work())
        except HcclError as error:
            self.fail(error)
        except BaseException as error:
            self.fail(error)
            raise
        finally:
            self._settle()
        return True

    def _lead(self, is_over: Callable[[], bool], end: float | None = None) -> bool:
        """Move bytes until something is over, or until an end; False if another thread does."""
        if not self._leads.acquire(blocking=False):
            return False
        self._leader = threading.get_ident()
        try:
            while not is_over() and (end is None or time.monotonic() < end):
                if self._guarded(self._advance):
                    self.resume()
                elif not is_over():
                    self._guarded(self._pause)
        finally:
            self.resume()
            self._leader = 0
            self._leads.release()
        return True

    def _pause(self) -> None:
        sends = any(self._sends.values())
        self.pause(lambda: "", wants=_FOR_DATA | _FOR_ROOM * sends)

    def _wake_leader(self) -> None:
        if self._leader not in (0, threading.get_ident()):
            self.wake(self.rank)

    def _ask_for_help(self) -> None:
        if self._needed.is_set():
            return
        self._needed.set()
        if self._helper is None:
            self._helper = threading.Thread(target=self._help, name="hccl-py mail", daemon=True)
            self._helper.start()

    def _help(self) -> None:
        """Lead wherever messages have not ended and no other thread does."""
        idle = 0
        while not self._is_closed:
            time.sleep(HELP_S)
            idle = 0 if self._pending() else idle + 1
            if not idle:
                self._lead(lambda: self._is_closed or not self._pending())
            elif idle > _IDLE:
                self._needed.clear()
                if not self._pending() and not self._is_closed:
                    self._needed.wait()

    # ---- faults ----

    def _look(self, explain: Callable[[], str]) -> None:
        """Raise the error of a message that no rank can end, or that takes too long."""
        gone = [peer for peer in self._others if self._why_gone(peer)]
        if self._advance():  # what a rank has sent before it went
            return
        now = time.monotonic()
        for message in self._pending():
            peers = self._others if message.peer is None else [message.peer]
            if peers and set(peers) <= set(gone):
                why = "; ".join(self._why_gone(peer) for peer in peers)
                raise PeerLostError(f"{why}. {message.waits}.", _ITS_OUTPUT)
            if self._limit_s is not None and now - message.since > self._limit_s:
                raise self._late(message)

    def _why_gone(self, peer: int) -> str:
        if self.headers[peer].words[CLOSED]:
            return f"Rank {peer} has closed its communicator"
        return f"Rank {peer}'s process has ended" if peer in self._ended else ""

    def _late(self, message: RingMessage) -> ExecTimeoutError:
        waits = f"{message.waits} for {self._limit_s:g} s, longer than HCCL_EXEC_TIMEOUT allows."
        found = stopped_ranks(self._processes)
        if found is not None:
            return ExecTimeoutError(f"{found.cause} {waits}", found.hint)
        return ExecTimeoutError(waits, "The other rank has made no call for it, with the same tag.")

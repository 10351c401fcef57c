"""A rank's header: its state in shared memory, for ranks that wait for it.

    word 0      is asleep: a rank that posts what this one misses wakes it (word 64)
    word 8      the number of the call begun last; calls count from 1
    word 16     the number of the call done last
    word 24     is closed
    word 32     1 + the rank that made this one fail
    word 40     the number of the last gather for which its value is written
    word 48     is asleep until a message comes, or room for one (mailboxes.py)
    word 64     how many words of the rank must grow before it is woken, then their numbers, each
                with the least value that it needs
    a record of each of the last calls: number, digest, length of the text, text
    the text of an error: the reason why this rank has failed

Words that different ranks write, or wait for, are 64 bytes apart.
"""

from __future__ import annotations

from hccl_platform.distributed.failures import as_text, from_text
from hccl_platform.distributed.fences import order_accesses
from hccl_platform.distributed.shared_memory import HEADER_BYTES
from hccl_platform.lowering.call import CallIdentity
from hccl_py.errors import HcclError

ASLEEP, CALL, DONE, CLOSED, FAILED_BY, GATHERED, MAIL_ASLEEP, MISSING = 0, 8, 16, 24, 32, 40, 48, 64
MOST_MISSING = 128
"""Words that the list of missing ones has room for."""

_RECORDS, _RECORD_BYTES, _RECORDS_AT = 16, 1024, 8192
_REASON_AT = 4096


class Header:
    """A rank's header, its own or a peer's."""

    def __init__(self, words: memoryview[int]) -> None:
        self.words = words
        self._bytes = words.cast("B")

    def begin(self, number: int, call: CallIdentity) -> None:
        """Publish that this rank begins a call; the number is written last."""
        at = _RECORDS_AT + number % _RECORDS * _RECORD_BYTES
        word, size = at // 8, len(call.text)
        self.words[word + 1], self.words[word + 2] = call.digest, size
        self._bytes[at + 24 : at + 24 + size] = call.text
        order_accesses()
        self.words[word] = number
        self.words[CALL] = number

    def digest_of(self, number: int) -> int | None:
        """Return the digest of a call; None if it has not begun or is long past."""
        word = (_RECORDS_AT + number % _RECORDS * _RECORD_BYTES) // 8
        if self.words[word] != number:
            return None
        order_accesses()
        digest = self.words[word + 1]
        order_accesses()
        return digest if self.words[word] == number else None

    def text_of(self, number: int) -> str:
        """Return the text of a call that has begun."""
        at = _RECORDS_AT + number % _RECORDS * _RECORD_BYTES
        size = self.words[at // 8 + 2]
        return bytes(self._bytes[at + 24 : at + 24 + size]).decode(errors="replace")

    def publish(self, error: BaseException, rank: int) -> None:
        """Write the error that made this rank fail, for the others to raise."""
        text = as_text(error, rank)
        self._bytes[_REASON_AT + 8 : _REASON_AT + 8 + len(text)] = text
        self.words[_REASON_AT // 8] = len(text)

    def reason(self) -> HcclError:
        """Return the error that made this rank fail, of the same class."""
        size = self.words[_REASON_AT // 8]
        return from_text(bytes(self._bytes[_REASON_AT + 8 : _REASON_AT + 8 + size]))


FIRST_NOTIFY = HEADER_BYTES // 8
"""The word behind the header, where notifies begin."""

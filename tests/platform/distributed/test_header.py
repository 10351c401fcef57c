"""Words of a rank's header: records of calls, the reason of a failure, and room for all of them."""

from itertools import pairwise

import pytest

from hccl_platform.distributed import header
from hccl_platform.distributed.failures import MOST_BYTES, as_text, from_text
from hccl_platform.distributed.header import FIRST_NOTIFY, Header
from hccl_platform.distributed.shared_memory import HEADER_BYTES
from hccl_platform.lowering.call import TEXT_BYTES, CallIdentity
from hccl_py.errors import ParameterError, PeerLostError

WORDS = [
    getattr(header, name) for name in ("ASLEEP", "CALL", "DONE", "CLOSED", "FAILED_BY", "GATHERED")
]


@pytest.fixture
def own() -> Header:
    return Header(memoryview(bytearray(HEADER_BYTES)).cast("q"))


def call(number: int) -> CallIdentity:
    """Return a call with a text as long as texts are."""
    return CallIdentity(f"{number:>{TEXT_BYTES}}".encode(), 1000 + number)


def test_the_last_16_calls_are_kept(own: Header) -> None:
    for number in range(1, 41):
        own.begin(number, call(number))
        assert own.words[header.CALL] == number
    for number in range(25, 41):
        assert own.digest_of(number) == 1000 + number
        assert own.text_of(number) == call(number).text.decode()
    for number in (0, 24, 41, 56):
        assert own.digest_of(number) is None


def test_a_shorter_text_replaces_a_longer_one(own: Header) -> None:
    own.begin(1, call(1))
    own.begin(17, CallIdentity(b"short", 5))
    assert (own.text_of(17), own.digest_of(17), own.digest_of(1)) == ("short", 5, None)


def test_nothing_in_a_header_lies_over_anything_else(own: Header) -> None:
    for k, word in enumerate(WORDS):
        own.words[word] = k + 1
    error = ParameterError("m" * MOST_BYTES, "h" * MOST_BYTES)
    own.publish(error, 3)
    for number in range(1, 17):
        own.begin(number, call(number))
    reason = own.reason()
    assert (type(reason), reason.message) == (ParameterError, "m" * (MOST_BYTES // 4))
    assert all(own.text_of(n) == call(n).text.decode() for n in range(1, 17))
    kept = [own.words[word] for word in WORDS]
    assert kept == [1, 16, 3, 4, 5, 6]  # the second is the number of the call begun last


def test_words_of_different_ranks_are_64_bytes_apart() -> None:
    assert all(later - earlier >= 64 // 8 for earlier, later in pairwise(WORDS))
    assert FIRST_NOTIFY * 8 == HEADER_BYTES


def test_errors_of_our_own_stay_what_they_are() -> None:
    text = as_text(ParameterError("Wrong count.", "Take another one."), 2)
    error = from_text(text)
    assert (type(error), error.message) == (ParameterError, "Wrong count.")
    assert error.hint == "Take another one."


def test_other_errors_name_the_rank() -> None:
    error = from_text(as_text(ValueError("no such thing"), 2))
    assert isinstance(error, PeerLostError)
    assert error.message == "Rank 2 has failed: ValueError: no such thing"
    assert from_text(as_text(KeyboardInterrupt(), 5)).message == (
        "Rank 5 has failed: KeyboardInterrupt"
    )


def test_long_errors_are_cut_within_characters() -> None:
    text = as_text(ParameterError("\N{SNOWMAN}" * MOST_BYTES, "x" * MOST_BYTES), 2)
    assert len(text) <= MOST_BYTES
    error = from_text(text)
    assert set(error.message) == {"\N{SNOWMAN}"}
    assert len(error.message) == MOST_BYTES // 4 // 3
    assert error.hint == "x" * (MOST_BYTES // 4)

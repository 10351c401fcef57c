"""Failures that ranks of one host publish to each other."""

import os
from collections.abc import Iterator

import pytest

from hccl_platform.distributed.header import FAILED_BY, Header
from hccl_platform.distributed.rendezvous import Descriptors
from hccl_platform.distributed.shared_memory import HEADER_BYTES
from hccl_platform.distributed.wakeups import Wakeups
from hccl_platform.lowering.call import CallIdentity
from hccl_py.errors import ParameterError

RANKS = 3


@pytest.fixture
def ranks() -> Iterator[list[Wakeups]]:
    """All ranks in this process, which share their headers."""
    headers = [Header(memoryview(bytearray(HEADER_BYTES)).cast("q")) for _ in range(RANKS)]
    files = [os.eventfd(0, os.EFD_NONBLOCK) for _ in range(2 * RANKS)]
    made = [Descriptors(-1, files[2 * rank], files[2 * rank + 1]) for rank in range(RANKS)]
    yield [Wakeups(rank, headers, made, None) for rank in range(RANKS)]
    for file in files:
        os.close(file)


def test_a_rank_keeps_the_first_failure_that_reaches_it(ranks: list[Wakeups]) -> None:
    """Rank 1 has failed and has reached rank 2 only when rank 0 fails, too."""
    first, second = ParameterError("the first"), ParameterError("the second")
    ranks[1].headers[1].publish(first, 1)
    ranks[1].headers[2].words[FAILED_BY] = 1 + 1
    ranks[0].publish(second)
    for rank, words in enumerate(("the second", "the second", "the first")):
        with pytest.raises(ParameterError, match=words):
            ranks[rank].begin(CallIdentity(b"", 0))

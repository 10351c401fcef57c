"""One ring, whose two sides are in this process."""

from random import Random

import numpy as np
import pytest

from hccl_platform.distributed.rings import RING_BYTES, ByteRing, Heading
from hccl_py.enums import DataType

ROOM = RING_BYTES - 4096
BYTE = DataType.UINT8.number


@pytest.fixture
def sides() -> tuple[ByteRing, ByteRing]:
    """The sender's side and the receiver's."""
    memory = np.zeros(RING_BYTES, np.uint8)
    return ByteRing(memory), ByteRing(memory)


def test_messages_of_all_sizes_come_out_as_they_went_in(sides: tuple[ByteRing, ByteRing]) -> None:
    """Three times around the ring, in the pieces in which there is room."""
    sender, receiver = sides
    random, moved = Random(3), 0
    while moved < 3 * ROOM:
        size = random.choice([0, 1, 63, 64, 65, 4096, 700_001, 2 * ROOM + 7])
        data = np.frombuffer(random.randbytes(size), np.uint8)
        heading, got = Heading(random.randrange(9), size, BYTE), np.zeros(size, np.uint8)
        assert sender.begin(heading)
        written = sender.write(data)
        assert receiver.heading() == heading
        read = receiver.read(got)
        while read < size:
            written += sender.write(data[written:])
            read += receiver.read(got[read:])
        assert got.tobytes() == data.tobytes()
        moved += 64 + size
    assert receiver.heading() is None
    assert sender.at == receiver.at


def test_a_full_ring_takes_nothing_until_its_receiver_has_read(
    sides: tuple[ByteRing, ByteRing],
) -> None:
    sender, receiver = sides
    count = ROOM // 128  # of headings and 64 bytes
    for number in range(count):
        assert sender.begin(Heading(number, 64, BYTE))
        assert sender.write(np.full(64, number % 251, np.uint8)) == 64
    assert not sender.begin(Heading(count, 1, BYTE))
    assert sender.write(np.zeros(1, np.uint8)) == 0
    got = np.zeros(64, np.uint8)
    assert receiver.heading() == Heading(0, 64, BYTE)
    assert receiver.read(got) == 64
    assert sender.begin(Heading(count, 1, BYTE))
    for number in range(1, count):
        assert receiver.heading() == Heading(number, 64, BYTE)
        receiver.read(got)
        assert got.tolist() == [number % 251] * 64


def test_words_of_a_heading() -> None:
    assert Heading(3, 12, DataType.BF16.number).words == "6 bf16"

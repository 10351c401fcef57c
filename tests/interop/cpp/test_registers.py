"""Values that peers write: certain where waits order them, refused where timing decides."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_interop.cpp.ccu.loops import LoopRun, LoopShift, runs_of
from hccl_interop.cpp.ccu.registers import Slot, ThreadOrder, Undefined, computed, holds

WORD = st.integers(0, 2**64 - 1)


def pair() -> tuple[ThreadOrder, ThreadOrder, Slot]:
    return ThreadOrder(0, np.zeros(2, np.int64)), ThreadOrder(1, np.zeros(2, np.int64)), Slot()


def test_a_value_is_certain_after_a_wait() -> None:
    peer, own, slot = pair()
    slot.write(7, peer)
    own.join(peer.step())
    assert slot.read(own) == 7


def test_a_value_before_the_wait_is_refused() -> None:
    peer, own, slot = pair()
    slot.write(7, peer)
    with pytest.raises(Undefined, match="before a wait"):
        slot.read(own)


@given(WORD, WORD)
def test_a_second_write_that_nothing_orders(first: int, second: int) -> None:
    peer, own, slot = pair()
    slot.write(first, peer)
    own.join(peer.step())
    slot.write(second, peer)
    if first == second:
        assert slot.read(own) == first
    else:
        with pytest.raises(Undefined, match="may write another value"):
            slot.read(own)


def test_a_write_before_the_reader_is_known_to_have_read() -> None:
    peer, own, slot = pair()
    slot.write(7, peer)
    own.join(peer.step())
    slot.read(own)
    with pytest.raises(Undefined, match="may be overwritten"):
        slot.write(8, peer)
    peer.join(own.step())
    slot.write(8, peer)
    own.join(peer.step())
    assert slot.read(own) == 8


@given(st.sampled_from("+-*&|^<>"), WORD, WORD)
def test_registers_hold_64_bits(sign: str, left: int, right: int) -> None:
    with np.errstate(over="ignore"):
        one, other = np.uint64(left), np.uint64(right)
        expected = {
            "+": one + other,
            "-": one - other,
            "*": one * other,
            "&": one & other,
            "|": one | other,
            "^": one ^ other,
            "<": one << other if right < 64 else np.uint64(0),
            ">": one >> other if right < 64 else np.uint64(0),
        }
    assert computed(sign, left, right) == int(expected[sign])


def test_conditions() -> None:
    pairs = ((1, 1), (1, 2), (2, 1))
    assert [[holds(how, *both) for both in pairs] for how in range(6)] == [
        [True, False, False],
        [False, True, True],
        [False, True, False],
        [True, True, False],
        [False, False, True],
        [True, False, True],
    ]


def test_packed_loops_with_copies() -> None:
    registers = {
        1: 3 << 55 | 1 << 48 | 2 << 41,  # three more copies from the second loop on, two loops
        2: 4096 << 21 | 8 << 10 | 1,
        3: 16384 << 13 | 5,
    }
    operands = (0, 1, 2, 0, 0, 0, 8, 0, 0, 3, 0, 1, 1, 2, 64, 9, 0, 3, 0, 0)
    found = runs_of(operands, registers.__getitem__)
    assert found == [
        LoopRun(0, 5, 16384, LoopShift()),
        *(LoopRun(1, 2, 64, LoopShift(copy * 4096, copy * 8, copy)) for copy in range(4)),
    ]
    assert found[-1].shift(1) == LoopShift(3 * 4096 + 64, 24, 3)

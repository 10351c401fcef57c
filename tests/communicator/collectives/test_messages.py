"""send_recv and batch_send_recv against what the list says."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hccl_py as hccl
from hccl_py.communicator.arrays import MissingArrayError
from hccl_py.communicator.collectives import Ranks, batch, ring
from hccl_py.errors import HcclError
from hccl_py.topology import topology_of


def some(count: int, seed: int) -> Any:
    return ((np.arange(count) * 5 + seed * 11) % 13).astype(np.int16)


@pytest.mark.parametrize("ranks", [1, 2, 5, 9])
def test_a_ring_unless_pairs_are_given(ranks: int) -> None:
    inputs = [some(6, rank).reshape(2, 3) for rank in range(ranks)]
    with hccl.Communicator(ranks=ranks) as comm:
        outputs = comm.send_recv(inputs).outputs
    assert all(np.array_equal(o, inputs[rank - 1]) for rank, o in enumerate(outputs))


def test_pairs() -> None:
    with hccl.Communicator(ranks=4) as comm:
        inputs = [some(3, 0), None, some(3, 2), None]
        result = comm.send_recv(inputs, [(0, 3), (2, 0)])
        assert [None if o is None else o.tolist() for o in result.outputs] == [
            some(3, 2).tolist(),
            None,
            None,
            some(3, 0).tolist(),
        ]
        out = np.zeros(3, np.int16)
        assert comm.send_recv(inputs, [(0, 3), (2, 1)], out=[None, out, None, out.copy()])
        assert out.tolist() == some(3, 2).tolist()


@given(data=st.data(), ranks=st.integers(1, 5), lists=st.booleans())
def test_any_messages(data: st.DataObject, ranks: int, lists: bool) -> None:
    rank = st.integers(0, ranks - 1)
    messages = data.draw(st.lists(st.tuples(rank, rank, st.integers(0, 4)), min_size=1, max_size=8))
    sent: list[list[Any]] = [[] for _ in range(ranks)]
    received: list[list[Any]] = [[] for _ in range(ranks)]
    for number, (source, to, count) in enumerate(messages):
        sent[source].append(some(count, number))
        received[to].append(some(count, number))
    with hccl.Communicator(ranks=ranks) as comm:
        if lists:
            result = comm.batch_send_recv(sent, [pair[:2] for pair in messages])
        else:
            packed = [np.concatenate(mine) if mine else None for mine in sent]
            result = comm.batch_send_recv(packed, messages)
    for output, parts in zip(result.outputs, received, strict=True):
        if parts:
            assert output.tolist() == np.concatenate(parts).tolist()
        else:
            assert output is None


def test_rows_of_several_elements() -> None:
    with hccl.Communicator(ranks=2) as comm:
        data = some(12, 1).reshape(4, 3)
        outputs = comm.batch_send_recv([data, None], [(0, 1, 3), (0, 1, 1)]).outputs
        assert np.array_equal(outputs[1], data)


def test_receivers_need_not_be_here_with_the_sender() -> None:
    ranks = Ranks(topology_of(2), range(1, 2))
    data = ring([None], ranks, [(0, 1)], [np.zeros((2, 2), np.int8)])
    assert (data.op.count, list(data.shapes)) == (4, [(2, 2)])
    with pytest.raises(MissingArrayError, match="its data type is unknown"):
        batch([None], ranks, [(0, 1)], None)


def test_rows_of_ranks_that_are_elsewhere_are_gathered() -> None:
    asked = []

    def gather(mine: bytes) -> list[bytes]:
        asked.append(json.loads(mine))
        return [b"[[3, 4]]", mine, b"[[]]"]

    ranks = Ranks(topology_of(3), range(1, 2), gather)
    data = batch([[some(2, 0)]], ranks, [(0, 1), (1, 2), (0, 2)], None)
    assert asked == [[[2]]]
    assert data.op.pairs == ((0, 1, 3), (1, 2, 2), (0, 2, 4))
    assert list(data.shapes) == [(3,)]


TWO = np.ones(2, np.float32)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda c: c.send_recv([TWO, TWO], [(0, 2)]), "names rank 2"),
        (lambda c: c.send_recv([TWO, None], [(0, 2)]), "message 0 names rank 2"),
        (lambda c: c.send_recv([TWO, None], [(0, -1)]), "message 0 is"),
        (lambda c: c.send_recv([TWO, None], [(-1, 0)]), r"message 0 is \(-1, 0\)"),
        (lambda c: c.send_recv([TWO, None], [(0, True)]), "pairs is True"),
        (lambda c: c.send_recv([TWO, None], [(0, 1), (0, 0)]), "rank 0 sends more than once"),
        (lambda c: c.send_recv([TWO, TWO], [(0, 1), (1, 1)]), "rank 1 receives more than once"),
        (lambda c: c.send_recv([TWO, None], [(0, 1, 2)]), r"message 0 is \(0, 1, 2\)"),
        (lambda c: c.send_recv([TWO, None], [(0, "a")]), "pairs is 'a'"),
        (lambda c: c.send_recv([TWO, None], 5), "got 5 as pairs"),
        (lambda c: c.send_recv([TWO, None]), "Rank 1 has no input"),
        (lambda c: c.send_recv([TWO, TWO], [(0, 1)]), "Rank 1 sends nothing"),
        (lambda c: c.send_recv([TWO, TWO[:1]]), "same shape"),
        (lambda c: c.send_recv([None, None], [(0, 1)]), "its data type is unknown"),
        (
            lambda c: c.send_recv([TWO, None], [(0, 1)], out=[TWO.copy(), TWO.copy()]),
            "Rank 0 has no output",
        ),
        (lambda c: c.batch_send_recv([[TWO], None], [(0, 1), (0, 1)]), "Rank 0 has 1 arrays"),
        (lambda c: c.batch_send_recv([TWO, None], [(0, 1)]), "Rank 0's input of batch_send_recv"),
        (lambda c: c.batch_send_recv([TWO, None], [(0, 1, 3)]), "has 2 rows, its counts need 3"),
        (lambda c: c.batch_send_recv([TWO, None], [(0, 1, 2), (0, 1)]), "others have not"),
        (lambda c: c.batch_send_recv([TWO, None], [(0, 3, 2)]), "message 0 names rank 3"),
        (lambda c: c.batch_send_recv([TWO, None], [(0,)]), "message 0 is"),
        (
            lambda c: c.batch_send_recv([[np.ones((2, 3))], [np.ones((2, 0))]], [(0, 1), (1, 0)]),
            "Rank 1's input has rows of shape",
        ),
        (
            lambda c: c.batch_send_recv([[TWO, TWO.astype(int)], None], [(0, 1), (0, 1)]),
            "one data type",
        ),
    ],
)
def test_what_is_refused_and_why(call: Any, words: str) -> None:
    with hccl.Communicator(ranks=2) as comm, pytest.raises(HcclError, match=words) as caught:
        call(comm)
    assert caught.value.hint

"""v-ops against numpy: counts from the inputs or given, displacements, what is refused."""

from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hccl_py as hccl
from hccl_py.communicator.collectives import Ranks, blocks, exchange
from hccl_py.errors import HcclError, HcclResult
from hccl_py.topology import topology_of


def rows(count: int, seed: int, tail: Any = ()) -> Any:
    size = count * int(np.prod(tail))
    return ((np.arange(size) * 5 + seed * 11) % 13).reshape(count, *tail).astype(np.int32)


COUNTS = st.lists(st.integers(0, 5), min_size=1, max_size=6)
TAILS = st.sampled_from([(), (3,), (2, 2)])


@given(counts=COUNTS.filter(any), tail=TAILS, given_counts=st.booleans())
def test_all_gather_v(counts: list[int], tail: Any, given_counts: bool) -> None:
    inputs = [rows(count, rank, tail) for rank, count in enumerate(counts)]
    with hccl.Communicator(ranks=len(counts), topology="mesh") as comm:
        result = comm.all_gather_v(inputs, counts if given_counts else None)
    assert all(np.array_equal(o, np.concatenate(inputs)) for o in result.outputs)
    assert result.program.op.counts == tuple(count * int(np.prod(tail)) for count in counts)


@given(counts=COUNTS.filter(any), tail=TAILS)
def test_reduce_scatter_v(counts: list[int], tail: Any) -> None:
    inputs = [rows(sum(counts), rank, tail) for rank in range(len(counts))]
    with hccl.Communicator(ranks=len(counts), topology="mesh") as comm:
        outputs = comm.reduce_scatter_v(inputs, counts, "max").outputs
    parts = np.split(np.max(inputs, axis=0), list(accumulate(counts))[:-1])
    assert all(np.array_equal(*pair) for pair in zip(outputs, parts, strict=True))


@given(data=st.data(), ranks=st.integers(1, 5), tail=TAILS, name=st.sampled_from(["v", "vc"]))
def test_all_to_all_v_and_vc(data: st.DataObject, ranks: int, tail: Any, name: str) -> None:
    row = st.lists(st.integers(0, 3), min_size=ranks, max_size=ranks)
    counts = data.draw(st.lists(row, min_size=ranks, max_size=ranks))
    parts = [[rows(n, 7 * i + j, tail) for j, n in enumerate(row)] for i, row in enumerate(counts)]
    inputs = [np.concatenate(mine) for mine in parts]
    with hccl.Communicator(ranks=ranks, topology="mesh") as comm:
        if name == "vc":
            results = [comm.all_to_all_vc(inputs, counts)]
        else:
            results = [comm.all_to_all_v(inputs, counts), comm.all_to_all_v(parts)]
    for result in results:
        for rank, output in enumerate(result.outputs):
            assert np.array_equal(output, np.concatenate([mine[rank] for mine in parts]))


def test_parts_lie_where_displacements_say() -> None:
    with hccl.Communicator(ranks=3) as comm:
        inputs = [rows(2, 0), rows(0, 1), rows(3, 2)]
        out = [np.full(8, -1, np.int32) for _ in range(3)]
        wanted = [-1, *inputs[2], -1, -1, *inputs[0]]
        comm.all_gather_v(inputs, displs=[6, 0, 1], out=out)
        assert all(o.tolist() == wanted for o in out)
        fresh = comm.all_gather_v(inputs, displs=[6, 0, 1]).outputs[0]
        assert fresh.tolist() == [max(n, 0) for n in wanted]
        wide = np.full((8, 2), -1, np.int32)
        comm.all_gather_v(inputs, displs=[6, 0, 1], out=[wide[:, 0], *out[1:]])
        assert wide[:, 0].tolist() == wanted
        parts = comm.reduce_scatter_v([rows(8, r) for r in range(3)], [2, 0, 3], displs=[6, 0, 1])
        total = sum(rows(8, r) for r in range(3))
        assert [o.tolist() for o in parts.outputs] == [total[6:].tolist(), [], total[1:4].tolist()]


def test_all_to_all_v_with_displacements_on_either_side() -> None:
    counts = [[1, 2], [2, 1]]
    inputs = [rows(4, 0), rows(4, 1)]
    with hccl.Communicator(ranks=2) as comm:
        sent = comm.all_to_all_v(inputs, counts, send_displs=[[3, 0], [2, 1]]).outputs
        packed = [given[:3] for given in inputs]
        taken = comm.all_to_all_v(packed, counts, recv_displs=[[4, 0], [0, 3]]).outputs
    assert sent[0].tolist() == [inputs[0][3], *inputs[1][2:4]]
    assert sent[1].tolist() == [*inputs[0][:2], inputs[1][1]]
    assert taken[0].tolist() == [*inputs[1][:2], 0, 0, inputs[0][0]]
    assert taken[1].tolist() == [*inputs[0][1:3], 0, inputs[1][2]]


def test_ranks_with_nothing_may_have_none() -> None:
    with hccl.Communicator(ranks=3) as comm:
        gathered = comm.all_gather_v([None, rows(2, 1), []]).outputs
        assert all(o.tolist() == rows(2, 1).tolist() for o in gathered)
        lists = [[None, rows(1, 0), []], [[], None, rows(2, 1)], [None, None, None]]
        outputs = comm.all_to_all_v(lists).outputs
        assert [o.tolist() for o in outputs] == [[], rows(1, 0).tolist(), rows(2, 1).tolist()]


def test_all_counts_may_be_0() -> None:
    with hccl.Communicator(ranks=2) as comm:
        result = comm.all_gather_v([np.zeros(0, np.int8)] * 2)
        assert [o.tolist() for o in result.outputs] == [[], []]
        assert result.selection.executor
        typed = comm.all_to_all_v([[None, np.zeros((0, 3), np.int8)], [None, None]]).outputs
        assert [(o.shape, o.dtype) for o in typed] == [((0, 3), np.int8)] * 2


def test_outputs_tell_the_type_where_nobody_has_an_input() -> None:
    with hccl.Communicator(ranks=2) as comm:
        out = [np.zeros((0, 3), np.int16) for _ in range(2)]
        nothing, lists = [[0, 0], [0, 0]], [[None, None], [None, None]]
        assert comm.all_gather_v([None, None], out=out).outputs[1] is out[1]
        assert comm.all_to_all_v(lists, out=out).outputs[1] is out[1]
        assert comm.all_to_all_vc([None, None], nothing, out=out).outputs[1] is out[1]
        pairs = [(0, 1), (1, 0)]
        assert comm.batch_send_recv([[None], [None]], pairs, out=out).outputs[1] is out[1]


def test_a_number_is_one_row() -> None:
    with hccl.Communicator(ranks=2) as comm:
        assert comm.all_gather_v([np.int32(4), np.int32(5)]).outputs[1].tolist() == [4, 5]
        assert comm.all_gather_v([np.int32(4), None], [1, 0]).outputs[1].tolist() == [4]
        sums = comm.reduce_scatter_v([np.int32(4), np.int32(5)], [0, 1]).outputs
        assert [o.tolist() for o in sums] == [[], [9]]


def test_rows_may_have_no_elements() -> None:
    with hccl.Communicator(ranks=2) as comm:
        rows = [np.zeros((2, 0), np.int8), np.zeros((3, 0), np.int8)]
        assert [o.shape for o in comm.all_gather_v(rows).outputs] == [(5, 0)] * 2
        lists = [[row, None] for row in rows]
        assert [o.shape for o in comm.all_to_all_v(lists).outputs] == [(5, 0), (0, 0)]


def test_empty_parts_may_lie_anywhere() -> None:
    far = 1 << 30
    with hccl.Communicator(ranks=2) as comm:
        inputs = [rows(2, 0), rows(0, 1)]
        gathered = comm.all_gather_v(inputs, displs=[1, far]).outputs
        assert [o.tolist() for o in gathered] == [[0, *inputs[0]]] * 2
        full = [rows(2, 0), rows(2, 1)]
        sums = comm.reduce_scatter_v(full, [2, 0], displs=[0, far]).outputs
        assert [o.tolist() for o in sums] == [(full[0] + full[1]).tolist(), []]
        displs = [[0, far], [0, far]]
        sent = comm.all_to_all_v(
            full, [[2, 0], [2, 0]], send_displs=displs, recv_displs=[[0, 2], [far, far]]
        ).outputs
        assert [o.tolist() for o in sent] == [[*full[0], *full[1]], []]


def test_counts_of_ranks_that_are_elsewhere_are_gathered() -> None:
    def ranks(before: str, behind: str) -> Ranks:
        parts = before.encode(), behind.encode()
        return Ranks(topology_of(3), range(1, 2), lambda mine: [parts[0], mine, parts[1]])

    data = blocks("all_gather_v", [rows(2, 0)], ranks("[5]", "[0]"), None, None)
    assert (data.op.counts, list(data.shapes)) == ((5, 2, 0), [(7,)])
    around = ranks("[[1, 2, 3]]", "[[7, 8, 9]]")
    data = exchange("all_to_all_v", [[rows(4, 0), rows(5, 0), rows(6, 0)]], around, None)
    assert data.op.counts == ((1, 2, 3), (4, 5, 6), (7, 8, 9))
    assert list(data.shapes) == [(2 + 5 + 8,)]
    given = blocks("all_gather_v", [rows(2, 0)], ranks("?", "?"), [1, 2, 3], None)
    assert list(given.shapes) == [(6,)]


TWO = np.ones(2, np.float32)
ROW = np.ones((2, 3), np.float32)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda c: c.all_gather_v([TWO, TWO], [2, 3]), "Rank 1's input of all_gather_v has 2 rows"),
        (lambda c: c.all_gather_v([TWO, TWO], [2]), "counts of shape 1"),
        (lambda c: c.all_gather_v([TWO, TWO], [2.5, 2]), r"counts \[2.5, 2\]"),
        (lambda c: c.all_gather_v([TWO, TWO], [[2], [2, 1]]), "all_gather_v has counts"),
        (lambda c: c.all_gather_v([TWO, TWO], [[2], [2]]), "Give one number for each rank"),
        (lambda c: c.all_gather_v([TWO, TWO], [-2, 2]), "counts with -2"),
        (lambda c: c.all_gather_v([TWO, TWO], np.array([2, 1 << 63], "u8")), f"with {1 << 63}"),
        (lambda c: c.all_gather_v([TWO, TWO], [2, 1 << 64]), "Give whole numbers to 34359738367"),
        (lambda c: c.all_gather_v([TWO, TWO], displs=[0, 1 << 62]), f"displs with {1 << 62}"),
        (lambda c: c.all_gather_v([TWO, TWO], displs=[0, -1]), "displs with -1"),
        (lambda c: c.all_gather_v([ROW, ROW[:, :0]]), r"Rank 1's input has rows of shape \(0,\)"),
        (lambda c: c.all_gather_v([TWO, TWO], displs=[0, 1]), "the part of rank 0 ends"),
        (lambda c: c.all_gather_v([TWO, ROW]), "rows of shape"),
        (lambda c: c.all_gather_v([TWO, TWO.astype(int)]), "one data type"),
        (lambda c: c.all_gather_v([None, None]), "its data type is unknown"),
        (lambda c: c.all_gather_v([TWO, TWO], out=[np.ones(3, np.float32)] * 2), "of shape"),
        (lambda c: c.all_gather_v([TWO[:1], TWO[1:]], out=[TWO, TWO.copy()]), "shares memory"),
        (lambda c: c.reduce_scatter_v([TWO, TWO], None), "needs counts"),
        (lambda c: c.reduce_scatter_v([TWO, None], [1, 1]), "Rank 1 has no input"),
        (lambda c: c.reduce_scatter_v([TWO, TWO], [1, 2]), "has 2 rows, its counts need 3"),
        (lambda c: c.reduce_scatter_v([TWO, TWO], [1, 1], "prod"), "does not take prod"),
        (lambda c: c.all_to_all_v([TWO, TWO], [[1, 1]]), "counts of shape 1 x 2"),
        (lambda c: c.all_to_all_v([TWO, TWO], [[1, 1], [1, 2]]), "Rank 1's input of all_to_all_v"),
        (lambda c: c.all_to_all_v([TWO, TWO]), "is a ndarray"),
        (lambda c: c.all_to_all_v([[TWO], [TWO, TWO]]), "Rank 0 has 1 arrays"),
        (lambda c: c.all_to_all_v([[TWO, TWO], [TWO, TWO.astype(int)]]), "one data type"),
        (
            lambda c: c.all_to_all_v([TWO, TWO], [[1, 1], [1, 1]], recv_displs=[[0, 0], [0, 1]]),
            "in the output of rank 0",
        ),
        (
            lambda c: c.all_to_all_v([TWO, TWO], [[1, 1], [1, 1]], send_displs=[[0, 1]]),
            r"send_displs of shape \(1, 2\)",
        ),
        (lambda c: c.all_to_all_vc([TWO, TWO], [[1, 1], [1, "x"]]), "Give whole numbers"),
        (lambda c: c.all_to_all_vc([TWO, TWO], [1, 1]), "matrix of shape 1 x 2"),
        (lambda c: c.all_to_all_vc([TWO, TWO], None), "all_to_all_vc needs a matrix"),
        (lambda c: c.all_to_all_vc([TWO, TWO], [[[1]] * 2] * 2), "Give one row for each rank"),
        (
            lambda c: c.all_to_all_vc([TWO, TWO], np.ones((2, 2))),
            r"has matrix array\(\[\[1., 1.\], \[1., 1.\]\]\)\.",
        ),
    ],
)
def test_what_is_refused_and_why(call: Any, words: str) -> None:
    with hccl.Communicator(ranks=2) as comm, pytest.raises(HcclError, match=words) as caught:
        call(comm)
    assert caught.value.result in (HcclResult.E_PARA, HcclResult.E_PTR, HcclResult.E_NOT_SUPPORT)
    assert caught.value.hint

"""Ops in which every rank has the same amount, against numpy; what they refuse."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hccl_py as hccl
from hccl_py.communicator.arrays import MissingArrayError, place
from hccl_py.communicator.collectives import Ranks, from_root
from hccl_py.errors import HcclError, HcclResult, NotSupportedError, ParameterError
from hccl_py.operators import make_operator
from hccl_py.topology import topology_of


def values(shape: Any, rank: int, dtype: Any = np.float32) -> Any:
    """Small whole numbers that differ by rank and element."""
    return ((np.arange(int(np.prod(shape))) * 3 + rank * 5) % 7).reshape(shape).astype(dtype)


ROWS = st.sampled_from([(1,), (2, 3), (0, 4), (700,), (3, 1, 2)])
RANKS = st.integers(1, 9)


@given(ranks=RANKS, shape=ROWS, reduce=st.sampled_from(["sum", "prod", "max", "min"]))
def test_reduce_scatter(ranks: int, shape: Any, reduce: str) -> None:
    inputs = [values((shape[0] * ranks, *shape[1:]), rank) for rank in range(ranks)]
    ufunc = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}[reduce]
    with hccl.Communicator(ranks=ranks) as comm:
        outputs = comm.reduce_scatter(inputs, reduce).outputs
    parts = np.split(ufunc.reduce(np.stack(inputs)), ranks)
    assert all(np.array_equal(o, part) for o, part in zip(outputs, parts, strict=True))


@given(ranks=RANKS, shape=ROWS, root=st.integers(0, 8), mode=st.sampled_from(["op_base", "graph"]))
def test_rooted_ops(ranks: int, shape: Any, root: int, mode: str) -> None:
    root %= ranks
    inputs = [values(shape, rank) for rank in range(ranks)]
    whole = values((shape[0] * ranks, *shape[1:]), 3)
    alone: list[Any] = [None] * ranks
    with hccl.Communicator(ranks=ranks, mode=mode) as comm:
        alone[root] = inputs[root]
        spread = comm.broadcast(alone, root).outputs
        total = comm.reduce(inputs, root).outputs
        joined = comm.gather(inputs, root).outputs
        alone[root] = whole
        parts = comm.scatter(alone, root).outputs
    assert all(np.array_equal(o, inputs[root]) for o in spread)
    assert np.array_equal(total[root], sum(inputs))
    assert np.array_equal(joined[root], np.concatenate(inputs))
    assert all(np.array_equal(*pair) for pair in zip(parts, np.split(whole, ranks), strict=True))
    others = set(range(ranks)) - {root}
    assert all(total[rank] is None and joined[rank] is None for rank in others)


@given(ranks=RANKS, shape=ROWS)
def test_all_to_all(ranks: int, shape: Any) -> None:
    inputs = [values((shape[0] * ranks, *shape[1:]), rank) for rank in range(ranks)]
    with hccl.Communicator(ranks=ranks) as comm:
        outputs = comm.all_to_all(inputs).outputs
    for rank, output in enumerate(outputs):
        parts = [np.split(given, ranks)[rank] for given in inputs]
        assert np.array_equal(output, np.concatenate(parts))


@pytest.mark.parametrize("ranks", [1, 2, 8, 12])
def test_barrier_takes_all_reduce_s_executors_and_tag(ranks: int) -> None:
    with hccl.Communicator(ranks=ranks) as comm:
        done = comm.barrier()
        assert done.outputs == []
        other = comm.all_reduce([np.ones(8, np.float32)] * ranks)
        assert done.selection.executor == other.selection.executor
        assert done.selection.tag == other.selection.tag
        assert done.program.digest == other.program.digest
        named = comm.barrier(executor="AllReduceComm")
        assert named.selection.executor == "AllReduceComm"
        with pytest.raises(ParameterError, match="executes all_gather, not barrier"):
            comm.barrier(executor="AllGatherComm")


def test_broadcast_in_place_is_hccl_s_own_way() -> None:
    with hccl.Communicator(ranks=3) as comm:
        data = [values((5,), rank) for rank in range(3)]
        wanted = data[2].copy()
        result = comm.broadcast(data, 2, out=data)
        assert result.program.op.in_place
        assert all(
            o is d and np.array_equal(d, wanted) for o, d in zip(result.outputs, data, strict=True)
        )


def test_reduce_in_place_and_at_the_root_only() -> None:
    with hccl.Communicator(ranks=3) as comm:
        data = [values((5,), rank) for rank in range(3)]
        wanted = sum(data)
        outputs = comm.reduce(data, 1, out=[None, out := np.zeros(5, np.float32), None]).outputs
        assert outputs[1] is out
        assert outputs[0] is None
        assert np.array_equal(out, wanted)
        comm.reduce(data, 1, out=data)
        assert np.array_equal(data[1], wanted)


def test_what_others_than_the_root_give_is_not_looked_at() -> None:
    with hccl.Communicator(ranks=3) as comm:
        whole = values((6,), 1)
        ignored: list[Any] = [None, [], np.ones(5, np.int8)]
        for others in ignored:
            outputs = comm.scatter([others, whole, others], 1).outputs
            assert np.array_equal(np.concatenate(outputs), whole)
        assert comm.broadcast([[], whole, np.zeros(0)], 1).outputs[0].tolist() == whole.tolist()


def test_ranks_of_this_process_need_not_have_the_root() -> None:
    local = Ranks(topology_of(4), range(2, 4))
    out = [np.zeros((2, 3), np.int16)] * 2
    for name in ("broadcast", "scatter"):
        data = from_root(name, [None, None], local, 0, out)
        assert (data.op.count, data.op.dtype.value, data.op.root) == (6, "int16", 0)
        assert list(data.shapes) == [(2, 3)] * 2
        arrays = place(make_operator(name), data, None, local.topology, local.local)
        assert [o.size for o in arrays.outputs] == [6, 6]
        with pytest.raises(MissingArrayError, match="its data type is unknown"):
            from_root(name, [None, None], local, 0, None)
        empty = from_root(name, [np.zeros((0, 3), np.int16)] * 2, local, 0, out)
        assert (empty.op.count, list(empty.shapes)) == (6, [(2, 3)] * 2)


def test_empty_inputs_say_the_shape_where_the_root_is_elsewhere() -> None:
    local = Ranks(topology_of(4), range(2, 4))
    data = from_root("broadcast", [np.zeros((0, 3), np.int16)] * 2, local, 0, None)
    assert (data.op.count, data.op.dtype.value, list(data.shapes)) == (0, "int16", [(0, 3)] * 2)
    with pytest.raises(ParameterError, match="Root 7 of broadcast"):
        from_root("broadcast", [None, None], local, 7, None)


@pytest.mark.parametrize(
    "call",
    [
        lambda c, a: c.all_reduce([a] * 4),
        lambda c, a: c.all_reduce([a] * 4, "prod"),
        lambda c, a: c.all_gather([a] * 4),
        lambda c, a: c.reduce_scatter([a] * 4),
        lambda c, a: c.broadcast([a] * 4, root=9),
        lambda c, a: c.broadcast([None, a, None, None], root=1),
        lambda c, a: c.reduce([a] * 4, root=9),
        lambda c, a: c.scatter([a] * 4, root=-1),
        lambda c, a: c.gather([a] * 4, root=9),
        lambda c, a: c.all_to_all([a] * 4),
        lambda c, a: c.send_recv([a] * 4),
        lambda c, a: c.send_recv([a] * 4, [(0, 9)]),
        lambda c, a: c.send_recv([None] * 4, []),
        lambda c, a: c.batch_send_recv([None] * 4, []),
    ],
)
def test_a_count_of_0_succeeds_before_anything_else_is_checked(call: Any) -> None:
    with hccl.Communicator(ranks=4, strict=True) as comm:
        result = call(comm, np.zeros(0, np.uint64))  # a type that reductions do not take
        assert all(o is None or o.size == 0 for o in result.outputs)
        assert result.program.task_count == 0
        assert result.selection.executor == ""
        assert comm.config.strict


ONE = np.ones(4, np.float32)
FIVE = np.ones(5, np.float32)


@pytest.mark.parametrize(
    ("call", "result", "words"),
    [
        (lambda c: c.broadcast([ONE] * 4, 4), HcclResult.E_PARA, "Root 4 of broadcast"),
        (lambda c: c.reduce([ONE] * 4, -1), HcclResult.E_PARA, "Root -1 of reduce"),
        (lambda c: c.scatter([ONE] * 4, 7), HcclResult.E_PARA, "Root 7 of scatter"),
        (lambda c: c.gather([ONE] * 4, 4), HcclResult.E_PARA, "Root 4 of gather"),
        (lambda c: c.gather([ONE] * 4, "a"), HcclResult.E_PARA, "The root of gather is 'a'"),
        (lambda c: c.broadcast([None] * 4), HcclResult.E_PTR, "Rank 0 has no input"),
        (lambda c: c.reduce([ONE, None, ONE, ONE]), HcclResult.E_PTR, "Rank 1 has no input"),
        (lambda c: c.scatter([None, ONE, None, None]), HcclResult.E_PTR, "Rank 0 has no input"),
        (lambda c: c.scatter([FIVE] * 4), HcclResult.E_PARA, "does not split into 4 parts"),
        (lambda c: c.reduce_scatter([FIVE] * 4), HcclResult.E_PARA, "does not split into 4"),
        (lambda c: c.all_to_all([ONE[0]] * 4), HcclResult.E_PARA, "does not split into 4"),
        (lambda c: c.broadcast([ONE, FIVE, None, ONE]), HcclResult.E_PARA, "same shape"),
        (lambda c: c.reduce([ONE.astype(np.uint8)] * 4), HcclResult.E_NOT_SUPPORT, "uint8"),
        (
            lambda c: c.all_reduce([ONE.astype(np.int16)] * 4, "prod"),
            HcclResult.E_NOT_SUPPORT,
            "does not take prod with int16",
        ),
        (lambda c: c.all_reduce([ONE] * 4, "xor"), HcclResult.E_NOT_SUPPORT, "'xor' is unknown"),
        (
            lambda c: c.gather([ONE] * 4, out=[None, ONE.copy(), None, None]),
            HcclResult.E_PTR,
            "Rank 0 has None as output",
        ),
        (
            lambda c: c.gather([ONE] * 4, out=[np.ones(16, np.float32), ONE.copy(), None, None]),
            HcclResult.E_PARA,
            "Rank 1 has no output in gather",
        ),
        (
            lambda c: c.plan(hccl.OpParam("broadcast", 1 << 36, hccl.DataType.FP32, root=0)),
            HcclResult.E_PARA,
            "has a count of 68719476736",
        ),
    ],
)
def test_what_is_refused_with_which_result(call: Any, result: HcclResult, words: str) -> None:
    with hccl.Communicator(ranks=4) as comm, pytest.raises(HcclError, match=words) as caught:
        call(comm)
    assert caught.value.result is result
    assert caught.value.hint


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16"])
@pytest.mark.parametrize("ranks", [1, 3, 4])
def test_averages(dtype: str, ranks: int) -> None:
    kind = hccl.DataType(dtype).numpy
    inputs = [np.arange(12).astype(kind) + np.array(r, kind) for r in range(ranks)]
    inputs = [np.resize(i, 12 // ranks * ranks) for i in inputs]
    wanted = (np.sum(np.stack(inputs).astype(np.float64), 0) / ranks).astype(kind)
    with hccl.Communicator(ranks=ranks) as comm:
        assert all(np.array_equal(o, wanted) for o in comm.all_reduce(inputs, "avg").outputs)
        assert np.array_equal(np.concatenate(comm.reduce_scatter(inputs, "AVG").outputs), wanted)
        out = [np.zeros_like(i) for i in inputs]
        assert np.array_equal(comm.reduce(inputs, 0, "avg", out=out).outputs[0], wanted)


def test_averages_of_integers_are_refused() -> None:
    with hccl.Communicator(ranks=2) as comm:
        with pytest.raises(NotSupportedError, match="all_reduce does not take avg with int32"):
            comm.all_reduce([np.ones(2, np.int32)] * 2, "avg")
        with pytest.raises(NotSupportedError, match="Reduce op 'aveg' is unknown") as caught:
            comm.all_reduce([np.ones(2, np.float32)] * 2, "aveg")
        assert caught.value.hint == "Did you mean avg?"
        with pytest.raises(NotSupportedError, match="Reduce op 'avg' is unknown"):
            comm.reduce_scatter_v([np.ones(2, np.float32)] * 2, [1, 1], "avg")

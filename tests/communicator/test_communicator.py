"""The main job from the API call to the result: data, selection, caches, in place, closing."""

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hccl_py as hccl
from hccl_platform.emulated import EmulatedPlatform
from hccl_py.communicator.planning import CACHED_PLANS, BatchingWarning
from hccl_py.errors import DeadlockError, HcclError, OrchestrationError, ParameterError
from hccl_py.plugins.executor import PlaneRequest, ResourceRequest

ANY: Any = hccl
"""The package without its types, for calls that break them."""

DTYPES = {
    "all_gather": [d.value for d in hccl.DataType if not d.is_moved],
    "all_reduce": ["int8", "int16", "int32", "int64", "fp16", "fp32", "bf16"],
}


def values(shape: Any, dtype: str, rank: int) -> Any:
    """Whole numbers that differ by rank and element and whose sums are exact in every data type."""
    count = int(np.prod(shape))
    flat = (np.arange(count) * 3 + rank * 5) % 7
    return flat.reshape(shape).astype(hccl.DataType(dtype).numpy)


def test_the_readme_s_first_call() -> None:
    comm = hccl.Communicator(ranks=4)
    result = comm.all_gather([np.full(5, r + 1.0, np.float32) for r in range(4)])
    assert all(o.tolist() == np.repeat([1.0, 2, 3, 4], 5).tolist() for o in result.outputs)
    assert result.selection.executor == "AllGatherMeshOpbaseExecutor"
    assert result.selection.reasons
    assert result.program.task_count == 172


@given(
    op=st.sampled_from(["all_gather", "all_reduce"]),
    ranks=st.integers(1, 12),
    shape=st.sampled_from([(), (0,), (1,), (7,), (3, 5), (2000,), (90001,)]),
    data=st.data(),
    mode=st.sampled_from(["op_base", "graph"]),
)
def test_results_equal_numpy(
    op: str, ranks: int, shape: Any, data: st.DataObject, mode: str
) -> None:
    dtype = data.draw(st.sampled_from(DTYPES[op]))
    reduce = data.draw(st.sampled_from(["sum", "max", "min"]))
    inputs = [values(shape, dtype, r) for r in range(ranks)]
    kept = [i.copy() for i in inputs]
    with hccl.Communicator(ranks=ranks, mode=mode, buffsize_mb=1) as comm:
        if op == "all_gather":
            outputs = comm.all_gather(inputs).outputs
            wanted = np.concatenate([np.atleast_1d(i) for i in inputs])
        else:
            outputs = comm.all_reduce(inputs, reduce).outputs
            ufunc = {"sum": np.add, "max": np.maximum, "min": np.minimum}[reduce]
            wanted = inputs[0]
            for other in inputs[1:]:
                wanted = ufunc(wanted, other)
    for output in outputs:
        assert output.dtype == inputs[0].dtype
        assert np.array_equal(output, wanted)
    assert all(np.array_equal(a, b) for a, b in zip(inputs, kept, strict=True))


def test_many_rounds_through_a_small_buffer() -> None:
    with hccl.Communicator(ranks=3, buffsize_mb=1) as comm:
        inputs = [np.arange(700_001, dtype=np.int32) * (r + 1) for r in range(3)]
        result = comm.all_reduce(inputs, executor="AllReduceComm")
        assert result.program.rounds == 3
        assert all((o == inputs[0] * 6).all() for o in result.outputs)


@pytest.mark.parametrize("executor", ["AllReduceComm", "AllReduceMeshOpbaseLoopExecutor"])
def test_in_place(executor: str) -> None:
    with hccl.Communicator(ranks=4, buffsize_mb=1) as comm:
        data = [np.arange(400_000, dtype=np.float32) + r for r in range(4)]
        wanted = np.sum(data, axis=0, dtype=np.float32)
        result = comm.all_reduce(data, out=data, executor=executor)
        assert all(o is d for o, d in zip(result.outputs, data, strict=True))
        assert all((d == wanted).all() for d in data)


@pytest.mark.parametrize("mode", ["op_base", "graph"])
@pytest.mark.parametrize("where", ["slot", "start"])
def test_in_place_all_gather(mode: str, where: str) -> None:
    with hccl.Communicator(ranks=3, mode=mode, buffsize_mb=1) as comm:
        n = 200_000
        out = [np.zeros(3 * n, np.int32) for _ in range(3)]
        inputs = [o[n * r : n * r + n] if where == "slot" else o[:n] for r, o in enumerate(out)]
        for r, i in enumerate(inputs):
            i[:] = np.arange(n) * (r + 1)
        wanted = np.concatenate([i.copy() for i in inputs])
        comm.all_gather(inputs, out=out)
        assert all((o == wanted).all() for o in out)


def test_plans_are_reused_and_bounded() -> None:
    with hccl.Communicator(ranks=2) as comm:
        first = comm.all_gather([np.ones(3, np.int8)] * 2)
        again = comm.all_gather([np.zeros(3, np.int8)] * 2)
        assert again.program is first.program
        assert comm.all_gather([np.ones(4, np.int8)] * 2).program is not first.program
        gone = weakref.ref(first.program)
        del first, again
        for count in range(5, 5 + CACHED_PLANS):
            comm.all_gather([np.ones(count, np.int8)] * 2)
        gc.collect()
        assert gone() is None


def test_graph_mode_scratch_grows_with_the_call() -> None:
    with hccl.Communicator(ranks=3, mode="graph") as comm:
        for count in (10, 5000, 20):
            inputs = [np.arange(count, dtype=np.int64) + r for r in range(3)]
            result = comm.all_reduce(inputs)
            assert all((o == sum(inputs)).all() for o in result.outputs)


def test_closing_releases_threads_and_memory() -> None:
    before = threading.active_count()
    comm = hccl.Communicator(ranks=8)
    data = [np.ones(1 << 20, np.float32) for _ in range(8)]
    for _ in range(3):
        comm.all_reduce(data)
    session = weakref.ref(comm._session)
    comm.close()
    gc.collect()
    assert session() is None
    assert threading.active_count() == before
    with pytest.raises(ParameterError, match="is closed"):
        comm.all_reduce(data)


def test_single_rank_and_one_array() -> None:
    with hccl.Communicator(ranks=1) as comm:
        data = np.arange(5, dtype=np.float32)
        assert comm.all_reduce(data).outputs[0].tolist() == data.tolist()
        assert comm.all_gather([data], out=[np.zeros(5, np.float32)]).outputs[0].tolist() == list(
            data
        )


class Broken:
    """An all_gather on a ring that a test breaks."""

    op = "all_gather"
    algorithm = "level0:ring"

    def suits(self, op: Any, topology: Any) -> bool:
        return True

    def resources(self, op: Any, rank: Any) -> ResourceRequest:
        return ResourceRequest((PlaneRequest("flat", "ring"),))

    def orchestrate(self, op: Any, rank: Any) -> None:
        rank.flat.left.rx_ack(rank.main)


def test_a_deadlock_ends_at_once_with_a_report() -> None:
    with hccl.Communicator(ranks=4) as comm, pytest.raises(DeadlockError, match="4 of 4 streams"):
        comm.all_gather([np.ones(3)] * 4, executor=Broken)


def test_an_executor_object_runs_without_registration() -> None:
    class Copies(Broken):
        def orchestrate(self, op: Any, rank: Any) -> None:
            for slot in rank.user_out:
                rank.main.copy(slot, rank.user_in)

    with hccl.Communicator(ranks=2) as comm:
        result = comm.all_gather([np.array([1]), np.array([2])], executor=Copies())
        assert [o.tolist() for o in result.outputs] == [[1, 1], [2, 2]]
        assert result.selection.executor == "Copies"
    with hccl.Communicator(ranks=2, executors=[Copies]) as comm:
        assert comm.all_gather([np.array([1])] * 2, executor="Copies").outputs[1].tolist() == [1, 1]


def test_branching_on_every_rank_warns_with_the_line() -> None:
    class Branches(Broken):
        def orchestrate(self, op: Any, rank: Any) -> None:
            for _ in range(rank.id):
                rank.main.copy(rank.ccl_in.head(4), rank.ccl_out.head(4))

    with (
        hccl.Communicator(ranks=70, topology="mesh") as comm,
        pytest.warns(BatchingWarning, match=r"70 batches: communicator/test_communicator.py:\d+"),
    ):
        comm.all_gather([np.ones(1)] * 70, executor=Branches)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda c: c.all_reduce([np.ones(3)] * 4), "does not take fp64"),
        (lambda c: c.all_reduce([np.ones(3, np.float32)] * 3), "3 inputs for 4 ranks"),
        (lambda c: c.all_reduce([np.ones(3, np.float32)] * 4, "mean"), "Reduce op 'mean'"),
        (lambda c: c.all_gather([np.ones(3)] * 4, executor="Mesh"), "Executor 'Mesh'"),
        (lambda c: c.all_gather([np.ones(3)] * 4, executor="AllReduceComm"), "not all_gather"),
        (lambda c: hccl.Communicator(ranks=0), "ranks is 0"),
        (lambda c: hccl.Communicator(platform="tpu"), "Platform 'tpu' is unknown"),
        (lambda c: hccl.Communicator(ranks=4, topology=c.topology), "already says"),
    ],
)
def test_mistakes_get_a_sentence(call: Any, words: str) -> None:
    with hccl.Communicator(ranks=4) as comm, pytest.raises(HcclError, match=words):
        call(comm)


def test_resources_must_be_a_request() -> None:
    class Odd(Broken):
        def resources(self, op: Any, rank: Any) -> Any:
            return {"planes": 1}

    with (
        hccl.Communicator(ranks=2) as comm,
        pytest.raises(OrchestrationError, match=r"Odd\.resources, ranks 0 and 1: returned a dict"),
    ):
        comm.all_gather([np.ones(1)] * 2, executor=Odd)


def test_a_new_executor_object_never_gets_an_old_one_s_plan() -> None:
    class First(Broken):
        def orchestrate(self, op: Any, rank: Any) -> None:
            rank.main.copy(rank.user_out[rank.id], rank.user_in)

    class Second(First):
        pass

    with hccl.Communicator(ranks=2) as comm:
        for _ in range(30):
            for kind in (First, Second):
                result = comm.all_gather([np.ones(3)] * 2, executor=kind())
                assert result.selection.executor == kind.__name__


def test_numbers_of_numpy_are_numbers() -> None:
    with ANY.Communicator(servers=np.int64(2), devices=np.uint8(2)) as comm:
        assert comm.size == 4
        assert comm.broadcast([None, None, [7], None], np.int16(2)).outputs[0].tolist() == [7]


def test_calls_from_several_threads_run_one_after_another() -> None:
    wrong = []
    with hccl.Communicator(ranks=4) as comm:

        def work(value: int) -> None:
            for _ in range(15):
                outputs = comm.all_reduce([np.full(300_000, value, np.int32)] * 4).outputs
                wrong.append(bool((outputs[0] != 4 * value).any()))

        threads = [threading.Thread(target=work, args=(k,)) for k in (1, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == [False] * 30


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda c: c.all_gather(iter([np.ones(3)] * 4)), "got a list_iterator as inputs"),
        (lambda c: c.all_gather({0: 1, 1: 1, 2: 1, 3: 1}), "got a dict as inputs"),
        (lambda c: c.all_gather(None), "got a NoneType as inputs"),
        (lambda c: c.all_gather(np.float32(3)), "as inputs"),
        (lambda c: c.all_gather([np.ones(3)] * 4, out=5), "got a int as out"),
        (lambda c: c.all_gather([[[1, 2], [3]]] * 4), "is no array"),
        (lambda c: c.all_reduce([np.ones(3, np.float32)] * 4, None), "Reduce op None"),
        (lambda c: c.all_reduce([np.ones(3, np.float32)] * 4, 7), "Reduce op 7"),
        (lambda c: ANY.Communicator(ranks="4"), "ranks is '4'"),
        (lambda c: ANY.Communicator(ranks=2.5), "ranks is 2.5"),
        (lambda c: hccl.Communicator(ranks=True), "ranks is True"),
        (lambda c: ANY.Communicator(ranks=4, topology=None), "topology is None"),
        (lambda c: ANY.Communicator(ranks=4, schedule=3), "schedule is 3"),
        (lambda c: ANY.Communicator(ranks=4, platform=None), "platform is None"),
        (lambda c: ANY.Communicator(ranks=4, platform=EmulatedPlatform), "platform is <class"),
        (lambda c: ANY.Communicator(ranks=4, executors=Broken), "executors is <class"),
    ],
)
def test_wrong_types_get_a_sentence_too(call: Any, words: str) -> None:
    with hccl.Communicator(ranks=4) as comm, pytest.raises(HcclError, match=words):
        call(comm)


def test_an_orchestration_that_returns_something_records_nothing() -> None:
    class Yields(Broken):
        def orchestrate(self, op: Any, rank: Any) -> Any:
            yield rank.main.copy(rank.user_out[rank.id], rank.user_in)

    class Awaits(Broken):
        async def orchestrate(self, op: Any, rank: Any) -> None:  # type: ignore[override]
            rank.main.copy(rank.user_out[rank.id], rank.user_in)

    cases: list[tuple[Any, str]] = [(Yields, "generator"), (Awaits, "coroutine")]
    for executor, kind in cases:
        with hccl.Communicator(ranks=2) as comm, pytest.raises(OrchestrationError, match=kind):
            comm.all_gather([np.ones(3)] * 2, executor=executor)

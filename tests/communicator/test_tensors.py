"""torch's CPU tensors as users' arrays: taken without a copy, given back, or refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hccl_py as hccl
from hccl_py.enums import TaskKind
from hccl_py.errors import HcclError
from hccl_py.topology import topology_of
from tests.tensor_platform import TensorPlatform
from tests.thread_platform import in_threads

torch: Any = pytest.importorskip("torch", reason="tensors need torch: pip install hccl-py[torch]")

TYPES = ("int8", "int16", "int32", "int64", "float16", "float32", "float64", "bfloat16", "uint8")


def ramp(rank: int, dtype: str = "float32", shape: Any = (2, 3)) -> Any:
    """Small whole numbers that tell ranks and places apart, exact in every type."""
    count = int(np.prod(shape))
    return (torch.arange(count).reshape(shape) % 7 + rank).to(getattr(torch, dtype))


@pytest.fixture(params=["host", "device"])
def comm(request: Any) -> Any:
    platform = "emulated" if request.param == "host" else TensorPlatform()
    with hccl.Communicator(2, platform=platform) as comm:
        yield comm


@pytest.mark.parametrize("dtype", TYPES)
def test_outputs_are_tensors_of_the_same_type(comm: Any, dtype: str) -> None:
    inputs = [ramp(0, dtype), ramp(1, dtype)]
    outputs = comm.all_gather(inputs).outputs
    assert all(type(o) is torch.Tensor and o.dtype is inputs[0].dtype for o in outputs)
    assert all(torch.equal(o, torch.cat(inputs)) for o in outputs)
    assert comm.all_gather([ramp(0, dtype, ())] * 2).outputs[0].shape == (2,)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"])
@pytest.mark.parametrize("platform", ["emulated", TensorPlatform()])
def test_floats_of_one_byte_are_moved_bit_for_bit(dtype: str, platform: Any) -> None:
    bits = torch.arange(256, dtype=torch.uint8)
    inputs = [bits.view(getattr(torch, dtype)), bits.flip(0).view(getattr(torch, dtype))]
    with hccl.Communicator(topology=topology_of(2, preset="mesh"), platform=platform) as comm:
        for output in comm.all_gather(inputs).outputs:
            assert output.dtype is inputs[0].dtype
            assert torch.equal(output.view(torch.uint8), torch.cat([bits, bits.flip(0)]))
        with pytest.raises(HcclError, match="does not take fp8"):
            comm.all_reduce(inputs)
    with hccl.Communicator(2) as old, pytest.raises(HcclError, match="Atlas 800T A2 does not take"):
        old.all_gather(inputs)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64"])
def test_nothing_is_copied(comm: Any, dtype: str) -> None:
    data = [ramp(0, dtype), ramp(1, dtype)]
    addresses = [each.data_ptr() for each in data]
    result = comm.all_reduce(data, out=data)
    assert all(o is each for o, each in zip(result.outputs, data, strict=True))
    assert [each.data_ptr() for each in data] == addresses
    assert all(torch.equal(each, ramp(0, dtype) + ramp(1, dtype)) for each in data)
    assert comm.plan(hccl.OpParam("barrier", 8, hccl.DataType.FP32, hccl.ReduceOp.SUM))


def test_strided_tensors_are_inputs_and_outputs(comm: Any) -> None:
    wide = [ramp(rank, shape=(4, 6)) for rank in range(2)]
    out = [torch.zeros(4, 6).t() for _ in range(2)]
    comm.all_reduce([each.t() for each in wide], out=out)
    assert all(torch.equal(o, (wide[0] + wide[1]).t()) for o in out)
    out = [torch.zeros(4, 2, dtype=torch.bfloat16)[:, 0] for _ in range(2)]
    comm.all_reduce([ramp(1, "bfloat16", (4,))] * 2, "avg", out=out)
    assert [o.tolist() for o in out] == [[1.0, 2.0, 3.0, 4.0]] * 2


def test_gradients_are_left_alone(comm: Any) -> None:
    weights = [torch.nn.Parameter(ramp(rank)) for rank in range(2)]
    outputs = comm.all_reduce(weights).outputs
    assert not outputs[0].requires_grad
    assert torch.equal(outputs[0], ramp(0) + ramp(1))
    comm.all_reduce(weights, out=weights)
    assert all(each.requires_grad and each.is_leaf for each in weights)
    assert torch.equal(weights[1].data, ramp(0) + ramp(1))


def test_truth_values_move_as_bytes(comm: Any) -> None:
    flags = [torch.tensor([True, False]), torch.tensor([False, False])]
    outputs = comm.all_gather(flags).outputs
    assert outputs[1].dtype is torch.bool
    assert outputs[1].tolist() == [True, False, False, False]
    out = [torch.ones(2, dtype=torch.bool) for _ in range(2)]
    comm.broadcast(flags, 1, out=out)
    assert [o.tolist() for o in out] == [[False, False]] * 2
    with pytest.raises(HcclError, match=r"all_reduce on .* does not take uint8"):
        comm.all_reduce(flags)


def test_lists_of_tensors_and_ranks_without(comm: Any) -> None:
    lists = [[ramp(0), None], [ramp(1), ramp(2)]]
    outputs = comm.all_to_all_v(lists).outputs
    assert torch.equal(outputs[0], torch.cat([ramp(0), ramp(1)]))
    assert torch.equal(outputs[1], ramp(2))
    assert comm.gather([ramp(0), ramp(1)], 1).outputs[0] is None
    out = [None, torch.zeros(4, 3)]
    assert comm.gather([ramp(0), ramp(1)], 1, out=out).outputs == out
    moved = comm.send_recv([ramp(5), None], [(0, 1)]).outputs
    assert moved[0] is None
    assert torch.equal(moved[1], ramp(5))


def test_pending_calls_give_tensors(comm: Any) -> None:
    data = [ramp(0), ramp(1)]
    pending = comm.all_reduce(data, out=data, async_op=True)
    assert pending.wait(30).outputs[1] is data[1]
    assert torch.equal(data[1], ramp(0) + ramp(1))


def test_one_tensor_where_a_process_has_one_rank() -> None:
    def body(comm: Any) -> Any:
        data = ramp(comm.local_ranks[0], "bfloat16")
        root = comm.broadcast(data if comm.local_ranks[0] == 1 else [None], 1, out=[data])
        return root.outputs[0], comm.all_gather(data).outputs[0], comm.all_reduce(data, out=data)

    for first, gathered, result in in_threads(2, body):
        assert result.outputs[0] is first
        assert torch.equal(first, 2 * ramp(1, "bfloat16"))
        assert torch.equal(gathered, torch.cat([ramp(1, "bfloat16")] * 2))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: np.ones((2, 3), np.float32), "got tensors and a ndarray"),
        (lambda: [1.0, 2.0], "got tensors and a float"),
        (lambda: ramp(0).to_sparse(), "Rank 1's input is a sparse_coo tensor"),
        (lambda: ramp(0).to_sparse_csr(), "Rank 1's input is a sparse_csr tensor"),
        (lambda: torch.empty(2, 3, device="meta"), "on device meta and has no data"),
        (lambda: torch.nested.nested_tensor([ramp(0)]), "Rank 1's input is a"),
        (
            lambda: torch.quantize_per_tensor(ramp(0), 0.1, 0, torch.qint8),
            "Rank 1's input is a quantized tensor",
        ),
        (lambda: ramp(0, "float8_e4m3fn"), "input is float8_e4m3fn, rank 0's is float32"),
        (lambda: torch.ones(2, 3, dtype=torch.complex64), "no data type for"),
        (lambda: ramp(0, "float64"), "Rank 1's input is float64, rank 0's is float32"),
        (lambda: ramp(0, shape=(3, 2)), "Rank 1's input has shape"),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")  # what torch says of its kinds of tensors
def test_what_is_refused_and_why(comm: Any, make: Any, words: str) -> None:
    with pytest.raises(HcclError, match=words) as caught:
        comm.all_reduce([ramp(0), make()])
    assert caught.value.hint


def test_outputs_that_are_refused(comm: Any) -> None:
    data = [ramp(0, shape=(4,)), ramp(1, shape=(4,))]
    for out, words in (
        (torch.zeros(1).expand(4), "Rank 1's output is an expanded tensor"),
        (torch.zeros(3), r"Rank 1's output is float32 of shape \(3,\)"),
        (np.zeros(4, np.float32), "got tensors and a ndarray"),
        (torch.zeros(4, device="meta"), "Rank 1's output is on device meta"),
    ):
        with pytest.raises(HcclError, match=words) as caught:
            comm.all_reduce(data, out=[torch.zeros(4), out])
        assert caught.value.hint
    with pytest.raises(HcclError, match="got tensors and a ndarray"):
        comm.all_reduce([np.ones(4)] * 2, out=data)


def test_arrays_are_refused_where_tensors_of_a_device_are_taken() -> None:
    with (
        hccl.Communicator(2, platform=TensorPlatform()) as comm,
        pytest.raises(HcclError, match="takes tensors on cpu"),
    ):
        comm.all_reduce([np.ones(3, np.float32)] * 2)


def test_a_pending_call_of_a_device_is_enqueued_at_once() -> None:
    with hccl.Communicator(2, platform=TensorPlatform()) as comm:
        pending = comm.all_reduce([ramp(0), ramp(1)], async_op=True)
        assert pending.is_completed()
        assert torch.equal(pending.wait().outputs[0], ramp(0) + ramp(1))


def test_programs_reduce_on_the_way_only_where_the_device_does() -> None:
    """fp32 sums do, everything else lands and is reduced by its rank."""
    only = frozenset({(hccl.DataType.FP32, hccl.ReduceOp.SUM)})
    kinds = {}
    with hccl.Communicator(4, platform=TensorPlatform(only)) as comm:
        for op in ("sum", "max"):
            done = comm.all_reduce([ramp(rank, shape=1 << 19) for rank in range(4)], op)
            kinds[op] = {kind.name for kind in map(TaskKind, done.program.tasks.kind)}
            stacked = torch.stack([ramp(rank, shape=1 << 19) for rank in range(4)])
            right = stacked.sum(0) if op == "sum" else stacked.amax(0)
            assert all(torch.equal(output, right) for output in done.outputs)
    assert kinds["sum"] & {"READ_REDUCE", "WRITE_REDUCE"}
    assert "REDUCE" in kinds["max"]
    assert not kinds["max"] & {"READ_REDUCE", "WRITE_REDUCE"}

"""Reduce ops, tensors as arrays, traces and handles of calls, each by itself in this process."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
import torch
from torch.distributed import ReduceOp

from hccl_py.communicator.pending import Result
from hccl_py.errors import ExecTimeoutError, NotSupportedError, ParameterError, PeerLostError
from hccl_py.selection import Selection
from hccl_py.torch.reductions import TorchReduction, reduction_of
from hccl_py.torch.tensor_arrays import array_of, flat, joined, put, put_parts
from hccl_py.torch.trace import TRACES, CallTrace, last_trace, note, traces
from hccl_py.torch.work import JoinedWork, TorchWork, as_torch_error
from tests.recording import op_of, recorded

ROWS = np.array([[1, 2, 3, -7], [4, 6, 5, 2], [4, 0, 7, 3]])

FOLDED: dict[str, list[int]] = {
    "sum": [9, 8, 15, -2],
    "avg": [3, 2, 5, -1],  # rounded down
    "prod": [16, 0, 105, -42],
    "min": [1, 0, 3, -7],
    "max": [4, 6, 7, 3],
    "band": [1 & 4 & 4, 2 & 6 & 0, 3 & 5 & 7, -7 & 2 & 3],
    "bor": [5, 6, 7, -7 | 2 | 3],
    "bxor": [1, 4, 1, -7 ^ 2 ^ 3],
}


@pytest.mark.parametrize("name", FOLDED)
def test_rows_are_folded_in_rank_order(name: str) -> None:
    rows = ROWS.astype(np.int32)
    assert TorchReduction(name, torch.int32).fold(rows).tolist() == FOLDED[name]
    assert (rows == ROWS).all()  # what was gathered stays


def test_an_average_of_floats_is_not_rounded() -> None:
    rows = ROWS.astype(np.float32)
    found = TorchReduction("avg", torch.float32).fold(rows)
    assert found.tolist() == [
        3.0,
        np.float32(8) / np.float32(3),
        5.0,
        np.float32(-2) / np.float32(3),
    ]


@pytest.mark.parametrize(
    ("name", "truth"), [("sum", any), ("prod", all), ("max", any), ("min", all), ("bor", any)]
)
def test_bool_counts_no_further_than_1(name: str, truth: Any) -> None:
    cases = list(itertools.product((0, 1), repeat=3))
    rows = np.array(cases, np.uint8).T
    assert TorchReduction(name, torch.bool).fold(rows).tolist() == [truth(c) for c in cases]


def test_what_hccl_does_itself() -> None:
    def in_hccl(dtype: torch.dtype) -> list[str | None]:
        return [TorchReduction(name, dtype).in_hccl for name in ("sum", "avg", "prod", "min")]

    assert in_hccl(torch.float32) == ["sum", "avg", "prod", "min"]
    assert in_hccl(torch.int32) == ["sum", None, "prod", "min"]
    assert in_hccl(torch.bool) == [None, None, None, "min"]
    assert [TorchReduction(name, torch.complex64).in_hccl for name in ("sum", "avg")] == [
        "sum",
        "avg",
    ]
    assert {TorchReduction(name, torch.int32).in_hccl for name in ("band", "bor", "bxor")} == {None}


@pytest.mark.parametrize(
    ("name", "dtype", "words"),
    [
        ("band", torch.float32, "band does not take torch.float32"),
        ("bxor", torch.complex64, "bxor does not take torch.complex64"),
        ("sum", torch.float8_e5m2, "sum does not take torch.float8_e5m2"),
        ("max", torch.complex64, "does not support max on complex tensors"),
    ],
)
def test_what_no_rank_could_reduce_is_refused(name: str, dtype: torch.dtype, words: str) -> None:
    with pytest.raises(NotSupportedError, match=words):
        TorchReduction(name, dtype)


def test_ops_of_torch_have_names() -> None:
    ops = (ReduceOp.SUM, ReduceOp.AVG, ReduceOp.PRODUCT, ReduceOp.MIN, ReduceOp.MAX)
    bits = (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)
    assert [reduction_of(op, torch.int8).name for op in (*ops, *bits)] == list(FOLDED)
    with pytest.raises(NotSupportedError, match="is not offered"):
        reduction_of(ReduceOp.PREMUL_SUM, torch.float32)


def test_a_tensors_memory_is_the_array() -> None:
    tensor = torch.arange(6.0).reshape(2, 3)
    assert np.may_share_memory(array_of(tensor), tensor.numpy())
    assert flat(tensor).tolist() == [0, 1, 2, 3, 4, 5]
    flat(tensor)[4] = 9
    assert tensor[1, 1] == 9
    turned = tensor.t()
    assert flat(turned).tolist() == [0, 3, 1, 9, 2, 5]
    assert not np.may_share_memory(flat(turned), tensor.numpy())
    assert array_of(torch.tensor([1 + 2j])).tolist() == [[1.0, 2.0]]
    assert array_of(torch.tensor([1.0]).to(torch.float8_e5m2)).dtype == np.uint8


def test_tensors_are_joined_and_dealt_out() -> None:
    parts = [torch.arange(2.0), torch.arange(6.0).reshape(2, 3).t(), torch.empty(0)]
    whole = joined(parts)
    assert whole.tolist() == [0, 1, 0, 3, 1, 4, 2, 5]
    assert np.may_share_memory(joined(parts[:1]), parts[0].numpy())
    made = [torch.zeros(2), torch.zeros(3, 2), torch.zeros(0)]
    put_parts(made, whole, [2, 6, 0])
    assert all(torch.equal(a, b) for a, b in zip(made, parts, strict=True))


def test_an_output_has_the_size_and_type_of_the_result() -> None:
    tensor = torch.zeros(3)
    put(tensor, np.arange(3, dtype=np.float32))
    assert tensor.tolist() == [0, 1, 2]
    for elements in (np.zeros(2, np.float32), np.zeros(4, np.float32), np.zeros(3, np.float64)):
        with pytest.raises(ParameterError, match="The output has 3 elements of float32, the resul"):
            put(tensor, elements)
    lazy = torch.tensor([1 + 2j]).conj()
    put(lazy, np.array([3.0, 4.0], np.float32))
    assert lazy.tolist() == [3 + 4j]


PROGRAM = recorded("AllGatherMeshOpbaseExecutor", op_of("all_gather", 5), 3)


def selected(executor: str) -> Selection:
    return Selection("all_gather", executor, executor, {}, "", (), "")


def test_bytes_that_leave_a_rank_are_counted() -> None:
    """In the mesh two peers read the 20 bytes of every rank."""
    trace = CallTrace("all_gather", 1, selected("Mesh"), PROGRAM)
    assert trace.sent_bytes == 2 * 20
    assert str(trace) == "all_gather: all_gather of 5 fp32 on 3 ranks by Mesh, 40 bytes sent"
    folded = CallTrace("all_reduce", 1, selected(""), PROGRAM, folded=True)
    assert "with nothing to do, then folded at every rank, 40 bytes" in str(folded)


def test_the_last_64_calls_are_kept() -> None:
    for number in range(TRACES + 6):
        note(CallTrace.of(f"call {number}", 0, Result([], selected("Mesh"), PROGRAM)))
    assert TRACES == 64
    kept = traces()
    assert [kept[0].call, kept[-1].call, len(kept)] == ["call 6", "call 69", 64]
    assert last_trace() is kept[-1]


def test_a_call_ends_once() -> None:
    work = TorchWork(["out"])
    assert (work.is_completed(), work.is_success(), work.exception()) == (False, False, None)
    with pytest.raises(RuntimeError, match=r"Timed out after 0.001 s"):
        work.wait(timedelta(milliseconds=1))
    work.run(lambda: None)
    assert (work.wait(), work.is_completed(), work.is_success()) == (True, True, True)
    assert (work.result(), work.get_future().wait()) == (["out"], ["out"])
    work.drop()
    assert work.is_success()


def test_a_call_that_fails_says_so_to_all_who_wait() -> None:
    def lose() -> None:
        raise PeerLostError("Rank 1 has gone.", "Start anew.")

    lost, dropped, wrong = (TorchWork([]) for _ in range(3))
    lost.run(lose)
    dropped.drop()
    wrong.run(lambda: 1 // 0)  # type: ignore[arg-type]
    assert [work.ends_group for work in (lost, dropped, wrong)] == [True, False, False]
    for work, words in ((lost, "Rank 1 has gone"), (dropped, "was closed before"), (wrong, "zero")):
        assert (work.is_completed(), work.is_success()) == (True, False)
        with pytest.raises(Exception, match=words):
            work.wait()
        with pytest.raises(Exception, match=words):
            JoinedWork([work]).wait()
    assert isinstance(wrong.exception(), ZeroDivisionError)


def test_calls_that_were_made_at_once() -> None:
    done, open_ = TorchWork([]), TorchWork([])
    done.run(lambda: None)
    assert JoinedWork([done, done]).wait()
    both = JoinedWork([done, open_])
    assert (both.is_completed(), both.is_success()) == (False, False)
    open_.fail(ValueError("no"))
    assert (both.is_completed(), both.is_success()) == (True, False)


def test_errors_are_torchs() -> None:
    own = ValueError("own")
    assert as_torch_error(own) is own
    late = as_torch_error(ExecTimeoutError("Rank 1 waited.", ""))
    assert str(late).startswith("hccl_py: Timed out (EI0002): Rank 1 waited.")
    assert isinstance(late, torch.distributed.DistBackendError)
    assert isinstance(late.__cause__, ExecTimeoutError)

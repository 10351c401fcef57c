"""Recording: from an executor and a call to a program.

All ranks start as one batch. Where the executor's code branches on a value that differs between
ranks, `Diverged` ends the attempt, the batch is split by that value and each part is recorded anew:
orchestration is a pure function, so nothing is lost. Recording every rank as a batch of its own
gives the same task view.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from hccl_py.enums import Buffer, Mode
from hccl_py.errors import HcclError, OrchestrationError, did_you_mean
from hccl_py.executor import Executor, executor_name
from hccl_py.lines import Line, is_recording_file, spell_line
from hccl_py.op_param import OpParam
from hccl_py.orchestration.fabric import Fabric, RankRequest, build_fabric
from hccl_py.orchestration.rank import Rank, RankView
from hccl_py.orchestration.recorder import Recorder, Texts
from hccl_py.orchestration.requests import checked_request
from hccl_py.program.instruction import Batch, Instruction
from hccl_py.program.program import Declared, Program
from hccl_py.resources import ResourceRequest
from hccl_py.topology.topology import Topology
from hccl_py.values import Diverged, IntArray, OutOfBoundsError

__all__ = ["Binder", "record"]

T = TypeVar("T")

MANY_BATCHES = 64
"""More batches than this earn a hint that names the author's line."""


class Binder(Protocol):
    """The part of an operator that recording needs."""

    def bind(self, op: OpParam, rank: Rank[Any, Any], start: int, count: int) -> None:
        """Set user_in and user_out of the rank to elements start .. start + count of each slot."""

    def user_bytes(self, op: OpParam, ranks: int) -> tuple[int, int]:
        """Return the bytes of one rank's input and output."""


def record(
    executor: Executor,
    op: OpParam,
    topology: Topology,
    operator: Binder,
    ccl_bytes: int,
    *,
    by_rank: bool = False,
) -> Program:
    """Record a call; `by_rank` gives every rank a batch of its own.

    Raises OrchestrationError, which names executor, ranks and source line, when the executor does
    something impossible.
    """
    whole = [np.array([r]) for r in range(topology.size)] if by_rank else [np.arange(topology.size)]
    splits: list[str] = []

    def request(ids: IntArray) -> ResourceRequest:
        view = RankView(ids, op, topology, ccl_bytes)
        return checked_request(executor.resources(op, view))

    requests = [
        RankRequest(ids, r) for ids, r in _in_batches(executor, "resources", whole, request, splits)
    ]
    fabric = build_fabric(topology, op.mode, requests)
    rounds = _rounds(op, requests, executor)
    labels, lines = Texts[str](), Texts[Line]()

    def orchestrate(ids: IntArray) -> list[Instruction]:
        recorder = Recorder(op.dtype, op.reduce, labels, lines)
        rank: Rank[Any, Any] = Rank(
            ids, op, fabric, recorder, ccl_bytes, fabric.request_of(int(ids[0]))
        )
        for number, (start, count) in enumerate(rounds):
            recorder.round = number
            operator.bind(op, rank, start, count)
            returned: object = executor.orchestrate(op, rank)  # type: ignore[func-returns-value]
            if returned is not None:
                _refuse_returned(returned)
        return recorder.instructions

    parts = (
        [np.array([r]) for r in range(topology.size)] if by_rank else [r.ranks for r in requests]
    )
    recorded = _in_batches(executor, "orchestrate", parts, orchestrate, splits)
    batches = tuple(Batch(_frozen(ids), tuple(ins)) for ids, ins in recorded)
    return _program(
        executor, op, operator, fabric, ccl_bytes, batches, labels, lines, len(rounds), splits
    )


def _refuse_returned(returned: object) -> None:
    if isinstance(returned, Coroutine):
        returned.close()
    raise OrchestrationError(
        f"returned a {type(returned).__name__}.",
        "orchestrate records by calling methods and returns nothing: no yield, no async.",
    )


def _in_batches(
    executor: Executor,
    what: str,
    parts: Sequence[IntArray],
    work: Callable[[IntArray], T],
    splits: list[str],
) -> list[tuple[IntArray, T]]:
    """Do `work` for every batch, splitting where ranks diverge; ordered by first ranks."""
    waiting, done = list(parts), []
    while waiting:
        ids = waiting.pop()
        try:
            done.append((ids, work(ids)))
        except Diverged as split:
            waiting += [ids[split.keys == key] for key in np.unique(split.keys)]
            splits.append(spell_line(split.line))
        except HcclError as error:
            error.message = (
                f"{executor_name(executor)}.{what}, {_spell_ranks(ids)}: {error.message}"
            )
            raise
        except Exception as error:
            raise _author_error(executor, what, ids, error) from error
    return sorted(done, key=lambda part: int(part[0][0]))


def _author_error(
    executor: Executor, what: str, ids: IntArray, error: Exception
) -> OrchestrationError:
    """Turn an exception of an author's code into an error that names the line."""
    frames = [
        f for f in traceback.extract_tb(error.__traceback__) if not is_recording_file(f.filename)
    ]
    frame = (frames or traceback.extract_tb(error.__traceback__))[-1]
    where = "/".join(frame.filename.split("/")[-2:]) + f":{frame.lineno}"
    finding = "OUT_OF_BOUNDS" if isinstance(error, OutOfBoundsError) else ""
    return OrchestrationError(
        f"{executor_name(executor)}.{what}, {_spell_ranks(ids)}: "
        f"{type(error).__name__}: {error} ({where})",
        _author_hint(error, frame.line),
        finding=finding,
        line=where,
    )


def _author_hint(error: Exception, line: str | None) -> str:
    """Say what to do, where that can be known."""
    if isinstance(error, IndexError) and "only integers" in str(error):
        return "A per-rank value cannot index a numpy array: use Chunks, or int(value)."
    if isinstance(error, AttributeError) and error.name and error.obj is not None:
        return did_you_mean(error.name, [n for n in dir(error.obj) if not n.startswith("_")])
    return f"The line reads: {line}" if line else ""


def _spell_ranks(ids: IntArray) -> str:
    if len(ids) == 1:
        return f"rank {ids[0]}"
    shown = ", ".join(map(str, ids[:4].tolist()))
    return f"ranks {shown}{', ...' if len(ids) > 4 else ''}"


def _rounds(
    op: OpParam, requests: Sequence[RankRequest], executor: Executor
) -> list[tuple[int, int]]:
    """Return (first element, elements) of every round; all ranks agree, so the smallest max_count
    rules.
    """
    limits = [r.request.max_count for r in requests if r.request.max_count is not None]
    if op.mode is Mode.GRAPH or not limits or not op.count:
        return [(0, op.count)]
    each = min(limits)
    if each < 1:
        raise OrchestrationError(
            f"{executor_name(executor)} cannot move even one element per round: "
            "the CCL buffer is too small.",
            "Set HCCL_BUFFSIZE to a larger number of MB.",
        )
    return [(start, min(each, op.count - start)) for start in range(0, op.count, each)] or [(0, 0)]


def _program(
    executor: Executor,
    op: OpParam,
    operator: Binder,
    fabric: Fabric,
    ccl_bytes: int,
    batches: tuple[Batch, ...],
    labels: Texts[str],
    lines: Texts[Line],
    rounds: int,
    splits: list[str],
) -> Program:
    ranks = fabric.topology.size
    declared = {
        name: np.zeros(ranks, np.int64) for name in ("sub_streams", "notify_count", "scratch_bytes")
    }
    for group in fabric.requests:
        for name, values in declared.items():
            values[group.ranks] = getattr(group.request, name)
    sizes = np.zeros((ranks, len(Buffer)), np.int64)
    sizes[:, Buffer.USER_IN], sizes[:, Buffer.USER_OUT] = operator.user_bytes(op, ranks)
    sizes[:, Buffer.CCL_IN] = sizes[:, Buffer.CCL_OUT] = ccl_bytes
    sizes[:, Buffer.SCRATCH] = declared["scratch_bytes"]
    return Program(
        op=op,
        executor=executor_name(executor),
        ranks=ranks,
        buffers=tuple(buffer.spelling for buffer in Buffer),
        buffer_sizes=_frozen(sizes),
        transports=fabric.transports,
        local_notifies=fabric.local_notifies,
        declared=Declared(*map(_frozen, declared.values())),
        batches=batches,
        labels=tuple(labels.numbers),
        lines=tuple(spell_line(line) for line in lines.numbers),
        rounds=rounds,
        splits=tuple(splits) if len(batches) > MANY_BATCHES else (),
    )


def _frozen(array: IntArray) -> IntArray:
    array.flags.writeable = False
    return array

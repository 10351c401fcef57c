"""Recording: from an executor and a call to a program.

All ranks start as one batch. Where the executor's code branches on a value that differs between
ranks, `Diverged` ends the attempt, the batch is split by that value and each part is recorded anew:
orchestration is a pure function, so nothing is lost. Recording every rank as a batch of its own
gives the same task view.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from hccl_py.enums import Buffer, Mode
from hccl_py.errors import HcclError, OrchestrationError
from hccl_py.executor import Executor, executor_name, with_levels
from hccl_py.lines import Line, format_line
from hccl_py.op_param import OpParam
from hccl_py.orchestration.allowance import Allowance, Counted
from hccl_py.orchestration.author_errors import (
    author_error,
    definition_line,
    ranks_of,
)
from hccl_py.orchestration.fabric import Fabric, RankRequest, build_fabric
from hccl_py.orchestration.rank import Rank, RankView
from hccl_py.orchestration.recorder import Recorder
from hccl_py.orchestration.requests import checked_request
from hccl_py.program.describe import format_ranks
from hccl_py.program.instruction import Batch, Instruction, Texts
from hccl_py.program.program import Declared, Program
from hccl_py.resources import ResourceRequest
from hccl_py.topology.topology import Topology
from hccl_py.values import Diverged, IntArray

__all__ = ["Binder", "record"]

T = TypeVar("T")

MANY_BATCHES = 64
"""More batches than this earn a hint that names the author's line."""


class Binder(Protocol):
    """The part of an operator that recording needs."""

    def bind(self, op: OpParam, rank: Rank[Any, Any], start: int, count: int) -> None:
        """Set user_in and user_out of the rank to elements start .. start + count of each slot."""

    def user_bytes(self, op: OpParam, ranks: int) -> tuple[IntArray, IntArray]:
        """Return the bytes of every rank's input and output."""


def record(
    executor: Executor,
    op: OpParam,
    topology: Topology,
    operator: Binder,
    ccl_bytes: int,
    *,
    by_rank: bool = False,
    allowance: Allowance | None = None,
) -> Program:
    """Record a call; `by_rank` gives every rank a batch of its own, `allowance` counts.

    Raises TooMuchError where more is recorded than is allowed, and OrchestrationError, which names
    executor, ranks and source line, when the executor does something impossible; its `finding`,
    `ranks` and `line` say the same to programs.
    """
    op = with_levels(executor, op)
    whole = [np.array([r]) for r in range(topology.size)] if by_rank else [np.arange(topology.size)]
    splits: list[str] = []

    def request(ids: IntArray) -> ResourceRequest:
        view = RankView(ids, op, topology, ccl_bytes)
        return checked_request(executor.resources(op, view))

    requests = [
        RankRequest(ids, r) for ids, r in _in_batches(executor, "resources", whole, request, splits)
    ]
    try:
        fabric = build_fabric(topology, op.mode, requests)
    except OrchestrationError as error:
        name, line = executor_name(executor), definition_line(executor.resources)
        said = error.reworded(f"{name}.resources: {error.message.rstrip('.')} ({line}).")
        said.line = line
        raise said from error
    rounds = _rounds(op, requests, executor)
    labels, lines = Texts[str](), Texts[Line]()

    def orchestrate(ids: IntArray) -> list[Instruction]:
        recorder = Recorder(op.dtype, op.reduce, labels, lines)
        if allowance is not None:
            recorder.instructions = Counted(allowance)
        rank: Rank[Any, Any] = Rank(
            ids, op, fabric, recorder, ccl_bytes, fabric.request_of(int(ids[0]))
        )
        for number, (start, count) in enumerate(rounds):
            recorder.round, rank.start = number, start
            operator.bind(op, rank, start, count)
            returned: object = executor.orchestrate(op, rank)  # type: ignore[func-returns-value]
            if returned is not None:
                _refuse_returned(returned)
        if recorder.not_entered:
            raise OrchestrationError(
                f"phase({recorder.not_entered[0]!r}) is no block, so it labels nothing.",
                "Write `with stream.phase(...):` and the tasks inside.",
            )
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
            splits.append(format_line(split.line))
        except HcclError as error:
            raise _complete(executor, what, ids, error) from error.__cause__
        except (Exception, SystemExit) as error:
            raise author_error(f"{executor_name(executor)}.{what}", ids, error) from error
    return sorted(done, key=lambda part: int(part[0][0]))


def _complete(executor: Executor, what: str, ids: IntArray, error: HcclError) -> HcclError:
    """Return an error that says who recorded for which ranks; one without a line gets the
    method's.
    """
    message, line = error.message, ""
    if isinstance(error, OrchestrationError):
        line = error.line or definition_line(getattr(executor, what))
        message = message if error.line else f"{message.rstrip('.')} ({line})."
    said = error.reworded(
        f"{executor_name(executor)}.{what}, {format_ranks(ranks_of(ids))}: {message}"
    )
    if isinstance(said, OrchestrationError):
        said.ranks, said.line = ranks_of(ids), line
    return said.with_traceback(error.__traceback__)


def _rounds(
    op: OpParam, requests: Sequence[RankRequest], executor: Executor
) -> list[tuple[int, int]]:
    """Return (first element, elements) of every round; all ranks agree, so the smallest max_count
    rules.
    """
    limits = [r.request.max_count for r in requests if r.request.max_count is not None]
    if op.mode is Mode.GRAPH or not limits or not op.extent:
        return [(0, op.extent)]
    each = min(limits)
    if each < 1:
        raise OrchestrationError(
            f"{executor_name(executor)} cannot move even one element per round: "
            "the CCL buffer is too small.",
            "Set HCCL_BUFFSIZE to a larger number of MB.",
            line=definition_line(executor.resources),
            ranks=tuple(r for g in requests if g.request.max_count == each for r in g.ranks),
        )
    return [(start, min(each, op.extent - start)) for start in range(0, op.extent, each)]


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
        declared=_declared(fabric, **declared),
        batches=batches,
        labels=tuple(labels.numbers),
        lines=tuple(format_line(line) for line in lines.numbers),
        rounds=rounds,
        splits=tuple(splits) if len(batches) > MANY_BATCHES else (),
    )


def _declared(
    fabric: Fabric, sub_streams: IntArray, notify_count: IntArray, scratch_bytes: IntArray
) -> Declared:
    """Return the requests of all ranks; a recording states everything."""
    return Declared(
        sub_streams=_frozen(sub_streams),
        notifies=_frozen(notify_count),
        scratch_bytes=_frozen(scratch_bytes),
        local_notifies=_frozen(fabric.local_notifies.counts(sub_streams, notify_count)),
        stated=np.ones((len(sub_streams), 3), bool),
    )


def _frozen(array: IntArray) -> IntArray:
    array.flags.writeable = False
    return array

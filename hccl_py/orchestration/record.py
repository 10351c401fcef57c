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

from hccl_py.call.op_param import OpParam
from hccl_py.enums import Mode
from hccl_py.errors import HcclError, OrchestrationError
from hccl_py.lines import Line, format_line
from hccl_py.orchestration.allowance import Allowance, LimitedList
from hccl_py.orchestration.author_errors import author_error, definition_line, ranks_of
from hccl_py.orchestration.channels.fabric import ChannelFabric, build_channels
from hccl_py.orchestration.channels.rank import ChannelRank
from hccl_py.orchestration.fabric import Fabric, RankRequest, build_fabric
from hccl_py.orchestration.progress import NoProgressError, watched
from hccl_py.orchestration.rank import CallRank, Rank, RankView
from hccl_py.orchestration.recorder import Recorder
from hccl_py.orchestration.requests import checked_request
from hccl_py.plugins.executor import Executor, executor_name, with_levels
from hccl_py.plugins.resources import ChannelResources, ResourceRequest
from hccl_py.program.describe import format_ranks
from hccl_py.program.instruction import Batch, Instruction, Texts
from hccl_py.program.program import Program
from hccl_py.topology.topology import Topology
from hccl_py.values import Diverged, IntArray

T = TypeVar("T")

MANY_BATCHES = 64
"""More batches than this earn a hint that names the author's line."""


class Binder(Protocol):
    """The part of an operator that recording needs."""

    def bind(self, op: OpParam, rank: CallRank[Any, Any], start: int, count: int) -> None:
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

    Raises TooMuchError beyond the allowance, and OrchestrationError, which names executor, ranks
    and source line (to programs, too), when the executor does something impossible.
    """
    op = with_levels(executor, op)
    whole = [np.array([r]) for r in range(topology.size)] if by_rank else [np.arange(topology.size)]
    splits: list[str] = []

    def request(ids: IntArray) -> ResourceRequest | ChannelResources:
        view = RankView(ids, op, topology, ccl_bytes)
        return checked_request(executor.resources(op, view))

    with watched(lambda: len(splits)):
        asked = _in_batches(executor, "resources", whole, request, splits)
    requests = [RankRequest(ids, r) for ids, r in asked]
    fabric = _fabric(executor, topology, op, requests)
    rounds = _rounds(op, requests, executor)
    labels, lines = Texts[str](), Texts[Line]()
    recorders: list[Recorder] = []

    def orchestrate(ids: IntArray) -> list[Instruction]:
        recorder = Recorder(op.dtype, op.reduce, labels, lines)
        recorders[:] = [recorder]
        if allowance is not None:
            recorder.instructions = LimitedList(allowance)
        rank = _rank(ids, op, fabric, recorder, ccl_bytes)
        recorder.rounds = len(rounds)
        for number, (start, count) in enumerate(rounds):
            recorder.round, rank.start, rank.count = number, start, count
            operator.bind(op, rank, start, count)
            returned: object = executor.orchestrate(op, rank)  # type: ignore[func-returns-value]
            if returned is not None:
                _refuse_returned(returned)
            recorder.check_rounds()
        _check_phases(recorder)
        return recorder.instructions

    parts = (
        [np.array([r]) for r in range(topology.size)] if by_rank else [r.ranks for r in requests]
    )
    with watched(lambda: [(id(r), r.round, len(r.instructions)) for r in recorders]):
        recorded = _in_batches(executor, "orchestrate", parts, orchestrate, splits)
    batches = tuple(Batch(_frozen(ids), tuple(ins)) for ids, ins in recorded)
    return _program(
        executor, op, operator, fabric, ccl_bytes, batches, labels, lines, len(rounds), splits
    )


def _check_phases(recorder: Recorder) -> None:
    """Refuse a phase that no `with` entered."""
    if recorder.not_entered:
        raise OrchestrationError(
            f"phase({recorder.not_entered[0]!r}) is no block, so it labels nothing.",
            "Write `with stream.phase(...):` and the tasks inside.",
        )


def _fabric(
    executor: Executor,
    topology: Topology,
    op: OpParam,
    requests: Sequence[RankRequest[ResourceRequest | ChannelResources]],
) -> Fabric | ChannelFabric:
    """Build the transports or channels that the ranks request; errors name `resources`."""
    try:
        return _build_fabric(topology, op, requests)
    except OrchestrationError as error:
        name, line = executor_name(executor), definition_line(executor.resources)
        named = error.reworded(f"{name}.resources: {error.message.rstrip('.')} ({line}).")
        named.line = line
        raise named from error


def _build_fabric(
    topology: Topology,
    op: OpParam,
    requests: Sequence[RankRequest[ResourceRequest | ChannelResources]],
) -> Fabric | ChannelFabric:
    """Build what the kind of the requests asks for; refuse both kinds at once."""
    planes = [
        RankRequest(r.ranks, r.request) for r in requests if isinstance(r.request, ResourceRequest)
    ]
    channels = [
        RankRequest(r.ranks, r.request) for r in requests if isinstance(r.request, ChannelResources)
    ]
    if planes and channels:
        one, other = (ranks_of(kind[0].ranks) for kind in (planes, channels))
        raise OrchestrationError(
            f"{format_ranks(one)} ask for a ResourceRequest, {format_ranks(other)} for "
            "ChannelResources.",
            "All ranks of an op record on the same: planes and links, or threads and channels.",
            finding="RESOURCE_MISMATCH",
            ranks=(one[0], other[0]),
        )
    if channels:
        return build_channels(topology, channels)
    return build_fabric(topology, op.mode, planes)


def _rank(
    ids: IntArray,
    op: OpParam,
    fabric: Fabric | ChannelFabric,
    recorder: Recorder,
    ccl_bytes: int,
) -> Rank[Any, Any] | ChannelRank[Any, Any]:
    if isinstance(fabric, ChannelFabric):
        return ChannelRank(ids, op, fabric, recorder, ccl_bytes)
    return Rank(ids, op, fabric, recorder, ccl_bytes, fabric.request_of(int(ids[0])))


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
    """Do `work` for every batch, splitting where ranks diverge; return results by first rank."""
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
        except (Exception, SystemExit, NoProgressError) as error:
            raise author_error(f"{executor_name(executor)}.{what}", ids, error) from error
    return sorted(done, key=lambda part: int(part[0][0]))


def _complete(executor: Executor, what: str, ids: IntArray, error: HcclError) -> HcclError:
    """Return an error that names executor, method and ranks; one without a line gets the
    method's.
    """
    message, line = error.message, ""
    if isinstance(error, OrchestrationError):
        line = error.line or definition_line(getattr(executor, what))
        message = message if error.line else f"{message.rstrip('.')} ({line})."
    named = error.reworded(
        f"{executor_name(executor)}.{what}, {format_ranks(ranks_of(ids))}: {message}"
    )
    if isinstance(named, OrchestrationError):
        named.ranks, named.line = ranks_of(ids), line
    return named.with_traceback(error.__traceback__)


def _rounds(
    op: OpParam,
    requests: Sequence[RankRequest[ResourceRequest | ChannelResources]],
    executor: Executor,
) -> list[tuple[int, int]]:
    """Return (first element, elements) of every round, the same for all ranks: the first rounds
    that they name, then rounds of the smallest max_count.
    """
    in_user_memory = op.mode is Mode.GRAPH and isinstance(requests[0].request, ResourceRequest)
    limits = [r.request.max_count for r in requests if r.request.max_count is not None]
    if in_user_memory or not limits or not op.extent:
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
    found, start = [], 0
    for count in _first_rounds(requests, executor):
        found.append((start, min(count, op.extent - start)))
        start += found[-1][1]
    found += [(at, min(each, op.extent - at)) for at in range(start, op.extent, each)]
    return found


def _first_rounds(
    requests: Sequence[RankRequest[ResourceRequest | ChannelResources]], executor: Executor
) -> tuple[int, ...]:
    """Return the elements of the first rounds; all ranks must name the same."""
    named = {r.request.first_rounds for r in requests}
    if len(named) > 1:
        raise OrchestrationError(
            f"{executor_name(executor)}: ranks name {len(named)} different first_rounds.",
            "All ranks go through the same rounds: compute them from what all ranks know.",
            line=definition_line(executor.resources),
        )
    return named.pop()


def _program(
    executor: Executor,
    op: OpParam,
    operator: Binder,
    fabric: Fabric | ChannelFabric,
    ccl_bytes: int,
    batches: tuple[Batch, ...],
    labels: Texts[str],
    lines: Texts[Line],
    rounds: int,
    splits: list[str],
) -> Program:
    ranks = fabric.topology.size
    user_in, user_out = operator.user_bytes(op, ranks)
    declared = fabric.declared()
    for name in ("sub_streams", "notifies", "scratch_bytes", "local_notifies"):
        _frozen(getattr(declared, name))
    return Program(
        op=op,
        executor=executor_name(executor),
        ranks=ranks,
        buffers=fabric.buffers,
        buffer_sizes=_frozen(fabric.memory(user_in, user_out, ccl_bytes)),
        transports=fabric.transports,
        local_notifies=fabric.local_notifies,
        declared=declared,
        batches=batches,
        labels=tuple(labels),
        lines=tuple(format_line(line) for line in lines),
        rounds=rounds,
        splits=tuple(splits) if len(batches) > MANY_BATCHES else (),
    )


def _frozen(array: IntArray) -> IntArray:
    array.flags.writeable = False
    return array

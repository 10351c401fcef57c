"""From a trace to a job. Ranks whose nodes differ in groups and durations only are issued
together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from hccl_interop.chakra.order import Move, moves_of
from hccl_interop.chakra.reading import CHAKRA
from hccl_interop.chakra.streams import Comm, TraceStreams, comm_of, members_of
from hccl_interop.chakra.values import WORLD, Call, Collective, RankFile, Trace, TraceNode
from hccl_py.call.op_param import OpParam
from hccl_py.communicator.communicator import Communicator
from hccl_py.documents.kind import named
from hccl_py.enums import DataType
from hccl_py.errors import ParameterError
from hccl_py.jobs import Event, Job, JobStream
from hccl_py.operators import make_operator


@dataclass(frozen=True)
class Roofline:
    """Rates of a device: 10^12 operations and 10^9 bytes of memory a second."""

    tflops: float
    memory_gbps: float

    def __post_init__(self) -> None:
        if not all(0 < rate < float("inf") for rate in (self.tflops, self.memory_gbps)):
            raise ParameterError(
                f"A roofline of {self.tflops:g} TFLOPS and {self.memory_gbps:g} GB/s is none.",
                "Give two numbers above 0.",
            )

    def duration_us(self, ops: int, size: int) -> float:
        """Return a kernel's microseconds: the longer of its computing and its memory traffic."""
        return max(ops / self.tflops * 1e-6, size / self.memory_gbps * 1e-3)


def job_of(
    trace: Trace,
    world: Communicator,
    dtype: DataType = DataType.FP32,
    roofline: Roofline | None = None,
    *,
    buffered: bool = False,
) -> Job:
    """Return the job of a trace on the ranks of a communicator.

    `dtype` is the data type of calls whose node has none; their bytes are rounded up to whole
    elements. `roofline` is the speed of kernels that have operations and no duration. A send ends
    when its message is received, as HCCL's does; with `buffered`, nodes that depend on a send start
    before that.

    Raises ParameterError where the communicator has another number of ranks, and for a kernel with
    neither a duration nor a roofline; ProgramFileError for a node on no stream of the trace; and
    the errors of planning a call.
    """
    if world.size != len(trace.ranks):
        raise ParameterError(
            f"The trace has {len(trace.ranks)} ranks, the communicator {world.size}.",
            "Take a communicator of as many ranks.",
        )
    return _JobBuilder(trace, world, dtype, roofline, buffered).job()


_Doing: TypeAlias = tuple[int, tuple[int, ...], str, object]
"""A move without its rank: stream, waits, label, and the call without group and peer."""


class _JobBuilder:
    """Issues a trace, ranks of alike moves at once."""

    def __init__(
        self,
        trace: Trace,
        world: Communicator,
        dtype: DataType,
        roofline: Roofline | None,
        buffered: bool,
    ) -> None:
        self._trace, self._world, self._buffered = trace, world, buffered
        self._dtype, self._roofline = dtype, roofline
        self._comms: dict[Comm, Communicator] = {}
        self._known: dict[object, tuple[Move, ...]] = {}

    def job(self) -> Job:
        job = Job(self._world.topology)
        streams = named(self._trace.name, CHAKRA, lambda: TraceStreams(self._trace))
        issued = [job.stream(name) for name in streams.names]
        alike: dict[tuple[_Doing, ...], list[tuple[int, tuple[Move, ...]]]] = {}
        for number, rank in enumerate(self._trace.ranks):
            moves = named(rank.file, CHAKRA, partial(self._moves, rank, streams))
            alike.setdefault(_doings(rank, moves), []).append((number, moves))
        for ranks in alike.values():
            self._issue(job, issued, [number for number, _ in ranks], [m for _, m in ranks])
        return job

    def _moves(self, rank: RankFile, streams: TraceStreams) -> tuple[Move, ...]:
        where = streams.of(rank)
        key = where, tuple(node.deps for node in rank.nodes)
        if key not in self._known:
            self._known[key] = moves_of(rank.nodes, where, buffered=self._buffered)
        return self._known[key]

    def _issue(
        self,
        job: Job,
        streams: Sequence[JobStream],
        ranks: list[int],
        moves: list[tuple[Move, ...]],
    ) -> None:
        """Issue the moves of these ranks, one after the other."""
        here = [stream.on(ranks) for stream in streams]
        awaited = {number for move in moves[0] for number in move.waits}
        events: dict[int, Event] = {}
        for number, steps in enumerate(zip(*moves, strict=True)):
            nodes = [self._node(rank, step) for rank, step in zip(ranks, steps, strict=True)]
            stream = here[steps[0].stream]
            job.line = f"{self._trace.ranks[ranks[0]].file}:{nodes[0].id}"
            for wait in steps[0].waits:
                stream.wait(events[wait])
            if nodes[0].call is None:
                self._compute(stream, ranks, nodes)
            else:
                self._run(stream, ranks, nodes)
            if number in awaited:
                events[number] = stream.record()
        job.line = ""

    def _node(self, rank: int, move: Move) -> TraceNode:
        return self._trace.ranks[rank].nodes[move.position]

    def _compute(self, stream: JobStream, ranks: list[int], nodes: list[TraceNode]) -> None:
        durations = [self._duration(rank, node) for rank, node in zip(ranks, nodes, strict=True)]
        alike = len(set(durations)) == 1
        stream.compute(durations[0] if alike else durations, nodes[0].name)

    def _duration(self, rank: int, node: TraceNode) -> float:
        if node.duration_us or not node.num_ops:
            return float(node.duration_us)
        if self._roofline is None:
            where = f"{self._trace.ranks[rank].file}: node {node.id}: duration_micros"
            raise ParameterError(
                f"{where}: expected a duration, found num_ops only.",
                "Say how fast devices are: --roofline TFLOPS,GBPS.",
            )
        return self._roofline.duration_us(node.num_ops, node.tensor_size)

    def _run(self, stream: JobStream, ranks: list[int], nodes: list[TraceNode]) -> None:
        for comms in self._disjoint(ranks, nodes):
            members = [rank for ranks_of_comm in comms.values() for rank in ranks_of_comm]
            first = next(iter(comms))
            call = nodes[0].call
            assert call is not None
            op = self._op(call, len(members_of(self._trace, first)))
            communicators = [self._communicator(comm) for comm in comms]
            stream.on(members).run(communicators, op, nodes[0].name)

    def _disjoint(
        self, ranks: list[int], nodes: list[TraceNode]
    ) -> Iterator[dict[Comm, list[int]]]:
        """Yield groups and message pairs with the ranks that call them, as many at once as share
        no rank and are of one size.
        """
        left: dict[Comm, list[int]] = {}
        for rank, node in zip(ranks, nodes, strict=True):
            comm = comm_of(self._trace, node)
            assert comm is not None
            left.setdefault(comm, []).append(rank)
        while left:
            taken: set[int] = set()
            size = len(members_of(self._trace, next(iter(left))))
            now: dict[Comm, list[int]] = {}
            for comm in list(left):
                members = members_of(self._trace, comm)
                if len(members) == size and taken.isdisjoint(members):
                    taken.update(members)
                    now[comm] = left.pop(comm)
            yield now

    def _communicator(self, comm: Comm) -> Communicator:
        if comm not in self._comms:
            self._comms[comm] = self._new_communicator(comm)
        return self._comms[comm]

    def _new_communicator(self, comm: Comm) -> Communicator:
        members = members_of(self._trace, comm)
        if comm == WORLD and members == tuple(range(self._world.size)):
            return self._world
        if isinstance(comm, str):
            name = self._trace.groups[comm].title
        else:
            name = "_".join(str(part) for part in ("p2p", *comm) if part != -1)
        made = self._world.create_group(members, name=name)
        assert made is not None, "the emulated platform has all ranks"
        return made

    def _op(self, call: Call, ranks: int) -> OpParam:
        """Return the parameters of a call."""
        dtype = call.dtype or self._dtype
        if not isinstance(call, Collective):
            count = -(-call.size // dtype.itemsize)
            return OpParam("send_recv", count, dtype, pairs=((0, 1),))
        operator = make_operator(call.op)
        parts = ranks if operator.facts.slots_in else 1
        count = -(-call.size // (dtype.itemsize * parts))
        op = OpParam(call.op, count, dtype)
        if call.op == "barrier":
            op = operator.variants()[0](replace(op, dtype=DataType.FP32), ranks)
        if operator.reduces:
            op = replace(op, reduce=call.reduce)
        return replace(op, root=call.root) if operator.rooted else op


def _doings(rank: RankFile, moves: tuple[Move, ...]) -> tuple[_Doing, ...]:
    nodes = rank.nodes
    return tuple(
        (move.stream, move.waits, nodes[move.position].name, _alike(nodes[move.position].call))
        for move in moves
    )


def _alike(call: Call | None) -> object:
    """Return a call without its group and peer."""
    if isinstance(call, Collective):
        return call._replace(group="")
    return None if call is None else (call.size, call.dtype)

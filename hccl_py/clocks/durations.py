"""Times of tasks alone: the one place that decides them, read by all simulations.

    stream_us = bytes · rate + start + handling + kernel
    after_us  = bytes · rate of the RDMA connection + latency of a post

Each term is a table by kind of task and cost class, zero where it does not apply. The class of a
task says over which sort of link it works, if over any, and how slow its rank is; rates also depend
on how many flows of its device share what that moves over such links. A simulation of
the task view asks for many tasks at once, one by batches for one instruction of many ranks (a lane
each); colours of ranks ask which columns the times depend on. All of them add the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from hccl_py.clocks.alpha import AlphaRule
from hccl_py.clocks.cost import CostModel, per_byte
from hccl_py.clocks.device_flows import NO_SORT, flows_at_once
from hccl_py.clocks.engines import launch_us
from hccl_py.clocks.jitter import Jitter
from hccl_py.clocks.links import LinkClasses, Links
from hccl_py.clocks.stragglers import EVEN, Stragglers
from hccl_py.enums import POST, RDMA_WRITES, WAIT, TaskKind
from hccl_py.errors import ParameterError
from hccl_py.program.instruction import Batch, Instruction
from hccl_py.program.program import Program
from hccl_py.topology.topology import Topology
from hccl_py.values import Floats, IntArray, PerRank, values_of

Lanes: TypeAlias = "int | npt.NDArray[Any]"
Ints: TypeAlias = npt.NDArray[Any]


class CostColumns(NamedTuple):
    """All columns that the times of tasks depend on, besides jitter: each column is an array, or
    one number where all tasks agree. A batch may state size and duration as formulas.
    """

    kind: Lanes
    cost_class: Lanes
    size: Lanes | PerRank
    duration_us: float | Floats | PerRank
    pays_alpha: Lanes
    flows: Lanes = 1


class TaskDurations(NamedTuple):
    """Microseconds: `stream_us` keeps the stream busy, `task_us` of it passes before data moves;
    `after_us` is the latency of a post, or the time of an RDMA write on its connection.
    """

    stream_us: Floats
    task_us: Floats
    after_us: Floats


class Durations:
    """The tables of a program's times.

    Tables are [task kind, class], those of rates [flows, task kind, class]; classes go by link,
    then by rank: class = link · slownesses + slowness. `launch_us` is when the first tasks may
    start; `joins` says that the tasks of a step take together as long as the longest. `jitter` has
    the factors that all of a task is multiplied with.

    With `shares_devices`, transfers of a rank that may run at once divide the rates of its device;
    without it those of links are all that counts: contended simulation has the rest as links.
    """

    def __init__(
        self,
        program: Program,
        topology: Topology | None,
        cost: CostModel,
        slow: Stragglers = EVEN,
        *,
        shares_devices: bool = True,
    ) -> None:
        if isinstance(topology, CostModel):
            raise ParameterError(
                "A cost model stands where the topology is expected.",
                "The order is (program, topology, cost, slow).",
            )
        self.links = Links.of(program, topology, cost, slow)
        cost = self.links.cost
        found = self.links.classes(program.transports)
        factors, self._of_rank = np.unique(slow.of_ranks(program.ranks), return_inverse=True)
        self._of_end = found.of_end
        self._slownesses = len(factors)
        self._local = len(found.alpha_us)
        self._flows = _Flows(program, found) if shares_devices and found.device_us.any() else None
        protocol = cost.protocols.of(program.protocol)
        self.launch_us = launch_us(program, topology, cost)
        self.joins = cost.joined_tasks == "longest"
        self.jitter = Jitter.of(program, cost)
        self.alpha_rule = AlphaRule.of(program, cost)
        self._is_rdma = np.repeat(np.append(found.is_rdma, False), len(factors))
        factor = np.tile(factors, self._local + 1)
        most = 1 if self._flows is None else self._flows.most
        stream, connection = _rates(cost, found, per_byte(protocol.gbps), most)
        self._stream_rate = np.repeat(stream, len(factors), axis=2) * factor
        self._connection_rate = np.repeat(connection, len(factors), axis=1) * factor
        self._start, self._handling, self._kernel = np.zeros((3, *self._connection_rate.shape))
        self._start[_MOVING] = np.repeat(_starts(cost, found), len(factors)) * factor
        self._handling[POST], self._handling[WAIT] = cost.post_us * factor, cost.wait_us * factor
        self._kernel[TaskKind.COMPUTE] = factor
        self._latency = np.zeros((*self._connection_rate.shape, 2))
        self._latency[POST] = np.repeat(_latencies(cost, found), len(factors), axis=0)

    def times(self, columns: CostColumns) -> TaskDurations:
        """Return the times of tasks alone, without jitter; columns are plain numbers here."""
        kind, of, size, duration_us, pays_alpha, flows = map(np.asarray, columns)
        task_us = self._start[kind, of] * (size > 0)
        stream_us = size * self._stream_rate[flows - 1, kind, of] + task_us
        stream_us = stream_us + self._handling[kind, of]
        stream_us = stream_us + duration_us * self._kernel[kind, of]
        after_us = size * self._connection_rate[kind, of] + self._latency[kind, of, pays_alpha]
        return TaskDurations(*map(np.asarray, (stream_us, task_us, after_us)))

    def per_byte(self, kind: Lanes, of: Lanes) -> Floats:
        """Return the microseconds per byte of data tasks while their data moves."""
        return np.asarray(self._stream_rate[0, kind, of] + self._connection_rate[kind, of])

    def flows(self, batch: Batch) -> Sequence[Lanes]:
        """Return for each instruction of a batch how many flows share the rate of its device;
        nothing where no device has such a rate.
        """
        return () if self._flows is None else self._flows.of(batch)

    def flows_by_row(self, program: Program) -> Ints | None:
        """Return that for every row of the task view; None where no device has such a rate."""
        if self._flows is None:
            return None
        found = np.ones(len(program.tasks), np.int64)
        for batch in program.batches:
            rows = program.tasks.first[batch.ranks]
            for number, flows in enumerate(self._flows.of(batch)):
                found[rows + number] = flows
        return found

    def classes(self, ranks: Ints, ends: Ints) -> Lanes:
        """Return the class of lanes by their ranks and transport ends (-1: none): one number where
        all agree.
        """
        ends = np.atleast_1d(np.asarray(ends))
        link = np.where(ends < 0, self._local, self._of_end[ends] if len(self._of_end) else 0)
        found = link.astype(np.int32) * self._slownesses
        if self._slownesses > 1:
            found = found + self._of_rank[ranks].astype(np.int32)
        same = len(found) > 0 and (found == found[0]).all()
        return int(found[0]) if same else found

    def pays_alpha(self, of: Lanes, cell: Ints | int) -> Lanes:
        """Return 1 for posts on these cells that pay α, else 0: one number where all agree."""
        pays = np.atleast_1d(self.alpha_rule.pays(cell, self._is_rdma[of])).astype(np.int8)
        same = len(pays) > 0 and (pays == pays[0]).all()
        return int(pays[0]) if same else pays


class BatchColumns:
    """The columns of a batch's instructions, a lane for each rank; equal ones are looked up once
    and are the same arrays.
    """

    def __init__(self, durations: Durations, ranks: IntArray) -> None:
        self._durations, self._ranks = durations, ranks
        self._classes: dict[object, Lanes] = {}
        self._pays: dict[object, Lanes] = {}

    def of(self, i: Instruction, flows: Lanes = 1) -> CostColumns:
        """Return the columns of an instruction that shares its device with so many flows."""
        end = identity(i.end)
        if end not in self._classes:
            self._classes[end] = self._durations.classes(self._ranks, values_of(i.end))
        cost_class = self._classes[end]
        pays = self._pays_alpha(i, end, cost_class) if i.kind == POST else 0
        return CostColumns(int(i.kind), cost_class, i.size, i.duration_us, pays, flows)

    def differing(self, instructions: Iterable[Instruction]) -> Iterator[npt.NDArray[Any]]:
        """Yield the columns in which lanes differ, each once: where lanes agree in all of these,
        all their tasks take the same times.
        """
        known = set()
        for instruction in instructions:
            for column in self.of(instruction):
                if isinstance(column, (PerRank, np.ndarray)) and identity(column) not in known:
                    known.add(identity(column))
                    yield values_of(column)

    def _pays_alpha(self, i: Instruction, end: object, cost_class: Lanes) -> Lanes:
        known = identity(i.cell), end
        if known not in self._pays:
            cell = values_of(i.cell)
            if self._durations.alpha_rule.is_by_number and isinstance(i.cell, PerRank):
                cell = int(cell[0])  # numbers of notifies are the same for all lanes
            self._pays[known] = self._durations.pays_alpha(cost_class, cell)
        return self._pays[known]


def identity(value: Any) -> object:
    """Return a key that tells columns apart; valid as long as their arrays live."""
    if isinstance(value, PerRank):
        return value.key()
    return ("array", id(value)) if isinstance(value, np.ndarray) else value


def step_begins(joined: Ints, moves_data: Ints, first: Ints) -> IntArray:
    """Return the places at which steps begin, in tasks listed stream by stream; streams begin at
    `first`. Where steps take as long as their longest task, the last task of each takes that long,
    and the others take nothing.
    """
    goes_on = (joined > 0) & moves_data
    goes_on[1:] &= moves_data[:-1]
    goes_on[first] = False
    return np.flatnonzero(~goes_on)


class _Flows:
    """Counts of flows that share a device, batch by batch; each is counted once."""

    def __init__(self, program: Program, classes: LinkClasses) -> None:
        shared = classes.device_us > 0
        sort = np.where(shared, classes.medium.astype(np.int64), NO_SORT)
        self._sort = np.append(sort[classes.of_end], NO_SORT)  # behind the last end: none, -1
        self._first_local = program.transports.cells
        self._known = {id(batch): self._of(batch) for batch in program.batches}
        every = (np.max(flows) for batch in self._known.values() for flows in batch)
        self.most = int(max(every, default=1))

    def of(self, batch: Batch) -> Sequence[Lanes]:
        """Return the counts of a batch of the program, by instruction."""
        return self._known[id(batch)]

    def _of(self, batch: Batch) -> list[Lanes]:
        sorts = [self._sort_of(i) for i in batch.instructions]
        return flows_at_once(batch.instructions, sorts, self._first_local)

    def _sort_of(self, i: Instruction) -> Lanes:
        """Return the sort of a transfer of some bytes over links, those pulled and pushed apart."""
        if not i.kind.moves_data or i.kind in RDMA_WRITES:
            return NO_SORT
        sort = self._sort[values_of(i.end)]
        if isinstance(i.size, PerRank):
            sort = np.where(i.size.values() > 0, sort, NO_SORT)
        elif not i.size:
            return NO_SORT
        found = np.where(sort == NO_SORT, NO_SORT, 2 * sort + i.kind.reads_remote)
        return found if found.ndim else int(found)


_MOVING = [kind for kind in TaskKind if kind.moves_data]


def _rates(cost: CostModel, links: LinkClasses, least: float, flows: int) -> tuple[Floats, Floats]:
    """Return rates on streams, [flows, task kind, link class or local], and on connections, [task
    kind, link class or local]; no stream and no connection takes less than `least` for a byte.
    """
    shape = (len(TaskKind), len(links.alpha_us) + 1)
    stream, connection = np.zeros((flows, *shape)), np.zeros(shape)
    several = np.arange(1, flows + 1)[:, None] * links.device_us
    for kind in _MOVING:
        if kind in (TaskKind.COPY, TaskKind.REDUCE):
            stream[:, kind, -1] = max(cost.gamma_us if kind.reduces else cost.copy_us, least)
            continue
        gamma = cost.inline_gamma_us if kind.reduces else 0.0
        beta = links.read_us if kind.reads_remote else links.write_us
        if kind in RDMA_WRITES:
            connection[kind, :-1] = np.maximum(_with_reduction(cost, beta, gamma), least)
        else:
            moved = _with_reduction(cost, np.maximum(beta, several), gamma)
            stream[:, kind, :-1] = np.maximum(moved, least)
    return stream, connection


def _with_reduction(cost: CostModel, beta: Floats, gamma: float) -> Floats:
    """Return the µs per byte of transfers that reduce on their way."""
    return np.maximum(beta, gamma) if cost.inline_reductions == "longest" else beta + gamma


def _starts(cost: CostModel, links: LinkClasses) -> Floats:
    """Return the start of a data task, [link class or local]."""
    return cost.task_us + np.append(links.start_us, 0.0)


def _latencies(cost: CostModel, classes: LinkClasses) -> Floats:
    """Return the latencies of notifies, [link class or local, without or with α]."""
    latency = np.full((len(classes.alpha_us) + 1, 2), cost.notify_us)
    latency[:-1, 1] = classes.alpha_us
    latency[-1] = cost.inside_us
    return latency

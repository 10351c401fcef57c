"""Times of tasks alone, one task at a time, by the table of docs/simulation.md.

It covers all of the cost model that the contended view has, but for α by message, steps that take
as long as their longest task and MSCCL's protocols, which it refuses; the least time of a call is
not a task's.
"""

import math

from hccl_py.enums import TaskKind
from hccl_py.program.program import Program
from hccl_py.simulator import CostModel, LinkCost, Stragglers
from hccl_py.topology import Topology
from tests.simulator.naive_routes import Link, NaiveRoutes, Way

ACK, DATA_SIGNAL, DATA_ACK = range(3)
LOCAL = (TaskKind.COPY, TaskKind.REDUCE)
READS = (TaskKind.READ, TaskKind.READ_REDUCE)
PUSHES = (TaskKind.RDMA_WRITE, TaskKind.RDMA_WRITE_REDUCE)
REDUCING = (
    TaskKind.REDUCE,
    TaskKind.READ_REDUCE,
    TaskKind.WRITE_REDUCE,
    TaskKind.RDMA_WRITE_REDUCE,
)


def factor_by_hand(seed: int, rank: int, stream: int, place: int, jitter: float) -> float:
    """Return a task's factor from Python's whole numbers, to the last bit."""

    def mixed(x: int) -> int:
        x = (x ^ x >> 32) % 2**32
        x = (x ^ x >> 16) * 0x21F0AAAD % 2**32
        x = (x ^ x >> 15) * 0x735A2D97 % 2**32
        return x ^ x >> 15

    u = mixed(mixed(mixed(mixed(seed) ^ rank) + stream) + place * 0x9E3779B1) / 2**32
    return 1 + jitter / math.sqrt(1 / 7 - 1 / 16) * (u * u * u)


class NaiveCosts:
    """Of every task row: µs on its stream, those of them before data moves (`task_us`), µs after it
    (a latency, or the bytes of an RDMA write), and its RDMA connection (-1: none).
    """

    def __init__(
        self, program: Program, topology: Topology, cost: CostModel, slow: Stragglers
    ) -> None:
        assert cost.alpha_by == "number", "α by message is not in this reference"
        assert cost.joined_tasks == "sum", "steps of joined tasks are not in this reference"
        assert not program.protocol, "MSCCL's protocols are not in this reference"
        self.program, self.topology, self.cost = program, topology, cost
        self.links = NaiveRoutes(topology, cost, slow)
        self.slow_ranks = dict(slow.ranks)
        rows = range(len(program.tasks))
        times = [self._times(row) for row in rows]
        self.on_stream = [stream_us for stream_us, _, _ in times]
        self.task_us = [task_us for _, task_us, _ in times]
        self.after = [after_us for _, _, after_us in times]
        self.connection = [self._connection(row) for row in rows]

    def kind(self, row: int) -> TaskKind:
        """Return the kind of a task."""
        return TaskKind(int(self.program.tasks.kind[row]))

    def shares(self, row: int) -> dict[Link, float]:
        """Return the links that a task's data takes, and memory where that is shared."""
        rank = int(self.program.tasks.rank[row])
        if self.kind(row) in LOCAL:
            found: dict[Link, float] = {(rank, rank): 1.0}
        else:
            source, target = self._ends(row)
            found = dict(self._way(row).shares)
            if self.cost.memory_users == "all":
                found |= {(source, source): 1.0, (target, target): 1.0}
        return {
            link: share for link, share in found.items() if self.links.capacity(link) < math.inf
        }

    def _ends(self, row: int) -> tuple[int, int]:
        """Return the ranks from which and to which a task moves data, or tells something."""
        transports, end = self.program.transports, int(self.program.tasks.end[row])
        pair = int(transports.rank[end]), int(transports.peer[end])
        return pair[::-1] if self.kind(row) in READS else pair

    def _way(self, row: int) -> Way:
        transports, end = self.program.transports, int(self.program.tasks.end[row])
        plane = transports.planes[int(transports.plane[end])]
        return self.links.way(*self._ends(row), plane, is_rdma=self._is_rdma(row))

    def _is_rdma(self, row: int) -> bool:
        end = int(self.program.tasks.end[row])
        return end >= 0 and bool(self.program.transports.is_rdma[end])

    def _connection(self, row: int) -> int:
        sends = self.kind(row) == TaskKind.NOTIFY_POST or self.after[row] > 0
        return int(self.program.tasks.end[row]) if self._is_rdma(row) and sends else -1

    def _times(self, row: int) -> tuple[float, float, float]:
        cost, kind, tasks = self.cost, self.kind(row), self.program.tasks
        place = int(tasks.rank[row]), int(tasks.stream[row]), int(tasks.index[row])
        rank = self.slow_ranks.get(place[0], 1.0)
        chance = factor_by_hand(cost.jitter_seed, *place, cost.jitter)
        if kind == TaskKind.NOTIFY_WAIT:
            times = cost.wait_us * rank, 0.0, 0.0
        elif kind == TaskKind.NOTIFY_POST:
            times = cost.post_us * rank, 0.0, self._latency(row)
        elif kind == TaskKind.COMPUTE:
            times = float(tasks.table.duration_us[tasks.instruction[row]]) * rank, 0.0, 0.0
        elif not tasks.size[row]:
            times = 0.0, 0.0, 0.0
        else:
            times = self._moving(row, rank)
        return times[0] * chance, times[1] * chance, times[2] * chance

    def _moving(self, row: int, rank: float) -> tuple[float, float, float]:
        """Return the times of a task that moves bytes."""
        cost, kind, size = self.cost, self.kind(row), int(self.program.tasks.size[row])
        gamma = inverse(cost.reduce_gbps) if kind in REDUCING else 0.0
        if kind in LOCAL:
            rate, start = (
                gamma if kind == TaskKind.REDUCE else inverse(cost.copy_gbps),
                cost.task_us,
            )
        else:
            slow = self._slowness(row)
            beta = self._beta(row, slow)
            rate = max(beta, gamma) if cost.inline_reductions == "longest" else beta + gamma
            start = cost.task_us + self._link(self._way(row)).start_us * slow
        moved, start = size * rate * rank, start * rank
        return (start, start, moved) if kind in PUSHES else (start + moved, start, 0.0)

    def _beta(self, row: int, slow: float) -> float:
        """Return the µs per byte of a flow alone."""
        way = self._way(row)
        if self.topology.network is not None:
            betas = [
                share / self.links.capacity(link) * self.links.slowness(link)
                for link, share in way.shares.items()
            ]
            return max(betas) * slow
        of = self._link(way)
        own = of.read_gbps if self.kind(row) in READS else of.write_gbps
        ports = [port.gbps for port in self.cost.shared_ports if way.sort in port.links]
        return slow * max(inverse(g) for g in (own or of.gbps, of.device_gbps, *ports))

    def _latency(self, row: int) -> float:
        """Return the µs until a post is there: α for an Ack over SDMA, for a DataSignal over RDMA,
        and for extra notifies over both.
        """
        cost, transports = self.cost, self.program.transports
        cell = int(self.program.tasks.cell[row])
        if cell >= transports.cells:
            return cost.notify_us if cost.local_notify_us is None else cost.local_notify_us
        answers = (ACK, DATA_ACK) if self._is_rdma(row) else (DATA_SIGNAL, DATA_ACK)
        if cell % transports.stride in answers:
            return cost.notify_us
        way, server = self._way(row), self.topology.server
        of = self._link(way)
        source, target = self._ends(row)
        is_far = server[source] != server[target] and self.topology.network is None
        alpha = of.far_alpha_us if is_far and of.far_alpha_us is not None else of.alpha_us
        return (alpha + way.latency_us) * self._slowness(row)

    def _slowness(self, row: int) -> float:
        """Return the factor of the slowest link on a task's route, and of its two ranks where no
        link of their own joins them.
        """
        of_links = max(self.links.slowness(link) for link in self._way(row).shares)
        return of_links * self.links.pair_slowness(*self._ends(row))

    def _link(self, way: Way) -> LinkCost:
        found: LinkCost = getattr(self.cost, way.sort)
        return found


def inverse(gbps: float | None) -> float:
    """Return the µs per byte of a rate; none takes no time."""
    return 0.0 if gbps is None else 1e-3 / gbps

"""How long tasks take alone, as tables of which all simulations add the same numbers.

A lane is a rank of an instruction, or a task. Its class says over which sort of link it works, if
over any, and how slow its rank is.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from hccl_py.clocks.alpha import AlphaRule
from hccl_py.clocks.cost import CostModel, per_byte
from hccl_py.clocks.jitter import Jitter
from hccl_py.clocks.links import LinkClasses, Links
from hccl_py.clocks.stragglers import EVEN, Stragglers
from hccl_py.enums import RDMA_WRITES, TaskKind
from hccl_py.errors import ParameterError
from hccl_py.program.program import Program
from hccl_py.topology.topology import Topology
from hccl_py.values import Floats

Lanes: TypeAlias = "int | npt.NDArray[Any]"
Ints: TypeAlias = npt.NDArray[Any]


class Durations:
    """Durations of a program's tasks; a data task takes `fixed + bytes · rate`, and 0 for no bytes.

    `post_us` and `wait_us` are the stream's time for posts, and for waits once they need not wait.
    `stream_rate` is time on the stream, `connection_rate` on an RDMA connection, which the stream
    does not wait for, both [task kind, class]. `latency` is how long after a post its cell is set,
    [class, whether it pays α]. Classes go by link, then by rank: class = link · slownesses +
    slowness. `launch_us` is when the first tasks may start; `joins` says that the tasks of a
    step take together as long as the longest. `jitter` is by what all of a task is multiplied.
    """

    def __init__(
        self,
        program: Program,
        topology: Topology | None,
        cost: CostModel,
        slow: Stragglers = EVEN,
    ) -> None:
        if isinstance(topology, CostModel):
            raise ParameterError(
                "A cost model stands where the topology is expected.",
                "The order is (program, topology, cost, slow).",
            )
        self.links = Links.of(program, topology, cost, slow)
        found = self.links.classes(program.transports)
        factors, self._of_rank = np.unique(slow.of_ranks(program.ranks), return_inverse=True)
        self._of_end = found.of_end
        self._slownesses = len(factors)
        self._local = len(found.alpha_us)
        self.factor: Floats = np.tile(factors, self._local + 1)
        self.task_us: Floats = cost.task_us * self.factor
        self.post_us: Floats = cost.post_us * self.factor
        self.wait_us: Floats = cost.wait_us * self.factor
        protocol = cost.protocols.of(program.protocol)
        self.launch_us = protocol.launch_us
        self.joins = cost.joined_tasks == "longest"
        self.jitter = Jitter.of(program, cost)
        self.alpha_rule = AlphaRule.of(program, cost)
        self._is_rdma = np.repeat(np.append(found.is_rdma, False), len(factors))
        stream, connection = _rates(cost, found.beta_us, per_byte(protocol.gbps))
        self.stream_rate = np.repeat(stream, len(factors), axis=1) * self.factor
        self.connection_rate = np.repeat(connection, len(factors), axis=1) * self.factor
        self.latency = np.repeat(_latencies(cost, found), len(factors), axis=0)

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

    def on_stream(self, kind: Lanes, of: Lanes, size: Ints) -> Floats:
        """Return the stream's time for data tasks of so many bytes."""
        return np.asarray(size * self.stream_rate[kind, of] + self.task_us[of] * (size > 0))

    def on_connection(self, kind: Lanes, of: Lanes, size: Ints) -> Floats:
        """Return the connection's time for RDMA writes."""
        return np.asarray(size * self.connection_rate[kind, of])

    def of_compute(self, of: Lanes, duration_us: npt.NDArray[np.float64]) -> Floats:
        """Return the stream's time for kernels that take so long on a rank that is not slow."""
        return np.asarray(duration_us * self.factor[of])

    def pays_alpha(self, of: Lanes, cell: Ints | int) -> Lanes:
        """Return whether posts on these cells pay α: one number where all agree."""
        pays = np.atleast_1d(self.alpha_rule.pays(cell, self._is_rdma[of])).astype(np.int8)
        same = len(pays) > 0 and (pays == pays[0]).all()
        return int(pays[0]) if same else pays

    def of_post(self, of: Lanes, pays: Lanes) -> Floats:
        """Return the latency of posts that pay α, or do not."""
        return np.asarray(self.latency[of, pays])


def _rates(cost: CostModel, beta: Floats, least: float) -> tuple[Floats, Floats]:
    """Return rates on streams and connections, [task kind, link class or local]; no stream and no
    connection takes less than `least` for a byte.
    """
    shape = (len(TaskKind), len(beta) + 1)
    stream, connection = np.zeros(shape), np.zeros(shape)
    for kind in TaskKind:
        if not kind.moves_data:
            continue
        gamma = cost.gamma_us if kind.reduces else 0.0
        if kind in (TaskKind.COPY, TaskKind.REDUCE):
            stream[kind, -1] = max(gamma if kind.reduces else cost.copy_us, least)
        else:
            rates = connection if kind in RDMA_WRITES else stream
            both = np.maximum(beta, gamma) if cost.inline_reductions == "longest" else beta + gamma
            rates[kind, :-1] = np.maximum(both, least)
    return stream, connection


def _latencies(cost: CostModel, classes: LinkClasses) -> Floats:
    """Return what notifies take, [link class or local, without or with α]."""
    latency = np.full((len(classes.alpha_us) + 1, 2), cost.notify_us)
    latency[:-1, 1] = classes.alpha_us
    latency[-1] = cost.inside_us
    return latency

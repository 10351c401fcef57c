"""How long tasks take alone, as tables of which all simulations add the same numbers.

A lane is a rank of an instruction, or a task. Its class says over which sort of link it works, if
over any, and how slow its rank is.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from hccl_py.cost import CostModel
from hccl_py.enums import RDMA_WRITES, TaskKind
from hccl_py.errors import ParameterError
from hccl_py.program.program import Program
from hccl_py.program.transports import ACK, DATA_ACK, OWN_NOTIFIES
from hccl_py.simulator.links import LinkClasses, Links
from hccl_py.stragglers import EVEN, Stragglers
from hccl_py.topology.topology import Topology
from hccl_py.values import Floats

__all__ = ["Durations", "pays_alpha"]

Lanes: TypeAlias = "int | npt.NDArray[Any]"
Ints: TypeAlias = npt.NDArray[Any]


class Durations:
    """Durations of a program's tasks; a data task takes `fixed + bytes · rate`, and 0 for no bytes.

    `stream_rate` is time on the stream, `connection_rate` on an RDMA connection, which the stream
    does not wait for, both [task kind, class]. `latency` is how long after a post its cell is set,
    [class, notify]. Classes go by link, then by rank: class = link · slownesses + slowness.
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
        self.links = Links(topology, cost, slow)
        found = self.links.classes(program.transports)
        factors, self._of_rank = np.unique(slow.of_ranks(program.ranks), return_inverse=True)
        self._of_end = found.of_end
        self._slownesses = len(factors)
        self._local = len(found.alpha_us)
        self.factor: Floats = np.tile(factors, self._local + 1)
        self.task_us: Floats = cost.task_us * self.factor
        stream, connection = _rates(cost, found.beta_us)
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

    def of_post(self, of: Lanes, notify: Ints | int) -> Floats:
        """Return the latency of posts; `notify` is the index of the cell at its transport end, -1
        for a local one.
        """
        return np.asarray(self.latency[of, np.minimum(notify, OWN_NOTIFIES)])


def pays_alpha(notify: Ints, is_rdma: Ints) -> npt.NDArray[np.bool_]:
    """Return whether notifies of transports pay the α of a step: over SDMA the Ack that lets data
    go, over RDMA the DataSignal that follows the data, or an extra notify that stands for one.
    """
    is_answer, is_extra = np.isin(notify, (ACK, DATA_ACK)), np.greater_equal(notify, OWN_NOTIFIES)
    return np.where(is_rdma, ~is_answer, np.equal(notify, ACK) | is_extra)


def _rates(cost: CostModel, beta: Floats) -> tuple[Floats, Floats]:
    """Return rates on streams and connections, [task kind, link class or local]."""
    shape = (len(TaskKind), len(beta) + 1)
    stream, connection = np.zeros(shape), np.zeros(shape)
    for kind in TaskKind:
        if not kind.moves_data:
            continue
        gamma = cost.gamma_us if kind.reduces else 0.0
        if kind in (TaskKind.COPY, TaskKind.REDUCE):
            stream[kind, -1] = gamma if kind.reduces else cost.copy_us
        else:
            (connection if kind in RDMA_WRITES else stream)[kind, :-1] = beta + gamma
    return stream, connection


def _latencies(cost: CostModel, classes: LinkClasses) -> Floats:
    """Return what notifies take, [link class or local, Ack, DataSignal, DataAck or any other]."""
    latency = np.full((len(classes.alpha_us) + 1, OWN_NOTIFIES + 1), cost.notify_us)
    notify, is_rdma = np.arange(OWN_NOTIFIES + 1), classes.is_rdma[:, None]
    latency[:-1] = np.where(pays_alpha(notify, is_rdma), classes.alpha_us[:, None], cost.notify_us)
    return latency

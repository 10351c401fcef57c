"""The cost model: one α, β and γ per kind of link, in microseconds and microseconds per byte.

α is paid once per step, as the latency of the Ack that lets the data go. A data task costs bytes·β,
and bytes·γ more where it reduces. DataSignal, DataAck, local notifies and the start of any task
have parameters of their own, 0 by default.

Sources: HCCL's own selection uses 18.3 GB/s per HCCS link and 20 GB/s per RoCE port of 910B; its
newest cost model takes 750 GB/s for local copies and 483 GB/s for reductions. α is 10 µs, an
engineering choice for wall-clock estimates (HCCL's selection takes 60 µs).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hccl_py.enums import LinkKind, TaskKind
from hccl_py.program.transports import ACK

__all__ = ["CostModel", "Durations", "LinkCost"]

LOCAL = len(LinkKind)
"""Where the tables below keep tasks that use no link."""

Floats = npt.NDArray[np.float64]
Ints = int | npt.NDArray[Any]


@dataclass(frozen=True)
class LinkCost:
    """α in microseconds, β in microseconds per byte."""

    alpha_us: float
    beta_us: float


def _per_byte(gigabytes_per_second: float) -> float:
    return 1e-3 / gigabytes_per_second


@dataclass(frozen=True)
class CostModel:
    """Parameters of the model; see the module for their meaning."""

    name: str
    sdma: LinkCost = LinkCost(10.0, _per_byte(18.3))
    rdma: LinkCost = LinkCost(10.0, _per_byte(20.0))
    gamma_us: float = _per_byte(483.0)
    local_copy_us: float = _per_byte(750.0)
    notify_us: float = 0.0
    task_us: float = 0.0

    @staticmethod
    def of(product: str) -> CostModel:
        """Return the model of a product; networks for study use that of Atlas 800T A2."""
        return CostModel(product)

    def formula(self) -> CostModel:
        """Return the model of the closed formulas: only α, β and γ of links cost anything."""
        return replace(self, name="formula", local_copy_us=0.0, notify_us=0.0, task_us=0.0)

    def durations(self) -> Durations:
        """Tabulate by kind of task and link."""
        return Durations(self)


class Durations:
    """Tables [task kind, link kind or LOCAL]; a duration is `fixed + bytes · rate`, and 0 for no
    bytes.

    `stream` is time on the stream. `wire` is time on an RDMA connection, which the stream does not
    wait for. `latency` is how long after a post its cell is set, indexed [link kind or LOCAL,
    whether it is an Ack].
    """

    def __init__(self, cost: CostModel) -> None:
        shape = (len(TaskKind), LOCAL + 1)
        self.stream_rate = np.zeros(shape)
        self.wire_rate = np.zeros(shape)
        self.task_us = cost.task_us
        links = {LinkKind.SDMA: cost.sdma, LinkKind.RDMA: cost.rdma}
        for kind in TaskKind:
            if not kind.moves_data:
                continue
            gamma = cost.gamma_us if kind.reduces else 0.0
            if kind in (TaskKind.COPY, TaskKind.REDUCE):
                self.stream_rate[kind, LOCAL] = gamma if kind.reduces else cost.local_copy_us
            elif kind in (TaskKind.RDMA_WRITE, TaskKind.RDMA_WRITE_REDUCE):
                self.wire_rate[kind, LinkKind.RDMA] = cost.rdma.beta_us + gamma
            else:
                for link, of_link in links.items():
                    self.stream_rate[kind, link] = of_link.beta_us + gamma
        self.latency = np.full((LOCAL + 1, 2), cost.notify_us)
        for link, of_link in links.items():
            self.latency[link, 1] = of_link.alpha_us

    def on_stream(self, kind: Ints, link: Ints, size: npt.NDArray[Any]) -> Floats:
        """Return the stream's time for data tasks."""
        return np.asarray(size * self.stream_rate[kind, link] + self.task_us * (size > 0))

    def on_wire(self, kind: Ints, link: Ints, size: npt.NDArray[Any]) -> Floats:
        """Return the connection's time for RDMA writes."""
        return np.asarray(size * self.wire_rate[kind, link])

    def of_post(self, link: Ints, notify: Ints) -> Floats:
        """Return the latency of posts; `notify` is the index of the cell at its end."""
        is_ack = np.equal(notify, ACK) & np.not_equal(link, LOCAL)
        return np.asarray(self.latency[link, is_ack.astype(np.int8)])

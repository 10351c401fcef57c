"""The cost model: what a user may state of time, in one pydantic model.

α is paid once per step: over SDMA as the latency of the Ack that lets the data go, over RDMA as
that of the DataSignal that follows the data. A data task costs bytes·β, and bytes·γ more where it
reduces. Other notifies and the start of any task have parameters of their own. Rates are in GB/s
(1e9 bytes a second); a rate that is left out (null) costs nothing.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["CostModel", "LinkCost"]

Microseconds = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]
Rate = Annotated[float, Field(ge=1e-9, allow_inf_nan=False)] | None
"""From a byte a second, so that no time is beyond what numbers hold."""


class LinkCost(BaseModel):
    """One sort of link: α in microseconds, the rate of one flow in GB/s.

    Alone, a flow has the whole rate, so β is its inverse. `ports` says how many flows leave (and
    as many enter) a device at full rate where links end in a switch; links from device to device
    are one flow wide.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    alpha_us: Microseconds
    gbps: Rate
    ports: Annotated[int, Field(ge=1)] = 1

    @property
    def beta_us(self) -> float:
        """β: microseconds per byte."""
        return per_byte(self.gbps)


class CostModel(BaseModel):
    """Parameters of the model; see the module for their meaning.

    `hccs`, `sio`, `pcie` and `roce` are the links of products. Networks for study take `hccs` where
    they do not say themselves, and `hop_us` as the latency that each link of a route adds to α.
    `reduce_gbps` is γ's inverse, `copy_gbps` the rate of local copies. `memory_gbps` is shared by
    the local copies and reductions of one device that overlap, in contended simulation; without it
    they do not slow each other down. `sources` and `uncertain` are for people.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    hccs: LinkCost
    sio: LinkCost
    pcie: LinkCost
    roce: LinkCost
    reduce_gbps: Rate
    copy_gbps: Rate
    notify_us: Microseconds = 0.0
    task_us: Microseconds = 0.0
    hop_us: Microseconds = 0.0
    memory_gbps: Rate = None
    sources: str = ""
    uncertain: str = ""

    @staticmethod
    def of(product: str) -> CostModel:
        """Return the model of a product; networks for study use that of Atlas 800T A2."""
        from hccl_py.simulator.presets import COSTS, DEFAULT_COST

        return COSTS.get(product, COSTS[DEFAULT_COST])

    def formula(self) -> CostModel:
        """Return the model of the closed formulas: only α, β and γ of links cost anything."""
        free: dict[str, object] = {"copy_gbps": None, "memory_gbps": None}
        free |= {"notify_us": 0.0, "task_us": 0.0, "hop_us": 0.0}
        return self.model_copy(update={"name": "formula", **free})

    @property
    def gamma_us(self) -> float:
        """γ: microseconds per reduced byte."""
        return per_byte(self.reduce_gbps)

    @property
    def copy_us(self) -> float:
        """Microseconds per byte of a local copy."""
        return per_byte(self.copy_gbps)


def per_byte(gbps: float | None) -> float:
    """Return microseconds per byte of a rate in GB/s; nothing where there is none."""
    return 0.0 if gbps is None else 1e-3 / gbps

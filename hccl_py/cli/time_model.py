"""From the options of a command to a cost model, a kind of network and what is slow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from hccl_py.cli.options import TimeModel
from hccl_py.cli.request import Request
from hccl_py.errors import ParameterError, did_you_mean
from hccl_py.simulator import CostModel, Stragglers, find_cost
from hccl_py.simulator.entry import NETWORKS
from hccl_py.topology import Topology

__all__ = ["Model", "checked_model", "model_of"]


@dataclass(frozen=True)
class Model:
    """What model times are computed with, checked."""

    cost: CostModel
    network: Literal["uncontended", "contended"]
    slow: Stragglers
    stragglers: tuple[str, ...]
    """What is slow, as the user wrote it."""

    def document(self) -> dict[str, Any]:
        """Return the keys of a JSON document that say what the times mean."""
        return {
            "network": self.network,
            "cost": self.cost.name,
            "slow": list(self.stragglers),
            "clock": "model",
        }

    @property
    def conditions(self) -> str:
        """Whether links are shared, and what is slow, in a phrase."""
        return ", ".join([self.network, *(f"slow {text}" for text in self.stragglers)])


def model_of(options: TimeModel, request: Request) -> Model:
    """Return the model of a request, which is recorded for it from here on."""
    model = checked_model(options, request.topology)
    request.cost = model.cost
    return model


def checked_model(options: TimeModel, topology: Topology) -> Model:
    """Return the model; ParameterError names the option that is wrong."""
    if options.network not in NETWORKS:
        hint = did_you_mean(options.network, NETWORKS)
        raise ParameterError(f"--network {options.network!r} is unknown.", hint)
    product = topology.product.name
    cost = CostModel.of(product) if options.cost is None else find_cost(options.cost, product)
    slow = Stragglers.parse(options.slow or [])
    slow.of_ranks(topology.size)
    network: Any = options.network
    return Model(cost, network, slow, tuple(options.slow or []))

"""From the options of a command to a cost model, a kind of network and what is slow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hccl_py.cli.options import TimeModel
from hccl_py.cli.request import Request
from hccl_py.errors import ParameterError, did_you_mean
from hccl_py.simulator import CostModel, Stragglers, find_cost
from hccl_py.simulator.entry import NETWORKS, Network
from hccl_py.topology import Topology


@dataclass(frozen=True)
class Model:
    """What model times are computed with, checked."""

    cost: CostModel
    network: Network
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
        """Whether links are shared, by which chance, and what is slow, in a phrase."""
        cost = self.cost
        chance = [f"jitter {cost.jitter:g} of seed {cost.jitter_seed}"] if cost.jitter else []
        return ", ".join([self.network, *chance, *(f"slow {text}" for text in self.stragglers)])


def model_of(options: TimeModel, request: Request) -> Model:
    """Return the model of a request, which is recorded for it from here on."""
    model = checked_model(options, request.topology)
    request.cost = model.cost
    return model


def checked_model(options: TimeModel, topology: Topology) -> Model:
    """Return the model; ParameterError names the option that is wrong."""
    network = network_named(options.network)
    product = topology.product.name
    cost = CostModel.of(product) if options.cost is None else find_cost(options.cost, product)
    slow = Stragglers.parse(options.slow or [])
    slow.of_ranks(topology.size)
    return Model(cost, network, slow, tuple(options.slow or []))


def network_named(name: str) -> Network:
    """Return the kind of network of that name; ParameterError where there is none."""
    for network in NETWORKS:
        if network == name:
            return network
    raise ParameterError(f"--network {name!r} is unknown.", did_you_mean(name, NETWORKS))

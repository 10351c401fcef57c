"""From the models of a network's file to a topology, refusing what makes no network."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from hccl_py.documents.checks import at, defect, format_value
from hccl_py.errors import FileError, ParameterError, did_you_mean
from hccl_py.topology.networks.custom import (
    CustomNetwork,
    CustomNodes,
    DeclaredRoutes,
    LinkTable,
    PortTable,
)
from hccl_py.topology.networks.models import (
    NetworkLinkModel,
    NetworkModel,
    NetworkPortModel,
    NetworkRankModel,
    RouteModel,
)
from hccl_py.topology.networks.paths import Visited, ends
from hccl_py.topology.presets import JOINED, MAX_RANKS, PRESETS, Product
from hccl_py.topology.topology import Topology
from hccl_py.values import IntArray

MOST_LINKS = 1_000_000

SLACK = 2e-3
"""By how much the sum of shares may be off, which are written with a few digits: three thirds."""


def topology_from(model: NetworkModel, name: str) -> Topology:
    """Return the topology of a file; FileError for what makes no network."""
    _check_size("ranks", len(model.ranks), MAX_RANKS)
    _check_size("switches", len(model.switches), MAX_RANKS)
    _check_size("links", len(model.links), MOST_LINKS)
    _check_size("ports", len(model.ports), MOST_LINKS)
    product = _product(model)
    nodes = _numbered(model)
    links = _links(model.links, nodes)
    ports = _ports(model.ports, nodes, links)
    declared = _paths(model.routes, nodes, len(model.ranks), links)
    placed = _placed(model.ranks, product) if product else {}
    areas = {key: column for key, column in placed.items() if key != "device"}
    gbps = [np.inf] * len(model.ranks) + [s.gbps or np.inf for s in model.switches]
    gbps += [port.gbps for port in model.ports]
    names = (*nodes, *(port.name for port in model.ports))
    about = CustomNodes(names, len(model.ranks), np.array(gbps), areas, ports)
    network = CustomNetwork(
        model.name or name,
        about,
        _table(links, model.links),
        declared,
        is_sprayed=model.spray is not None,
    )
    _check_connected(network)
    if product is None:
        return Topology.routed(network)
    try:
        return Topology.placed(product, **placed, network=network)
    except ParameterError as error:
        raise FileError(f"ranks: {error.message}", error.hint) from None


def _check_size(key: str, count: int, most: int) -> None:
    if count > most:
        raise defect(key, f"at most {most}", str(count), "Draw a part of the network.")
    if key == "ranks" and not count:
        raise defect(key, "at least one rank", "none", 'Write {"name": "a"} for each.')


def _product(model: NetworkModel) -> Product | None:
    """Return the product of the servers, None where there are none; without one that is stated,
    SDMA joins all servers of a superpod.
    """
    if model.product is None:
        keys = ("server", "device", "superpod")
        places = (getattr(about, key) for about in model.ranks for key in keys)
        return JOINED if any(place is not None for place in places) else None
    if model.product not in PRESETS:
        hint = did_you_mean(model.product[:40], PRESETS)
        raise defect("product", "a product", format_value(model.product), hint)
    return PRESETS[model.product]


def _numbered(model: NetworkModel) -> dict[str, int]:
    """Return the node of every name of a rank or a switch."""
    found: dict[str, int] = {}
    named = [("ranks", k, rank.name) for k, rank in enumerate(model.ranks)]
    named += [("switches", k, switch.name) for k, switch in enumerate(model.switches)]
    named += [("ports", k, port.name) for k, port in enumerate(model.ports)]
    for key, number, name in named:
        path = at(key, number, "name")
        if name in found:
            raise defect(path, "a name of its own", f"{format_value(name)} twice", "Rename one.")
        if name.isdecimal() and not (key == "ranks" and name == str(number)):
            hint = "A number as a name is a rank's own: 0 for the first rank of the file."
            raise defect(path, "another name", format_value(name), hint)
        found[name] = len(found)
    return dict(list(found.items())[: len(model.ranks) + len(model.switches)])


Links = dict[tuple[int, int], int]
"""The model of every directed link, by source and target."""


def _links(models: list[NetworkLinkModel], nodes: dict[str, int]) -> Links:
    found: Links = {}
    for number, model in enumerate(models):
        source = _node(at("links", number, "from"), model.source, nodes)
        target = _node(at("links", number, "to"), model.target, nodes)
        if source == target:
            hint = "What a node lets through as a whole is the gbps of a switch."
            raise defect(
                at("links", number), "two nodes", f"{format_value(model.source)} twice", hint
            )
        for pair in ((source, target), (target, source))[: 1 + model.duplex]:
            if found.setdefault(pair, number) != number:
                again = f"the link that links[{found[pair]}] is"
                hint = "Write one link with the rates added up; links go both ways unless duplex is"
                raise defect(at("links", number), "another link", again, f"{hint} false.")
    return found


def _table(links: Links, models: list[NetworkLinkModel]) -> LinkTable:
    pairs = np.array(list(links), np.int64).reshape(-1, 2)
    rates = [(models[number].gbps, models[number].latency_us) for number in links.values()]
    numbers = np.array(rates, np.float64).reshape(-1, 2)  # None becomes NaN
    return LinkTable(pairs[:, 0], pairs[:, 1], numbers[:, 0], numbers[:, 1])


def _ports(models: list[NetworkPortModel], nodes: dict[str, int], links: Links) -> PortTable:
    """Return the ports, and which end of which link is in each."""
    neighbours: dict[int, dict[int, None]] = {}
    for one, other in links if models else ():
        neighbours.setdefault(one, {})[other] = None
        neighbours.setdefault(other, {})[one] = None
    owners: list[int] = []
    found: list[tuple[int, int, int]] = []
    for number, model in enumerate(models):
        path = at("ports", number)
        node = _node(at(path, "of"), model.of, nodes)
        joined = neighbours.get(node, {})
        if not joined:
            raise defect(path, "a node with links", format_value(model.of), "Draw its links.")
        names_some = "to" in model.model_fields_set
        others = _listed(path, model, nodes, joined) if names_some else list(joined)
        _check_size("ends of links in ports", len(found) + len(others), MOST_LINKS)
        owners.append(node)
        found += [(len(nodes) + number, node, other) for other in others]
    columns = np.array(found, np.int64).reshape(-1, 3)
    return PortTable(np.array(owners, np.int64), columns[:, 0], columns[:, 1], columns[:, 2])


def _listed(
    path: str, model: NetworkPortModel, nodes: dict[str, int], joined: dict[int, None]
) -> list[int]:
    """Return the nodes that the links of a port lead to."""
    found: dict[int, None] = {}
    for number, name in enumerate(model.to):
        place = at(path, "to", number)
        other = _node(place, name, nodes)
        if other not in joined:
            hint = "A port is for links of its own node: name the nodes that they lead to."
            raise defect(place, f"a link of {format_value(model.of)}", format_value(name), hint)
        if other in found:
            raise defect(place, "every node once", f"{format_value(name)} twice", "Keep one.")
        found[other] = None
    if not found:
        hint = "Name the nodes that its links lead to, or leave the key out for all of them."
        raise defect(at(path, "to"), "at least one node", "none", hint)
    return list(found)


def _node(path: str, name: str, nodes: dict[str, int]) -> int:
    if name not in nodes:
        hint = did_you_mean(name, list(nodes)[:1000]) if len(nodes) <= 1000 else "Is it misspelt?"
        raise defect(path, "a rank or a switch", format_value(name), hint)
    return nodes[name]


def _paths(
    models: list[RouteModel], nodes: dict[str, int], ranks: int, links: Links
) -> DeclaredRoutes:
    """Return declared routes, those back too."""
    found: dict[tuple[int, int], list[_Path]] = {}
    for number, model in enumerate(models):
        place = at("routes", number, "path")
        there = [_node(at(place, hop), name, nodes) for hop, name in enumerate(model.path)]
        _check_path(place, model.path, there, ranks)
        for path in (there, there[::-1])[: 1 + model.duplex]:
            _check_joined(place, path, links, tuple(nodes))
            others = found.setdefault((path[0], path[-1]), [])
            _check_beside(place, model.share, path, others)
            others.append(_Path(path, model.share or 1.0, number, model.share is not None))
    _check_shares(found, tuple(nodes))
    pairs = np.array(list(found), np.int64).reshape(-1, 2)
    ways = [way for others in found.values() for way in others]
    whole = [sum(way.share for way in others) for others in found.values()]
    of = np.array([len(others) for others in found.values()], np.int64)
    share = np.array([way.share for way in ways]) / np.repeat(whole, of)
    count = np.array([len(way.path) - 1 for way in ways], np.int64)
    visited = np.array(list(_after(way.path for way in ways)), np.int64)
    return DeclaredRoutes(pairs[:, 0], pairs[:, 1], ends(of), share, Visited(ends(count), visited))


class _Path(NamedTuple):
    """The nodes of a declared route, its share, and the number of its model."""

    path: list[int]
    share: float
    number: int
    is_shared: bool


def _check_beside(place: str, share: float | None, path: list[int], others: list[_Path]) -> None:
    """Refuse a second route that does not share with the first."""
    if others and (share is None or not others[0].is_shared):
        hint = "Keep one of the two, or give each a share; routes go both ways unless duplex is"
        raise defect(place, "one route for two ranks", "a second one", f"{hint} false.")
    if any(other.path == path for other in others):
        hint = "Add the shares up; routes go both ways unless duplex is false."
        raise defect(place, "a path of its own", "the same one twice", hint)


def _check_shares(found: dict[tuple[int, int], list[_Path]], names: tuple[str, ...]) -> None:
    for (one, other), ways in found.items():
        whole = sum(way.share for way in ways)
        if abs(whole - 1) > SLACK:
            place = at("routes", ways[-1].number, "share")
            pair = f"from {format_value(names[one])} to {format_value(names[other])}"
            hint = "All data takes one of the routes; routes go both ways unless duplex is false."
            raise defect(place, f"shares {pair} that sum to 1", f"{whole:g}", hint)


def _after(paths: Iterable[list[int]]) -> Iterable[int]:
    for path in paths:
        yield from path[1:]


def _check_path(place: str, names: list[str], path: list[int], ranks: int) -> None:
    if len(path) < 2 or max(path[0], path[-1]) >= ranks:
        found = " ".join(names)[:80] or "nothing"
        raise defect(place, "a path from one rank to another", found, "Begin and end with a rank.")
    if len(set(path)) < len(path):
        twice = next(name for name in names if names.count(name) > 1)
        raise defect(
            place, "every node once", f"{format_value(twice)} twice", "A route has no loops."
        )


def _check_joined(place: str, path: list[int], links: Links, names: tuple[str, ...]) -> None:
    for one, other in pairwise(path):
        if (one, other) not in links:
            found = f"none from {format_value(names[one])} to {format_value(names[other])}"
            hint = "Add the link, or write duplex: false where the way back is another one."
            raise defect(place, "a link for every hop", found, hint)


def _placed(ranks: list[NetworkRankModel], product: Product) -> dict[str, IntArray]:
    """Return server, device and superpod of all ranks."""
    taken: dict[int, int] = {}
    server, device = [], []
    for rank, about in enumerate(ranks):
        if about.server is None:
            hint = "With a product, or where one rank does, every rank states its server."
            raise defect(at("ranks", rank, "server"), "a number", "nothing", hint)
        usual = taken.get(about.server, 0)
        taken[about.server] = usual + 1
        server.append(about.server)
        device.append(usual if about.device is None else about.device)
        if device[-1] >= product.devices_per_server:
            expected = f"a device from 0 to {product.devices_per_server - 1}"
            raise defect(at("ranks", rank), expected, str(device[-1]), f"As {product.title} has.")
    return {
        "server": np.array(server),
        "device": np.array(device),
        "superpod": np.array([about.superpod or 0 for about in ranks]),
    }


def _check_connected(network: CustomNetwork) -> None:
    """Refuse networks where some node cannot be reached from another one."""
    for graph, is_back in ((network.graph, False), (network.graph.turned(), True)):
        reached = graph.reached(0)
        if not reached.all():
            one, other = network.node_name(0), network.node_name(int(np.argmin(reached)))
            pair = (other, one) if is_back else (one, other)
            phrase = f"none from {format_value(pair[0])} to {format_value(pair[1])}"
            hint = "Add the link that is missing, or leave the node out."
            raise defect("links", "a way between any two nodes", phrase, hint)

"""Rank tables v2.0: every rank lists the network levels that it is part of.

The networks of layer 0 are what other versions call servers, those of layer 1 superpods, where
each of these holds whole servers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from ipaddress import ip_address
from typing import Annotated

from pydantic import BeforeValidator, Field

from hccl_py.documents.checks import at, defect, format_value
from hccl_py.documents.models import checked
from hccl_py.topology.rank_tables.build import RankPlaces, table_of
from hccl_py.topology.rank_tables.fields import (
    Count,
    Listed,
    OptionalPort,
    RankId,
    Status,
    TableObject,
    one_of,
    text,
    whole,
)
from hccl_py.topology.rank_tables.network import NetworkLayer, RankTableNetwork
from hccl_py.topology.rank_tables.placement import (
    RankPlace,
    check_count,
    check_devices,
    check_unique,
)
from hccl_py.topology.rank_tables.table import RankTable
from hccl_py.topology.rank_tables.topology_file import LocalId, Port, Wiring

_DESCRIBED = "TOPO_FILE_DESC"
_MOST_LEVELS, _MOST_ADDRESSES = 8, 24


class AddressModel(TableObject):
    """An address of a rank in a network."""

    addr_type: Annotated[str, BeforeValidator(one_of("EID", "IPV4", "IPV6"))]
    addr: Annotated[str, BeforeValidator(text("an address", 64))]
    ports: Listed[Port]
    plane_id: object = Field(default=None)


class LevelModel(TableObject):
    """A network that a rank is part of."""

    net_layer: Annotated[int, BeforeValidator(whole("a network layer", 0, 7))]
    net_instance_id: Annotated[str, BeforeValidator(text("a network's id", 1024))]
    net_type: Annotated[str, BeforeValidator(one_of(_DESCRIBED, "CLOS"))]
    net_attr: object = Field(default=None)
    rank_addr_list: Listed[AddressModel] = Field(default_factory=list)


class RankModel(TableObject):
    """A rank."""

    rank_id: RankId
    local_id: LocalId
    device_id: Annotated[int, BeforeValidator(whole("a device id", 0, 64))]
    device_port: OptionalPort
    host_port: OptionalPort
    level_list: Listed[LevelModel]


class LevelsModel(TableObject):
    """A table v2.0."""

    status: Status
    version: object
    rank_count: Count
    rank_list: Listed[RankModel]


def from_levels(document: object, wiring: Wiring | None) -> RankTable:
    """Return the table of a document of version 2.0, with the links of its topology file."""
    model = checked(LevelsModel, document)
    ranks = model.rank_list
    check_count("rank_count", model.rank_count, len(ranks), "ranks in rank_list")
    _check_ids(ranks)
    for number, rank in enumerate(ranks):
        _check_levels(at("rank_list", number, "level_list"), rank.level_list)
    by_rank = sorted(range(len(ranks)), key=lambda k: ranks[k].rank_id)
    levels = tuple(_levels([ranks[k] for k in by_rank]))
    network = RankTableNetwork(levels, tuple(ranks[k].local_id for k in by_rank))
    if wiring is not None:
        _check_locals(ranks, wiring)
        network = replace(network, peers=wiring.peers, edges=wiring.edges)
    table = table_of(model, "2.0", _layout(ranks, network))
    missing = "There is no topology file: the links inside a server are unknown."
    notes = wiring.notes if wiring is not None else (missing,)
    return replace(table, network=network, notes=(*table.notes, *notes))


def _check_ids(ranks: Sequence[RankModel]) -> None:
    hint = f"The table has {len(ranks)} ranks, numbered from 0 without gaps."
    for number, rank in enumerate(ranks):
        if rank.rank_id >= len(ranks):
            path = at("rank_list", number, "rank_id")
            raise defect(path, f"a rank id from 0 to {len(ranks) - 1}", str(rank.rank_id), hint)
    hint = "Every rank id appears once."
    check_unique((r.rank_id for r in ranks), lambda k: at("rank_list", k, "rank_id"), hint)


def _check_levels(path: str, levels: Sequence[LevelModel]) -> None:
    if not 1 <= len(levels) <= _MOST_LEVELS:
        hint = "A rank is in a network of layer 0, and in at most one of each other layer."
        raise defect(path, f"1 to {_MOST_LEVELS} levels", str(len(levels)), hint)
    before = -1
    for number, level in enumerate(levels):
        place = at(path, number, "net_layer")
        if level.net_layer <= before or (number == 0 and level.net_layer != 0):
            wanted = "layer 0 first" if number == 0 else f"a layer above {before}"
            raise defect(place, wanted, str(level.net_layer), "Layers ascend from 0.")
        before = level.net_layer
        if level.net_type == _DESCRIBED and level.net_layer != 0:
            hint = "Only layer 0 is described by the topology file."
            raise defect(at(path, number, "net_type"), "CLOS", format_value(level.net_type), hint)
        _check_addresses(at(path, number, "rank_addr_list"), level.rank_addr_list)


def _check_addresses(path: str, addresses: Sequence[AddressModel]) -> None:
    if len(addresses) > _MOST_ADDRESSES:
        hint = "A rank has at most that many in one network."
        raise defect(path, f"at most {_MOST_ADDRESSES} addresses", str(len(addresses)), hint)
    for number, address in enumerate(addresses):
        if address.addr_type != "EID" and _family(address.addr) != address.addr_type:
            hint = 'Its addr_type says so; others are "IPV4", "IPV6" and "EID".'
            place = at(path, number, "addr")
            raise defect(place, f"an {address.addr_type} address", format_value(address.addr), hint)


def _family(address: str) -> str:
    try:
        return f"IPV{ip_address(address).version}"
    except ValueError:
        return "none"


def _check_locals(ranks: Sequence[RankModel], wiring: Wiring) -> None:
    for number, rank in enumerate(ranks):
        if rank.local_id not in wiring.peers:
            path = at("rank_list", number, "local_id")
            hint = f"The topology file has {', '.join(map(str, wiring.peers))}."
            raise defect(path, "a local id of the topology file", str(rank.local_id), hint)


def _levels(ranks: Sequence[RankModel]) -> Iterator[NetworkLayer]:
    """Yield the layers in which some rank is, with their networks in the order of ranks."""
    for layer in sorted({level.net_layer for rank in ranks for level in rank.level_list}):
        found = [next((m for m in r.level_list if m.net_layer == layer), None) for r in ranks]
        numbers: dict[str, int] = {}
        types: list[str] = []
        for level in found:
            if level is not None and level.net_instance_id not in numbers:
                numbers[level.net_instance_id] = len(numbers)
                types.append(level.net_type)
        instance = tuple(-1 if m is None else numbers[m.net_instance_id] for m in found)
        yield NetworkLayer(layer, tuple(numbers), tuple(types), instance)


def _layout(ranks: Sequence[RankModel], network: RankTableNetwork) -> RankPlaces:
    servers = network.levels[0]
    places = tuple(
        RankPlace(at("rank_list", k), rank.rank_id, servers.instance[rank.rank_id], rank.device_id)
        for k, rank in enumerate(ranks)
    )
    check_devices(places)
    hint = "A device of a server appears once."
    pairs = ((place.server, r.local_id) for place, r in zip(places, ranks, strict=True))
    check_unique(pairs, lambda k: at("rank_list", k, "local_id"), hint)
    if len(network.levels) < 2:
        return RankPlaces(places, servers.ids)
    pods = network.levels[1]
    inside = set(zip(servers.instance, pods.instance, strict=True))
    if len(inside) > len(servers.ids) or -1 in pods.instance:
        note = f"Networks of layer {pods.layer} do not hold whole servers: there are no superpods."
        return RankPlaces(places, servers.ids, notes=(note,))
    pod_of = dict(inside)
    superpods = tuple(pod_of[server] for server in range(len(servers.ids)))
    return RankPlaces(places, servers.ids, superpods, pods.ids)

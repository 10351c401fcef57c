"""The topology file that goes with a rank table v2.0: the devices of a server and their links."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated

from pydantic import BeforeValidator, Field, PlainValidator

from hccl_py.documents.checks import at, defect, format_value
from hccl_py.documents.models import checked
from hccl_py.topology.rank_tables.build import unknown_notes
from hccl_py.topology.rank_tables.fields import Listed, TableObject, expected, one_of, whole
from hccl_py.topology.rank_tables.network import Edge
from hccl_py.topology.rank_tables.placement import check_count, check_unique

_PORT = re.compile(r"[0-9]{1,3}/[0-9]{1,3}", re.ASCII)


def _port(value: object) -> str:
    if not isinstance(value, str) or not _PORT.fullmatch(value):
        raise expected("a port", 'Write die and port as in "0/4".')
    return value


Port = Annotated[str, PlainValidator(_port)]
LocalId = Annotated[int, BeforeValidator(whole("a local id", 0, 64))]
_Name = one_of("UB_CTP", "UB_TP", "ROCE", "HCCS", "TCP", "UB_MEM", "UBOE")


class PeerModel(TableObject):
    """A device of a server."""

    local_id: LocalId


class EdgeModel(TableObject):
    """A link of a device to another one, or to a switch."""

    net_layer: Annotated[int, BeforeValidator(whole("a network layer", 0, 7))]
    link_type: Annotated[str, BeforeValidator(one_of("PEER2PEER", "PEER2NET"))]
    protocols: Listed[Annotated[str, BeforeValidator(_Name)]]
    local_a: LocalId
    local_a_ports: Listed[Port]
    local_b: Annotated[int | None, BeforeValidator(whole("a local id", 0, 64)), Field(default=None)]
    local_b_ports: Listed[Port] = Field(default_factory=list)
    topo_instance_id: Annotated[
        int, BeforeValidator(whole("an instance's number", 0, 2**32 - 1)), Field(default=0)
    ]
    topo_type: Annotated[str, BeforeValidator(one_of("CLOS", "1DMESH"))]
    position: Annotated[str, BeforeValidator(one_of("HOST", "DEVICE")), Field(default="DEVICE")]


class WiringModel(TableObject):
    """A topology file."""

    version: object
    peer_count: Annotated[int, BeforeValidator(whole("a count", 1, 65))]
    peer_list: Listed[PeerModel]
    edge_count: Annotated[int, BeforeValidator(whole("a count", 0, 65536))]
    edge_list: Listed[EdgeModel]


@dataclass(frozen=True)
class Wiring:
    """The local ids of a server's devices, and the links between them."""

    peers: tuple[int, ...]
    edges: tuple[Edge, ...]
    notes: tuple[str, ...]


def wiring_from(document: object) -> Wiring:
    """Return the wiring that a topology file states."""
    model = checked(WiringModel, document)
    if format_value(model.version).strip('"') != "2.0":
        hint = "Topology files have version 2.0."
        raise defect("version", '"2.0"', format_value(model.version), hint)
    check_count("peer_count", model.peer_count, len(model.peer_list), "peers in peer_list")
    check_count("edge_count", model.edge_count, len(model.edge_list), "edges in edge_list")
    peers = tuple(peer.local_id for peer in model.peer_list)
    hint = "Every device of a server appears once."
    check_unique(peers, lambda k: at("peer_list", k, "local_id"), hint)
    for number, edge in enumerate(model.edge_list):
        _check_edge(at("edge_list", number), edge, frozenset(peers))
    edges = tuple(map(_edge, model.edge_list))
    return Wiring(peers, edges, unknown_notes(model, "2.0"))


def _check_edge(path: str, edge: EdgeModel, peers: frozenset[int]) -> None:
    if not edge.protocols:
        hint = "Name what the link speaks, such as UB_CTP."
        raise defect(at(path, "protocols"), "at least one protocol", "none", hint)
    hint = f"peer_list has {', '.join(map(str, sorted(peers)))}."
    for key, local in (("local_a", edge.local_a), ("local_b", edge.local_b)):
        if local is not None and local not in peers:
            raise defect(at(path, key), "a local id of peer_list", str(local), hint)
    if (edge.local_b is None) == (edge.link_type == "PEER2PEER"):
        wanted = "the other device" if edge.local_b is None else "nothing"
        found = "nothing" if edge.local_b is None else str(edge.local_b)
        hint = "PEER2PEER joins two devices, PEER2NET a device and a switch."
        raise defect(at(path, "local_b"), wanted, found, hint)
    if edge.local_b == edge.local_a:
        hint = "A link joins two devices."
        raise defect(at(path, "local_b"), "another device", f"{edge.local_b} again", hint)


def _edge(edge: EdgeModel) -> Edge:
    return Edge(
        layer=edge.net_layer,
        local_a=edge.local_a,
        local_b=edge.local_b,
        protocols=tuple(edge.protocols),
        topo_type=edge.topo_type,
        topo_instance=edge.topo_instance_id,
        position=edge.position,
        ports_a=tuple(edge.local_a_ports),
        ports_b=tuple(edge.local_b_ports),
    )

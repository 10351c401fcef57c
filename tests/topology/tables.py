"""Small rank tables of every version, how to change one at a JSON path, and to read it."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

from hccl_py.errors import HcclError, HcclResult, RankTableError
from hccl_py.topology.rank_tables import RankTable, read_rank_table

MISSING = object()
"""In place of a value: take the key out."""


def _server(name: str, first: int, **more: str) -> dict[str, Any]:
    devices = [
        {"device_id": str(k), "device_ip": f"10.0.0.{first + k + 1}", "rank_id": str(first + k)}
        for k in range(2)
    ]
    return {"server_id": name, "host_ip": f"172.16.0.{first}", "device": devices, **more}


SERVERS: dict[str, Any] = {
    "status": "completed",
    "version": "1.0",
    "server_count": "2",
    "server_list": [_server("node_0", 0), _server("node_1", 2)],
}


def _superpods() -> dict[str, Any]:
    servers = [_server(f"node_{k}", 2 * k) for k in range(4)]
    for k, server in enumerate(servers):
        for j, device in enumerate(server["device"]):
            device["super_device_id"] = str(2 * (k % 2) + j)
            device["backup_device_ip"] = server["device"][1 - j]["device_ip"]
            device["device_port"], device["backup_device_port"] = "16666", "16667"
    members = [{"server_id": f"node_{k}"} for k in range(4)]
    return {
        "status": "completed",
        "version": "1.2",
        "server_count": "4",
        "server_list": servers,
        "super_pod_list": [
            {"super_pod_id": "pod_0", "server_list": members[:2]},
            {"super_pod_id": "pod_1", "server_list": members[2:]},
        ],
    }


SUPERPODS = _superpods()

GROUPS: dict[str, Any] = {
    "status": "completed",
    "group_count": "1",
    "group_list": [
        {
            "group_name": "worker",
            "instance_count": "2",
            "device_count": "4",
            "instance_list": [
                {
                    "pod_name": f"pod{k}",
                    "server_id": f"node_{k}",
                    "devices": [
                        {"device_id": str(j), "device_ip": f"10.0.{k}.{j}"} for j in range(2)
                    ],
                }
                for k in range(2)
            ],
        }
    ],
}


def _rank(rank: int) -> dict[str, Any]:
    address = {"addr_type": "EID", "addr": f"000000000000002{rank}", "ports": ["0/1"]}
    server = {
        "net_layer": 0,
        "net_instance_id": f"rack{rank // 2}",
        "net_type": "TOPO_FILE_DESC",
        "net_attr": "",
        "rank_addr_list": [{**address, "plane_id": "0"}],
    }
    switch = {"net_layer": 1, "net_instance_id": "pod", "net_type": "CLOS", "net_attr": ""}
    far = {"addr_type": "IPV4", "addr": f"10.0.0.{rank + 1}", "ports": ["1/4"], "plane_id": "1"}
    return {
        "rank_id": rank,
        "local_id": rank % 2,
        "device_id": rank % 2,
        "level_list": [server, {**switch, "rank_addr_list": [far]}],
    }


LEVELS: dict[str, Any] = {
    "version": "2.0",
    "status": "completed",
    "rank_count": 4,
    "rank_list": [_rank(k) for k in range(4)],
}

WIRING: dict[str, Any] = {
    "version": "2.0",
    "peer_count": 2,
    "peer_list": [{"local_id": 0}, {"local_id": 1}],
    "edge_count": 2,
    "edge_list": [
        {
            "net_layer": 0,
            "link_type": "PEER2PEER",
            "protocols": ["UB_CTP", "UB_MEM"],
            "local_a": 0,
            "local_a_ports": ["0/0"],
            "local_b": 1,
            "local_b_ports": ["0/0"],
            "topo_instance_id": 0,
            "topo_type": "1DMESH",
            "position": "DEVICE",
        },
        {
            "net_layer": 1,
            "link_type": "PEER2NET",
            "protocols": ["UB_CTP"],
            "local_a": 0,
            "local_a_ports": ["1/4"],
            "topo_instance_id": 0,
            "topo_type": "CLOS",
            "position": "DEVICE",
        },
    ],
}

VALID = {"1.0": SERVERS, "1.2": SUPERPODS, "template 2": GROUPS, "2.0": LEVELS}


DEVICE = "server_list[1].device[0]"
EDGE = "edge_list[0]"
LEVEL = "rank_list[3].level_list[1]"
POD = "group_list[0].instance_list[1]"

Change = tuple[str, object]
"""A path, and what stands there instead."""


def keys_of(path: str) -> list[str | int]:
    """The keys of a path as errors spell it: `server_list[1].device[0]`."""
    return [int(k) if k.isdigit() else k for k in re.findall(r"[^.\[\]]+", path)]


def changed(document: Any, *changes: tuple[str, object]) -> Any:
    """A copy of a document with other values at some paths; `MISSING` takes a key out."""
    document = copy.deepcopy(document)
    for path, value in changes:
        *parents, last = keys_of(path)
        inner = document
        for key in parents:
            inner = inner[key]
        if value is MISSING:
            del inner[last]
        elif isinstance(inner, list) and last == len(inner):
            inner.append(value)
        else:
            inner[last] = value
    return document


def paths_of(document: Any) -> list[tuple[str | int, ...]]:
    """The paths of everything in a document, the document itself first."""
    found: list[tuple[str | int, ...]] = [()]
    members: list[tuple[str | int, Any]] = []
    if isinstance(document, dict):
        members = list(document.items())
    elif isinstance(document, list):
        members = list(enumerate(document))
    return found + [(key, *path) for key, value in members for path in paths_of(value)]


def read(document: Any, wiring: Any = None) -> RankTable:
    return read_rank_table(
        json.dumps(document).encode(), None if wiring is None else json.dumps(wiring)
    )


def text_of(document: Any) -> str:
    return json.dumps(document)


def check_sentence(error: HcclError, path: str, words: str) -> None:
    assert isinstance(error, RankTableError)
    assert error.result is HcclResult.E_PARA
    assert error.code in ("EI0004", "EI0014")
    assert f": {path}: expected " in error.message or not path
    assert error.message.endswith(f"({error.code}).")
    assert "\n" not in str(error.message)
    assert error.hint
    assert words in str(error), str(error)
    assert len(str(error)) < 1200

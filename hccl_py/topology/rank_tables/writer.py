"""From a topology to a rank table: a template to put real names and addresses into."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any

import numpy as np

from hccl_py.errors import ParameterError
from hccl_py.topology.topology import Topology
from hccl_py.values import IntArray

_FIRST_ADDRESS = int(ip_address("10.0.0.1"))
_MOST_DEVICES = 16


def rank_table_of(topology: Topology) -> dict[str, Any]:
    """Return a rank table for a topology, ready for `json.dump`: v1.2 where the product has
    superpods, else v1.0. Server ids and addresses are made up.

    Raises ParameterError for topologies that no table describes: more than 16 devices in a server,
    or servers whose ranks do not follow each other.
    """
    _check(topology)
    servers = _servers(topology)
    table: dict[str, Any] = {
        "status": "completed",
        "version": "1.0",
        "server_count": str(len(servers)),
        "server_list": servers,
    }
    if topology.product.superpod_servers > 0:
        table["version"] = "1.2"
        table["super_pod_list"] = _superpods(topology, servers)
    return table


def _servers(topology: Topology) -> list[dict[str, Any]]:
    columns = (topology.host.tolist(), _device_ids(topology).tolist())
    servers: list[dict[str, Any]] = []
    for rank, (server, device) in enumerate(zip(*columns, strict=True)):
        if server == len(servers):
            servers.append({"server_id": f"server-{server}", "device": []})
        entry = {
            "device_id": str(device),
            "device_ip": str(ip_address(_FIRST_ADDRESS + rank)),
            "rank_id": str(rank),
        }
        servers[server]["device"].append(entry)
    return servers


def _device_ids(topology: Topology) -> IntArray:
    """Return every rank's device in its host, whose modules come one after the other."""
    hosts = topology.hosts
    module = np.array([hosts[:number].count(host) for number, host in enumerate(hosts)])
    ids: IntArray = (
        topology.device_id + topology.product.devices_per_server * module[topology.server]
    )
    return ids


def _superpods(topology: Topology, servers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the superpods; number the devices of each on the way."""
    pods: list[dict[str, Any]] = []
    following = iter(servers)
    for number, count in enumerate(topology.superpods):
        members = [next(following) for _ in range(count)]
        devices = (device for member in members for device in member["device"])
        for die, device in enumerate(devices):
            device["super_device_id"] = str(die)
        names = [{"server_id": member["server_id"]} for member in members]
        pods.append({"super_pod_id": f"superpod-{number}", "server_list": names})
    return pods


def _check(topology: Topology) -> None:
    if topology.product.device == "950":
        raise ParameterError(
            "Rank tables v1.0 and v1.2 do not describe devices 950.", "Take another product."
        )
    most = int(_device_ids(topology).max())
    if most >= _MOST_DEVICES:
        raise ParameterError(
            f"Device {most} of a server fits into no rank table.",
            f"Servers of rank tables have devices 0 to {_MOST_DEVICES - 1}.",
        )
    for numbers, things in ((topology.host, "server"), (topology.superpod, "superpod")):
        wrong = numbers[1:] < numbers[:-1]
        if wrong.any():
            rank = int(wrong.argmax()) + 1
            raise ParameterError(
                f"Rank {rank} is on {things} {int(numbers[rank])} again, after others.",
                f"In a rank table, the ranks of a {things} follow each other.",
            )

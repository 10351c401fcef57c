"""The older "template 2": groups of instances (pods), each with devices of one server.

It has no rank ids: ranks are numbered in the order of the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from pydantic import BeforeValidator, Field

from hccl_py.documents.checks import at, defect
from hccl_py.documents.models import checked
from hccl_py.topology.rank_tables.build import RankPlaces, table_of
from hccl_py.topology.rank_tables.fields import (
    Count,
    Listed,
    OptionalAddress,
    Status,
    TableObject,
    text,
    whole,
)
from hccl_py.topology.rank_tables.placement import (
    RankPlace,
    check_addresses,
    check_count,
    check_devices,
    check_ranks,
    check_unique,
    require_addresses,
)
from hccl_py.topology.rank_tables.table import RankTable

_ORDER = "Template 2 has no rank ids: ranks are numbered in the order of the file."


class PodDeviceModel(TableObject):
    """A device of an instance."""

    device_id: Annotated[int, BeforeValidator(whole("a device id", 0, 15))]
    device_ip: OptionalAddress


class InstanceModel(TableObject):
    """A pod: some devices of one server."""

    pod_name: Annotated[str, BeforeValidator(text("a pod name", 1024))]
    server_id: Annotated[str, BeforeValidator(text("a server id", 64))]
    devices: Listed[PodDeviceModel]


class GroupModel(TableObject):
    """A group of instances; `device_count` counts the devices of all of them."""

    group_name: str = ""
    instance_count: Count
    device_count: Count
    instance_list: Listed[InstanceModel]


class GroupsModel(TableObject):
    """A table of template 2."""

    status: Status
    version: object = Field(default=None)
    group_count: Count
    group_list: Listed[GroupModel]


def from_groups(document: object) -> RankTable:
    """Return the table of a document of template 2."""
    model = checked(GroupsModel, document)
    check_count("group_count", model.group_count, len(model.group_list), "groups in group_list")
    for number, group in enumerate(model.group_list):
        _check_group(at("group_list", number), group)
    _check_names(model.group_list)
    server_ids: dict[str, int] = {}
    places = list(_places(model.group_list, server_ids))
    check_devices(places)
    check_ranks(places)
    check_addresses(places)
    if len(server_ids) > 1:
        require_addresses(places, f"There are {len(server_ids)} servers")
    return table_of(
        model, "template 2", RankPlaces(tuple(places), tuple(server_ids), notes=(_ORDER,))
    )


def _check_group(path: str, group: GroupModel) -> None:
    instances = group.instance_list
    count = at(path, "instance_count")
    check_count(count, group.instance_count, len(instances), "instances in instance_list")
    for position, instance in enumerate(instances):
        if not instance.devices:
            place = at(path, "instance_list", position, "devices")
            raise defect(place, "at least one device", "none", "Leave out pods without devices.")
    total = sum(len(instance.devices) for instance in instances)
    check_count(at(path, "device_count"), group.device_count, total, "devices in the group")


def _check_names(groups: Sequence[GroupModel]) -> None:
    paths = [
        (at("group_list", number, "instance_list", position, "pod_name"), instance.pod_name)
        for number, group in enumerate(groups)
        for position, instance in enumerate(group.instance_list)
    ]
    hint = "A pod appears once, with all its devices."
    check_unique((name for _, name in paths), lambda k: paths[k][0], hint)


def _places(groups: Sequence[GroupModel], server_ids: dict[str, int]) -> Iterator[RankPlace]:
    """Yield the ranks in order, and number the servers on the way."""
    rank = 0
    for number, group in enumerate(groups):
        for position, instance in enumerate(group.instance_list):
            server = server_ids.setdefault(instance.server_id, len(server_ids))
            for k, device in enumerate(instance.devices):
                path = at("group_list", number, "instance_list", position, "devices", k)
                addresses = () if device.device_ip is None else (device.device_ip,)
                yield RankPlace(path, rank, server, device.device_id, addresses)
                rank += 1

"""Rank tables v1.0 (servers and their devices) and v1.2 (superpods of servers)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import BeforeValidator, Field

from hccl_py.documents.checks import at, defect
from hccl_py.documents.models import checked
from hccl_py.topology.rank_tables.build import RankPlaces, table_of
from hccl_py.topology.rank_tables.fields import (
    Listed,
    OptionalAddress,
    OptionalAddresses,
    OptionalCount,
    OptionalPort,
    RankId,
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
from hccl_py.topology.rank_tables.superpods import SuperPodModel, superpods_of
from hccl_py.topology.rank_tables.table import RankTable

ServerId = Annotated[str, BeforeValidator(text("a server id", 64))]
DeviceId = Annotated[int, BeforeValidator(whole("a device id", 0, 15))]


class DeviceModel(TableObject):
    """A device of a server."""

    device_id: DeviceId
    rank_id: RankId
    device_ip: OptionalAddresses
    device_port: OptionalPort
    host_port: OptionalPort


class ServerModel(TableObject):
    """A server of a table v1.0."""

    server_id: ServerId
    host_ip: OptionalAddress
    device: Listed[DeviceModel]


class ServersModel(TableObject):
    """A table v1.0; the version was looked at before."""

    status: Status
    version: object
    server_count: OptionalCount
    server_list: Listed[ServerModel]


class SuperDeviceModel(DeviceModel):
    """A die of an A3."""

    super_device_id: Annotated[
        int | None, BeforeValidator(whole("a super device id", 0, 2**32 - 1)), Field(default=None)
    ]
    backup_device_ip: OptionalAddresses
    backup_device_port: OptionalPort


class SuperServerModel(TableObject):
    """A server of a table v1.2."""

    server_id: ServerId
    host_ip: OptionalAddress
    device: Listed[SuperDeviceModel]


class SuperPodsModel(TableObject):
    """A table v1.2."""

    status: Status
    version: object
    server_count: OptionalCount
    server_list: Listed[SuperServerModel]
    super_pod_list: Listed[SuperPodModel] = Field(default_factory=list)


def from_servers(document: object) -> RankTable:
    """Return the table of a document of version 1.0."""
    model = checked(ServersModel, document)
    places = list(_places(model.server_list))
    _check(model, places)
    if len(model.server_list) > 1:
        require_addresses(places, f"There are {len(model.server_list)} servers")
    return table_of(model, "1.0", _layout(model, places))


def from_superpods(document: object) -> RankTable:
    """Return the table of a document of version 1.2."""
    model = checked(SuperPodsModel, document)
    places = list(_places(model.server_list))
    _check(model, places)
    layout = superpods_of(model.super_pod_list, _layout(model, places))
    if len(layout.superpod_ids) > 1:
        require_addresses(places, f"There are {len(layout.superpod_ids)} superpods")
    elif not layout.superpod_ids and len(model.server_list) > 1:
        require_addresses(places, f"There are {len(model.server_list)} servers, and no superpods")
    return table_of(model, "1.2", layout)


def _places(servers: Sequence[ServerModel | SuperServerModel]) -> Iterator[RankPlace]:
    for number, server in enumerate(servers):
        for position, device in enumerate(server.device):
            place = RankPlace(
                path=f"server_list[{number}].device[{position}]",
                rank=device.rank_id,
                server=number,
                device=device.device_id,
                addresses=device.device_ip,
            )
            if isinstance(device, SuperDeviceModel):
                die, backup = device.super_device_id, device.backup_device_ip
                place = replace(place, super_device=die, backups=backup)
            yield place


def _check(model: ServersModel | SuperPodsModel, places: Sequence[RankPlace]) -> None:
    servers: Sequence[ServerModel | SuperServerModel] = model.server_list
    if not servers:
        hint = "Without devices there are no ranks."
        raise defect("server_list", "at least one server", "none", hint)
    if model.server_count is not None:
        check_count("server_count", model.server_count, len(servers), "servers in server_list")
    for number, server in enumerate(servers):
        if not server.device:
            path = at("server_list", number, "device")
            raise defect(path, "at least one device", "none", "Leave out servers without devices.")
    hint = "A server appears once, with all its devices."
    check_unique((s.server_id for s in servers), lambda k: at("server_list", k, "server_id"), hint)
    check_devices(places)
    check_ranks(places)
    check_addresses(places)


def _layout(model: ServersModel | SuperPodsModel, places: Sequence[RankPlace]) -> RankPlaces:
    server_ids = tuple(server.server_id for server in model.server_list)
    notes: tuple[str, ...] = ()
    if model.server_count is None:
        notes = (f"There is no server_count: it is {len(server_ids)}, as server_list has.",)
    return RankPlaces(tuple(places), server_ids, notes=notes)

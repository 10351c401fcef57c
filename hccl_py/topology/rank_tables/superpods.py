"""The superpods of a rank table v1.2, and what their devices have on top of other ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import BeforeValidator

from hccl_py.documents.checks import at, defect, format_value
from hccl_py.errors import did_you_mean
from hccl_py.topology.rank_tables.build import RankPlaces
from hccl_py.topology.rank_tables.fields import Listed, TableObject, text
from hccl_py.topology.rank_tables.kind import CLUSTER
from hccl_py.topology.rank_tables.placement import RankPlace, check_unique


class MemberModel(TableObject):
    """A server of a superpod."""

    server_id: Annotated[str, BeforeValidator(text("a server id", 64))]


class SuperPodModel(TableObject):
    """A superpod: servers that one switch joins."""

    super_pod_id: Annotated[str, BeforeValidator(text("a superpod id", 64))]
    server_list: Listed[MemberModel]


def superpods_of(pods: Sequence[SuperPodModel], layout: RankPlaces) -> RankPlaces:
    """Return the layout with its superpods; without any super_* they are plain servers."""
    stated = [place for place in layout.places if place.super_device is not None]
    _check_backups(layout.places)
    if not pods or not stated:
        missing = "super_pod_list" if not pods else "super_device_id"
        note = f"There is no {missing}: the table is read as plain servers, without superpods."
        return replace(layout, notes=(*layout.notes, note))
    for place in layout.places:
        if place.super_device is None:
            path, hint = at(place.path, "super_device_id"), "Other devices of the table have one."
            raise defect(path, "a super device id", "nothing", hint)
    ids = tuple(pod.super_pod_id for pod in pods)
    hint = "A superpod appears once, with all its servers."
    check_unique(ids, lambda k: at("super_pod_list", k, "super_pod_id"), hint)
    superpods = _superpods(pods, layout.server_ids)
    _check_contiguous(superpods, layout)
    hint = "Every die of a superpod has a number of its own."
    check_unique(
        ((superpods[p.server], p.super_device) for p in layout.places),
        lambda k: at(layout.places[k].path, "super_device_id"),
        hint,
        CLUSTER,
    )
    return replace(layout, superpods=superpods, superpod_ids=ids)


def _superpods(pods: Sequence[SuperPodModel], server_ids: Sequence[str]) -> tuple[int, ...]:
    """Return the superpod of every server."""
    found: dict[str, int] = {}
    known = set(server_ids)
    for number, pod in enumerate(pods):
        if not pod.server_list:
            path = at("super_pod_list", number, "server_list")
            raise defect(path, "at least one server", "none", "Leave out superpods without any.")
        for position, member in enumerate(pod.server_list):
            name = member.server_id
            path = at("super_pod_list", number, "server_list", position, "server_id")
            if name not in known:
                hint = did_you_mean(name, server_ids[:100])
                raise defect(path, "a server of server_list", format_value(name), hint)
            if name in found:
                hint = "A server is in one superpod, once."
                raise defect(path, "a server of its own", f"{format_value(name)} again", hint)
            found[name] = number
    for position, name in enumerate(server_ids):
        if name not in found:
            path, hint = at("server_list", position, "server_id"), "Add it to a superpod."
            raise defect(path, "a server of some superpod", f"{format_value(name)} in none", hint)
    return tuple(found[name] for name in server_ids)


def _check_contiguous(superpods: Sequence[int], layout: RankPlaces) -> None:
    ended: set[int] = set()
    before = -1
    for place in sorted(layout.places, key=lambda p: p.rank):
        pod = superpods[place.server]
        if pod != before:
            ended.add(before)
        if pod in ended:
            hint = "The servers of a superpod follow each other, in the order of their ranks."
            path = at("server_list", place.server, "server_id")
            expected = f"a server of the superpod of rank {place.rank - 1}"
            raise defect(path, expected, format_value(layout.server_ids[place.server]), hint)
        before = pod


def _check_backups(places: Sequence[RankPlace]) -> None:
    """Refuse backup addresses that are not those of the other die in the package."""
    owner = {address: place for place in places for address in place.addresses}
    at_device = {(place.server, place.device): place for place in places}
    for place in places:
        partner = at_device.get((place.server, place.device ^ 1))
        wanted = partner.addresses if partner is not None else ()
        for backup in place.backups:
            other = owner.get(backup)
            if (other is not None and other is not partner) or (wanted and backup not in wanted):
                expected = f"the address of device {place.device ^ 1}"
                whose = f", that of {other.path}" if other is not None else ""
                hint = "Only the other die of the same package can stand in."
                found = format_value(str(backup)) + whose
                raise defect(at(place.path, "backup_device_ip"), expected, found, hint)

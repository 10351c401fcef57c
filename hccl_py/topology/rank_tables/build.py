"""From checked places to a RankTable, in the order of ranks, with notes on what is unusual."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from hccl_py.documents.checks import at, format_value
from hccl_py.topology.rank_tables.fields import TableObject
from hccl_py.topology.rank_tables.placement import RankPlace, shape_note
from hccl_py.topology.rank_tables.table import RankTable

_MOST_NOTES = 20


@dataclass(frozen=True)
class RankPlaces:
    """Ranks, servers and superpods, numbered as in the document; `superpods` has that of each
    server.
    """

    places: tuple[RankPlace, ...]
    server_ids: tuple[str, ...]
    superpods: tuple[int, ...] = ()
    superpod_ids: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def table_of(model: TableObject, version: str, layout: RankPlaces) -> RankTable:
    """Return the table of a document, whose model has the keys that are not read."""
    places = sorted(layout.places, key=lambda place: place.rank)
    servers = _by_first_use([place.server for place in places])
    pods = layout.superpods or (0,) * len(layout.server_ids)
    superpods = _by_first_use([pods[place.server] for place in places])
    per_server = Counter(servers[place.server] for place in places)
    per_pod = Counter(superpods[pods[server]] for server in servers)
    notes = (
        *layout.notes,
        *shape_note([per_server[k] for k in range(len(servers))], "Servers", "devices"),
        *shape_note([per_pod[k] for k in range(len(superpods))], "Superpods", "servers"),
        *unknown_notes(model, version),
    )
    is_super = bool(layout.superpod_ids)
    dies = [place.super_device for place in places if place.super_device is not None]
    return RankTable(
        version=version,
        server_ids=tuple(layout.server_ids[server] for server in servers),
        server=tuple(servers[place.server] for place in places),
        device=tuple(place.device for place in places),
        superpod_ids=tuple(layout.superpod_ids[pod] for pod in superpods) if is_super else (),
        superpod=tuple(superpods[pods[place.server]] for place in places),
        device_ips=tuple(tuple(map(str, place.addresses)) for place in places),
        super_device=tuple(dies) if is_super else (),
        notes=notes,
        paths=tuple(place.path for place in places),
    )


def unknown_notes(model: TableObject, version: str) -> tuple[str, ...]:
    """Return notes on keys that are not read, one for each name, with its first place."""
    first: dict[str, str] = {}
    for path, key, known in _unknown(model, ""):
        if key not in first:
            near = difflib.get_close_matches(key[:80], known, n=1, cutoff=0.8)
            ask = f" Did you mean {near[0]}?" if near else ""
            first[key] = (
                f"{path} is not read: rank tables {_format(version)} "
                f"have no {format_value(key)}.{ask}"
            )
        if len(first) > _MOST_NOTES:
            return (*list(first.values())[:_MOST_NOTES], "More keys are not read.")
    return tuple(first.values())


def _format(version: str) -> str:
    return version if version.startswith("template") else f"v{version}"


def _unknown(model: BaseModel, path: str) -> Iterator[tuple[str, str, Sequence[str]]]:
    """Yield path, key and known keys of everything that no model has."""
    names = list(type(model).model_fields)
    for key in model.model_extra or ():
        yield at(path, key), key, names
    for name in names:
        value = getattr(model, name)
        members = value if isinstance(value, list) else ()
        for position, member in enumerate(members):
            if isinstance(member, BaseModel):
                yield from _unknown(member, at(path, name, position))


def _by_first_use(numbers: Sequence[int]) -> dict[int, int]:
    """Number what appears, in the order in which it first appears."""
    found: dict[int, int] = {}
    for number in numbers:
        found.setdefault(number, len(found))
    return found

"""Checks of every rank table: a place per rank, a rank per device, different addresses."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

from hccl_py.documents.checks import at, defect, format_value
from hccl_py.topology.rank_tables.fields import Address
from hccl_py.topology.rank_tables.kind import TABLE


@dataclass(frozen=True)
class RankPlace:
    """The place of a rank; `path` is that of its device in the document. A device may have several
    addresses, of which HCCL uses the first.
    """

    path: str
    rank: int
    server: int
    device: int
    addresses: tuple[Address, ...] = ()
    super_device: int | None = None
    backups: tuple[Address, ...] = ()


def check_count(path: str, stated: int, listed: int, things: str) -> None:
    """Refuse a count that is not the length of its list."""
    if stated != listed:
        hint = f"The list has {listed}: was something left out?"
        raise defect(path, f"{listed}, the number of {things}", str(stated), hint)


def check_unique(
    values: Iterable[Hashable], where: Callable[[int], str], hint: str, code: str = TABLE
) -> None:
    """Refuse the second of two equal values; None may appear any number of times."""
    first: dict[Hashable, int] = {}
    for position, value in enumerate(values):
        if value is not None and first.setdefault(value, position) != position:
            shown = value[-1] if isinstance(value, tuple) else value
            shown = shown if isinstance(shown, int | str) else str(shown)
            expected = "a value of its own"
            found = f"{format_value(shown)}, as in {where(first[value])}"
            raise defect(where(position), expected, found, hint, code)


def check_ranks(places: Sequence[RankPlace]) -> None:
    """Refuse ranks that are not numbered from 0 without gaps, or that mix servers."""
    most = len(places) - 1
    for place in places:
        if place.rank > most:
            hint = f"The table has {most + 1} ranks, numbered from 0 without gaps."
            path = at(place.path, "rank_id")
            raise defect(path, f"a rank id from 0 to {most}", str(place.rank), hint)
    hint = "Every rank id appears once."
    check_unique((p.rank for p in places), lambda k: at(places[k].path, "rank_id"), hint)
    ended: set[int] = set()
    before: RankPlace | None = None
    for place in sorted(places, key=lambda p: p.rank):
        if before is not None and place.server != before.server:
            ended.add(before.server)
        if place.server in ended:
            hint = "The ranks of a server are numbered one after the other."
            expected = f"a rank of the server of rank {place.rank - 1}"
            raise defect(at(place.path, "rank_id"), expected, str(place.rank), hint)
        before = place


def check_devices(places: Sequence[RankPlace]) -> None:
    """Refuse two ranks on one device."""
    hint = "A device of a server appears once."
    ids = ((p.server, p.device) for p in places)
    check_unique(ids, lambda k: at(places[k].path, "device_id"), hint)


def check_addresses(places: Sequence[RankPlace]) -> None:
    """Refuse addresses of two families, and two devices with one address."""
    listed = [(at(p.path, "device_ip"), address) for p in places for address in p.addresses]
    for path, address in listed:
        first, family = listed[0][0], listed[0][1].version
        if address.version != family:
            hint = f"The address in {first} is IPv{family}."
            raise defect(path, f"an IPv{family} address", format_value(str(address)), hint)
    hint = "Every device has addresses of its own."
    check_unique((address for _, address in listed), lambda k: listed[k][0], hint)


def require_addresses(places: Sequence[RankPlace], why: str) -> None:
    """Refuse devices without an address."""
    for place in places:
        if not place.addresses:
            hint = f"{why}, so every device needs its address."
            raise defect(at(place.path, "device_ip"), "an address", "nothing", hint)


def shape_note(counts: Sequence[int], things: str, parts: str) -> tuple[str, ...]:
    """Say that servers or superpods differ in size, where they do."""
    if len(set(counts)) < 2:
        return ()
    sizes = ", ".join(map(str, counts[:8])) + (", ..." if len(counts) > 8 else "")
    return (
        f"{things} have {sizes} {parts}: HCCL accepts them in its asymmetric mode, and its "
        "hierarchical algorithms need equal ones.",
    )

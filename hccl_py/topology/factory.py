"""Topologies from numbers, and by name: of a product, a generated network, or a file."""

from __future__ import annotations

from hccl_py.errors import ParameterError
from hccl_py.topology.presets import DEFAULT_PRESET, MAX_RANKS, PRESETS, Product
from hccl_py.topology.topology import Topology


def topology_of(
    ranks: int | None = None,
    *,
    servers: int | None = None,
    devices: int | None = None,
    superpods: int | None = None,
    preset: str = DEFAULT_PRESET,
) -> Topology:
    """Return a topology of a preset: as few servers as hold `ranks`, or `servers` of `devices`
    each, in each of `superpods`.

    `preset` may also be a generated network, such as `torus:4x4`, or the file of one; it says
    itself where its ranks are, and `ranks` takes the first ones only.

    Raises ParameterError for an unknown preset, for numbers below 1, and where both ways are mixed.
    """
    _check_numbers(ranks=ranks, servers=servers, devices=devices, superpods=superpods)
    if preset not in PRESETS:
        network = _of_network(preset, ranks)
        _check_left_out(preset, servers=servers, devices=devices, superpods=superpods)
        return network
    product = PRESETS[preset]
    if superpods is not None and not product.superpod_servers:
        raise ParameterError(
            f"{product.title} has no superpods.", "Leave superpods out: atlas-900-a3 has them."
        )
    if servers is None and devices is None and superpods is None:
        ranks = 4 if ranks is None else ranks
        full, rest = divmod(ranks, product.usual_devices)
        filled = (product.usual_devices,) * full + ((rest,) if rest else ())
        return Topology(product, filled, _filled_superpods(product, len(filled)))
    servers = 1 if servers is None else servers
    devices = min(product.usual_devices, 8) if devices is None else devices
    pods = 1 if superpods is None else superpods
    total = pods * servers * devices
    phrase = f"{servers} servers x {devices} devices"
    phrase = phrase if superpods is None else f"{superpods} superpods x {phrase}"
    if total > MAX_RANKS:
        raise ParameterError(f"{phrase} are {total} ranks.", f"At most {MAX_RANKS}.")
    if ranks is not None and ranks != total:
        raise ParameterError(
            f"{phrase} are {total} ranks, not {ranks}.",
            "Give ranks alone, or servers and devices.",
        )
    sizes = (servers,) * pods if superpods else _filled_superpods(product, servers)
    return Topology(product, (devices,) * servers * pods, sizes)


def _of_network(spelling: str, ranks: int | None) -> Topology:
    """Return the topology of a network that is not a product's, or its first ranks."""
    from hccl_py.topology.networks import find_network

    found = find_network(spelling)
    if ranks is None or ranks == found.size:
        return found
    if ranks > found.size:
        raise ParameterError(
            f"{spelling} has {found.size} ranks, not {ranks}.", f"Give at most {found.size} ranks."
        )
    return found.subset(range(ranks))


def _check_left_out(spelling: str, **numbers: int | None) -> None:
    for name, number in numbers.items():
        if number is not None:
            raise ParameterError(
                f"Topology {spelling!r} says where the ranks are.", f"Leave {name} out."
            )


def _check_numbers(**numbers: int | None) -> None:
    for name, number in numbers.items():
        if number is not None and (isinstance(number, bool) or not isinstance(number, int)):
            raise ParameterError(f"{name} is {number!r}.", f"Give a whole number of {name}.")
        if number is not None and not 1 <= number <= MAX_RANKS:
            raise ParameterError(f"{name} is {number}.", f"Give 1 to {MAX_RANKS} {name}.")


def _filled_superpods(product: Product, servers: int) -> tuple[int, ...]:
    """Return the servers of each superpod when they are filled one after the other."""
    if not product.superpod_servers:
        return (servers,)
    full, rest = divmod(servers, product.superpod_servers)
    return (product.superpod_servers,) * full + ((rest,) if rest else ())

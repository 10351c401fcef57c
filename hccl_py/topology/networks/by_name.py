"""Networks by their spelling: `torus:4x4`, `fat-tree:8,spray=all`, `cluster.json`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from hccl_py.errors import ParameterError, did_you_mean
from hccl_py.topology.networks.dragonfly import Dragonfly, DragonflyPlus
from hccl_py.topology.networks.fat_tree import FatTree
from hccl_py.topology.networks.files import SUFFIXES, read_network
from hccl_py.topology.networks.generated import Generated, Speed
from hccl_py.topology.networks.network import Network
from hccl_py.topology.networks.spray import Sprayed
from hccl_py.topology.networks.torus import Torus, hypercube
from hccl_py.topology.presets import MAX_RANKS, PRESETS, SHAPES
from hccl_py.topology.topology import Topology

MOST_NODES = 1 << 20

MOST_DIMENSIONS = MAX_RANKS.bit_length() - 1

_DIGITS = re.compile("[0-9]{1,7}")

_DECIMAL = re.compile(r"[0-9]{1,9}(\.[0-9]{0,9})?(e-?[0-9]{1,2})?")

OPTIONS: dict[str, tuple[float, float]] = {"gbps": (1e-6, 1e6), "latency": (0, 1e6)}
"""Options that every kind takes, with the least and the largest value."""

WORDS = {"spray": ("all",)}
"""Options that every kind takes, with the words that they may be."""

Sizes = tuple[int, ...]
Options = Mapping[str, float]


def _torus(sizes: Sizes, options: Options, speed: Speed) -> Generated:
    return Torus(sizes, speed)


def _hypercube(sizes: Sizes, options: Options, speed: Speed) -> Generated:
    if sizes[0] > MOST_DIMENSIONS:
        raise ParameterError(
            f"A hypercube of {sizes[0]} dimensions has 2^{sizes[0]} ranks.",
            f"At most {MOST_DIMENSIONS} dimensions.",
        )
    return hypercube(sizes[0], speed)


def _fat_tree(sizes: Sizes, options: Options, speed: Speed) -> Generated:
    if sizes[0] % 2:
        raise ParameterError(f"A fat-tree has {sizes[0]} ports a switch.", "Give an even number.")
    return FatTree(sizes[0], speed, options.get("oversubscription", 1.0))


def _dragonfly(
    make: Callable[..., Generated], gates: int, sizes: Sizes, options: Options, speed: Speed
) -> Generated:
    """`gates` is where the sizes have the switches of a group that have links to other groups."""
    most = sizes[gates] * sizes[-1] + 1
    groups = options.get("groups")
    if groups is not None and (groups > most or groups % 1):
        links = f"{sizes[gates]} x {sizes[-1]} links of a group to others"
        raise ParameterError(f"{groups:g} groups do not go with {links}.", f"1 to {most} do.")
    return make(*sizes, groups=None if groups is None else int(groups), speed=speed)


@dataclass(frozen=True)
class Kind:
    """A kind of generated network: how it is spelled, how many sizes it takes, its options."""

    form: str
    summary: str
    build: Callable[[Sizes, Options, Speed], Generated]
    sizes: range
    options: Mapping[str, tuple[float, float]] = field(default_factory=dict)


_GROUPS = {"groups": (1.0, float(MAX_RANKS))}

KINDS = {
    "torus": Kind("torus:4x4x4", "a grid closed to rings", _torus, range(1, 17)),
    "hypercube": Kind("hypercube:4", "2^4 ranks, joined along dimensions", _hypercube, range(1, 2)),
    "fat-tree": Kind(
        "fat-tree:4,oversubscription=2",
        "three levels of switches with 4 ports for 4^3/4 ranks",
        _fat_tree,
        range(1, 2),
        {"oversubscription": (1.0, 1e6)},
    ),
    "dragonfly": Kind(
        "dragonfly:4,2,2,groups=9",
        "groups of 4 routers with 2 ranks and 2 links to other groups each",
        partial(_dragonfly, Dragonfly, 0),
        range(3, 4),
        _GROUPS,
    ),
    "dragonfly-plus": Kind(
        "dragonfly-plus:4,2,4,2,groups=9",
        "groups of 4 leaves with 2 ranks each and 4 spines with 2 links to other groups each",
        partial(_dragonfly, DragonflyPlus, 2),
        range(4, 5),
        _GROUPS,
    ),
}
"""Kinds of generated networks, by the word before the colon."""


def find_network(spelling: str) -> Topology:
    """Return the topology of a cluster with a name, of a generated network or of a file.

    Raises ParameterError for what is neither, FileError for files that are no network.
    """
    if spelling in SHAPES:
        cluster = SHAPES[spelling]
        return Topology(cluster.product, cluster.servers, (len(cluster.servers),))
    if spelling.lower().endswith(SUFFIXES) or os.sep in spelling:
        return read_network(spelling)
    kind, _, rest = spelling.partition(":")
    if kind in KINDS:
        return Topology.routed(_generated(spelling, KINDS[kind], rest))
    # Who names the NPU, 910B or Ascend910_93, means its product.
    npu = kind.lower().removeprefix("ascend")
    products = [name for name, of in PRESETS.items() if npu and npu in of.device.lower()]
    meant = products[0] if products else kind
    hint = (
        f"{did_you_mean(meant, [*PRESETS, *SHAPES, *KINDS])} A file ends in {', '.join(SUFFIXES)}."
    )
    raise ParameterError(f"Topology {spelling!r} is unknown.", hint)


def _generated(spelling: str, kind: Kind, rest: str) -> Network:
    words = rest.split(",")
    sizes = [size for word in words if "=" not in word for size in word.split("x")]
    if len(sizes) not in kind.sizes or not all(map(_is_size, sizes)):
        raise ParameterError(
            f"Topology {spelling!r}: the sizes are not understood.",
            f"Write whole numbers from 1 to {MAX_RANKS}, as in {kind.form}.",
        )
    options = _options(spelling, kind, [word for word in words if "=" in word])
    is_sprayed = options.pop("spray", None) is not None
    speed = Speed(options.pop("gbps", None), options.pop("latency", None))
    network = kind.build(tuple(map(int, sizes)), options, speed)
    if network.ranks > MAX_RANKS:
        raise ParameterError(f"{spelling} has {network.ranks} ranks.", f"At most {MAX_RANKS}.")
    if network.nodes > MOST_NODES:
        switches = network.nodes - network.ranks
        raise ParameterError(f"{spelling} has {switches} switches.", f"At most {MOST_NODES}.")
    return Sprayed(network) if is_sprayed else network


def _is_size(text: str) -> bool:
    return _DIGITS.fullmatch(text) is not None and 1 <= int(text) <= MAX_RANKS


def _options(spelling: str, kind: Kind, words: list[str]) -> dict[str, float]:
    known = {**OPTIONS, **kind.options}
    names = [*known, *WORDS]
    found: dict[str, float] = {}
    for word in words:
        name, _, value = word.partition("=")
        if name not in names:
            raise ParameterError(
                f"Topology {spelling!r} has no option {name!r}.", did_you_mean(name, names)
            )
        if name in found:
            raise ParameterError(f"Topology {spelling!r} has {name} twice.", "Keep one of the two.")
        if name in WORDS:
            found[name] = float(_word(spelling, word, value, WORDS[name]))
        else:
            found[name] = _value(spelling, word, value, *known[name])
    return found


def _word(spelling: str, word: str, text: str, words: tuple[str, ...]) -> int:
    """Return the place of a word among those that an option may be."""
    if text not in words:
        name = word.partition("=")[0]
        hint = " or ".join(f"{name}={known}" for known in words)
        raise ParameterError(f"Topology {spelling!r}: {word} is not understood.", f"Write {hint}.")
    return words.index(text)


def _value(spelling: str, word: str, text: str, low: float, high: float) -> float:
    value = float(text) if _DECIMAL.fullmatch(text) else -1.0
    if not low <= value <= high:
        raise ParameterError(
            f"Topology {spelling!r}: {word} is out of range.", f"From {low:g} to {high:g}."
        )
    return value

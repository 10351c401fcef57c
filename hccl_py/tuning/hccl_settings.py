"""HCCL's settings that lead to an executor: the environment by which its rules choose it.

Words of HCCL_ALGO for each level and values of HCCL_OP_EXPANSION_MODE are tried on the rules, and
the fewest words are kept; nothing is recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import NamedTuple

from hccl_py.call.algo import parse_algo
from hccl_py.call.config import Config
from hccl_py.call.expansion import MODES
from hccl_py.call.op_param import OpParam
from hccl_py.errors import HcclError
from hccl_py.plugins.discovery import Registry
from hccl_py.selection.levels import SETTABLE
from hccl_py.selection.select import select
from hccl_py.topology.topology import Topology

_LEVEL1 = ("", *SETTABLE, "pairwise", "fullmesh")
_LEVEL2 = ("", "ring", "H-D_R", "NHR", "NB", "pipeline")

Way = tuple[str, tuple[tuple[str, str], ...]]
"""An executor and its algorithm on each level."""


class HcclSetting(NamedTuple):
    """Settings as an environment spells them, and the configuration that has them."""

    text: str
    config: Config


def way_of(executor: str, algorithm: Mapping[str, str]) -> Way:
    """Return the key of an executor with its algorithms."""
    return executor, tuple(sorted(algorithm.items()))


def settings_by_way(
    op: OpParam, topology: Topology, config: Config, registry: Registry
) -> dict[Way, HcclSetting]:
    """Return the fewest settings that lead to each executor which HCCL's rules can be brought to
    take for a call, without one that they take as it is set.
    """
    found: dict[Way, HcclSetting] = {}
    for setting in _settings(topology, config):
        try:
            chosen, _ = select(op, topology, setting.config, registry)
        except HcclError:
            continue  # HCCL refuses this setting here: it leads to nothing
        if chosen.executor == chosen.hccl_executor:
            way = way_of(chosen.executor, chosen.algorithm)
            if way not in found or (_count(setting, way) < _count(found[way], way)):
                found[way] = setting
    return {way: setting for way, setting in found.items() if setting.text}


def _count(setting: HcclSetting, way: Way) -> tuple[int, int]:
    """Return the number of words that a setting has, and of those that do not count as they are."""
    words = parse_algo(setting.config.algo, "").items()
    named = [(level, word) for level, word in words if word != "NA"]
    modes = setting.text.count("HCCL_OP_EXPANSION_MODE")
    return len(named) + modes, sum(word not in way[1] for word in named)


def _settings(topology: Topology, config: Config) -> Iterator[HcclSetting]:
    """Yield settings that HCCL takes on the device."""
    device = topology.product.device
    pods = len(set(topology.superpod)) > 1
    words = [("", "")]
    if device != "950":
        words = list(product(_LEVEL1, _LEVEL2 if pods else ("",)))
    for mode in (None, *MODES.get(device, ())):
        for level1, level2 in words:
            update: dict[str, object] = {}
            said = []
            if level1 or level2:
                levels = {"level0": "NA", "level1": level1 or "NA"}
                levels |= {"level2": level2} if level2 else {}
                update["algo"] = ";".join(f"{level}:{word}" for level, word in levels.items())
                said.append(f'HCCL_ALGO="{update["algo"]}"')
            if mode is not None and mode != config.op_expansion_mode:
                update["op_expansion_mode"] = mode
                said.append(f"HCCL_OP_EXPANSION_MODE={mode}")
            yield HcclSetting(" ".join(said), config.model_copy(update=update))

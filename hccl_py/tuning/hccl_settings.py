"""HCCL's settings that lead to an executor: the environment by which its rules choose it.

Words of HCCL_ALGO for each level and values of HCCL_OP_EXPANSION_MODE are tried on the rules, on an
Ascend 950 its cost table with words for executors and HCCL_DETERMINISTIC=strict, too. The fewest
words are kept; nothing is recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import NamedTuple

from hccl_py.call.algo import parse_algo
from hccl_py.call.algo_executors import KINDS_950, is_executors
from hccl_py.call.config import Config
from hccl_py.call.expansion import MODES
from hccl_py.call.op_param import OpParam
from hccl_py.errors import HcclError
from hccl_py.plugins.discovery import Registry
from hccl_py.selection.levels import SETTABLE
from hccl_py.selection.select import select
from hccl_py.topology.topology import Topology

_EXECUTORS_950 = ("", *(f"{kind}{{}}" for kind in KINDS_950), "mesh", "nhr")
"""HCCL_ALGO's words for the cost table: all executors, those of a kind, those of one template."""

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
    algo = setting.config.algo
    words = {} if is_executors(algo) else parse_algo(algo, "")
    named = [(level, word) for level, word in words.items() if word != "NA"]
    others = len([word for word in setting.text.split() if not word.startswith('HCCL_ALGO="level')])
    return len(named) + others, sum(word not in way[1] for word in named)


def _settings(topology: Topology, config: Config) -> Iterator[HcclSetting]:
    """Yield settings that HCCL takes on the device."""
    device = topology.product.device
    changes = _of_950() if device == "950" else _of_levels(len(set(topology.superpod)) > 1)
    for change, mode in product(changes, (None, *MODES.get(device, ()))):
        update = dict(change)
        if mode is not None and mode != config.op_expansion_mode:
            update["op_expansion_mode"] = mode
        said = " ".join(f"{_NAMES[name]}={_as_text(value)}" for name, value in update.items())
        yield HcclSetting(said, replace(config, **update))  # type: ignore[arg-type]


_NAMES = {
    "algo": "HCCL_ALGO",
    "deterministic": "HCCL_DETERMINISTIC",
    "new_selector": "HCCL_USE_NEW_SELECTOR",
    "op_expansion_mode": "HCCL_OP_EXPANSION_MODE",
}


def _as_text(value: object) -> str:
    """Return a setting as an environment has it; HCCL_ALGO's words in quotes."""
    if value is True:
        return "1"
    return f'"{value}"' if set(str(value)) & set(":{") else str(value)


def _of_levels(has_pods: bool) -> list[dict[str, object]]:
    """Return changes of HCCL_ALGO's words for levels, none of them first."""
    found: list[dict[str, object]] = []
    for level1, level2 in product(_LEVEL1, _LEVEL2 if has_pods else ("",)):
        levels = {"level0": "NA", "level1": level1 or "NA"} | ({"level2": level2} if level2 else {})
        algo = ";".join(f"{level}:{word}" for level, word in levels.items())
        found.append({"algo": algo} if level1 or level2 else {})
    return found


def _of_950() -> list[dict[str, object]]:
    """Return changes on an Ascend 950, none first: an order of sums, and choices by cost."""
    found: list[dict[str, object]] = [{}, {"deterministic": "strict"}]
    for word in _EXECUTORS_950:
        found.append({"new_selector": True} | ({"algo": word} if word else {}))
    return found

"""HCCL's warnings, and the advice and limits of its documents that refuse no call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hccl_py.call.config import Config
from hccl_py.call.ops import ALL_TO_ALL
from hccl_py.selection.facts import Facts
from hccl_py.selection.facts_950 import is_by_cost

_BATCH_RANKS = 500
_POINT_TO_POINT = ("send_recv", "batch_send_recv")


def advice(facts: Facts) -> Iterator[str]:
    """Yield one sentence for every documented limit that a call exceeds."""
    device = facts.device
    if device == "910B" and not facts.symmetric and facts.op.name not in _POINT_TO_POINT:
        yield "HCCL's documents advise servers with as many devices"
    if device == "910B" and facts.op.name == "batch_send_recv" and facts.ranks > _BATCH_RANKS:
        yield f"HCCL runs at most 3 of these at once with more than {_BATCH_RANKS} ranks"


def warnings(facts: Facts, config: Config, taken: Mapping[str, str]) -> Iterator[str]:
    """Yield one sentence for every setting that HCCL warns of and ignores; `taken` has the words
    that an executor looks at.
    """
    yield from config.notes(facts.device)
    if facts.device == "950":
        if config.algo and not is_by_cost(facts.op.name, config):
            yield "HCCL_ALGO has no say where HCCL chooses by rules; HCCL_USE_NEW_SELECTOR heeds it"
        return
    level0, level1 = (dict(facts.given).get(level, "NA") for level in ("level0", "level1"))
    if level0 in ("NA", "null") or "level0" in taken:
        return
    why = "level0 follows from the topology"
    if facts.op.name in ALL_TO_ALL and level0 == level1 == "pairwise":
        why = (
            "only the exchange in two steps looks at it"
            if facts.pairwise_inside
            else "the exchange in two steps looks at what is set for all ops"
        )
    elif _read_at_once(facts, config) and (level0, level1) == ("fullmesh", "pairwise"):
        why = (
            f"{config.ruleset}'s exchange in two steps would read at once, by a template whose "
            "source is not public"
        )
    yield f"HCCL_ALGO's level0:{level0} is ignored: {why}"


def _read_at_once(facts: Facts, config: Config) -> bool:
    """Return True if HCCL of July 2025 had a template for level0:fullmesh;level1:pairwise here."""
    few = facts.device == "910_93" and facts.ranks <= 32 and facts.inter_hccs
    return few and facts.op.name in ALL_TO_ALL and config.ruleset == "cann-2025.07"

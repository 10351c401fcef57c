"""What HCCL warns of, and what its documents advise or limit, without a refusal."""

from __future__ import annotations

from collections.abc import Iterator

from hccl_py.config import Config
from hccl_py.ops import ALL_TO_ALL
from hccl_py.selection.facts import Facts

__all__ = ["advice", "warnings"]

_TRAINING_DEVICES = (1, 2, 4, 8)
_BATCH_RANKS = 500
_POINT_TO_POINT = ("send_recv", "batch_send_recv")


def advice(facts: Facts) -> Iterator[str]:
    """Yield one sentence for every limit that a call leaves."""
    device = facts.shape.device
    if device == "910A" and facts.devices not in _TRAINING_DEVICES:
        yield f"HCCL's documents allow 1, 2, 4 or 8 devices per server of 910A, not {facts.devices}"
    if device == "910B" and not facts.symmetric and facts.op.name not in _POINT_TO_POINT:
        yield "HCCL's documents advise servers with as many devices"
    if device == "910B" and facts.op.name == "batch_send_recv" and facts.ranks > _BATCH_RANKS:
        yield f"HCCL runs at most 3 of these at once with more than {_BATCH_RANKS} ranks"


def warnings(facts: Facts, config: Config) -> Iterator[str]:
    """Yield one sentence for every setting that HCCL warns of and ignores."""
    yield from config.notes(facts.shape.device)
    given = dict(facts.given)
    level0, level1 = given.get("level0", "NA"), given.get("level1")
    exchanges = facts.op.name in ALL_TO_ALL and level1 == "pairwise"
    if exchanges and level0 in ("fullmesh", "pairwise"):
        yield (
            f"HCCL_ALGO's level0:{level0};level1:pairwise changes how HCCL's exchange in two steps "
            "goes inside a server; here it stays as it is"
        )
    elif level0 not in ("NA", "null"):
        yield f"HCCL_ALGO's level0:{level0} is ignored: level0 follows from the topology"

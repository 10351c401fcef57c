"""What HCCL's documents advise or limit without refusing it."""

from __future__ import annotations

from collections.abc import Iterator

from hccl_py.selection.facts import Facts

__all__ = ["advice"]

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

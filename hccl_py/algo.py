"""HCCL_ALGO: which algorithm on which level, for all ops or op by op.

level0:NA;level1:ring
allreduce=level0:NA;level1:NHR/others=level0:NA;level1:ring
"""

from __future__ import annotations

from collections.abc import Mapping

from hccl_py.errors import ConfigError, did_you_mean
from hccl_py.ops import ALL_TO_ALL

__all__ = ["ALGORITHMS", "check_algo", "parse_algo"]

LEVELS = ("level0", "level1", "level2", "level3")

ALGORITHMS = (
    "null",
    "ring",
    "pipeline",
    "fullmesh",
    "H-D_R",
    "pairwise",
    "NHR",
    "NHR_V1",
    "AHC",
    "AHC_BROKE",
    "NB",
    "NA",
)

_OTHERS = "others"

_OPS = {
    "allreduce": ("all_reduce", "barrier"),
    "allgather": ("all_gather", "all_gather_v"),
    "reducescatter": ("reduce_scatter", "reduce_scatter_v"),
    "broadcast": ("broadcast",),
    "reduce": ("reduce",),
    "scatter": ("scatter",),
    "gather": ("gather",),
    "alltoall": ALL_TO_ALL,
    "send": ("send_recv",),
    "receive": ("send_recv",),
    "sendrecv": ("send_recv", "batch_send_recv"),
    _OTHERS: (),
}


def check_algo(text: str) -> None:
    """Raise ConfigError for a setting that HCCL refuses, whatever the op."""
    parse_algo(text, "")


def parse_algo(text: str, op: str) -> Mapping[str, str]:
    """Return the algorithm of every level that the setting gives for an op; empty where it says
    nothing.

    Raises ConfigError for what HCCL refuses: unknown or repeated levels, unknown values, empty
    segments, both syntaxes mixed, several settings for all ops, `level0` other than NA (or null for
    all ops at once).
    """
    text = text.strip()
    if not text:
        return {}
    if "=" not in text:
        if "/" in text:
            raise _error(
                text, "there is more than one setting for all ops", "Write op=levels for each op."
            )
        return _levels(text, text, per_op=False)
    chosen: Mapping[str, str] = {}
    others: Mapping[str, str] = {}
    seen: set[str] = set()
    for part in text.split("/"):
        name, found = _op_setting(part, text, seen)
        if op in _OPS[name]:
            chosen = found
        elif name == _OTHERS:
            others = found
    return chosen or others


def _op_setting(part: str, text: str, seen: set[str]) -> tuple[str, Mapping[str, str]]:
    """Return the op that a part names and its levels."""
    name, equals, levels = part.partition("=")
    name = name.strip()
    if not equals:
        raise _error(
            text,
            f"{part!r} names no op while other parts do",
            "Write op=level0:NA;level1:... for each.",
        )
    if name not in _OPS:
        raise _error(text, f"op {name!r} is unknown", did_you_mean(name, _OPS))
    if name in seen:
        raise _error(text, f"op {name!r} appears twice", "Give each op once.")
    seen.add(name)
    return name, _levels(levels, text, per_op=True)


def _levels(part: str, text: str, *, per_op: bool) -> dict[str, str]:
    levels: dict[str, str] = {}
    for segment in part.split(";"):
        level, colon, value = (piece.strip() for piece in segment.partition(":"))
        if not level or not colon or not value:
            raise _error(
                text,
                f"segment {segment!r} is not level:algorithm",
                'For example "level0:NA;level1:ring".',
            )
        if level not in LEVELS:
            raise _error(text, f"level {level!r} is unknown", did_you_mean(level, LEVELS))
        if level in levels:
            raise _error(text, f"{level} appears twice", "Give each level once.")
        if value not in ALGORITHMS:
            raise _error(text, f"algorithm {value!r} is unknown", did_you_mean(value, ALGORITHMS))
        if level == "level0" and (value != "NA" and (per_op or value != "null")):
            raise _error(
                text,
                f"level0 cannot be set to {value}",
                "HCCL chooses level0 by the topology: write level0:NA.",
            )
        levels[level] = value
    return levels


def _error(text: str, what: str, hint: str) -> ConfigError:
    return ConfigError(f"HCCL_ALGO {text!r}: {what}.", f"{hint} (EI0001)")

"""HCCL_ALGO: which algorithm on which level, for all ops or op by op.

level0:NA;level1:ring
allreduce=level0:NA;level1:NHR/allgather=level0:NA;level1:ring

Spaces do not count, even inside words, and of two settings of one op the last counts. Any word is
taken for level0, with a warning: HCCL chooses level0 by the topology. Sources: the parsers of
April and August 2026 (`alg_env_config.cc`, `env_config_host.cc`).
"""

from __future__ import annotations

from collections.abc import Mapping

from hccl_py.call.algo_executors import is_executors, parse_executors
from hccl_py.call.ops import ALL_TO_ALL
from hccl_py.errors import ConfigError, did_you_mean

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
    "allgather": ("all_gather",),
    "reducescatter": ("reduce_scatter",),
    "broadcast": ("broadcast",),
    "reduce": ("reduce",),
    "scatter": ("scatter",),
    "gather": ("gather",),
    "alltoall": ALL_TO_ALL,
    "send": ("send_recv",),
    "receive": ("send_recv",),
    "sendrecv": ("batch_send_recv",),
    _OTHERS: (),
}


def check_algo(text: str) -> None:
    """Raise ConfigError for a setting that HCCL refuses for every op and device."""
    if any(mark in text for mark in "{("):
        parse_executors(text)
    elif not is_executors(text):
        parse_algo(text, "")


def parse_algo(text: str, op: str) -> Mapping[str, str]:
    """Return the algorithm of every level that the setting names for an op; empty for a setting in
    the form of the 950, which names executors.

    Raises ConfigError for what HCCL refuses: unknown or repeated levels, unknown values, empty
    segments, both syntaxes mixed, several settings for all ops, `level0:null` for one op.
    """
    given = text.replace(" ", "")
    if not given or is_executors(text):
        return {}
    if "=" not in given:
        if "/" in given:
            raise _error(
                text, "there is more than one setting for all ops", "Write op=levels for each op."
            )
        return _levels(given, text)
    chosen: Mapping[str, str] = {}
    others: Mapping[str, str] = {}
    for part in given.split("/"):
        name, found = _op_setting(part, text)
        if op in _OPS[name]:
            chosen = found
        elif name == _OTHERS:
            others = found
    return chosen or others


def names_others(text: str) -> bool:
    """True if a setting names `others`, a word for all other ops that HCCL reads, then refuses."""
    return any(part.startswith(f"{_OTHERS}=") for part in text.replace(" ", "").split("/"))


def _op_setting(part: str, text: str) -> tuple[str, Mapping[str, str]]:
    """Return the op that a part names and its levels."""
    name, equals, levels = part.partition("=")
    if not equals:
        raise _error(
            text,
            f"{part!r} names no op while other parts do",
            "Write op=level0:NA;level1:... for each.",
        )
    if name not in _OPS:
        raise _error(text, f"op {name!r} is unknown", did_you_mean(name, _OPS))
    found = _levels(levels, text)
    if found.get("level0") == "null":
        hint = "level0:null is for all ops at once: leave the op out."
        raise _error(text, f"{name}'s level0 cannot be set to null", hint)
    return name, found


def _levels(part: str, text: str) -> dict[str, str]:
    levels: dict[str, str] = {}
    for segment in part.split(";"):
        level, colon, value = segment.partition(":")
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
        levels[level] = value
    return levels


def _error(text: str, what: str, hint: str) -> ConfigError:
    return ConfigError(f"HCCL_ALGO {text!r}: {what}.", f"{hint} (EI0001)")

"""HCCL_OP_EXPANSION_MODE: the place where an op is expanded to tasks, by device.

Source: `ParseOpExpansion` of August 2026, for 910A, 910B, 910_93 and 310P3 (`externalinput.cc`) and
for 950 (`alg_env_config.cc`); where the latter accepts modes that its documents refuse, the
documents count.
"""

from __future__ import annotations

from typing import Literal

ExpansionMode = Literal[
    "HOST",
    "HOST_TS",
    "AI_CPU",
    "AICPU_CacheDisable",
    "AIV",
    "AICPU_TS",
    "CCU_MS",
    "CCU_SCHED",
    "AIV_ONLY",
]

MODES: dict[str, tuple[ExpansionMode, ...]] = {
    "910A": ("HOST",),
    "310P3": ("HOST", "AI_CPU", "AICPU_CacheDisable"),
    "910B": ("HOST", "HOST_TS", "AI_CPU", "AICPU_CacheDisable", "AIV"),
    "910_93": ("AI_CPU", "AICPU_CacheDisable", "AIV", "HOST"),
    "950": ("AICPU_TS", "AI_CPU", "AICPU_CacheDisable", "AIV", "CCU_MS", "CCU_SCHED", "AIV_ONLY"),
}
"""Modes with a meaning on a device, the default first. AIV_ONLY is one of a communicator's
configuration; the environment variable does not take it.
"""

_KNOWN: tuple[ExpansionMode, ...] = ("HOST", "HOST_TS", "AI_CPU", "AICPU_CacheDisable", "AIV")
"""Modes that devices before the 950 accept; one without a meaning is taken for the default."""

_UNFOLDED: dict[str, tuple[str, ...]] = {
    "910B": ("all_gather", "all_to_all", "all_to_all_v", "all_to_all_vc"),
    "310P3": ("all_reduce",),
}
"""The ops whose tasks the AI CPU makes where it is asked; on other devices those of all ops."""


def modes_of(device: str) -> tuple[ExpansionMode, ...]:
    """Return the modes that a device accepts, those with a meaning there first."""
    own = MODES.get(device, ("HOST",))
    return own if device == "950" else tuple(dict.fromkeys((*own, *_KNOWN)))


def fallback(mode: ExpansionMode | None, device: str) -> str:
    """Say that a mode has no meaning on a device; empty where it has one."""
    own = MODES.get(device, ("HOST",))
    if mode is None or mode in own:
        return ""
    return f"HCCL_OP_EXPANSION_MODE {mode} has no meaning on {device}: it is {own[0]}, the default"


def expansion_of(mode: ExpansionMode | None, device: str, op: str) -> ExpansionMode:
    """Return the mode that expands an op."""
    own = MODES.get(device, ("HOST",))
    found = mode if mode in own else own[0]
    if _is_unfolding(found) and op not in _UNFOLDED.get(device, (op,)):
        return "HOST"
    return found


def unfolds(mode: ExpansionMode | None, device: str, op: str, *, inline: bool) -> bool:
    """True if the AI CPU makes the tasks of an op that the vector cores do not run: HCCL's
    aicpuUnfoldMode. `inline`: SDMA can do the reduction, if there is one; others stay on the host.

    AIV does not switch it off on 910_93.
    """
    found = expansion_of(mode, device, op)
    return inline and (_is_unfolding(found) or (found == "AIV" and device == "910_93"))


def _is_unfolding(mode: ExpansionMode) -> bool:
    return mode in ("AI_CPU", "AICPU_CacheDisable", "AICPU_TS")

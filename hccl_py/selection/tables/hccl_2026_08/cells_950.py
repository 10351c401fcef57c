"""Cells, thresholds and files that the tables of the Ascend 950 share.

A file of HCCL's selectors is nested: `within` has the cells of a branch in front of its rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hccl_py.selection.rules import Cell, OperatorFile, Rule, conditions

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

SMALL = 512 * KIB
"""SMALL_COUNT_512KB, auto_selector_base.h:22; each op repeats it under names of its own."""

AIV_EACH = 8 * MIB
"""AIV_MAX_PER_RANK_DATA_SIZE, auto_selector_base.h:24."""

AIV_RANKS, AIV_RANKS_V, AIV_LOOPS = 512, 256, 16
"""MAX_RANK_SIZE, MAX_RANK_SIZE_V and AIV_MAX_CCL_LOOP_NUM, template/aiv/hccl_aiv_utils.h:22-33."""

FRAMES = 16
"""MAX_FRAME_NUM_FOR_CCU_ALGO, auto_selector_base.h:33."""

CONCURRENT_RANKS = 4
"""MAX_RANK_NUM_FOR_CONCURRENT_ALGO, all_reduce_auto_selector.cc:25 and siblings."""

_SOURCE = "hicann/hccl@09300b7:src/ops/"


def selector(engine: str, folder: str, name: str = "") -> OperatorFile:
    """Return the file of an op's selector, for rows of an engine."""
    path = f"{_SOURCE}{folder}/selector/{name or folder}_auto_selector.cc"
    return OperatorFile(path, engine)


def within(when: Iterable[Cell], *rows: Rule | tuple[Rule, ...]) -> tuple[Rule, ...]:
    """Return rows, and those of groups, that hold only where these cells hold, too."""
    before = conditions(tuple(when))
    flat = [row for group in rows for row in ((group,) if isinstance(group, Rule) else group)]
    return tuple(replace(row, when=(*before, *row.when)) for row in flat)


def at_least(size: int) -> Cell:
    """Return the cell for calls of `size` bytes or more."""
    return ("bytes", ">=", size)


def at_most(size: int) -> Cell:
    """Return the cell for calls of at most `size` bytes."""
    return ("bytes", "<=", size)


def above(size: int) -> Cell:
    """Return the cell for calls of more than `size` bytes."""
    return ("bytes", ">", size)


def below(size: int) -> Cell:
    """Return the cell for calls of fewer than `size` bytes."""
    return ("bytes", "<", size)


ONE_LEVEL: Cell = ("net_levels", "==", 1)
TWO_LEVELS: Cell = ("net_levels", "==", 2)
THREE_LEVELS: Cell = ("net_levels", "==", 3)
LEVELS: Cell = ("net_levels", ">", 1)
MESH: Cell = ("shape0", "==", "mesh")
CLOS: Cell = ("shape0", "==", "clos")
BOTH: Cell = ("shape0", "==", "mesh+clos")
NOT_CLOS: Cell = ("shape0", "!=", "clos")
PCIE: Cell = ("pcie0", "==", True)
ONE_MESH: Cell = ("one_mesh", "==", True)
COPRIME: Cell = ("gcd0", "==", 1)
LONE: Cell = ("local0", "==", 1)
PAIR: Cell = ("ranks", "==", 2)
FOUR: tuple[Cell, ...] = (("mesh_is_clos", "==", True), ("ranks", "<=", CONCURRENT_RANKS))
ROWS: tuple[Cell, ...] = (("mesh_in_clos", "==", True), at_least(SMALL))
DETOUR: Cell = ("two_level_net", "==", True)
EVEN: Cell = ("even_layers", "==", True)
UNEVEN: Cell = ("even_layers", "==", False)
UBOE: Cell = ("uboe", "==", True)
NOT_UBOE: Cell = ("uboe", "==", False)
UB_RTP: Cell = ("ub_rtp", "==", True)
TWO_DIES: Cell = ("mesh_dies", "==", "regular")
SKEWED_DIES: Cell = ("mesh_dies", "==", "irregular")
ANY_TWO_DIES: Cell = ("mesh_dies", "!=", "one")
SPECIAL: Cell = ("special", "==", True)
WIDE: Cell = ("wide", "==", True)
PROD: Cell = ("reduce", "==", "prod")
INT8: Cell = ("dtype", "==", "int8")
STRICT: Cell = ("strict_order", "==", True)
IN_PLACE: Cell = ("in_place", "==", True)
SYMMETRIC_MEMORY: Cell = ("zero_copy_asked", "==", True)

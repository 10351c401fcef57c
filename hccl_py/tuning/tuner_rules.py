"""Rules of tuner plugins: the ranges of a tuning table, in the words of a form that leaves hccl-py.

A rule matches a call by its op, ranks, servers, bytes and what else its form knows, and names one
algorithm. `sorted_out` turns a table into rules and says in sentences what they cannot say. Bytes
are those that the form's library counts: HCCL a rank's input, NCCL the larger one of a rank's input
and output.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hccl_py.call.ops import OPS
from hccl_py.documents.kind import FileKind
from hccl_py.enums import DataType
from hccl_py.errors import ParameterError
from hccl_py.tuning.table import SizeRange, TuningEntry, TuningTable

LARGEST = (1 << 63) - 1
"""The end of a range without an end."""

RULES = FileKind(
    noun="file of tuner rules",
    parts="rules",
    mark=re.compile(rb'"op_types"|^# collective_type'),
)

_UNSAID = ("reduce_op", "mode", "deterministic")
"""Members of an entry that no form knows."""


@dataclass(frozen=True)
class TunerRule:
    """One range of sizes on one topology, and its algorithm in the form's words."""

    op: str
    ranks: int
    servers: int
    devices: int
    buffer_bytes: int
    dtype: DataType
    least: int
    most: int
    words: tuple[str, ...]


@dataclass(frozen=True)
class TunerForm:
    """A form of rules: its name for each op, the members of an entry that its rules can match
    beside op and topology, and the words for an executor, or the reason why it has none.
    """

    ops: Mapping[str, str]
    members: tuple[str, ...]
    words: Callable[[TuningEntry, SizeRange], tuple[str, ...] | str]
    counts_inputs: bool = True


def sorted_out(table: TuningTable, form: TunerForm) -> tuple[tuple[TunerRule, ...], list[str]]:
    """Return the rules of a table, and a sentence for everything that they cannot say.

    Raises ParameterError for two entries that a rule cannot tell apart and that choose otherwise.
    """
    rules: list[TunerRule] = []
    unsaid: list[str] = []
    seen: dict[tuple[object, ...], TuningEntry] = {}
    for entry in table.entries:
        reason = _no_place(entry, form)
        if reason:
            unsaid.append(f"{titled(entry)}: {reason}")
            continue
        key = (entry.op, entry.topology.superpods, entry.topology.servers, entry.topology.devices)
        key = (*key, *(getattr(entry, name) for name in form.members))
        other = seen.setdefault(key, entry)
        if other is entry:
            _add(entry, form, rules, unsaid)
        elif _choices(other) != _choices(entry):
            raise ParameterError(
                f"Rules cannot tell {titled(other)} from {titled(entry)}, which choose otherwise.",
                "Write two tables, and give each its own file.",
            )
    return tuple(rules), unsaid


def titled(entry: TuningEntry) -> str:
    """Return an entry in a few words."""
    reduce = f" {entry.reduce_op}" if entry.reduce_op else ""
    strict = "" if entry.deterministic == "false" else f", deterministic {entry.deterministic}"
    about = f"{entry.dtype}, {entry.mode}{strict}, buffers of {entry.buffsize_mb}M"
    return f"{entry.op}{reduce}, {about}, on {entry.topology}"


def ranks_of(entry: TuningEntry) -> int:
    """Return the ranks of an entry's topology."""
    shape = entry.topology
    if isinstance(shape.devices, tuple):
        return sum(shape.devices)
    return shape.superpods * shape.servers * shape.devices


def _choices(entry: TuningEntry) -> list[tuple[int, str, dict[str, str]]]:
    return [(found.from_bytes, found.executor, found.levels) for found in entry.ranges]


def _no_place(entry: TuningEntry, form: TunerForm) -> str:
    """Return the reason why no rule can stand for an entry; "" where one can."""
    if entry.op not in form.ops:
        return f"the rules have no such op; they have {', '.join(sorted(form.ops))}"
    if isinstance(entry.topology.devices, tuple):
        return "a rule has one number of devices for all servers"
    return ""


def _add(entry: TuningEntry, form: TunerForm, rules: list[TunerRule], unsaid: list[str]) -> None:
    """Add an entry's rules, and the sentences about it."""
    ends = [*(found.from_bytes - 1 for found in entry.ranges[1:]), LARGEST]
    made = 0
    for found, last in zip(entry.ranges, ends, strict=True):
        words = form.words(entry, found)
        if isinstance(words, str):
            unsaid.append(f"{titled(entry)}, from {found.from_bytes} bytes: {words}")
            continue
        least, most = _counted(entry, form, found.from_bytes, last)
        if least <= most:
            rules.append(_rule(entry, least, most, words))
            made += 1
    if made:
        unsaid.append(f"{titled(entry)}: {_wider(entry, form)}")


def _counted(entry: TuningEntry, form: TunerForm, least: int, most: int) -> tuple[int, int]:
    """Return a range in the bytes of the form's library."""
    facts = OPS[entry.op]
    if not form.counts_inputs or facts.slots_in or not facts.slots_out:
        return least, most
    ranks = ranks_of(entry)
    return -(-least // ranks), most if most == LARGEST else most // ranks


def _rule(entry: TuningEntry, least: int, most: int, words: tuple[str, ...]) -> TunerRule:
    shape = entry.topology
    assert isinstance(shape.devices, int), "_no_place refuses others"
    return TunerRule(
        entry.op,
        ranks_of(entry),
        shape.superpods * shape.servers,
        shape.devices,
        entry.buffsize_mb << 20,
        DataType(entry.dtype),
        least,
        most,
        words,
    )


def _wider(entry: TuningEntry, form: TunerForm) -> str:
    """Return the sentence about calls that a rule matches beside those of its entry."""
    silent = [name for name in ("dtype", "buffsize_mb") if name not in form.members]
    names = [name for name in (*silent, *_UNSAID) if getattr(entry, name) is not None]
    shown = ", ".join(f"{name.removesuffix('_mb')} {getattr(entry, name)}" for name in names)
    return f"the rules also match calls that differ in {shown}, or in the product"

"""How an executor stands to HCCL's of the same name, and the sources that say so.

    same     steps, their order, synchronisation and resources follow HCCL's source
    steps    the same transfers between the same ranks; synchronisation or resources differ
    ours     another algorithm, or one that HCCL does not have

An executor states it in its attribute `fidelity`. One that states nothing is `ours`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

__all__ = [
    "KINDS",
    "SITUATIONS",
    "UNDECLARED",
    "Fidelity",
    "SourceFile",
    "declared",
    "fidelity_of",
    "joined",
    "ours",
    "same",
    "steps",
]

KINDS = ("same", "steps", "ours")
"""From HCCL's own to anything."""

DEVICES = ("910A", "910B", "910_93", "310P3")
SITUATIONS = (
    *("op_base", "graph", "deterministic", "local_reduce", "servers", "modules", "double_ring"),
    *DEVICES,
)
"""Cases that any executor can meet: the mode, HCCL_DETERMINISTIC, a reduction that links cannot do
on their way, several servers, several hosts of modules, two rings inside servers, and the device.
"""


@dataclass(frozen=True)
class SourceFile:
    """A file of a public repository, as of one commit."""

    repository: str
    commit: str
    file: str

    def __str__(self) -> str:
        return f"{self.repository}@{self.commit}:{self.file}"


@dataclass(frozen=True)
class Fidelity:
    """What is the same as in HCCL, by `sources`, and in one sentence what is not and why.

    `cases` has what stands otherwise than the executor itself: words of HCCL_ALGO that it leaves
    open, and `SITUATIONS`. ValueError is raised for an unknown kind, for `same` or
    `steps` without a source, and where the deviation is missing, or is given with `same`.
    """

    kind: str
    sources: tuple[SourceFile, ...] = ()
    deviation: str = ""
    cases: Mapping[str, Fidelity] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"fidelity {self.kind!r} is unknown: one of {', '.join(KINDS)}")
        if self.kind != "ours" and not self.sources:
            raise ValueError(f"fidelity {self.kind} names no source")
        if bool(self.deviation) == (self.kind == "same"):
            wanted = "has no deviation" if self.kind == "same" else "says what deviates, and why"
            raise ValueError(f"fidelity {self.kind} {wanted}")

    @property
    def is_same(self) -> bool:
        """Whether it does what HCCL does."""
        return self.kind == "same"

    def with_cases(self, cases: Mapping[str, Fidelity]) -> Fidelity:
        """Return the same with cases that may stand otherwise, beside those that there are."""
        return replace(self, cases={**self.cases, **cases})

    def document(self) -> dict[str, Any]:
        """Return what JSON documents say."""
        found: dict[str, Any] = {
            "kind": self.kind,
            "deviation": self.deviation or None,
            "sources": [str(source) for source in self.sources],
        }
        if self.cases:
            found["cases"] = {case: at.document() for case, at in self.cases.items()}
        return found


UNDECLARED = Fidelity("ours", deviation="Its author states no relation to HCCL.")


def same(*sources: SourceFile) -> Fidelity:
    """Say that all follows HCCL's sources."""
    return Fidelity("same", sources)


def steps(deviation: str, *sources: SourceFile) -> Fidelity:
    """Say that transfers follow HCCL's sources; the sentence says what else differs, and why."""
    return Fidelity("steps", sources, deviation)


def ours(deviation: str, *sources: SourceFile) -> Fidelity:
    """Say that it is another algorithm; the sentence says how HCCL's differs, and why."""
    return Fidelity("ours", sources, deviation)


def fidelity_of(executor: object, cases: Collection[str] = ()) -> Fidelity:
    """Return how an executor stands to HCCL in these cases, the situations of the call and the
    words of HCCL_ALGO on its open levels: as the weakest of what takes part.
    """
    own = declared(executor)
    return joined([replace(own, cases={}), *(own.cases[c] for c in cases if c in own.cases)])


def declared(executor: object) -> Fidelity:
    """Return what an executor states, with the cases that it can meet; UNDECLARED where it states
    nothing.
    """
    found: Fidelity = getattr(executor, "fidelity", UNDECLARED)
    met = {*re.split("[:;|]", getattr(executor, "algorithm", "")), *SITUATIONS}
    return replace(found, cases={c: at for c, at in found.cases.items() if c in met})


def joined(parts: Collection[Fidelity]) -> Fidelity:
    """Return how what is made of these parts stands to HCCL: as the weakest of them."""
    kind = KINDS[max(KINDS.index(part.kind) for part in parts)]
    sources = dict.fromkeys(source for part in parts for source in part.sources)
    deviations = dict.fromkeys(part.deviation for part in parts if part.deviation)
    return Fidelity(kind, tuple(sources), " ".join(deviations))

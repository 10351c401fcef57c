"""Fidelity of an executor: its relation to HCCL's of the same name, with the sources that prove it.

    same     steps, their order, synchronisation and resources follow HCCL's source
    steps    the same transfers between the same ranks; synchronisation or resources differ
    ours     another algorithm, or one that HCCL does not have

An executor declares it in its attribute `fidelity`, `ours` by default.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

KINDS = ("same", "steps", "ours")
"""From HCCL's own to anything."""

DEVICES = ("910A", "910B", "910_93", "310P3")
SITUATIONS = (
    *("op_base", "graph", "deterministic", "local_reduce", "servers", "double_ring"),
    *("uneven_tree", "pieces", *DEVICES),
)
"""Cases that any executor can meet: the mode, HCCL_DETERMINISTIC, a reduction that links cannot do
on their way, several servers, two rings inside servers, planes of which `is_uneven_tree` is true,
an all-to-all that goes in pieces through the CCL buffers, and the device.
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
class Proof:
    """Calls in which HCCL's own code ran, at the commit `source`, and did what is recorded here:
    equal in all tasks of all ranks, `but_for_copies` of them without copies inside a rank, of which
    `copies` says how they differ.
    """

    source: str
    calls: int
    but_for_copies: int = 0
    copies: str = ""

    def __str__(self) -> str:
        counted = f"equal in {self.calls} calls that HCCL's own code ran, {self.source}"
        if not self.but_for_copies:
            return counted
        return f"{counted}; in {self.but_for_copies} but for copies inside a rank: {self.copies}"


@dataclass(frozen=True)
class Fidelity:
    """A kind, the `sources` that prove it, and one sentence on what deviates from HCCL, and why.

    `proof` is HCCL's own run, where there is one; all else was read.

    `cases` has the fidelity of calls that differ from the executor's others: by word of HCCL_ALGO
    on a level that it leaves open, or by one of `SITUATIONS`; a case may have cases. ValueError is
    raised for an unknown kind, for `same` or `steps` without a source, and where the deviation is
    missing, or is given with `same`.
    """

    kind: str
    sources: tuple[SourceFile, ...] = ()
    deviation: str = ""
    cases: Mapping[str, Fidelity] = field(default_factory=dict)
    proof: Proof | None = None

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
        """True if steps, synchronisation and resources are HCCL's."""
        return self.kind == "same"

    def with_cases(self, cases: Mapping[str, Fidelity]) -> Fidelity:
        """Return this fidelity with more cases that differ from it."""
        return replace(self, cases={**self.cases, **cases})

    def limited_to(self, algorithm: str) -> Fidelity:
        """Return this fidelity without the cases that an executor of this `algorithm` never meets:
        words of HCCL_ALGO that it does not name.
        """
        met = {*re.split("[:;|]", algorithm), *SITUATIONS}
        return replace(self, cases={case: at for case, at in self.cases.items() if case in met})

    def among(self, cases: Collection[str]) -> Fidelity:
        """Return the fidelity of one call, the weakest of all that takes part in it. `cases` are
        its situations and the words of HCCL_ALGO on the levels that the executor leaves open.
        """
        met = (self.cases[case].among(cases) for case in cases if case in self.cases)
        found = joined([replace(self, cases={}), *met])
        return replace(found, proof=self.proof if found.is_same else None)

    def document(self) -> dict[str, Any]:
        """Return the fidelity as a part of JSON documents."""
        found: dict[str, Any] = {
            "kind": self.kind,
            "deviation": self.deviation or None,
            "sources": [str(source) for source in self.sources],
            "proof": asdict(self.proof) if self.proof else None,
        }
        if self.cases:
            found["cases"] = {case: at.document() for case, at in self.cases.items()}
        return found


def kind_and_proof(document: Mapping[str, Any]) -> str:
    """Return the kind in a document of a fidelity; `same` with what proves it, a run or reading."""
    how = "run" if document["proof"] else "read"
    return f"same ({how})" if document["kind"] == "same" else str(document["kind"])


UNDECLARED = Fidelity("ours", deviation="Its author states no relation to HCCL.")


def same(*sources: SourceFile) -> Fidelity:
    """Declare that everything follows these files of HCCL."""
    return Fidelity("same", sources)


def steps(deviation: str, *sources: SourceFile) -> Fidelity:
    """Declare that transfers follow these files of HCCL; `deviation` says what differs, and why."""
    return Fidelity("steps", sources, deviation)


def ours(deviation: str, *sources: SourceFile) -> Fidelity:
    """Declare another algorithm than HCCL's; `deviation` says how HCCL's differs, and why."""
    return Fidelity("ours", sources, deviation)


def joined(parts: Collection[Fidelity]) -> Fidelity:
    """Return the fidelity of a whole made of these parts: the weakest of them, case by case."""
    kind = KINDS[max(KINDS.index(part.kind) for part in parts)]
    sources = dict.fromkeys(source for part in parts for source in part.sources)
    deviations = dict.fromkeys(part.deviation for part in parts if part.deviation)
    cases = {
        case: joined([part.cases[case] for part in parts if case in part.cases])
        for case in dict.fromkeys(case for part in parts for case in part.cases)
    }
    return Fidelity(kind, tuple(sources), " ".join(deviations), cases)


def is_uneven_tree(members: int) -> bool:
    """True if senders in a step of NHR's or NB's scatter have different numbers of slices to send:
    among 7, 11, 13, 14, 15, 19 and some more members.
    """
    widths = (1 << step for step in range((members - 1).bit_length() - 1))
    return any((members - 1 + width) % (2 * width) < width - 1 for width in widths)

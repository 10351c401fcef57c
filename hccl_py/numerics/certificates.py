"""Certificates: what was proved about the bits of a call, as JSON that a later release can check.

A certificate has the call by its options, the ruleset, and the trees: by ranges of sizes, or of
every element of one or two calls, as digests. Checking proves all of it again. Other trees break a
certificate; another executor with the same trees does not, and is told.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hccl_py.documents.disk import PathLike, format_path, read_file, write_file
from hccl_py.documents.kind import FileKind, named
from hccl_py.documents.models import Strict, checked
from hccl_py.documents.parse import parse_document
from hccl_py.errors import FileError
from hccl_py.numerics.element_trees import ElementTrees
from hccl_py.tuning.table import Listed

SCHEMA = "hccl-py.numerics-certificate/1"

MAX_BYTES = 64 << 20

CERTIFICATE = FileKind(
    "certificate of bits",
    "proofs",
    suffixes=(".json",),
    mark=re.compile(rb"hccl-py\.numerics-certificate"),
)


class ProvedRange(Strict):
    """Sizes in bytes, both ends included, with one executor and the digests of its trees."""

    first_bytes: int
    last_bytes: int
    executor: str
    trees: Listed[str]
    is_fixed: bool


class Proved(Strict):
    """One call: its bytes, its executor, and a digest of the trees of all of its elements."""

    bytes: int
    executor: str
    elements: str
    trees: Listed[str]
    is_fixed: bool

    @staticmethod
    def of(size: int, executor: str, found: ElementTrees) -> Proved:
        """Return the proof about a call."""
        trees = tuple(tree.digest.hex() for tree in found.trees)
        return Proved(
            bytes=size,
            executor=executor,
            elements=found.digest,
            trees=trees,
            is_fixed=found.is_fixed,
        )


@dataclass(frozen=True)
class CertificateCheck:
    """The outcome of a check: what no longer holds, and changes that leave the bits as they are."""

    broken: tuple[str, ...]
    notes: tuple[str, ...]
    rulesets: tuple[str, str]

    @property
    def holds(self) -> bool:
        """True if every bit is as the certificate says."""
        return not self.broken


class Certificate(Strict):
    """Proofs about ranges of sizes and about calls, and the verdict on two calls."""

    call: dict[str, Any]
    ruleset: str
    ranges: Listed[ProvedRange]
    calls: Listed[Proved]
    verdict: str
    assumed: Listed[str]

    @staticmethod
    def read(path: PathLike) -> Certificate:
        """Read a file; FileError says in one sentence what is wrong with it."""
        data = read_file(path, MAX_BYTES, CERTIFICATE)

        def parsed() -> Certificate:
            document = parse_document(data, CERTIFICATE)
            found = document.pop("schema", None) if isinstance(document, dict) else SCHEMA
            if found != SCHEMA:
                raise FileError(
                    f"schema: expected {SCHEMA}, found {json.dumps(found)[:60]}.",
                    "`hccl-py numerics OP --certificate FILE` writes certificates.",
                )
            return checked(Certificate, document)

        return named(f"{format_path(path):.200}", CERTIFICATE, parsed)

    def write(self, path: PathLike) -> None:
        """Write a file; FileError where that cannot be."""
        document = {"schema": SCHEMA, **self.model_dump(mode="json")}
        text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
        write_file(path, text.encode(), CERTIFICATE)

    def held_against(self, now: Certificate) -> CertificateCheck:
        """Return the differences between this certificate and a new one on the same call."""
        changes = [*self._of_ranges(now), *self._of_calls(now)]
        if self.verdict != now.verdict:
            changes.append((True, f"the verdict was {self.verdict}, it is {now.verdict}"))
        return CertificateCheck(
            broken=tuple(text for is_broken, text in changes if is_broken),
            notes=tuple(text for is_broken, text in changes if not is_broken),
            rulesets=(self.ruleset, now.ruleset),
        )

    def _of_ranges(self, now: Certificate) -> Iterator[tuple[bool, str]]:
        """Yield the sizes at which something is another, with whether the trees are."""
        for old in self.ranges:
            for new in now.ranges:
                low = max(old.first_bytes, new.first_bytes)
                high = min(old.last_bytes, new.last_bytes)
                if low <= high:
                    yield from _changes(f"{low} to {high} bytes", old, new)
        if _span(self.ranges) != _span(now.ranges):
            yield True, f"sizes {_span(self.ranges)} were proved, these are {_span(now.ranges)}"

    def _of_calls(self, now: Certificate) -> Iterator[tuple[bool, str]]:
        if len(self.calls) != len(now.calls):
            yield True, f"{len(self.calls)} calls were proved, there are {len(now.calls)}"
        for old, new in zip(self.calls, now.calls, strict=False):
            place = f"{old.bytes} bytes"
            if old.elements != new.elements and set(old.trees) == set(new.trees):
                yield True, f"{place}: the same trees stand at other elements ({new.executor})"
            yield from _changes(place, old, new)


def _span(ranges: tuple[ProvedRange, ...]) -> str:
    return f"{ranges[0].first_bytes} to {ranges[-1].last_bytes}" if ranges else "none"


def _changes(
    place: str, old: ProvedRange | Proved, new: ProvedRange | Proved
) -> Iterator[tuple[bool, str]]:
    if set(old.trees) != set(new.trees) or old.is_fixed != new.is_fixed:
        gone, more = set(old.trees) - set(new.trees), set(new.trees) - set(old.trees)
        order = "" if new.is_fixed else ", added in the order of arrival"
        yield (
            True,
            f"{place}: {old.executor} was proved, it is {new.executor}: "
            f"{len(gone)} trees are gone, {len(more)} are new{order}",
        )
    elif old.executor != new.executor:
        yield False, f"{place}: {old.executor} is {new.executor} now, with the same trees"

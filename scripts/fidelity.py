#!/usr/bin/env python3
"""Write the tables of docs/fidelity.md anew, from what the built-in executors declare, their
proofs, and the judgement on golden runs.

    scripts/fidelity.py

What stands above the line that the tables begin with stays as it is. A test compares the page.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from hccl_executors import EXECUTORS
from hccl_executors.levels import LEVELS
from hccl_py.plugins.executor import Fidelity, ops_of
from hccl_py.plugins.fidelity import KINDS, SITUATIONS

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "fidelity.md"
JUDGEMENT = ROOT / "tests" / "executors" / "fidelity" / "runs" / "different.json"
BEGIN = "<!-- Written by scripts/fidelity.py from here on. -->\n"


def tables() -> str:
    """Return the generated part of the page."""
    return "\n".join([*_counts(), *_runs(), *_executors(), *_words(), *_sources()]) + "\n"


def _counts() -> Iterator[str]:
    kinds = Counter(executor.fidelity.kind for executor in EXECUTORS)
    figures = ", ".join(f"{kinds[kind]} are `{kind}`" for kind in KINDS)
    yield f"Of {len(EXECUTORS)} executors that come with hccl-py, {figures}."
    proofs = [executor.fidelity.proof for executor in EXECUTORS if executor.fidelity.is_same]
    run = [proof for proof in proofs if proof]
    whole = sum(not proof.but_for_copies for proof in run)
    yield (
        f"Of those that are `same`, {len(run)} are so by run, at {run[0].source}, {whole} of them "
        f"to the last copy inside a rank; {len(proofs) - len(run)} by reading."
    )


def _runs() -> Iterator[str]:
    found = json.loads(JUDGEMENT.read_text("utf-8"))
    yield "\n## Golden runs\n"
    yield "| Calls | What came of them |"
    yield "| --- | --- |"
    for outcome, number in found["outcomes"].items():
        yield f"| {number} | {outcome} |"
    yield "\nCalls that differ, and are not said to:\n"
    yield "| Calls | What differs | Why |"
    yield "| --- | --- | --- |"
    for cause, of in found["causes"].items():
        yield f"| {len(of['calls'])} | {cause} | {of['why']} |"


def _executors() -> Iterator[str]:
    yield "\n## Executors\n"
    yield "| Executor | Op | Kind | Proof | What deviates, and why |"
    yield "| --- | --- | --- | --- | --- |"
    for executor in sorted(EXECUTORS, key=lambda e: e.__name__):
        found = executor.fidelity
        op = ", ".join(ops_of(executor()))
        said = _said(found, _own(found))
        yield f"| `{executor.__name__}` | {op} | {found.kind} | {_proof(found)} | {said} |"


def _proof(found: Fidelity) -> str:
    """Return the calls that prove it, and how copies inside a rank differ in some."""
    if found.proof is None:
        return "read" if found.is_same else "–"
    few = f", {found.proof.but_for_copies} with {found.proof.copies}"
    return f"run: {found.proof.calls}" + (few if found.proof.but_for_copies else "")


def _said(found: Fidelity, cases: Iterable[tuple[str, Fidelity]]) -> str:
    """Return what deviates, and in which cases."""
    own = [text for case, at in cases for text in _case(f"`{case}`", at)]
    return " ".join(filter(None, [found.deviation, *own])) or "–"


def _case(name: str, at: Fidelity) -> Iterator[str]:
    """Yield what a case says, and its own cases where it says nothing."""
    if not at.is_same:
        yield f"{name}: {at.kind}. {at.deviation}"
    for case, deeper in _own(at) if at.is_same else ():
        yield from _case(f"{name} with `{case}`", deeper)


def _own(found: Fidelity) -> Iterator[tuple[str, Fidelity]]:
    """Yield situations, and words that stand otherwise here than the table of words says."""
    words = [level.fidelity for levels in LEVELS.values() for level in levels.values()]
    for case, at in found.cases.items():
        if case in SITUATIONS or at not in words:
            yield case, at


def _words() -> Iterator[str]:
    yield "\n## Words of HCCL_ALGO\n"
    yield "What an executor that leaves level1 or level2 open runs there.\n"
    yield "| Op | Word | Kind | What deviates, and why |"
    yield "| --- | --- | --- | --- |"
    for op, words in LEVELS.items():
        for word, level in words.items():
            found = level.fidelity
            yield f"| {op} | `{word}` | {found.kind} | {_said(found, found.cases.items())} |"


def _sources() -> Iterator[str]:
    yield "\n## Sources\n"
    files: dict[str, set[str]] = {}
    for found in _all():
        for source in found.sources:
            files.setdefault(f"{source.repository}@{source.commit}", set()).add(source.file)
    for repository in sorted(files):
        yield f"{repository}:\n"
        yield from (f"- `{file}`" for file in sorted(files[repository]))


def _all() -> Iterable[Fidelity]:
    for executor in EXECUTORS:
        found = executor.fidelity.limited_to(executor.algorithm)
        yield from (found, *found.cases.values())


def main() -> None:
    """Write the page."""
    head = PAGE.read_text("utf-8").partition(BEGIN)[0]
    PAGE.write_text(head + BEGIN + "\n" + tables(), "utf-8")


if __name__ == "__main__":
    main()

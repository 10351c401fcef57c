#!/usr/bin/env python3
"""Write the tables of docs/fidelity.md anew, from what the built-in executors declare.

    scripts/fidelity.py

What stands above the line that the tables begin with stays as it is. A test compares the page.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from hccl_executors import EXECUTORS
from hccl_executors.levels import LEVELS
from hccl_py.plugins.executor import Fidelity, ops_of
from hccl_py.plugins.fidelity import KINDS, SITUATIONS

PAGE = Path(__file__).resolve().parents[1] / "docs" / "fidelity.md"
BEGIN = "<!-- Written by scripts/fidelity.py from here on. -->\n"


def tables() -> str:
    """Return the generated part of the page."""
    return "\n".join([*_counts(), *_executors(), *_words(), *_sources()]) + "\n"


def _counts() -> Iterator[str]:
    kinds = Counter(executor.fidelity.kind for executor in EXECUTORS)
    figures = ", ".join(f"{kinds[kind]} are `{kind}`" for kind in KINDS)
    yield f"Of {len(EXECUTORS)} executors that come with hccl-py, {figures}."


def _executors() -> Iterator[str]:
    yield "\n## Executors\n"
    yield "| Executor | Op | Kind | What deviates, and why |"
    yield "| --- | --- | --- | --- |"
    for executor in sorted(EXECUTORS, key=lambda e: e.__name__):
        found = executor.fidelity
        op = ", ".join(ops_of(executor()))
        yield f"| `{executor.__name__}` | {op} | {found.kind} | {_said(found, _own(found))} |"


def _said(found: Fidelity, cases: Iterable[tuple[str, Fidelity]]) -> str:
    """Return what deviates, and in which cases."""
    own = [f"`{case}`: {at.kind}. {at.deviation}" for case, at in cases]
    return " ".join(filter(None, [found.deviation, *own])) or "–"


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

"""One idea, one name: docs/glossary.md says which names the packages do not use."""

import ast
import io
import keyword
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_layout import ROOT, parsed

PACKAGES = ("hccl_py", "executors/hccl_executors", "platform/hccl_platform")
TABLE = "## Names that the code does not use"
KEPT = {"LATE_WIRE", "EARLY_WIRE", "wire"}
"""What is on the wire, in the ordinary sense: adversaries of the emulated platform, and the setting
that says what carries messages between hosts."""


def retired() -> set[str]:
    """Return the words of the glossary's table."""
    text = (ROOT / "docs" / "glossary.md").read_text("utf-8")
    rows = text.partition(TABLE)[2].partition("\n## ")[0].splitlines()
    cells = [row.split("|")[1] for row in rows if row.startswith("| ")][2:]
    return {word.strip() for cell in cells for word in cell.split(",")}


def names(text: str) -> Iterator[tuple[int, str]]:
    """Yield every name of a module and its line."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME and not keyword.iskeyword(token.string):
            yield token.start[0], token.string


def words(name: str) -> set[str]:
    """Return the words that a name is made of: `_spell_row` and `SpellRow` have spell and row."""
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def uses(path: Path, unwanted: set[str]) -> list[str]:
    """Return where a module uses one of the words in a name."""
    text = path.read_text("utf-8")
    found = []
    if any(words(name) & unwanted for name in set(re.findall(r"\w+", text))):  # or in its prose
        found = [
            f"{path.relative_to(ROOT)}:{line}: {name}"
            for line, name in names(text)
            if name not in KEPT and words(name) & unwanted
        ]
    return found + [str(path.relative_to(ROOT))] * bool(words(path.stem) & unwanted)


def test_the_table_is_read() -> None:
    assert {"spell", "told", "wires"} <= retired()
    assert all(re.fullmatch("[a-z]+", word) for word in retired())


@pytest.mark.parametrize("package", PACKAGES)
def test_no_name_uses_a_retired_word(package: str) -> None:
    unwanted = retired()
    found = [use for path in (ROOT / package).rglob("*.py") for use in uses(path, unwanted)]
    assert not found, "docs/glossary.md says what to write:\n" + "\n".join(found)


@pytest.mark.xdist_group("modules")
@pytest.mark.parametrize("package", PACKAGES)
def test_public_classes_have_names_of_their_own(package: str) -> None:
    homes = defaultdict(list)
    for path in (ROOT / package).rglob("*.py"):
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    shared = {name: where for name, where in homes.items() if len(where) > 1}
    assert not shared, shared


def test_names_are_taken_apart() -> None:
    assert words("_spell_row") == {"spell", "row"} == words("SpellRow")
    assert words("atomically") == {"atomically"}
    assert list(names("x = told  # spell\n")) == [(1, "x"), (1, "told")]

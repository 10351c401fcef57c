"""A page in Chinese says what the page in English says, as far as that can be told without reading.

Both have the same headings, paragraphs, list items and table cells in the same order. Each of these
has the same code words, the same numbers and the same links, but that readers of Chinese are led
to pages in Chinese where there are any. Blocks of code do the same, so they run with the English
page.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import pytest
from markdown_it.token import Token

from tests.test_docs import Block, read_blocks
from tests.test_links import PAGES as ALL_PAGES
from tests.test_links import links_in, parse, resolved, text_of

PAGES = [page for page in ALL_PAGES if page.endswith(".zh.md")]

NUMBER = re.compile(r"(\d+(?: \d{3})*(?:\.\d+)?)\s*(million|billion|[万亿])?")
TIMES = {"": 1, "million": 1_000_000, "billion": 1_000_000_000, "万": 10_000, "亿": 100_000_000}


@dataclass(frozen=True)
class Piece:
    """A piece of a page: its kind, and what of its text is the same in every language."""

    line: int
    kind: str
    codes: frozenset[str] = frozenset()
    numbers: frozenset[float] = frozenset()
    links: tuple[str, ...] = ()

    def lacks(self, other: "Piece") -> str:
        """Say what this piece does not have in common with the other one, or nothing."""
        if self.kind != other.kind:
            return f"{self.kind!r}, not {other.kind!r}"
        if self.links != other.links:
            return f"links {self.links}, not {other.links}"
        odd = [*self.codes ^ other.codes, *self.numbers ^ other.numbers]
        return f"only one of them has {odd}" if odd else ""


def english(page: str) -> str:
    """Return the page of which this one is the translation, or itself."""
    return page.replace(".zh.md", ".md")


def pieces(page: str, text: str) -> Iterator[Piece]:
    line = 0
    for token in parse(text):
        line = token.map[0] + 1 if token.map else line
        if token.type == "inline":
            yield piece_of(page, line, token.children or [])
        elif token.type == "html_block":
            yield Piece(line, token.content)
        elif token.nesting >= 0:
            yield Piece(line, f"{token.type} {token.tag}")


def piece_of(page: str, line: int, children: list[Token]) -> Piece:
    prose = "\n".join(child.content for child in children if child.type == "text")
    assert "*" not in prose, f"{page}:{line}: asterisks that emphasise nothing"
    return Piece(
        line,
        "text",
        frozenset(child.content for child in children if child.type == "code_inline"),
        frozenset(numbers(prose)),
        tuple(sorted(target(page, link, line) for link in links_in(children))),
    )


def numbers(text: str) -> Iterator[float]:
    for digits, unit in NUMBER.findall(text):
        yield round(float(digits.replace(" ", "")) * TIMES[unit], 6)


def target(page: str, link: str, line: int) -> str:
    """Return where a link leads, in words that both languages share."""
    if "://" in link:
        return link
    name, heading = resolved(page, link)
    if page in PAGES and name != english(page):
        in_chinese = name.removesuffix(".md") + ".zh.md"
        assert in_chinese not in PAGES, f"{page}:{line}: {name} is there in Chinese"
    return english(name) + ("" if heading is None else f", heading {heading}")


@pytest.mark.parametrize("page", PAGES)
def test_a_translation_has_the_same_pieces(page: str) -> None:
    original = english(page)
    ours, theirs = (pieces(name, text_of(name)) for name in (page, original))
    for piece, other in zip_longest(ours, theirs, fillvalue=Piece(0, "the end")):
        lacks = piece.lacks(other)
        assert not lacks, f"{page}:{piece.line} and {original}:{other.line}: {lacks}"


@pytest.mark.parametrize("page", PAGES)
def test_a_translation_has_the_same_blocks(page: str) -> None:
    """Python may differ in comments and docstrings, all else in nothing."""
    ours, theirs = (read_blocks(text_of(name)) for name in (page, english(page)))
    for block, other in zip(ours, theirs, strict=True):
        found, wanted = ((b.language, meaning(b), b.note) for b in (block, other))
        assert found == wanted, f"{page}:{block.line} is not as in {english(page)}:{other.line}"


@pytest.mark.parametrize("page", PAGES)
def test_both_pages_begin_with_a_link_to_the_other_one(page: str) -> None:
    link = {
        page: f"[English]({Path(english(page)).name})",
        english(page): f"[中文]({Path(page).name})",
    }
    for name, wanted in link.items():
        assert text_of(name).splitlines()[2] == wanted, name


def meaning(block: Block) -> str:
    """Return what a block does."""
    if block.language != "python":
        return block.text
    tree = ast.parse(block.text)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(
            node
        ):
            del node.body[0]
    return ast.dump(tree)


def test_another_statement_is_another_meaning() -> None:
    one, other = (
        Block("python", 1, f'"""{text}"""\nf(4)  # {text}\n') for text in ("four", "vier")
    )
    assert meaning(one) == meaning(other)
    assert meaning(one) != meaning(Block("python", 1, "f(5)  # four\n"))


SENTENCE = "`run` takes 4 million tasks of 4 096 ranks ([how](cpp.md#timed-drawn-run)).\n"


@pytest.mark.parametrize(
    ("text", "lacks"),
    {
        "`run` 运行 4096 个 rank 的 400 万个 task（[做法](cpp.md#timed-drawn-run)）。": "",
        "`check` 运行 4096 个 rank 的 400 万个 task（[做法](cpp.md#timed-drawn-run)）。": "'check'",
        "`run` 运行 4096 个 rank 的 400 个 task（[做法](cpp.md#timed-drawn-run)）。": "400.0",
        "`run` 运行 4096 个 rank 的 400 万个 task（[做法](cpp.md#verified)）。": "heading",
        "# `run` 运行 4096 个 rank 的 400 万个 task": "heading_open h1",
    }.items(),
)
def test_what_one_page_lacks_is_seen(text: str, lacks: str) -> None:
    both = zip(pieces("docs/x.md", text), pieces("docs/x.md", SENTENCE), strict=True)
    assert lacks in "".join(piece.lacks(other) for piece, other in both)
    assert lacks or not any(piece.lacks(other) for piece, other in both)


def test_emphasis_that_does_not_end_is_seen() -> None:
    """Asterisks between a full stop of Chinese and a letter do not end what they began."""
    with pytest.raises(AssertionError, match=r"x.md:1: asterisks"):
        list(pieces("docs/x.md", "**分轮。**CCL buffer"))


def test_readers_of_chinese_are_led_to_pages_in_chinese() -> None:
    with pytest.raises(AssertionError, match=r"README.zh.md:1: docs/cpp.md is there in Chinese"):
        list(pieces("README.zh.md", "[C++](docs/cpp.md)"))

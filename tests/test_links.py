"""Links of the documentation lead to files that exist, and to headings that these have."""

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from urllib.parse import unquote

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.test_docs import ROOT

PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("examples/*/*.md"))
)


def text_of(page: str) -> str:
    return (ROOT / page).read_text("utf-8")


def parse(text: str) -> list[Token]:
    return MarkdownIt().enable("table").parse(text)


def links_in(children: list[Token]) -> Iterator[str]:
    """Yield where links and pictures of a piece of text lead."""
    for child in children:
        if link := child.attrs.get("href") or child.attrs.get("src"):
            yield unquote(str(link))


def resolved(page: str, link: str) -> tuple[str, int | None]:
    """Return the file to which a link within the project leads, and which of its headings."""
    path, _, anchor = link.partition("#")
    file = ((ROOT / page).parent / path).resolve() if path else ROOT / page
    assert file.exists(), f"there is no {path}"
    name = file.relative_to(ROOT).as_posix()
    if not anchor:
        return name, None
    assert anchor in anchors(name), f"{name} has no heading #{anchor}"
    return name, anchors(name).index(anchor)


@cache
def anchors(page: str) -> list[str]:
    """Return the anchors of a page's headings, as GitHub makes them of different ones."""
    titles = [
        "".join(child.content for child in after.children or [])
        for token, after in pairwise(parse(text_of(page)))
        if token.type == "heading_open"
    ]
    return [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    for token in parse(text_of(page)):
        for link in links_in(token.children or []):
            if "://" not in link:
                resolved(page, link)


@pytest.mark.parametrize(
    ("link", "message"),
    {
        "docs/nowhere.md": "there is no docs/nowhere.md",
        "docs/cpp.md#nothing": "docs/cpp.md has no heading #nothing",
        "#nothing": "README.md has no heading #nothing",
    }.items(),
)
def test_links_that_lead_nowhere_are_seen(link: str, message: str) -> None:
    with pytest.raises(AssertionError, match=re.escape(message)):
        resolved("README.md", link)


def test_links_that_lead_somewhere() -> None:
    assert resolved("docs/cpp.md", "verifier.md") == ("docs/verifier.md", None)
    assert resolved("docs/cpp.md", "#start-a-project") == ("docs/cpp.md", 1)
    assert resolved("docs/cpp.zh.md", "#开始") == ("docs/cpp.zh.md", 1)

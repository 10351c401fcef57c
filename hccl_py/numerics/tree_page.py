"""A page of HTML that needs nothing else: the trees of a call as pictures, and its elements as
strips in the colours of their trees.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence

from hccl_py.documents.plain_page import plain_page
from hccl_py.numerics.element_trees import ElementTrees
from hccl_py.numerics.sum_trees import SumTree

TreesOfCalls = tuple[str, Sequence[SumTree], ElementTrees | None]
"""A name, trees, and the elements that have them where there is one call."""

DRAWN = 16
"""Trees that are drawn; the others are formulas."""

STRIPS = 32
"""Ranks whose elements are shown."""

_STYLE = """
pre { white-space: pre-wrap; } svg { max-width: 100%; height: auto; display: block; }
.open { stroke-dasharray: 4 3; } text { fill: var(--ink); font: 12px system-ui, sans-serif; }
path { stroke: var(--ink); fill: none; stroke-width: 1.4; }
""".strip()


def numerics_page(title: str, text: str, calls: Sequence[TreesOfCalls]) -> str:
    """Return a page: the answer as text, then what calls have in common, each with its trees and,
    for a single call, its elements.
    """
    trees = dict.fromkeys(tree for _, trees, _ in calls for tree in trees)
    colours = {tree: f"hsl({k * 137.5 % 360:.0f} 65% 55%)" for k, tree in enumerate(trees)}
    body = "\n".join(part for call in calls for part in _call(*call, colours))
    return plain_page(title, f"<pre>{html.escape(text)}</pre>\n{body}", _STYLE)


def _call(
    name: str,
    trees: Sequence[SumTree],
    found: ElementTrees | None,
    colours: dict[SumTree, str],
) -> Iterator[str]:
    yield f"<h2>{html.escape(name)}</h2>"
    if found is not None:
        yield _strips(found, colours)
    for tree in trees[:DRAWN]:
        yield f"<p><b style='color:{colours[tree]}'>■</b> {tree.short}</p>{_picture(tree)}"
    for tree in trees[DRAWN:]:
        formula = html.escape(tree.formula())
        yield f"<p><b style='color:{colours[tree]}'>■</b> {tree.short} {formula}</p>"


def _strips(found: ElementTrees, colours: dict[SumTree, str]) -> str:
    """Return a strip for every rank: its elements from left to right."""
    ranks = sorted({*found.rank.tolist()})[:STRIPS]
    most, parts = int(found.stop.max(initial=1)), []
    columns = (found.rank, found.start, found.stop, found.tree)
    for rank, start, stop, tree in zip(*(c.tolist() for c in columns), strict=True):
        if rank not in ranks:
            continue
        x, width = 60 + 800 * start / most, max(800 * (stop - start) / most, 0.5)
        y, chosen = 18 * ranks.index(rank), found.trees[tree]
        parts.append(
            f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="15" fill="{colours[chosen]}">'
            f"<title>rank {rank}, elements {start} to {stop - 1}: {chosen.short}</title></rect>"
        )
    names = "".join(f'<text x="0" y="{18 * k + 12}">rank {r}</text>' for k, r in enumerate(ranks))
    height = 18 * len(ranks) + 4
    return f'<svg viewBox="0 0 870 {height}" width="870">{names}{"".join(parts)}</svg>'


def _picture(root: SumTree) -> str:
    """Return a tree as a picture: leaves at the left, each step a column."""
    place: dict[int, tuple[float, float]] = {}
    parts, row = [], 0
    waiting: list[tuple[int, SumTree, bool]] = [(0, root, False)]
    order: list[list[int]] = [[]]
    while waiting:
        number, tree, is_open = waiting.pop()
        if not tree.parts:
            place[number] = (60.0, 14.0 + 18 * row)
            parts.append(f'<text x="0" y="{18 + 18 * row}">rank {tree.rank}</text>')
            row += 1
        elif not is_open:
            waiting.append((number, tree, True))
            for part in reversed(tree.parts):
                order.append([])
                order[number].insert(0, len(order) - 1)
                waiting.append((len(order) - 1, part, False))
        else:
            below = [place[child] for child in order[number]]
            x, y = 60.0 + 28 * tree.depth, sum(at for _, at in below) / len(below)
            place[number] = (x, y)
            kind = ' class="open"' if len(below) > 2 else ""
            parts += [f'<path{kind} d="M{a:.0f} {b:.1f}H{x:.0f}V{y:.1f}"/>' for a, b in below]
            if len(below) == 1:  # a sum in fp32 is rounded
                parts.append(f'<circle cx="{x:.0f}" cy="{y:.1f}" r="4"/>')
    width, height = 60 + 28 * root.depth + 40, 18 * row + 10
    x, y = place[0]
    parts.append(f'<path d="M{x:.0f} {y:.1f}h20"/>')
    return f'<svg viewBox="0 0 {width} {height}" width="{width}">{"".join(parts)}</svg>'

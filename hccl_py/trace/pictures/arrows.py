"""Stars as arrows: lines with dots where transfers begin, heads where they end, and labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hccl_py.trace.pictures.captions import label
from hccl_py.trace.pictures.flow import Flow
from hccl_py.trace.pictures.stars import StarPicture
from hccl_py.trace.pictures.svg import text_on_lines


def arrows(flow: Flow, columns: Sequence[int], y: int, star: StarPicture) -> Iterator[str]:
    """Draw a line to both sides of the centre; `columns` says where the ranks are."""
    kind = "add" if star.moves[0].reduces else "move"
    style = f"{kind} rdma" if star.moves[0].rdma else kind
    centre = columns[star.centre]
    for way, ranks in star.sides.items():
        far = columns[max(ranks) if way > 0 else min(ranks)]
        near_end, far_end = (8, 2) if star.gathers else (2, 8)
        yield (
            f'<line x1="{centre + near_end * way}" y1="{y}" x2="{far - far_end * way}" y2="{y}" '
            f'class="{style}"/>'
        )
        ends = [(centre, -way)] if star.gathers else [(columns[rank], way) for rank in ranks]
        for x, points in ends:
            back = x - 10 * points
            yield f'<path d="M{x - 2 * points} {y}L{back} {y - 4}v8z" class="{kind}head"/>'
    for rank in star.leaves if star.gathers else [star.centre]:
        yield f'<circle cx="{columns[rank]}" cy="{y}" r="2.6" class="{kind}head"/>'
    yield from _labels(flow, columns, y, star)


def _labels(flow: Flow, columns: Sequence[int], y: int, star: StarPicture) -> Iterator[str]:
    """Write what travels: beside the centre where all rays carry the same, else by the leaf."""
    carried = {m.source if star.gathers else m.target: m for m in star.moves}
    for way, ranks in star.sides.items():
        for rank in [star.centre + way] if star.is_uniform else ranks:
            middle = (columns[rank] + columns[rank - way]) // 2
            move = star.moves[0] if star.is_uniform else carried[rank]
            yield text_on_lines(middle, y - 4, label(flow, move), "ink")

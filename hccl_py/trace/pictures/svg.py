"""Text in SVG, and the colours of pictures in light and dark."""

from html import escape

INKS = (
    *("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a800", "#7b5ea7"),
    *("#6fb1da", "#f3ce7f", "#6cc9ae", "#e6bcd3", "#a9daf5", "#eba277", "#dbd066", "#b9a8d2"),
)
"""Colours of chunks, eight that are told apart without red and green (Okabe and Ito), then paler
ones."""

HUES = "".join(f".h{k}{{fill:{ink}}}.arrow.h{k}{{stroke:{ink}}}" for k, ink in enumerate(INKS))
"""Style of the colours."""

SHAPES = """
.old{opacity:.42}.arrow{stroke-width:1.6px;stroke-linecap:round}.arrow:not(.head){fill:none}
.arrow.aside{stroke-width:.6px;opacity:.3}.rdma{stroke-dasharray:3 2}
.arrow.head{stroke-dasharray:none;stroke-width:1px}.box{fill:none;stroke-dasharray:2 2}
.adds{fill:#7b5ea7}.moves{fill:#0b7a55}.node{stroke-width:.7px}
.big{font-size:13px;font-weight:600}.bold{font-weight:600}.small{font-size:9px;font-weight:600}
.halo{fill:none;stroke-width:3px}
"""
"""Style of shapes, without the colours of light and dark."""

_FONT = 'system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif'
_LIGHT = {
    **{"paper": "#ffffff", "ink": "#1f2328", "faint": "#59636e", "line": "#cfd7e1"},
    **{"card": "#f6f8fa", "lead": "#6d35b5"},
}
_DARK = {
    **{"paper": "#0d1117", "ink": "#e6edf3", "faint": "#9198a1", "line": "#3d444d"},
    **{"card": "#161b22", "lead": "#b88cf0"},
}


def _colours(of: dict[str, str]) -> str:
    paper, ink, faint, line, card, lead = of.values()
    return (
        f".paper{{fill:{paper}}}.ink{{fill:{ink}}}.faint{{fill:{faint}}}"
        f".card{{fill:{card};stroke:{line}}}.node{{fill:{paper};stroke:{line}}}"
        f".box{{stroke:{line}}}.halo{{stroke:{card}}}.plain,.aside{{stroke:{faint}}}"
        f".plain.head{{fill:{faint}}}.lead{{stroke:{lead}}}.lead.head{{fill:{lead}}}"
    )


STYLE = (
    f"\n{HUES}text{{font-family:{_FONT};font-size:11px}}{SHAPES}"
    f"{_colours(_LIGHT)}\n@media(prefers-color-scheme:dark){{{_colours(_DARK)}}}\n"
)


def text(x: int, y: int, said: str, style: str, anchor: str = "start") -> str:
    """Return text at a place, as an element."""
    where = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text x="{x}" y="{y}"{where} class="{style}">{escape(said)}</text>'


def text_on_lines(x: int, y: int, said: str) -> str:
    """Return text in the middle of a place, with what lies behind it kept off.

    The edge is an element of its own: not every program knows `paint-order`.
    """
    edge = text(x, y, said, "halo", "middle").replace("<text", '<text aria-hidden="true"', 1)
    return edge + text(x, y, said, "ink small", "middle")

"""Text in SVG, and the colours of pictures in light and dark."""

from html import escape

STYLE = """
.paper{fill:#ffffff}.ink{fill:#1f2328}.faint{fill:#59636e}
.line{stroke:#d1d9e0}.rule{stroke:#d1d9e0;stroke-dasharray:2 3}
.cell{fill:#ffffff;stroke:#aeb8c2}.has{fill:#4a86d0;stroke:#2f6ab3}
.new{fill:#e0862a;stroke:#b0610c}.goal{fill:none;stroke:#1f2328;stroke-width:1.6px}
.move{stroke:#1f2328;stroke-width:1.5px}.add{stroke:#8250df;stroke-width:1.5px}
.movehead{fill:#1f2328}.addhead{fill:#8250df}.rdma{stroke-dasharray:5 3}
text{font-family:system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif;font-size:11px}
.big{font-size:13px;font-weight:600}.bold{font-weight:600}.small{font-size:8.5px}
.halo{fill:none;stroke:#ffffff;stroke-width:3px}
@media(prefers-color-scheme:dark){
.paper{fill:#0d1117}.ink{fill:#e6edf3}.faint{fill:#9198a1}
.line{stroke:#3d444d}.rule{stroke:#3d444d}
.cell{fill:#0d1117;stroke:#59636e}.has{fill:#3f7cc9;stroke:#79b0f2}
.new{fill:#c9731b;stroke:#f0a860}.goal{stroke:#e6edf3}
.move{stroke:#e6edf3}.add{stroke:#b794f6}.movehead{fill:#e6edf3}.addhead{fill:#b794f6}
.halo{stroke:#0d1117}}
"""


def text(x: int, y: int, said: str, style: str, anchor: str = "start") -> str:
    """Return text at a place, as an element."""
    where = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text x="{x}" y="{y}"{where} class="{style}">{escape(said)}</text>'


def text_on_lines(x: int, y: int, said: str, style: str) -> str:
    """Return text in the middle of a place, with what lies behind it kept off.

    The edge is an element of its own: not every program knows `paint-order`.
    """
    edge = text(x, y, said, "halo", "middle").replace("<text", '<text aria-hidden="true"', 1)
    return edge + text(x, y, said, style, "middle")

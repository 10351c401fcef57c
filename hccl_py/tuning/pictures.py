"""A comparison as pictures: a PNG, and a page of HTML that needs nothing else.

Two panels: time, and bus bandwidth, against data size. The candidates that are the fastest at some
size have a colour and their name (Okabe and Ito's colours, which colour-blind people can tell
apart), the choice of HCCL's rules has rings, the lower bound is dotted, the others are grey.
"""

from __future__ import annotations

import html
import io
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from hccl_py.documents.kind import FileKind
from hccl_py.documents.plain_page import plain_page
from hccl_py.errors import FileError, ParameterError
from hccl_py.language import is_english, speaking, translated
from hccl_py.trace.units import format_size, format_time
from hccl_py.tuning.compare import Comparison, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
GREY = "#8a8a8a"
CHINESE_FONTS = (
    *("Noto Sans CJK SC", "Source Han Sans SC", "Microsoft YaHei", "PingFang SC", "SimHei"),
    *("WenQuanYi Micro Hei", "WenQuanYi Zen Hei"),
)
INK = "#010203"
"""Stands for the colour of text, which the page's reader chooses."""

INCHES = 13.0, 5.2

PNG = FileKind(
    "PNG picture",
    "pixels",
    FileError,
    suffixes=(".png",),
    mark=re.compile(rb"^\x89PNG.*hccl-py", re.S),
)
_STYLE = """
svg { width: 100%; height: auto; color: var(--ink); }
.table { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid var(--line); text-align: right; }
td.name, th.name { text-align: left; }
""".strip()


def title_of(found: Comparison) -> str:
    """Return the op, data type and ranks of a comparison."""
    reduce = found.op.reduce
    what = found.op.name if reduce is None else f"{found.op.name} {reduce.spelling}"
    return f"{what} {found.op.dtype.value}, {found.topology.size} ranks"


def subtitle_of(found: Comparison) -> str:
    """Return the machine and the cost model of a comparison."""
    slow = "".join(f", slow {text}" for text in found.point.slow)
    return (
        f"{found.topology.description}; cost model {found.point.cost.name}, "
        f"{found.point.network}{slow}"
    )


def png(found: Comparison) -> bytes:
    """Return a PNG of 2080 × 832 pixels; ParameterError where matplotlib is not installed."""
    return _drawn(found, "png", "#1c1c1c", dpi=160, facecolor="white")


def page(found: Comparison) -> str:
    """Return a page with the picture as SVG and the table; ParameterError as for `png`."""
    svg = _drawn(found, "svg", INK, transparent=True).decode()
    svg = svg[svg.index("<svg") :].replace(INK, "currentColor")
    svg = re.sub("<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    subtitle = html.escape(translated(subtitle_of(found)))
    body = f"<p>{subtitle}</p>\n{svg}\n{_table(found)}\n{_notes(found)}"
    return plain_page(translated(title_of(found)), body, _STYLE)


def check_drawing() -> None:
    """Raise ParameterError where there is no matplotlib."""
    if find_spec("matplotlib") is None:
        raise ParameterError("Pictures need matplotlib.", "pip install 'hccl-py[plots]' brings it.")


def _drawn(found: Comparison, form: str, ink: str, **options: Any) -> bytes:
    """Return the picture as a file, the same for the same comparison."""
    check_drawing()
    import matplotlib

    texts = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    style = {"font.size": 10, "svg.hashsalt": "hccl-py", **dict.fromkeys(texts, ink)}
    into = io.BytesIO()
    about = {"Date": None, "Creator": None} if form == "svg" else {"Software": "hccl-py"}
    with matplotlib.rc_context(style), _lettering(form):
        _figure(found, ink, is_alone=form == "png").savefig(
            into, format=form, metadata=about, **options
        )
    return into.getvalue()


@contextmanager
def _lettering(form: str) -> Iterator[None]:
    """Write in the language that is spoken: SVG as text, whose font the reader's machine has; a PNG
    in an installed font, in English where none has the letters.
    """
    import matplotlib
    from matplotlib.font_manager import fontManager

    installed = {font.name for font in fontManager.ttflist}
    fonts = [name for name in CHINESE_FONTS if name in installed]
    if is_english() or not (fonts or form == "svg"):
        with speaking("en"):
            yield
        return
    with matplotlib.rc_context({"svg.fonttype": "none"}), warnings.catch_warnings():
        matplotlib.rcParams["font.sans-serif"] = [*fonts, *matplotlib.rcParams["font.sans-serif"]]
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        yield


def _figure(found: Comparison, ink: str, *, is_alone: bool) -> Figure:
    """Draw; a picture that stands alone has a title."""
    from matplotlib.figure import Figure

    figure = Figure(INCHES, layout="constrained")
    left, right = figure.subplots(1, 2)
    _panel(found, left, "time (µs)", lambda row: row.time_us, ink)
    left.set_yscale("log")
    _panel(found, right, "bus bandwidth (GB/s)", lambda row: row.outcome.busbw_gbps or 0, ink)
    right.set_ylim(bottom=0)
    bounds = [(size, rows[0].outcome.lower_bound_us) for size, rows in found.by_size.items()]
    left.plot(*zip(*bounds, strict=True), ":", color=ink, lw=1.2, label=translated("lower bound"))
    _legend(figure, left)
    if is_alone:
        figure.suptitle(translated(f"{title_of(found)}\n{subtitle_of(found)}"), fontsize=11)
    return figure


def _panel(
    found: Comparison, axes: Axes, label: str, value: Callable[[Row], float], ink: str
) -> None:
    """Draw the curves of all candidates, those that win somewhere on top."""
    winners = list(dict.fromkeys(row.candidate.name for row in found.winners.values()))
    colours = dict(zip(winners, COLOURS, strict=False))
    for name, rows in _curves(found).items():
        x, y = [row.bytes for row in rows], [value(row) for row in rows]
        if name in colours:
            axes.plot(x, y, ".-", color=colours[name], lw=2, ms=6, zorder=3, label=name)
        else:
            axes.plot(x, y, "-", color=GREY, lw=0.8, alpha=0.45, zorder=1)
    best = list(found.winners.values())
    dots = [colours.get(row.candidate.name, GREY) for row in best]
    axes.scatter([r.bytes for r in best], [value(r) for r in best], 34, dots, zorder=4)
    rules = list(found.hccl.values())
    axes.scatter(
        [row.bytes for row in rules],
        [value(row) for row in rules],
        90,
        facecolors="none",
        edgecolors=ink,
        zorder=5,
        label=translated("HCCL's rules"),
    )
    sizes = list(found.by_size)
    axes.set_xscale("log", base=2)
    shown = sizes[:: -(-len(sizes) // 12)]
    axes.set_xticks(shown, [format_size(size) for size in shown])
    axes.minorticks_off()
    axes.set_xlabel(translated("data size (bytes)"))
    axes.set_ylabel(translated(label))
    axes.grid(color=GREY, alpha=0.25, lw=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def _curves(found: Comparison) -> dict[str, list[Row]]:
    curves: dict[str, list[Row]] = {}
    for row in found.rows:
        curves.setdefault(row.candidate.name, []).append(row)
    return curves


def _legend(figure: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    handles += axes.plot([], [], "-", color=GREY, lw=0.8)
    columns = min(len(handles), 4)
    labels.append(translated("others"))
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)


_HEAD = ("bytes", "fastest", "us", "GB/s", "vs bound", "HCCL's rules", "us", "ratio")
_NAMES = (1, 5)


def _table(found: Comparison) -> str:
    rows = [_cells(found, size) for size in found.by_size]
    lines = [_line("th", tuple(map(translated, _HEAD))), *(_line("td", cells) for cells in rows)]
    return '<div class="table"><table>\n' + "\n".join(lines) + "\n</table></div>"


def _cells(found: Comparison, size: int) -> tuple[str, ...]:
    best, rules = found.winners[size], found.hccl.get(size)
    costs, bound = found.cost_of_rules(size), best.times_bound
    return (
        format_size(size),
        best.candidate.name,
        format_time(best.time_us),
        f"{best.outcome.busbw_gbps or 0:.2f}",
        "" if bound is None else f"{bound:.2f}",
        "" if rules is None else rules.candidate.name,
        "" if rules is None else format_time(rules.time_us),
        "" if costs is None else f"{costs:.2f}x",
    )


def _line(tag: str, cells: tuple[str, ...]) -> str:
    classes = ['class="name"' if at in _NAMES else "" for at in range(len(cells))]
    found = (
        f"<{tag} {kind}>{html.escape(cell)}</{tag}>"
        for kind, cell in zip(classes, cells, strict=True)
    )
    return f"<tr>{''.join(found)}</tr>"


def _notes(found: Comparison) -> str:
    return "".join(f"<p>{html.escape(translated(text))}</p>\n" for text in found.remarks)

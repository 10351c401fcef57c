"""`hccl-py list`: executors, platforms and topologies that are installed, and broken plugins."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hccl_py.cli.grouping import grouped
from hccl_py.cli.options import Output, flag, option

if TYPE_CHECKING:
    from hccl_py.cli.output import Screen
    from hccl_py.plugins.discovery import Registered

Document = dict[str, Any]


@grouped
def command(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            show_default=False,
            help="Only executors of this name, or with this in their names, and all about them: "
            "where each is written, and the files of HCCL that it follows.",
        ),
    ] = None,
    *,
    op: Annotated[str | None, option("--op", "OP", "Only executors of this op.")] = None,
    verbose: Annotated[
        bool, flag("-v --verbose", "Also show file and line of each executor.")
    ] = False,
    output: Output,
) -> None:
    """List executors, platforms and topologies.

    And plugin packages that are broken, with what is wrong with them.
    """
    from hccl_py.cli.output import print_json
    from hccl_py.operators import make_operator

    has_sources = output.json or verbose or name is not None
    document = _document(
        _matching(name, None if op is None else make_operator(op).name), with_sources=has_sources
    )
    if output.json:
        print_json(document)
    elif name is not None:
        _print_executors(document, _ALL_LINES)
    else:
        _print(document, verbose)


def _matching(name: str | None, op: str | None) -> list[Registered]:
    """Return the executors whose names contain `name`, in any case, of one op or of all; only the
    one of exactly this name, if there is one. ParameterError where there are none.
    """
    from hccl_py.plugins.discovery import installed_executors

    registry = installed_executors()
    served = list(registry.executors.values()) if op is None else registry.for_op(op)
    if name is None:
        return served
    found = [r for r in served if name.lower() in r.name.lower()]
    return [r for r in found if r.name == name] or found or [registry.find(name, op)]


def _document(executors: list[Registered], *, with_sources: bool) -> Document:
    """Return these executors, and everything else that is installed. Files and lines are included
    on demand only, since they take reading every file.
    """
    from hccl_py.plugins.discovery import installed_executors, installed_platforms
    from hccl_py.topology import PRESETS
    from hccl_py.topology.networks import KINDS, OPTIONS, WORDS
    from hccl_py.topology.presets import SHAPES

    registry = installed_executors()
    platforms = installed_platforms()
    return {
        "schema": "hccl-py.list/1",
        "executors": [
            {
                "name": found.name,
                "op": ", ".join(found.ops),
                "algorithm": found.executor.algorithm,
                "package": found.package,
                "fidelity": found.fidelity.document(),
                "summary": _summary(type(found.executor)),
                "source": _source(type(found.executor)) if with_sources else None,
            }
            for found in executors
        ],
        "platforms": [
            {"name": name, "package": package, "summary": _summary(platform)}
            for name, (platform, package) in platforms.known.items()
        ],
        "topologies": [
            {
                "name": product.name,
                "title": product.title,
                "shape": product.shape,
                "devices_per_server": product.devices_per_server,
                "summary": f"{product.title}: servers of up to {product.devices_per_server} "
                f"devices, {_SHAPES[product.shape]}",
            }
            for product in PRESETS.values()
        ],
        "clusters": [
            {"name": name, "product": of.product.name, "servers": of.servers, "summary": of.summary}
            for name, of in SHAPES.items()
        ],
        "networks": [
            {
                "name": kind.form,
                "options": [*OPTIONS, *kind.options, *WORDS],
                "summary": kind.summary,
            }
            for kind in KINDS.values()
        ],
        "problems": [
            {"message": problem.message, "hint": problem.hint}
            for problem in registry.problems + platforms.problems
        ],
    }


_SHAPES = {
    "mesh": "linked as a full mesh",
    "ring": "linked as a ring",
    "dies": "two dies to a package, linked by a switch, servers joined to superpods",
    "8p": "two full meshes of four",
    "pcie": "linked by PCIe",
    "clos": "rows and columns linked as full meshes, servers joined by a Clos network",
}


def _summary(thing: type) -> str:
    """Return the first sentence of a docstring."""
    paragraph = inspect.cleandoc(thing.__doc__ or "").partition("\n\n")[0]
    first, stop, _ = " ".join(paragraph.split()).partition(". ")
    return first + stop.strip() or "(no description)"


def _source(thing: type) -> str | None:
    """Return the file and line where a class is written; None where Python does not know it."""
    try:
        file, (_, index) = inspect.getsourcefile(thing), inspect.findsource(thing)
    except (OSError, TypeError):
        return None
    return f"{file}:{index + 1}"


def _print(document: Document, verbose: bool) -> None:
    from hccl_py.cli.output import Screen

    screen = Screen()
    _print_executors(document, (*_LINES, "source") if verbose else _LINES)
    _section(screen, "platforms", document["platforms"], ("summary",))
    _section(screen, "topologies", document["topologies"], ("summary",))
    _section(screen, "clusters by name", document["clusters"], ("summary",))
    _section(
        screen,
        "networks, also with gbps=, latency= and spray=all",
        document["networks"],
        ("summary",),
    )
    for problem in document["problems"]:
        screen.show(f"broken: {problem['message']}", style="red")
        screen.show(f"  {problem['hint']}")


def _print_executors(document: Document, lines: tuple[str, ...]) -> None:
    from hccl_py.cli.output import Screen

    screen = Screen()
    if not document["executors"]:
        _section(screen, "executors", [], ())
    for op in dict.fromkeys(row["op"] for row in document["executors"]):
        rows = [row for row in document["executors"] if row["op"] == op]
        _section(screen, f"executors of {op}", rows, lines)


def _text(found: str | None) -> str:
    return found or "(source unknown)"


def _fidelity(found: Document) -> str:
    """Return an executor's kind, the cases farther from HCCL, and the deviation in one sentence."""
    from hccl_py.plugins.fidelity import KINDS, kind_and_proof

    cases: dict[str, list[str]] = {}
    for case, at in found.get("cases", {}).items():
        if KINDS.index(at["kind"]) > KINDS.index(found["kind"]):
            cases.setdefault(at["kind"], []).append(case)
    others = "".join(f", {kind} with {', '.join(of)}" for kind, of in cases.items())
    deviation = f". {found['deviation']}" if found["deviation"] else ""
    return f"fidelity: {kind_and_proof(found)}{others}{deviation}"


def _hccl_files(row: Document) -> str:
    """Return the files of HCCL that an executor follows, one a line."""
    return (
        "\n".join(["follows:", *row["fidelity"]["sources"]]) if row["fidelity"]["sources"] else ""
    )


_LINES = ("algorithm", "fidelity", "summary")
_ALL_LINES = (*_LINES, "source", "hccl_files")
_FORMATS: dict[str, Callable[[Document], str]] = {
    "algorithm": lambda row: row["algorithm"].replace(";", "; "),  # lines break between levels
    "fidelity": lambda row: _fidelity(row["fidelity"]),
    "hccl_files": _hccl_files,
}


def _section(screen: Screen, title: str, rows: list[Document], lines: tuple[str, ...]) -> None:
    """Show rows by name and package, with some of their values, one a line, below each; summaries
    from docstrings in their English.
    """
    from rich.padding import Padding
    from rich.text import Text

    screen.show(title, style="bold")
    if not rows:
        screen.show("  none is installed")
    width = max((len(row["name"]) for row in rows), default=0)
    for row in rows:
        head = f"  {row['name']:<{width}}  {row.get('package', '')}"
        screen.show(head.rstrip(), style="green")
        for line in lines:
            text = _FORMATS[line](row) if line in _FORMATS else _text(row[line])
            if text:
                is_docstring = line == "summary" and "package" in row
                screen.show(Padding(Text(text) if is_docstring else text, (0, 0, 0, 6)))
    screen.show()

"""`hccl-py list`: what is installed, and what of it is broken."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hccl_py.cli.grouping import grouped
from hccl_py.cli.options import Output

if TYPE_CHECKING:
    from hccl_py.cli.output import Screen

Document = dict[str, Any]


@grouped
def command(
    *,
    op: Annotated[
        str | None, typer.Option("--op", metavar="OP", help="Only executors of this op.")
    ] = None,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Also show file and line of each executor.")
    ] = False,
    output: Output,
) -> None:
    """List executors, platforms and topologies.

    And plugin packages that are broken, with what is wrong with them.
    """
    from hccl_py.cli.output import print_json
    from hccl_py.operators import make_operator

    runs_as = None if op is None else make_operator(op).runs_as
    document = _document(runs_as, with_sources=output.json or verbose)
    if output.json:
        print_json(document)
    else:
        _print(document, verbose)


def _document(op: str | None, *, with_sources: bool) -> Document:
    """Return what is installed; where it is written only on demand, which reads every file."""
    from hccl_py.plugins.discovery import installed_executors, installed_platforms
    from hccl_py.plugins.executor import ops_of
    from hccl_py.plugins.fidelity import declared
    from hccl_py.topology import PRESETS
    from hccl_py.topology.networks import KINDS, OPTIONS, WORDS

    registry = installed_executors()
    platforms = installed_platforms()
    return {
        "schema": "hccl-py.list/1",
        "executors": [
            {
                "name": found.name,
                "op": ", ".join(ops_of(found.executor)),
                "algorithm": found.executor.algorithm,
                "package": found.package,
                "fidelity": declared(found.executor).document(),
                "summary": _summary(type(found.executor)),
                "source": _source(type(found.executor)) if with_sources else None,
            }
            for found in registry.executors.values()
            if op is None or op in ops_of(found.executor)
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
    "clos": "linked as a full mesh, servers joined by a Clos network",
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
    lines = ("algorithm", "fidelity", "summary", *(("source",) if verbose else ()))
    if not document["executors"]:
        _section(screen, "executors", [], ())
    for op in dict.fromkeys(row["op"] for row in document["executors"]):
        rows = [row for row in document["executors"] if row["op"] == op]
        _section(screen, f"executors of {op}", rows, lines)
    _section(screen, "platforms", document["platforms"], ("summary",))
    _section(screen, "topologies", document["topologies"], ("summary",))
    _section(
        screen,
        "networks, also with gbps=, latency= and spray=all",
        document["networks"],
        ("summary",),
    )
    for problem in document["problems"]:
        screen.show(f"broken: {problem['message']}", style="red")
        screen.show(f"  {problem['hint']}")


def _text(found: str | None) -> str:
    return found or "(source unknown)"


def _fidelity(found: Document) -> str:
    """Return an executor's kind, the cases that take it farther from HCCL, and what deviates."""
    from hccl_py.plugins.fidelity import KINDS

    cases: dict[str, list[str]] = {}
    for case, at in found.get("cases", {}).items():
        if KINDS.index(at["kind"]) > KINDS.index(found["kind"]):
            cases.setdefault(at["kind"], []).append(case)
    others = "".join(f", {kind} with {', '.join(of)}" for kind, of in cases.items())
    deviation = f". {found['deviation']}" if found["deviation"] else ""
    return f"fidelity: {found['kind']}{others}{deviation}"


_LINES: dict[str, Callable[[Any], str]] = {
    "algorithm": lambda found: found.replace(";", "; "),  # so that lines break between levels
    "fidelity": _fidelity,
}


def _section(screen: Screen, title: str, rows: list[Document], lines: tuple[str, ...]) -> None:
    """Show things with their packages, and below them what is worth knowing."""
    from rich.padding import Padding

    screen.show(title, style="bold")
    if not rows:
        screen.show("  none is installed")
    width = max((len(row["name"]) for row in rows), default=0)
    for row in rows:
        head = f"  {row['name']:<{width}}  {row.get('package', '')}"
        screen.show(head.rstrip(), style="green")
        for line in lines:
            screen.show(Padding(_LINES.get(line, _text)(row[line]), (0, 0, 0, 6)))
    screen.show()

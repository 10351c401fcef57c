"""`hccl-py list`: what is installed, and what of it is broken."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hccl_py.cli.options import Output, grouped

if TYPE_CHECKING:
    from hccl_py.cli.output import Screen

__all__ = ["list_"]

Document = dict[str, Any]


@grouped
def list_(
    *,
    op: Annotated[
        str | None, typer.Option("--op", metavar="OP", help="Only executors of this op.")
    ] = None,
    output: Output,
) -> None:
    """List executors, platforms and topologies.

    And plugin packages that are broken, with what is wrong with them.
    """
    from hccl_py.cli.output import print_json
    from hccl_py.operators import make_operator

    if op is not None:
        make_operator(op)
    document = _document(op)
    if output.json:
        print_json(document)
    else:
        _print(document)


def _document(op: str | None) -> Document:
    from hccl_py.discovery import installed_executors, installed_platforms
    from hccl_py.topology import PRESETS

    registry = installed_executors()
    platforms = installed_platforms()
    return {
        "schema": "hccl-py.list/1",
        "executors": [
            {
                "name": found.name,
                "op": found.executor.op,
                "algorithm": found.executor.algorithm,
                "package": found.package,
                "summary": _summary(type(found.executor)),
            }
            for found in registry.executors.values()
            if op in (None, found.executor.op)
        ],
        "platforms": [
            {"name": name, "package": package, "summary": _summary(platform)}
            for name, (platform, package) in platforms.known.items()
        ],
        "topologies": [
            {
                "name": product.name,
                "title": product.title,
                "level0": product.level0,
                "devices_per_server": product.devices_per_server,
                "summary": f"{product.title}: servers of up to {product.devices_per_server} "
                f"devices, linked as a {product.level0}",
            }
            for product in PRESETS.values()
        ],
        "problems": [
            {"message": problem.message, "hint": problem.hint}
            for problem in registry.problems + platforms.problems
        ],
    }


def _summary(thing: type) -> str:
    """Return the first sentence of a docstring."""
    paragraph = inspect.cleandoc(thing.__doc__ or "").partition("\n\n")[0]
    first, stop, _ = " ".join(paragraph.split()).partition(". ")
    return first + stop.strip() or "(no description)"


def _print(document: Document) -> None:
    from hccl_py.cli.output import Screen

    screen = Screen()
    for op in dict.fromkeys(row["op"] for row in document["executors"]):
        rows = [row for row in document["executors"] if row["op"] == op]
        _section(screen, f"executors of {op}", rows, ("algorithm", "package"))
    _section(screen, "platforms", document["platforms"], ("package",))
    _section(screen, "topologies", document["topologies"], ("summary",))
    for problem in document["problems"]:
        screen.show(f"broken: {problem['message']}", style="red")
        screen.show(f"  {problem['hint']}")


def _section(screen: Screen, title: str, rows: list[Document], columns: tuple[str, ...]) -> None:
    """Show things with their columns side by side, and what they do below."""
    from rich.padding import Padding

    screen.show(title, style="bold")
    widths = {name: max(len(row[name]) for row in rows) for name in ("name", *columns)}
    for row in rows:
        cells = (f"{row[name]:<{width}}" for name, width in widths.items())
        screen.show("  " + "  ".join(cells).rstrip(), style="green")
        if "summary" not in columns:
            screen.show(Padding(row["summary"], (0, 0, 0, 6)))
    screen.show()

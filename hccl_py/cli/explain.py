"""`hccl-py explain`: which executor runs, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from hccl_py.cli.grouping import grouped
from hccl_py.cli.options import CallOptions, Output, Sizes


@dataclass(frozen=True)
class Comparing:
    """Another release to compare with."""

    against: Annotated[
        str | None,
        typer.Option(
            "--against", metavar="RELEASE", help="Say what HCCL of another release takes instead."
        ),
    ] = None


@grouped
def command(*, call: CallOptions, sizes: Sizes, comparing: Comparing, output: Output) -> None:
    """Say which executor runs, and why.

    And which one HCCL takes, and what it costs. With -e, also where between -b and -e the choice
    changes.
    """
    from hccl_py.cli.explanations import Explanation
    from hccl_py.cli.output import Screen, print_json
    from hccl_py.cli.request import CallRequest
    from hccl_py.importers.installed import refuse_source

    refuse_source(call.op, "explain", "It explains how executors are chosen for an op.")
    request = CallRequest(call)
    request.check_sizes(sizes)
    with request.comm:
        explanation = Explanation.of(request, call, sizes, comparing.against)
    if output.json:
        print_json(explanation.document())
        return
    screen = Screen()
    for part in explanation.drawing():
        screen.show(part)

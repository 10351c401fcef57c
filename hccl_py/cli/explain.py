"""`hccl-py explain`: the executor of a call, and the reasons for it."""

from __future__ import annotations

from typing import Annotated

from hccl_py.cli.grouping import grouped, without
from hccl_py.cli.options import PLATFORM, CallOptions, Output, Sizes, option


@grouped
def command(
    *,
    call: Annotated[CallOptions, without(*PLATFORM)],
    sizes: Sizes,
    against: Annotated[
        str | None,
        option("--against", "RELEASE", "Say what HCCL of another release takes instead."),
    ] = None,
    output: Output,
) -> None:
    """Name the executor that runs, with the reasons.

    Also the executor that HCCL takes, the reason for the algorithm of each level, the sizes at
    which the choice changes, with the condition, and the resources. With -e, these sizes are looked
    for between -b and -e.
    """
    from hccl_py.cli.explain_report import Explanation
    from hccl_py.cli.output import Screen, print_json
    from hccl_py.cli.request import CallRequest
    from hccl_py.importers.installed import refuse_source

    refuse_source(call.op, "explain", "It explains how executors are chosen for an op.")
    request = CallRequest(call)
    request.check_sizes(sizes)
    with request.comm:
        explanation = Explanation.of(request, call, sizes, against)
    if output.json:
        print_json(explanation.document())
        return
    screen = Screen()
    for part in explanation.drawing():
        screen.show(part)

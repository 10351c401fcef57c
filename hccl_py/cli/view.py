"""`hccl-py view`: a program on the whole screen, to browse."""

from __future__ import annotations

import os
import sys
from typing import Annotated

from hccl_py.cli.grouping import grouped, only, without
from hccl_py.cli.options import DEBUG, PLATFORM, Output, ProgramOptions, TimeModel


@grouped
def command(
    *,
    call: Annotated[ProgramOptions, without(*PLATFORM)],
    model: TimeModel,
    output: Annotated[Output, only(debug=DEBUG)],
) -> None:
    """Browse what every stream does, and when, on the whole screen.

    Scroll, zoom, fold ranks, search; see what a task waits for and jump there; follow the critical
    path; go from a finding to its tasks. ? lists the keys. In the place of an op, a program file
    is shown as it is.
    """
    from hccl_py.cli.output import working
    from hccl_py.cli.request import model_of
    from hccl_py.cli.sources import request_of
    from hccl_py.cli.trace_report import scene_of_plan
    from hccl_py.errors import ParameterError
    from hccl_py.trace.screen import browse, check_screen

    check_screen()
    ends, out = (sys.__stdin__, sys.__stderr__), sys.__stderr__
    if not all(end and end.isatty() for end in ends) or os.environ.get("TERM") == "dumb":
        raise ParameterError(
            "The view needs a terminal.", "`hccl-py trace` draws into files and pipes."
        )
    request = request_of(call)
    with request.comm:
        used = model_of(model, request)
        with working("recording"):
            plan = request.plan(request.op(request.minbytes))
        with working(f"verifying and timing {plan.program.task_count} tasks"):
            scene = scene_of_plan(request, plan, used)
        browse(scene, unicode=(out.encoding if out else "").lower().startswith("utf"))

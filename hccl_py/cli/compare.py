"""`hccl-py compare`: all executors of an op, at every size, by simulation."""

from __future__ import annotations

from typing import Annotated

import typer

from hccl_py.cli.compare_options import Candidates, Files
from hccl_py.cli.grouping import grouped
from hccl_py.cli.options import CallOptions, Output, Sizes, TimeModel


@grouped
def command(
    *,
    call: CallOptions,
    sizes: Sizes,
    model: TimeModel,
    candidates: Candidates,
    every: Annotated[
        bool, typer.Option("--all", help="Show every candidate, not only the fastest.")
    ] = False,
    files: Files,
    output: Output,
) -> None:
    """Time every executor that suits, at sizes from -b to -e, and show the fastest.

    And what HCCL's rules choose, and how much longer that takes. --executor module:Class takes part
    beside the others. Times are those of the cost model. Sizes are multiplied by 4 unless -f or -i
    says otherwise.
    """
    from hccl_py.cli.compare_report import document_of, show
    from hccl_py.cli.comparing import check_call, check_files, compared, write_files
    from hccl_py.cli.output import print_json
    from hccl_py.importers.installed import refuse_source

    refuse_source(
        call.op, "compare", "It times the executors of an op; `simulate` takes a program."
    )
    check_call(call, {"--out": files.out, "--save": files.save})
    check_files(files, model)
    found = compared(call, sizes, model, candidates, files.out)
    write_files(files, found)
    if output.json:
        print_json(document_of(found))
    else:
        show(found, every=every)

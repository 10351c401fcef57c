"""`hccl-py compare`: all executors of an op, at every size, by simulation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from hccl_py.cli.grouping import grouped, without
from hccl_py.cli.options import PLATFORM, CallOptions, Output, Sizes, TimeModel, flag, option


@dataclass(frozen=True)
class Candidates:
    """The executors that are timed, and the work that they may take."""

    executors: Annotated[
        str | None, option("--executors", "A,B", "Only these; else every executor that can run it.")
    ] = None
    effort: Annotated[
        float | None,
        option("--effort", "S", "Seconds of a core for a candidate, else 1; 0: any.", min=0),
    ] = None
    jobs: Annotated[
        int | None, option("--jobs", "N", "Processes, else one for each core.", min=1)
    ] = None

    @property
    def names(self) -> list[str]:
        """The executors that are named; empty where all take part."""
        return [] if self.executors is None else [n.strip() for n in self.executors.split(",")]


@dataclass(frozen=True)
class Files:
    """The files that are made of a comparison, where they are asked for; `out` keeps its points."""

    png: Annotated[str | None, option("--png", "FILE", "Write the picture as PNG.")] = None
    html: Annotated[
        str | None, option("--html", "FILE", "Write a page with picture and table.")
    ] = None
    out: Annotated[
        str | None,
        option(
            "--out",
            "FILE",
            "Time every point into a .csv or .parquet; goes on where it was killed.",
        ),
    ] = None
    table: Annotated[
        str | None, option("--table", "FILE", "Add the winners to a tuning table.")
    ] = None


_REFUSED = ("counts", "in_place", "strict_hccl")


@grouped
def command(
    *,
    call: Annotated[CallOptions, without(*PLATFORM, hidden=_REFUSED)],
    sizes: Sizes,
    model: TimeModel,
    candidates: Candidates,
    every: Annotated[bool, flag("--all", "Show every candidate, not only the fastest.")] = False,
    files: Files,
    output: Output,
) -> int | None:
    """Time every executor that suits, at sizes from -b to -e, and show the fastest.

    And what HCCL's rules choose, and how much longer that takes. --executor module:Class takes part
    beside the others. Times are those of the cost model. Sizes are multiplied by 4 unless -f or -i
    says otherwise. Large programs that cannot win are left out, except with --all. Ctrl-C shows
    what was timed by then.
    """
    from hccl_py.cli.compare_report import (
        check_call,
        check_files,
        compared,
        document_of,
        show,
        write_files,
    )
    from hccl_py.cli.errors import INTERRUPTED, say_warning
    from hccl_py.cli.output import print_json
    from hccl_py.importers.installed import refuse_source

    refuse_source(
        call.op, "compare", "It times the executors of an op; `simulate` takes a program."
    )
    check_call(call, {"--out": files.out, "--table": files.table})
    check_files(files, model)
    found = compared(call, sizes, model, candidates, files.out, every=every)
    write_files(files, found)
    if output.json:
        print_json(document_of(found))
    else:
        show(found, every=every)
    if not found.is_partial:
        return None
    say_warning("stopped by Ctrl-C: some candidates were not timed.")
    return INTERRUPTED

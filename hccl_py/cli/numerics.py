"""`hccl-py numerics`: what a sum's last bits depend on, and whether two calls have the same."""

from __future__ import annotations

from typing import Annotated

import typer

from hccl_py.cli.errors import WRONG
from hccl_py.cli.grouping import grouped, without
from hccl_py.cli.numerics_options import Other, Shown
from hccl_py.cli.options import (
    PLATFORM,
    REDUCE_OP,
    SOURCES_OF_JOBS,
    Output,
    ProgramOptions,
    here,
    option,
)


@grouped
def command(
    *,
    call: Annotated[
        ProgramOptions,
        without(
            *(*PLATFORM, *SOURCES_OF_JOBS),
            op=typer.Argument(
                metavar="[OP|FILE|DIR]",
                show_default=False,
                help="The op, such as all_reduce, or a program as other commands take it.",
            ),
            reduce_op=here(REDUCE_OP, help="sum (the default), prod, max, min, or avg."),
        ),
    ],
    maxbytes: Annotated[
        str | None, option("-e --maxbytes", "SIZE", "All sizes from -b to this one.")
    ] = None,
    shape: Annotated[
        str | None, option("--shape", "RxC", "The size of an array, 184x5120, instead of -b.")
    ] = None,
    other: Other,
    show: Shown,
    check: Annotated[
        str | None, option("--check", "FILE", "Prove again what a certificate says.")
    ] = None,
    output: Output,
) -> None:
    """Prove which bits a sum has, and what changes them.

    For ranges of sizes: the executor, the summation trees of the elements (which rank's value
    enters where, rounded to which type), and whether the order is fixed. Without -b, -e and
    --shape, for all sizes from one element to 1 GiB. With --same-as, --with or --against: whether
    the same elements have the same bits for all inputs; where not, an input that shows it, the size
    where the bits change, and settings under which they are the same, with their cost. Exit status
    1 where bits differ, or where a certificate no longer holds.
    """
    from hccl_py.cli.numerics_calls import answered, checked
    from hccl_py.cli.numerics_report import print_answer, print_check, write_files

    if check is not None:
        found = checked(check, call, maxbytes, shape, other)
        print_check(found, output)
        if not found.holds:
            raise typer.Exit(WRONG)
        return
    answer = answered(call, maxbytes, shape, other, show)
    write_files(answer, show)
    print_answer(answer, show, output)
    if answer.is_wrong:
        raise typer.Exit(WRONG)

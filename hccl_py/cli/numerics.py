"""`hccl-py numerics`: what a sum's last bits depend on, and whether two calls have the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from hccl_py.cli.errors import WRONG
from hccl_py.cli.grouping import grouped, without
from hccl_py.cli.options import (
    PLATFORM,
    REDUCE_OP,
    SOURCES_OF_JOBS,
    Output,
    ProgramOptions,
    flag,
    here,
    option,
)


@dataclass(frozen=True)
class Other:
    """The second call, as far as it differs from the first."""

    same_as: Annotated[
        str | None,
        option("--same-as", "SIZE|RxC", "Compare with this size, or with an array of this shape."),
    ] = None
    changes: Annotated[
        list[str] | None,
        option(
            "--with",
            "OPTION=VALUE",
            "Compare with the call that has this option, such as deterministic=strict, servers=2 "
            "or ruleset=cann-2025.07; may be repeated.",
        ),
    ] = None
    against: Annotated[
        str | None,
        option(
            "--against",
            "FILE|DIR|EXECUTOR",
            "Compare with a program, an MSCCL file, a custom op in C++, or an executor.",
        ),
    ] = None
    shift: Annotated[
        int, option("--shift", "N", "Element e of the first call is e + N of the second.")
    ] = 0

    @property
    def is_asked(self) -> bool:
        """True if there is a second call."""
        return self.same_as is not None or bool(self.changes) or self.against is not None


@dataclass(frozen=True)
class Shown:
    """The element whose tree is drawn, and the files that are written."""

    rank: Annotated[
        int, option("--rank", "RANK", "Draw the tree of an element of this rank.", min=0)
    ] = 0
    element: Annotated[int, option("--element", "N", "Draw the tree of this element.", min=0)] = 0
    no_cures: Annotated[
        bool, flag("--no-cures", "Do not search settings under which the bits are the same.")
    ] = False
    certificate: Annotated[
        str | None, option("--certificate", "FILE", "Write what was proved, as JSON.")
    ] = None
    html: Annotated[
        str | None, option("--html", "FILE", "Write a page with trees and elements in colours.")
    ] = None


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

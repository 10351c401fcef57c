"""The options of `trace` alone: what is drawn of a program, and which files are written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer


@dataclass(frozen=True)
class Views:
    """What is drawn of a program."""

    rank: Annotated[
        int | None,
        typer.Option("--rank", metavar="R", help="Draw this rank alone, and list its tasks."),
    ] = None
    all_ranks: Annotated[
        bool, typer.Option("--all-ranks", help="Draw every rank, and list all tasks.")
    ] = False
    limit: Annotated[
        int,
        typer.Option(
            "--limit",
            metavar="N",
            min=0,
            help="List the first N tasks of a rank; 0: all, and all streams.",
        ),
    ] = 200
    ranks_shown: Annotated[
        int,
        typer.Option(
            "--ranks-shown",
            metavar="N",
            min=1,
            help="Draw at most N groups of ranks that do the same.",
        ),
    ] = 8
    step: Annotated[
        bool,
        typer.Option(
            "--step", help="Show what memory holds, task by task: keys, forwards and back."
        ),
    ] = False
    from_us: Annotated[
        float | None,
        typer.Option("--from", metavar="US", help="Draw the time from this microsecond on."),
    ] = None
    to_us: Annotated[
        float | None, typer.Option("--to", metavar="US", help="Draw the time until then.")
    ] = None


@dataclass(frozen=True)
class TraceFiles:
    """The files that are made of a scene, where they are asked for."""

    html: Annotated[
        str | None,
        typer.Option("--html", metavar="FILE", help="Write a page to browse, for any browser."),
    ] = None
    against: Annotated[
        str | None,
        typer.Option(
            "--against", metavar="PROGRAM", help="In the page, beside the program in this file."
        ),
    ] = None
    svg: Annotated[
        str | None,
        typer.Option("--svg", metavar="FILE", help="Write a picture of a small algorithm's steps."),
    ] = None
    perfetto: Annotated[
        str | None,
        typer.Option(
            "--perfetto", metavar="FILE", help="Write a .pftrace file for ui.perfetto.dev."
        ),
    ] = None
    chrome: Annotated[
        str | None,
        typer.Option(
            "--chrome",
            metavar="FILE",
            help="Write Chrome's .json trace events, for MindStudio Insight.",
        ),
    ] = None
    flows: Annotated[
        int | None,
        typer.Option(
            "--flows",
            metavar="N",
            min=0,
            help="Arrows from posts to waits in these two, the longest waits first: 10000.",
        ),
    ] = None

    @property
    def wanted(self) -> bool:
        """Whether any file is asked for."""
        return any(file is not None for file in (self.html, self.svg, *self.traces))

    @property
    def traces(self) -> tuple[str | None, str | None]:
        """The files for other viewers."""
        return self.perfetto, self.chrome

"""The options of `compare` alone: who is timed, how long, and which files are written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer


@dataclass(frozen=True)
class Candidates:
    """Which executors are timed, and how much work that may be."""

    executors: Annotated[
        str | None,
        typer.Option(
            "--executors",
            metavar="A,B",
            help="Only these; else every executor that can run it.",
        ),
    ] = None
    effort: Annotated[
        float | None,
        typer.Option(
            "--effort",
            metavar="S",
            min=0,
            help="Seconds of a core for a candidate, else 1; 0: any.",
        ),
    ] = None
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", metavar="N", min=1, help="Processes, else one for each core."),
    ] = None

    @property
    def names(self) -> list[str]:
        """The executors that are named; empty where all take part."""
        return [] if self.executors is None else [n.strip() for n in self.executors.split(",")]


@dataclass(frozen=True)
class Files:
    """The files that are made of a comparison, where they are asked for; `out` keeps its points."""

    png: Annotated[
        str | None, typer.Option("--png", metavar="FILE", help="Write the picture as PNG.")
    ] = None
    html: Annotated[
        str | None,
        typer.Option("--html", metavar="FILE", help="Write a page with picture and table."),
    ] = None
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Time every point into a .csv or .parquet; goes on where it was killed.",
        ),
    ] = None
    save: Annotated[
        str | None,
        typer.Option("--save", metavar="FILE", help="Add the winners to a tuning table."),
    ] = None

"""The options of `run` alone: how often, checked how, and in which interleaving."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from hccl_py.cli.declared import SLOW, here


@dataclass(frozen=True)
class Measuring:
    """How often an op is run, and how its results are checked."""

    iters: Annotated[
        int, typer.Option("-n", "--iters", metavar="N", min=1, help="Timed iterations.")
    ] = 20
    warmup: Annotated[
        int, typer.Option("-w", "--warmup", metavar="N", min=0, help="Iterations before them.")
    ] = 5
    check: Annotated[
        int,
        typer.Option(
            "-c",
            "--check",
            metavar="0|1|2",
            min=0,
            max=2,
            help="0: no check, 1: check, 2: and show the first wrong element.",
        ),
    ] = 1
    timeline: Annotated[
        str | None,
        typer.Option(
            "--timeline",
            metavar="FILE",
            help="Write when every task ran, beside the model's times: .html, .pftrace or .json.",
        ),
    ] = None


@dataclass(frozen=True)
class Interleaving:
    """In which order the asynchronous streams run."""

    seed: Annotated[
        int | None,
        typer.Option(
            "--seed", metavar="N", help="Run one interleaving of the asynchronous streams."
        ),
    ] = None
    schedule: Annotated[
        str | None,
        typer.Option(
            "--schedule",
            metavar="NAME",
            help="Its kind: random, late-wire, early-wire, starved-stream or slow-rank.",
        ),
    ] = None
    slow: Annotated[
        list[str] | None,
        here(
            SLOW, help="A straggler, rank=3:2x, or a slow link, link=0-1:10x, in the interleaving."
        ),
    ] = None

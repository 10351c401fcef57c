"""What `hccl-py compare` does: checks, the comparison, and the files that are made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hccl_py.cli.progress import Bar
from hccl_py.cli.request import CallRequest
from hccl_py.cli.sizes import row_sizes
from hccl_py.cli.time_model import checked_model
from hccl_py.documents.disk import check_place, write_file
from hccl_py.documents.kind import PAGE
from hccl_py.errors import ParameterError
from hccl_py.tuning.compare import EFFORT_S, Comparison, compare
from hccl_py.tuning.pictures import PNG, check_drawing, page, png
from hccl_py.tuning.points import Point
from hccl_py.tuning.table import TABLE, TuningTable
from hccl_py.tuning.tune import save_winners

if TYPE_CHECKING:
    from hccl_py.cli.compare_options import Candidates, Files
    from hccl_py.cli.options import CallOptions, Sizes, TimeModel

FACTOR = 4
"""From size to size, unless the user says otherwise."""


def compared(
    call: CallOptions,
    sizes: Sizes,
    options: TimeModel,
    candidates: Candidates,
    out: str | None,
) -> Comparison:
    """Compare what the options say; an effort of 0 is any."""
    if out is not None and candidates.effort:
        raise ParameterError("--out times every point: it takes no --effort.", "Leave one out.")
    request = CallRequest(call)
    request.check_sizes(sizes)
    model = checked_model(options, request.topology)
    if sizes.stepfactor is None and sizes.stepbytes is None:
        sizes = replace(sizes, stepfactor=FACTOR)
    wanted = [0] if request.is_fixed else row_sizes(call.minbytes, sizes)
    if wanted[0] == 0 and not request.is_fixed:
        raise ParameterError("There is nothing to compare at 0 bytes.", "Give -b 1 or more.")
    call_spec = replace(request.spec.sized(wanted[0]), config=request.comm.config)
    point = Point(call=call_spec, cost=model.cost, network=model.network, slow=model.stragglers)
    effort_s = EFFORT_S if candidates.effort is None else candidates.effort or None
    with Bar("candidates" if out is None else "points") as bar:
        return compare(
            point,
            wanted,
            executors=candidates.names,
            own=call.executor,
            effort_s=effort_s,
            out=out,
            jobs=candidates.jobs,
            progress=bar.advance_to,
        )


def check_call(call: CallOptions, kept: Mapping[str, str | None]) -> None:
    """Refuse options that make no sense here, rather than ignore them; `kept` are files that name
    executors.
    """
    own = call.executor if ":" in (call.executor or "") else None
    for option, path in kept.items():
        if own and path:
            raise ParameterError(
                f"{option} keeps executors by name, and {own} is a class of this folder.",
                f"Install it as a package (`hccl-py new` writes one), or leave {option} out.",
            )
    refused = {
        "--executor": (
            call.executor and not own,
            "--executors names those to compare; --executor module:Class adds one of this folder.",
        ),
        "--counts": (call.counts, "Give -b and -e: amounts are the usual ones."),
        "--in-place": (call.in_place, "Times in place are the same."),
        "--strict-hccl": (call.strict_hccl, "HCCL's choice is shown beside the others."),
    }
    for option, (value, hint) in refused.items():
        if value:
            raise ParameterError(f"compare takes no {option}.", hint)


def check_files(files: Files, options: TimeModel) -> None:
    """Refuse before the work what could not be written after it."""
    if files.png or files.html:
        check_drawing()
    for path, kind in ((files.png, PNG), (files.html, PAGE), (files.save, TABLE)):
        if path is not None:
            check_place(path, kind)
    if files.save and options.slow:
        raise ParameterError(
            "Tuning tables are for machines without defects.", "Leave --slow or --save out."
        )
    if files.save and Path(files.save).exists():
        TuningTable.read(files.save)


def write_files(files: Files, found: Comparison) -> None:
    """Write the files that are asked for of a comparison."""
    if files.png is not None:
        write_file(files.png, png(found), PNG)
    if files.html is not None:
        write_file(files.html, page(found).encode(), PAGE)
    if files.save is not None:
        save_winners([r.point for r in found.rows], [r.outcome for r in found.rows], files.save)

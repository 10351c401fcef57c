"""`hccl-py advise`: the choice of a call, its cost, and better ones, in one answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from hccl_py.cli.grouping import grouped, only, without
from hccl_py.cli.options import COST, PLATFORM, CallOptions, Output, TimeModel, flag, option

if TYPE_CHECKING:
    from hccl_py.cli.advise_parts import Advice, Adviser


@dataclass(frozen=True)
class Forms:
    """The form of the answer, where it is not text for a terminal."""

    markdown: Annotated[bool, flag("--markdown", "Markdown on stdout.")] = False
    html: Annotated[str | None, option("--html", "FILE", "Write a page with the answer.")] = None


@dataclass(frozen=True)
class CandidateWork:
    """The work on other executors."""

    effort: Annotated[
        float | None,
        option("--effort", "S", "Seconds of a core for a candidate, else 0.4; 0: any.", min=0),
    ] = None
    jobs: Annotated[
        int | None, option("--jobs", "N", "Processes, else one for each core.", min=1)
    ] = None


_REFUSED = ("counts", "in_place", "strict_hccl", "executor", "select")


@grouped
def command(
    *,
    call: Annotated[CallOptions, without(*PLATFORM, hidden=_REFUSED)],
    model: Annotated[TimeModel, only(cost=COST)],
    search: CandidateWork,
    forms: Forms,
    output: Output,
) -> int | None:
    """Name HCCL's choice, why, what it costs, what is faster, and what stragglers do.

    For the one size of -b: the executor with the reason for the algorithm of each level, the sizes
    at which that changes, the time against the lower bound and what it is lost to, a straggler and
    a bad link, the accuracy of the times, and the fastest other executors with the setting that
    gets each. Parts appear as they are found; Ctrl-C keeps those.
    """
    from hccl_py.cli.advise_parts import EFFORT_S, Adviser, check_call
    from hccl_py.cli.errors import INTERRUPTED, say_warning
    from hccl_py.documents.disk import check_place
    from hccl_py.documents.kind import PAGE
    from hccl_py.importers.installed import refuse_source

    refuse_source(call.op, "advise", "It advises on an op; `simulate` takes a program.")
    check_call(call)
    if forms.html is not None:
        check_place(forms.html, PAGE)
    effort_s = EFFORT_S if search.effort is None else search.effort or None
    adviser = Adviser.of(call, model, effort_s, search.jobs)
    with adviser.request.comm:
        found = _followed(adviser, show=not (output.json or forms.markdown))
    _write(found, forms, output)
    if not found.is_partial:
        return None
    say_warning("stopped by Ctrl-C: the answer is not complete.")
    return INTERRUPTED


def _followed(adviser: Adviser, *, show: bool) -> Advice:
    """Return the parts of the answer, shown as they come, up to the last or to Ctrl-C."""
    from hccl_py.cli.advise_forms import AdviceScreen
    from hccl_py.cli.advise_parts import Advice

    screen = AdviceScreen() if show else None
    found = Advice(adviser.request, adviser.model, [])
    if screen is not None:
        screen.head(found)
    try:
        for part in adviser.parts():
            found.parts.append(part)
            if screen is not None:
                screen.part(part)
    except KeyboardInterrupt:
        if not found.parts:
            raise
        return found.cut()
    return found


def _write(found: Advice, forms: Forms, output: Output) -> None:
    """Write the forms of the answer that are asked for."""
    from hccl_py.cli.advise_forms import advice_page, markdown
    from hccl_py.cli.output import print_json
    from hccl_py.cli.streams import say
    from hccl_py.documents.disk import write_file
    from hccl_py.documents.kind import PAGE

    if forms.html is not None:
        write_file(forms.html, advice_page(found).encode(), PAGE)
    if output.json:
        print_json(found.document())
    elif forms.markdown:
        say(markdown(found))

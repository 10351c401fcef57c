"""`hccl-py doctor`: this machine, the platforms that work on it, and the parts that others lack."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from hccl_py.cli.grouping import grouped
from hccl_py.cli.options import Output, option
from hccl_py.language import translated
from hccl_py.language.wrapping import columns, padded

if TYPE_CHECKING:
    from hccl_py.plugins.machine_checks import CheckResult
    from hccl_py.plugins.platforms import Check, Fact

Document = dict[str, Any]

FIRST = "hccl-py run all_reduce --platform {} --ranks 2 -b 1K -e 1M"

_MARKS = {True: "ok", False: "no", None: "--"}


@grouped
def command(
    *,
    limit: Annotated[
        float, option("--limit", "SECONDS", "How long to look at most.", min=0.1)
    ] = 60.0,
    output: Output,
) -> None:
    """Show what this machine has, which platforms work here, and what is missing.

    Libraries and devices are tried in processes of their own, so that none can end or stop this
    command. The exit status is always 0.
    """
    from hccl_py.cli.output import print_json

    document = _document(limit)
    if output.json:
        print_json(document)
    else:
        _print(document)


@dataclass(frozen=True)
class _Candidate:
    """An installed platform and its checks; None where it declares none."""

    name: str
    package: str
    checks: Sequence[Check] | None
    problem: str = ""


def _mark(*, good: bool | None) -> str:
    """Return a mark in the columns of all of them."""
    return padded(translated(_MARKS[good]), columns(translated(_MARKS[True])))


def _document(limit_s: float) -> Document:
    from hccl_py.plugins.discovery import installed_platforms
    from hccl_py.plugins.machine_checks import run_checks
    from hccl_py.plugins.platforms import Check

    platforms = installed_platforms()
    candidates = [_candidate(n, found, package) for n, (found, package) in platforms.known.items()]
    checks = [Check("this machine", _machine)]
    for check in (check for each in candidates for check in each.checks or ()):
        if _identity(check) not in map(_identity, checks):
            checks.append(check)
    found = {_identity(each.check): each for each in run_checks(checks, limit_s)}
    verdicts = [_verdict(candidate, found) for candidate in candidates]
    return {
        "schema": "hccl-py.doctor/1",
        "checks": [
            {
                "name": each.check.name,
                "seconds": round(each.seconds, 3),
                "facts": [
                    {"name": f.name, "value": f.value, "good": f.is_good, "hint": f.hint}
                    for f in each.facts
                ],
            }
            for each in found.values()
        ],
        "platforms": verdicts,
        "problems": [{"message": p.message, "hint": p.hint} for p in platforms.problems],
        "next": _next(verdicts, _hardware(candidates, found)),
    }


def _identity(check: Check) -> tuple[str, object]:
    """Return a key that is the same for the same check of several platforms."""
    return check.name, check.look


def _candidate(name: str, kind: Any, package: str) -> _Candidate:
    from hccl_py.plugins.platforms import DiagnosticsProvider

    try:
        made = kind()
        return _Candidate(
            name, package, made.checks() if isinstance(made, DiagnosticsProvider) else None
        )
    except Exception as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())
        return _Candidate(name, package, None, f"cannot be asked: {said}")


def _verdict(candidate: _Candidate, found: dict[tuple[str, object], CheckResult]) -> Document:
    """Return the readiness of a platform, None where it declares no checks, and what it lacks."""
    needed = [check for check in candidate.checks or () if check.is_needed]
    lacks = [fact for check in needed for fact in found[_identity(check)].bad]
    knows = candidate.checks is not None
    return {
        "name": candidate.name,
        "package": candidate.package,
        "ready": not lacks if knows else False if candidate.problem else None,
        "checks": [check.name for check in candidate.checks or ()],
        "lacks": [fact.name for fact in lacks],
        "hint": lacks[0].hint if lacks else candidate.problem,
    }


def _hardware(
    candidates: Sequence[_Candidate], found: dict[tuple[str, object], CheckResult]
) -> list[str]:
    """Return the platforms whose hardware is there."""
    return [
        candidate.name
        for candidate in candidates
        if any(c.is_hardware and found[_identity(c)].has_good for c in candidate.checks or ())
    ]


def _next(verdicts: Sequence[Document], hardware: Sequence[str]) -> str:
    """Return the last sentence: the platforms that can run, and the step to take now; platforms
    whose hardware is there come first.
    """
    ready = [each["name"] for each in verdicts if each["ready"]]
    can = f"Can run here: {', '.join(ready)}." if ready else "No platform can run here."
    for each in verdicts:
        if each["name"] in hardware and not each["ready"]:
            what = ", ".join(each["lacks"])
            return f"{can} Next, for {each['name']}, which lacks {what}: {each['hint']}"
    chosen = [name for name in ready if name in hardware] or ready
    return f"{can} Next: {FIRST.format(chosen[0])}" if chosen else can


def _machine() -> Iterator[Fact]:
    """Yield facts about Python, the system and the container."""
    import numpy

    from hccl_py import __version__
    from hccl_py.plugins.platforms import Fact

    yield Fact("Python", f"{platform.python_version()} ({sys.executable})", True)
    yield Fact("hccl-py", f"{__version__} ({Path(__file__).parents[2]})", True)
    yield Fact("numpy", numpy.__version__, True)
    system = f"{platform.system()} {platform.machine()}, {len(os.sched_getaffinity(0))} cores"
    yield Fact("system", system)
    marks = [mark for mark in ("/.dockerenv", "/run/.containerenv") if Path(mark).exists()]
    yield Fact("container", f"yes: {marks[0]} exists" if marks else "no sign of one")
    if Path("/dev/shm").is_dir():
        usage = shutil.disk_usage("/dev/shm")
        yield Fact("/dev/shm", f"{usage.free >> 20} of {usage.total >> 20} MiB free; not used here")


def _print(document: Document) -> None:
    from hccl_py.cli.output import Screen, facts

    screen = Screen()
    rows = [fact for check in document["checks"] for fact in check["facts"]]
    width = max(len(fact["name"]) for fact in rows) + 4
    for check in document["checks"]:
        screen.show(check["name"], style="bold")
        screen.show(
            facts(
                [
                    (f"  {_mark(good=fact['good'])}  {fact['name']}", [fact["value"], *_hint(fact)])
                    for fact in check["facts"]
                ],
                least=width + 2,
            )
        )
        screen.show()
    screen.show("platforms", style="bold")
    screen.show(facts([_row(each) for each in document["platforms"]], least=width + 2))
    for problem in document["problems"]:
        screen.show(f"broken: {problem['message']}", style="red")
        screen.show(f"  {problem['hint']}")
    screen.show()
    screen.show(document["next"])


def _hint(fact: Document) -> list[str]:
    return [f"hint: {fact['hint']}"] if fact["hint"] else []


def _row(verdict: Document) -> tuple[str, list[str]]:
    name = f"  {_mark(good=verdict['ready'])}  {verdict['name']}"
    if verdict["ready"]:
        return name, ["has what it needs"]
    if verdict["lacks"]:
        return name, [f"lacks {', '.join(verdict['lacks'])}"]
    return name, [verdict["hint"] or "does not say what it needs"]

"""The parts of the answer of `hccl-py advise`, each found when it is its turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from hccl_py.cli.accuracy import TimeAccuracy
from hccl_py.cli.alternatives import Alternatives
from hccl_py.cli.call import describe_topology, document_of_plan
from hccl_py.cli.compare_report import check_call as check_compared
from hccl_py.cli.options import CallOptions, TimeModel
from hccl_py.cli.output import Bar, format_levels, working
from hccl_py.cli.request import CallRequest, Model, checked_model
from hccl_py.cli.size_changes import SizeChange, lines_of_changes, usual_changes
from hccl_py.clocks.carried import carried
from hccl_py.clocks.stragglers import Stragglers
from hccl_py.communicator.planning import Plan
from hccl_py.errors import LostLinkError, ParameterError
from hccl_py.selection import Selection
from hccl_py.simulator.bounds import Bound, lower_bound
from hccl_py.trace.units import format_share
from hccl_py.tuning.losses import time_parts
from hccl_py.tuning.points import Point
from hccl_py.tuning.recording import uncontended_us

EFFORT_S = 0.4
"""Seconds of a core for a candidate: fewer than `compare` takes, as the answer is wanted soon."""

SLOW_RANK, SLOW_LINK = "2x", "10x"
"""The factors of the straggler and of the bad link."""


_SHOWN_SHARE = 0.001
"""The share of the time that a part has at least to be shown; JSON has all."""


class AdvicePart(NamedTuple):
    """A part: its name, its lines for people, its key in JSON and the value there."""

    name: str
    lines: list[str]
    key: str
    value: Any


@dataclass(frozen=True)
class Advice:
    """The parts that were found; `is_partial` where Ctrl-C ended the search."""

    request: CallRequest
    model: Model
    parts: list[AdvicePart]
    is_partial: bool = False

    def cut(self) -> Advice:
        """Return the same as an answer that is not complete."""
        return replace(self, is_partial=True)

    @property
    def head(self) -> list[str]:
        """The call and the machine, in a line each."""
        request = self.request
        op = request.op(request.minbytes)
        machine = f"{describe_topology(request.topology)}; cost model {self.model.cost.name}"
        return [request.describe(op), machine]

    def document(self) -> dict[str, Any]:
        """Return the JSON document."""
        head = {"schema": "hccl-py.advise/1", "is_partial": self.is_partial}
        return head | self.model.document() | {part.key: part.value for part in self.parts}


def check_call(call: CallOptions) -> None:
    """Refuse options that make no sense for advice on HCCL's choice."""
    check_compared(call, {})
    if call.executor:
        raise ParameterError(
            "advise is about HCCL's choice: it takes no --executor.",
            "`hccl-py compare --executor module:Class` times a class of yours beside the others.",
        )
    if call.select != "rules":
        raise ParameterError("advise is about HCCL's rules.", "Leave --select out.")


@dataclass(frozen=True)
class Adviser:
    """A call to advise on."""

    request: CallRequest
    model: Model
    effort_s: float | None
    jobs: int | None

    @staticmethod
    def of(
        call: CallOptions, model: TimeModel, effort_s: float | None, jobs: int | None
    ) -> Adviser:
        """Check a call, its topology and its cost model."""
        request = CallRequest(call)
        if request.minbytes == 0 and not request.is_fixed:
            raise ParameterError("There is nothing to advise on at 0 bytes.", "Give -b 1 or more.")
        found = checked_model(model, request.topology)
        request.cost = found.cost
        return Adviser(request, found, effort_s, jobs)

    def parts(self) -> Iterator[AdvicePart]:
        """Yield the parts, those that are quickly found first."""
        yield self._choice()
        yield self._by_level()
        changes = usual_changes(self.request)
        if changes:
            yield self._by_size(changes)
        yield self._time()
        with working("timing the program without each of its costs"):
            lost = self._lost()
        yield lost
        with working("timing it with a straggler and with bad links"):
            slow = self._slow()
        if slow.lines:
            yield slow
        yield self._trust()
        with Bar("advise: other executors", notices=True) as bar:
            found = Alternatives.of(
                self._point, self.plan, self.us, self.accuracy, self.effort_s, self.jobs, bar
            )
        yield AdvicePart("better", found.lines(), "alternatives", found.document())
        if found.is_partial:
            raise KeyboardInterrupt

    @cached_property
    def plan(self) -> Plan:
        """The call as HCCL's rules plan it."""
        return self.request.plan(self.request.op(self.request.minbytes))

    @cached_property
    def us(self) -> float:
        """Its time."""
        return self._timed()

    @cached_property
    def accuracy(self) -> TimeAccuracy:
        """The accuracy of times here."""
        plan = self.plan
        return TimeAccuracy.of(self.request, plan.program, plan.op, self.model)

    @cached_property
    def _bound(self) -> Bound:
        return lower_bound(self.plan.op, self.request.topology, self.model.cost)

    @property
    def _point(self) -> Point:
        config = self.request.comm.config
        spec = replace(self.request.spec.sized(self.request.minbytes), config=config)
        return Point(call=spec, cost=self.model.cost)

    def _timed(self, *slow: str) -> float:
        given = self.plan.program, self.request.topology, self.model.cost
        return max(uncontended_us(*given, Stragglers.parse(slow)))

    def _choice(self) -> AdvicePart:
        selection = self.plan.selection
        lines = [self.request.describe_executor(selection)]
        lines += [f"since {reason}" for reason in selection.reasons[:1]]
        lines += [*selection.reasons[1:], *_of_hccl(selection), *_not_said(selection)]
        lines.append(f"by {selection.ruleset}" + f": {selection.source}" * bool(selection.source))
        value = document_of_plan(self.request, self.plan) | {
            "hccl_executor": selection.hccl_executor,
            "hccl_algorithm": dict(selection.hccl_algorithm),
            "is_same": selection.is_same,
            "reasons": list(selection.reasons),
            "overruled": list(selection.overruled),
            "ruleset": selection.ruleset,
            "source": selection.source or None,
        }
        return AdvicePart("takes", lines, "choice", value)

    def _by_level(self) -> AdvicePart:
        why, algorithm = self.plan.selection.why_levels, self.plan.selection.algorithm
        lines = [f"{level} {algorithm[level]}: {reason}" for level, reason in why.items()]
        return AdvicePart("levels", lines or ["one algorithm, no levels"], "levels", dict(why))

    def _by_size(self, changes: list[SizeChange]) -> AdvicePart:
        lines = list(lines_of_changes(changes, self.request.minbytes))
        return AdvicePart("by size", lines, "ranges", [one.document() for one in changes])

    def _time(self) -> AdvicePart:
        us, shorter = self.us, self.accuracy
        size, ranks = self.request.data_size(self.plan.op), self.request.topology.size
        algbw, busbw = self.request.operator.bandwidths(size, us, ranks)
        rates = [shorter.number(rate, 5, fixed=False) for rate in (algbw, busbw)]
        lines = [f"{shorter.time(us)}, {rates[0]} GB/s, on the bus {rates[1]} GB/s"]
        bound = self._bound
        if bound.time_us:
            times = shorter.number(us / bound.time_us, 4, fixed=False)
            lines.append(
                f"{times} times the lower bound of {shorter.time(bound.time_us)}, for {bound.binds}"
            )
        value = {
            "time_us": us,
            "algbw_gbps": algbw,
            "busbw_gbps": busbw,
            "lower_bound_us": bound.time_us,
            "binds": bound.binds,
        }
        return AdvicePart("time", lines, "time", value)

    def _lost(self) -> AdvicePart:
        given = self.plan.program, self.request.topology, self.model.cost
        parts = time_parts(*given, self._bound)
        lines = [
            f"{self.accuracy.time(part.us)} ({format_share(part.us / self.us)}) {part.what}"
            for part in parts
            if part.us >= _SHOWN_SHARE * self.us
        ]
        value = [part._asdict() for part in parts]
        return AdvicePart("goes into", lines or ["nothing takes any time"], "time_parts", value)

    def _slow(self) -> AdvicePart:
        lines, value = [], []
        for what, text in self._what_if():
            try:
                us = self._timed(text)
            except ParameterError:
                continue  # a network in which no link joins these two
            times = us / self.us if self.us else 1.0
            much = f"{self.accuracy.number(times, 3)} times as long"
            lines.append(f"{what} (--slow {text}): {self.accuracy.time(us)}, {much}")
            value.append({"slow": text, "time_us": us, "times_longer": times})
            try:
                if text.startswith("link="):
                    self._timed(text.replace(SLOW_LINK, "lost"))
                    lines.append("the same link lost: nothing goes over it")
                    value[-1]["bytes_if_lost"] = 0
            except LostLinkError as error:
                lines.append(f"the same link lost: no end, since {error.what} go over it")
                value[-1]["bytes_if_lost"] = error.size
        return AdvicePart("if slow", lines, "what_if", value)

    def _what_if(self) -> Iterator[tuple[str, str]]:
        """Yield a straggler, and the busiest link of its rank inside and between servers."""
        program, topology = self.plan.program, self.request.topology
        if topology.size < 2:
            return
        rank = topology.size // 2
        yield "a rank twice as slow", f"rank={rank}:{SLOW_RANK}"
        ends = program.transports
        sent = carried(program)
        both = sent + sent[ends.far]
        own = np.flatnonzero((ends.rank == rank) & (both > 0))
        hosts = topology.host[ends.peer[own]] == topology.host[rank]
        for what, at in (("in a server", own[hosts]), ("between servers", own[~hosts])):
            if len(at):
                peer = int(ends.peer[at[np.argmax(both[at])]])
                pair = "-".join(map(str, sorted((rank, peer))))
                yield f"a link {what} at a tenth of its rate", f"link={pair}:{SLOW_LINK}"

    def _trust(self) -> AdvicePart:
        shared = "flows share only the busiest link; `simulate --network contended` lets all share"
        lines = [self.accuracy.line, shared]
        return AdvicePart("trust", lines, "accuracy", self.accuracy.document())


def _of_hccl(selection: Selection) -> list[str]:
    """Return HCCL's own choice, where another executor runs."""
    name = selection.hccl_executor
    if (
        selection.is_same
        or name is None
        or f"HCCL would take {name}" in " ".join(selection.reasons)
    ):
        return []
    if name == selection.executor:
        deviation = selection.fidelity.deviation
        return [f"HCCL's executor of this name differs: {deviation}"] if deviation else []
    levels = format_levels(selection.hccl_algorithm)
    return [f"HCCL takes {', '.join(filter(None, [name, levels]))}"]


def _not_said(selection: Selection) -> list[str]:
    """Return the words of HCCL_ALGO that do not count and that no reason names yet."""
    return [text for text in selection.overruled if text not in selection.reasons]

"""Faster executors for a call, and the setting of HCCL's that gets each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from hccl_py.cli.accuracy import TimeAccuracy
from hccl_py.cli.output import Bar, counted
from hccl_py.communicator.planning import Plan
from hccl_py.plugins.discovery import installed_executors
from hccl_py.selection.select import is_of_other_devices
from hccl_py.trace.units import format_share
from hccl_py.tuning.compare import Comparison, Row, compare
from hccl_py.tuning.hccl_settings import HcclSetting, Way, settings_by_way, way_of
from hccl_py.tuning.points import Point, evaluate
from hccl_py.tuning.recording import rounded_us

_SHOWN = 4
_MOST_BUFFER_MB = 4096
"""The largest HCCL_BUFFSIZE that is advised."""


@dataclass(frozen=True)
class Alternative:
    """Another way to run a call, its time, and how HCCL is brought to it; empty: no way is known.

    `gain` is the time of HCCL's choice over its own.
    """

    name: str
    us: float
    gain: float
    setting: str
    fidelity: str

    def document(self) -> dict[str, Any]:
        """Return the entry of a JSON document."""
        return {
            "executor": self.name,
            "time_us": self.us,
            "gain": self.gain,
            "setting": self.setting or None,
            "fidelity": self.fidelity,
        }


@dataclass(frozen=True)
class Alternatives:
    """The faster ones, the fastest first; the number of candidates timed and left out."""

    found: list[Alternative]
    comparison: Comparison
    accuracy: TimeAccuracy

    @property
    def is_partial(self) -> bool:
        """True if Ctrl-C ended the search."""
        return self.comparison.is_partial

    @staticmethod
    def of(
        point: Point,
        plan: Plan,
        us: float,
        accuracy: TimeAccuracy,
        effort_s: float | None,
        jobs: int | None,
        bar: Bar,
    ) -> Alternatives:
        """Time the candidates of a call, and look for the settings that get the faster ones."""
        topology = point.call.topology()
        op, config = point.call.param(topology.size), point.call.config
        known = settings_by_way(op, topology, config, installed_executors())
        sizes = [point.call.bytes]
        compared = compare(point, sizes, effort_s=effort_s, jobs=jobs, progress=bar.advance_to)
        device = topology.product.device
        faster = [
            row
            for row in compared.rows
            if rounded_us(row.time_us) < rounded_us(us)
            and not is_of_other_devices(row.candidate.executor, op.name, device)
        ]
        found = [_alternative(row, us, known) for row in _best_of_each(faster, known)]
        found += _larger_buffers(point, plan, us)
        found.sort(key=lambda one: one.us)
        return Alternatives(found, compared, accuracy)

    def lines(self) -> list[str]:
        """Return a line for each of the best, and one on the candidates."""
        shown = self.found[:_SHOWN]
        shown += [one for one in self.found[_SHOWN:] if one.setting][:1]
        names = {row.candidate.name for row in self.comparison.rows}
        candidates = counted(len(names), "candidate")
        left = len({one.candidate.name for one in self.comparison.left_out})
        timed = f"{candidates} timed, {left} left out: `hccl-py compare` shows them"
        lines = [self._line(one) for one in shown] or ["nothing that was timed is faster"]
        return [*lines, *self._other_doors([one for one in shown if not one.setting]), timed]

    def _line(self, one: Alternative) -> str:
        band = self.accuracy.band or 0.0
        level = f", which times within {format_share(band)} do not tell apart" * (
            one.gain <= 1 + band and band > 0
        )
        how = one.setting or "no setting"
        return (
            f"{self.accuracy.time(one.us)}, {self.accuracy.number(one.gain, 2)} times as fast"
            f"{level}: {one.name}; {how}"
        )

    def _other_doors(self, without: list[Alternative]) -> list[str]:
        """Return the line on those that no setting leads to, if there are any."""
        if not without:
            return []
        are_hccl_s = all(one.fidelity != "ours" for one in without)
        by_tuner = self.comparison.topology.product.device == "950" and are_hccl_s
        door = "a tuner plugin" if by_tuner else "a row of HCCL's selection"
        return [f"no setting: only {door} or a custom op leads to it"]

    def document(self) -> dict[str, Any]:
        """Return the value of a JSON document."""
        return {
            "timed": len({row.candidate.name for row in self.comparison.rows}),
            "left_out": len({one.candidate.name for one in self.comparison.left_out}),
            "faster": [one.document() for one in self.found],
        }


def _best_of_each(rows: list[Row], known: dict[Way, HcclSetting]) -> list[Row]:
    """Return the fastest row of each executor, and the fastest that a setting leads to."""
    best: dict[tuple[str, bool], Row] = {}
    for row in rows:
        way = way_of(row.candidate.executor, row.candidate.algorithm)
        best.setdefault((row.candidate.executor, way in known), row)
    kept = {}
    for (executor, is_known), row in best.items():
        other = best.get((executor, not is_known))
        if is_known or other is None or other.time_us > row.time_us:
            kept[id(row)] = row
    return list(kept.values())


def _alternative(row: Row, us: float, known: dict[Way, HcclSetting]) -> Alternative:
    one = row.candidate
    setting = known.get(way_of(one.executor, one.algorithm))
    gain = us / row.time_us if row.time_us else 1.0
    text = setting.text if setting else ""
    return Alternative(one.name, row.time_us, gain, text, one.fidelity.kind)


def _larger_buffers(point: Point, plan: Plan, us: float) -> list[Alternative]:
    """Return HCCL's own choice with CCL buffers that take the call in one round, where it is
    faster so.
    """
    config, rounds = point.call.config, plan.program.rounds
    wanted = config.buffsize_mb * rounds
    if rounds < 2 or wanted > _MOST_BUFFER_MB:
        return []
    larger = replace(config, buffsize_mb=wanted)
    call = replace(point.call, config=larger)
    outcome = evaluate(point.model_copy(update={"call": call}))
    if outcome.error is not None or rounded_us(outcome.time_us) >= rounded_us(us):
        return []
    name = f"{outcome.executor}, {outcome.rounds} of {rounds} rounds"
    text = f"HCCL_BUFFSIZE={wanted}, 2 x {wanted}M of each rank's memory"
    return [Alternative(name, outcome.time_us, us / outcome.time_us, text, "")]

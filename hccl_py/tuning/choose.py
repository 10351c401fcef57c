"""Selection by cost: the fastest executor by simulation, or the one of a tuning table.

A chooser has a method like `hccl_py.selection.select`; a communicator's planner asks it instead
of HCCL's rules where the caller names no executor.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from hccl_py.call.config import GROUP_NAME, Config
from hccl_py.call.op_param import OpParam
from hccl_py.clocks.cost import CostModel
from hccl_py.clocks.engines import usual_engine
from hccl_py.clocks.measured import TimedCallFacts, accuracy_of
from hccl_py.communicator.planning import ExecutorChooser, Planner
from hccl_py.documents.disk import PathLike, format_path
from hccl_py.enums import DataType, ReduceOp
from hccl_py.errors import HcclError, ParameterError, did_you_mean
from hccl_py.operators import make_operator
from hccl_py.orchestration.allowance import Allowance, TooMuchError
from hccl_py.plugins.discovery import Registered, Registry
from hccl_py.selection.answer import Rejected, Selection
from hccl_py.selection.gathering import gather_facts
from hccl_py.selection.select import select
from hccl_py.selection.sum_order import breaks_order
from hccl_py.simulator.bounds import lower_bound
from hccl_py.topology.topology import Topology
from hccl_py.trace.units import format_share, format_size
from hccl_py.tuning.candidates import Candidate, candidates
from hccl_py.tuning.recording import recorded, rounded_us, uncontended_us
from hccl_py.tuning.table import Shape, SizeRange, TuningEntry, TuningTable

RULES, COST = "rules", "cost"

MOST_INSTRUCTIONS = 50_000
"""Instructions that are recorded for one candidate at most, but for the choice of HCCL's rules; a
count, since selection must not depend on the machine.
"""

_MOST = f"{MOST_INSTRUCTIONS:,}".replace(",", " ")


def chooser_of(selection: PathLike | TuningTable, cost: CostModel | None) -> ExecutorChooser | None:
    """Return the chooser of executors; None for `rules`, HCCL's own.

    `cost` is the model to choose by, for `cost`. Raises ParameterError for anything else that is no
    file, FileError for a file that is no tuning table.
    """
    if selection == COST:
        return ByCost(cost)
    if cost is not None:
        raise ParameterError(
            f"A cost model does not go with selection by {format_selection(selection)}.",
            'Give selection="cost" (--select cost), or leave the model out.',
        )
    if isinstance(selection, TuningTable):
        return ByTable(selection, "given")
    if selection == RULES:
        return None
    if not isinstance(selection, (str, os.PathLike)):
        raise ParameterError(
            f"selection is {selection!r:.60}.", "Give rules, cost, a file or a TuningTable."
        )
    if not Path(selection).exists() and not Path(selection).suffix:
        near = did_you_mean(str(selection), (RULES, COST))
        raise ParameterError(
            f"Selection {str(selection)!r} is unknown.",
            f"{near} A tuning table's file will do too.",
        )
    return ByTable(TuningTable.read(selection), format_path(Path(selection).name))


def format_selection(selection: PathLike | TuningTable) -> str:
    """Return the name of a selection for a sentence."""
    return "a tuning table" if isinstance(selection, TuningTable) else str(selection)


@dataclass(frozen=True)
class _TimedCandidate:
    """A candidate and its simulated time."""

    candidate: Candidate
    us: float
    is_wrong: bool
    """True if that is less than the lower bound of any right algorithm."""

    @property
    def rank(self) -> tuple[bool, float, bool, str]:
        """The order in which candidates win: by time, then HCCL's choice, then by name."""
        is_hccl = self.candidate.is_hccl
        return self.is_wrong, rounded_us(self.us), not is_hccl, self.candidate.name

    def __str__(self) -> str:
        wrong = ", less than anything right can" if self.is_wrong else ""
        return f"{self.us:.1f} us{wrong}"


class ByCost:
    """Takes the candidate that is the fastest by simulation without contention, where a time is at
    least that of the busiest link.

    All executors that suit take part, those of plugins too, except those that break the order that
    HCCL_DETERMINISTIC asks for, and those that record very much. A candidate that takes less than
    the lower bound cannot be right, and comes last. `cost` is by default the model of the
    topology's product.
    """

    def __init__(self, cost: CostModel | None = None) -> None:
        self._cost = cost

    def select(
        self,
        op: OpParam,
        topology: Topology,
        config: Config,
        registry: Registry,
        *,
        group: str = GROUP_NAME,
    ) -> tuple[Selection, Registered]:
        """Choose; raises as `select`."""
        cost = self._cost or CostModel.of(topology.product.name)
        found = candidates(op, topology, config, registry)
        if len(found) < 2:
            only, registered = select(op, topology, config, registry, group=group)
            reasons = ("the only one that suits", *only.reasons)
            return replace(only, reasons=reasons), registered
        bound = lower_bound(op, topology, cost).time_us
        timed, failed, late = [], {}, []
        for candidate in found:
            try:
                us = _simulated(op, topology, config, registry, candidate, cost)
                timed.append(_TimedCandidate(candidate, us, us < bound * (1 - 1e-9)))
            except HcclError as error:
                failed[candidate.executor] = f"could not be timed: {error.message}"
            except TooMuchError:
                failed[candidate.executor] = f"it records more than {_MOST} instructions"
                late.append(candidate.name)
        if not timed:
            return select(op, topology, config, registry, group=group)
        best = min(timed, key=lambda one: one.rank)
        why = _reason(best, timed, late, cost, _band(op, topology, cost))
        chosen, registered = select(
            op,
            topology,
            config,
            registry,
            best.candidate.executor,
            levels=best.candidate.levels,
            group=group,
            why=why,
        )
        return _with_times(chosen, timed, failed, cost), registered


def _simulated(
    op: OpParam,
    topology: Topology,
    config: Config,
    registry: Registry,
    candidate: Candidate,
    cost: CostModel,
) -> float:
    """Return the time of a candidate in microseconds; its program is not kept."""
    allowance = None if candidate.is_hccl else Allowance(MOST_INSTRUCTIONS)
    planner = Planner(topology, config, registry, GROUP_NAME, allowance=allowance)
    plan = recorded(planner, op, candidate.executor, candidate.levels)
    return max(uncontended_us(plan.program, topology, cost))


def _band(op: OpParam, topology: Topology, cost: CostModel) -> float:
    """Return by how much times of a call may be wrong, 0 where that is not known."""
    size, engine = make_operator(op.name).data_size(op, topology.size), usual_engine(topology)
    call = TimedCallFacts(op.name, size, topology.size, engine, network="uncontended")
    return accuracy_of(cost.measured, call).band or 0.0


def _reason(
    best: _TimedCandidate,
    timed: list[_TimedCandidate],
    late: list[str],
    cost: CostModel,
    band: float,
) -> str:
    why = f"the cheapest of {len(timed)} ways by the cost model {cost.name}: {best}"
    hccl = next((one for one in timed if one.candidate.is_hccl), None)
    if hccl is best:
        why += ", as HCCL's rules choose"
    elif hccl is None:
        why += "; what HCCL's rules choose could not be timed"
    else:
        why += f", HCCL's rules choose {hccl.candidate.name}: {hccl}"
    level = [one for one in timed if one is not best and one.us <= best.us * (1 + band)]
    if band and level and not best.is_wrong:
        why += f"; {len(level)} others within {format_share(band)}, which times do not tell apart"
    if late:
        why += f"; not timed, as they record more than {_MOST} instructions: {', '.join(late)}"
    return why


def _with_times(
    selection: Selection, timed: list[_TimedCandidate], failed: Mapping[str, str], cost: CostModel
) -> Selection:
    """Return the selection with the times of the other candidates as reasons."""
    reasons = dict(failed)
    for one in sorted(timed, key=lambda one: one.rank, reverse=True):
        reasons[one.candidate.executor] = f"by {cost.name} takes {one}"

    def against() -> tuple[Rejected, ...]:
        return tuple(
            Rejected(r.executor, reasons.get(r.executor, r.reason), r.listed)
            for r in selection.rejected
        )

    return replace(selection, against=against)


class ByTable:
    """Takes the executor that a tuning table has for the call, else the choice of HCCL's rules;
    `name` is the table's, for reasons.

    Of the entries for the op, mode, topology and HCCL_DETERMINISTIC, the nearest is taken: the same
    reduction or one that links do alike, the same data type or the one nearest in size, the nearest
    HCCL_BUFFSIZE.
    """

    def __init__(self, table: TuningTable, name: str) -> None:
        self._table, self._name = table, name

    def select(
        self,
        op: OpParam,
        topology: Topology,
        config: Config,
        registry: Registry,
        *,
        group: str = GROUP_NAME,
    ) -> tuple[Selection, Registered]:
        """Choose; raises as `select`."""
        entry = nearest(self._table, op, topology, config)
        if entry is None:
            problem = f"has no entry for {op.name} on {Shape.of(topology)}"
        else:
            size = make_operator(op.name).data_size(op, topology.size)
            found = entry.at(size)
            problem = _broken(found, op, topology, config, registry)
            if not problem:
                why = f"the tuning table {self._name} has it {format_range(entry, found)}"
                return select(
                    op,
                    topology,
                    config,
                    registry,
                    found.executor,
                    levels=found.levels,
                    group=group,
                    why=why,
                )
        chosen, registered = select(op, topology, config, registry, group=group)
        note = f"the tuning table {self._name} {problem}: HCCL's rules choose"
        return replace(chosen, reasons=(note, *chosen.reasons)), registered


def nearest(
    table: TuningTable, op: OpParam, topology: Topology, config: Config
) -> TuningEntry | None:
    """Return the entry of a table that is nearest to a call, if any is for its topology."""
    shape = Shape.of(topology)

    def distance(entry: TuningEntry) -> tuple[int | bool, ...]:
        reduce = None if op.reduce is None else op.reduce.spelling
        dtype = DataType.parse(entry.dtype)
        return (
            entry.ruleset != config.ruleset,
            entry.reduce_op != reduce,
            dtype is not op.dtype,
            abs(dtype.itemsize - op.unit),
            abs(entry.buffsize_mb - config.buffsize_mb),
        )

    fitting = [
        entry
        for entry in table.entries
        if (entry.op, entry.mode, entry.deterministic, entry.topology)
        == (op.name, op.mode.value, config.deterministic, shape)
        and _reduces_alike(entry, op, topology)
    ]
    return min(fitting, key=distance, default=None)


def _reduces_alike(entry: TuningEntry, op: OpParam, topology: Topology) -> bool:
    """True if links reduce inline for both an entry and a call, or for neither."""
    if op.reduce is None or entry.reduce_op is None:
        return op.reduce is None and entry.reduce_op is None
    theirs = DataType.parse(entry.dtype), ReduceOp.parse(entry.reduce_op)
    return topology.reduces_inline(*theirs) == topology.reduces_inline(op.dtype, op.reduce)


def _broken(
    found: SizeRange, op: OpParam, topology: Topology, config: Config, registry: Registry
) -> str:
    """Return the reason why the executor of a table cannot be taken; empty if it can."""
    try:
        one, registered = select(
            op, topology, config, registry, found.executor, levels=found.levels
        )
    except HcclError as error:
        return f"names {found.executor}, which cannot be taken: {error.message.rstrip('.')}"
    broken = breaks_order(registered, gather_facts(op, topology, config))
    return f"names {one.executor}, which {broken}" if broken else ""


def format_range(entry: TuningEntry, found: SizeRange) -> str:
    """Return `for sizes from 4K to 65535 bytes`."""
    after = [other.from_bytes for other in entry.ranges if other.from_bytes > found.from_bytes]
    last = f" to {format_size(after[0] - 1)} bytes" if after else " bytes on"
    return f"for sizes from {format_size(found.from_bytes)}{last}"

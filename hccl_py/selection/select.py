"""Choosing the executor of a call, with the reasons for it and against every other one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache

from hccl_py.call.config import GROUP_NAME, Config
from hccl_py.call.op_param import LEVELS, OpParam
from hccl_py.errors import HcclResult, NotSupportedError, ParameterError
from hccl_py.orchestration.author_errors import reason_against
from hccl_py.plugins.discovery import Registered, Registry
from hccl_py.plugins.executor import BySize, Fidelity, cases_of, check_levels, with_levels
from hccl_py.selection.advice import advice, warnings
from hccl_py.selection.answer import Rejected, Selection
from hccl_py.selection.hccl import HcclChoice
from hccl_py.selection.levels import AHC, AHC_BROKE, SETTABLE
from hccl_py.selection.rules import Rule
from hccl_py.selection.rulesets import RULESETS
from hccl_py.selection.sum_order import breaks_order
from hccl_py.selection.tags import tag_of
from hccl_py.topology.topology import Topology


def select(
    op: OpParam,
    topology: Topology,
    config: Config,
    registry: Registry,
    executor: str | None = None,
    *,
    levels: Mapping[str, str] | None = None,
    strict: bool = False,
    group: str = GROUP_NAME,
    why: str = "named by the caller",
) -> tuple[Selection, Registered]:
    """Choose by the tables, or take `executor`; raise where no executor suits.

    `levels` has the algorithms for levels that the named executor leaves open; HCCL's rules decide
    on the others. `why` is the reason for naming one. `strict`, or the setting of this name,
    demands HCCL's own behaviour: it raises where HCCL refuses the call, and where HCCL's executor
    is not offered here. Raises ParameterError for an unknown executor and for algorithms that it
    does not have, and NotSupportedError for one that does not suit, with its reason.
    """
    config.check(topology.product)
    if levels and executor is None:
        raise ParameterError("levels are those of an executor.", "Name one.")
    hccl = HcclChoice(op, topology, config)
    choice = _ExecutorSelector(hccl, config.linked(topology), registry, levels or {})
    chosen, reasons = choice.named(executor, why) if executor is not None else choice.by_table()
    if strict or config.strict:
        choice.insist(chosen, named=executor is not None)
    return choice.selection(chosen, reasons, group), chosen


def algorithm_choices(
    op: OpParam,
    topology: Topology,
    config: Config,
    registry: Registry,
    wanted: Iterable[tuple[Registered, Mapping[str, str]]],
) -> list[dict[str, str] | None]:
    """Return the algorithm by level of each executor, with the given algorithms for the levels that
    it leaves open; None for an executor that does not suit the call.
    """
    hccl, topology = HcclChoice(op, topology, config), config.linked(topology)
    found = []
    for registered, levels in wanted:
        choice = _ExecutorSelector(hccl, topology, registry, levels)
        found.append(None if choice.against(registered) else choice.algorithm(registered))
    return found


class _ExecutorSelector:
    """Chooses among the offered executors for one call; `forced` are algorithms for levels that the
    executor leaves open.
    """

    def __init__(
        self, hccl: HcclChoice, topology: Topology, registry: Registry, forced: Mapping[str, str]
    ) -> None:
        self.hccl, self.topology, self.registry, self.forced = hccl, topology, registry, forced
        self.op, self.config = hccl.op, hccl.config
        self.facts, self.rows, self.row = hccl.facts, hccl.rows, hccl.row
        self._against: dict[str, str] = {}

    @cached_property
    def known(self) -> list[Registered]:
        """The executors of the op, and of the op that HCCL runs it as."""
        return self.registry.for_op(self.op.name)

    def named(self, name: str, why: str) -> tuple[Registered, list[str]]:
        """Return the executor that the caller names, if it suits."""
        chosen = next((r for r in self.known if r.name == name), None)
        chosen = chosen or self.registry.find(name, self.op.name)
        check_levels(chosen.executor, self.forced)
        if self.against(chosen):
            suiting = [r.name for r in self.known if not self.against(r)]
            raise NotSupportedError(
                f"{name} does not suit this call: {self.against(chosen)}.",
                f"These do: {', '.join(suiting) or 'none'}.",
            )
        return chosen, [
            why,
            *self._refusal(),
            *self._warnings(chosen),
            *self._broken(chosen),
        ]

    def by_table(self) -> tuple[Registered, list[str]]:
        """Take the row's executor, or the first of the others that suits."""
        chosen = self._wanted() or self._substitute()
        if chosen is None:
            raise NotSupportedError(
                f"No executor suits {self.op.name} on {self.topology.description}.",
                "See `hccl-py list`.",
            )
        reasons = [condition.format_condition(self.facts) for condition in self.row.when]
        if self.hccl.decision.costs:
            reasons.append(f"the cheapest of {len(self.hccl.decision.costs)} by HCCL's cost table")
        if not reasons and self.row.executor is not None:
            only = len(self.rows) == 1
            reasons.append(f"{'the only row' if only else 'no other row'} of the table matches")
        if self.hccl.level1 != self.facts.level1 or self.row.keeps == ():
            reasons.append(f"this row takes {self.hccl.level1} on level1")
        reasons += [*self.hccl.decision.left, *self._warnings(chosen)]
        reasons += [*self._notes(), *advice(self.facts), *self._refusal()]
        if chosen.name != self.row.executor:
            reasons.append(self._substitution(chosen))
            return chosen, reasons
        return chosen, [*reasons, *self._broken(chosen)]

    def _notes(self) -> Iterator[str]:
        """Yield HCCL's notes on levels, which an Ascend 950 does not have."""
        if self.hccl.levels:
            yield from self.facts.levels.notes

    def insist(self, chosen: Registered, *, named: bool) -> None:
        """Raise where HCCL would refuse the call or take an executor that is not offered, and where
        its choice is not known.
        """
        if self.hccl.unknown:
            raise NotSupportedError(
                f"HCCL's choice for {self.op.name} is not known here: {self.hccl.unknown}.",
                f"Without --strict-hccl {chosen.name} runs.",
            )
        refusal, result = self.hccl.refusal
        if refusal:
            kind = ParameterError if result is HcclResult.E_PARA else NotSupportedError
            raise kind(
                f"HCCL refuses {self.op.name} on {self.topology.description} "
                f"with HCCL_{result.name}: {refusal}.",
                f"Without --strict-hccl {chosen.name} runs.",
            )
        if not named and chosen.name != self.row.executor:
            raise NotSupportedError(
                f"HCCL would take {self.row.executor}, which {self._why_not()}.",
                f"Without --strict-hccl {chosen.name} runs.",
            )

    def selection(self, chosen: Registered, reasons: list[str], group: str) -> Selection:
        """Return the selection, with the reasons for it."""
        refusal, result = self.hccl.refusal
        levels, notes = self._levels(chosen)
        level1 = self.hccl.level1
        return Selection(
            op=self.op.name,
            executor=chosen.name,
            hccl_executor=self.hccl.executor,
            algorithm=self.algorithm(chosen),
            tag=tag_of(
                self.facts,
                chosen.name,
                levels.get("level1", level1) if "level1" in self.forced else level1,
                group,
                by_level=self.hccl.ruleset.tags_by_level,
            ),
            reasons=(*reasons, *notes, *self._of_size(chosen)),
            ruleset=self.hccl.ruleset.name,
            against=lambda: tuple(self._rejected(chosen)),
            hccl_algorithm=self.hccl.levels,
            levels=levels,
            result=f"HCCL_{result.name}" if refusal else "",
            refusal=refusal,
            unknown=self.hccl.unknown,
            engine=self.row.engine,
            costs=self.hccl.decision.costs,
            source=self.hccl.source,
            fidelity=self._fidelity(chosen, levels),
            why_levels=self._why_levels(chosen),
            overruled=(*self._ignored(chosen), *self._overruled(chosen)),
        )

    def _why_levels(self, chosen: Registered) -> dict[str, str]:
        """Return the reason for an executor's algorithm on each level."""
        hccl, why, found = self.hccl.levels, self.hccl.why_levels, {}
        for level, word in self.algorithm(chosen).items():
            if self.forced.get(level) == word:
                found[level] = "named with the executor"
            elif hccl.get(level) == word and why.get(level):
                found[level] = why[level]
            elif level == "level0" and self.hccl.algorithm_names[level] == word:
                found[level] = "HCCL_ALGO asks for it"
            elif word == "NA":
                found[level] = (
                    f"{chosen.name} has no {level} of its own: it takes all ranks at once"
                )
            else:
                own = f"{chosen.name} has {', '.join(chosen.choices[level])} on {level}"
                named = hccl.get(level)
                found[level] = f"{own}, HCCL's rules name {named}" if named else own
        return found

    def _ignored(self, chosen: Registered) -> list[str]:
        """Return HCCL's warnings about HCCL_ALGO."""
        said = (*self._warnings(chosen), *self.facts.levels.notes)
        return [text for text in said if "HCCL_ALGO" in text]

    def _overruled(self, chosen: Registered) -> Iterator[str]:
        """Yield a sentence for each word of HCCL_ALGO that no warning names and that does not
        count.
        """
        runs, why, said = self.algorithm(chosen), self._why_levels(chosen), self._ignored(chosen)
        for level, word in self.facts.given:
            asked = f"{level}:{word}"
            if level not in ("level1", "level2") or word not in SETTABLE:
                continue
            joined = {runs.get(level), word} == {AHC, AHC_BROKE}  # two forms of one algorithm
            if joined or runs.get(level) == word or any(asked in text for text in said):
                continue
            if level in runs:
                yield f"HCCL_ALGO's {asked} is overruled: {runs[level]} runs, as {why[level]}"
            else:
                yield f"HCCL_ALGO's {asked} is overruled: {chosen.name} has no choice on {level}"

    def _warnings(self, chosen: Registered) -> Iterator[str]:
        return warnings(self.facts, self.config, self._levels(chosen)[0])

    def _of_size(self, chosen: Registered) -> list[str]:
        executor = chosen.executor
        return [executor.explained(self.op)] if isinstance(executor, BySize) else []

    def _fidelity(self, chosen: Registered, levels: Mapping[str, str]) -> Fidelity:
        op = self.config.ordered(self.op)
        pieces = self.facts.in_pieces
        cases = cases_of(chosen.executor, op, self.topology, levels, in_pieces=pieces)
        return chosen.fidelity.among(cases)

    def algorithm(self, chosen: Registered) -> dict[str, str]:
        """Return an executor's algorithm on each level."""
        levels, _ = self._levels(chosen)
        return {
            level: levels.get(level, words[0])
            for level, words in chosen.choices.items()
            if level != "level2" or self.facts.superpods > 1
        }

    def _refusal(self) -> list[str]:
        if self.hccl.unknown:
            return [f"HCCL's choice is not known here: {self.hccl.unknown}"]
        refusal, result = self.hccl.refusal
        return [f"HCCL refuses this call with HCCL_{result.name}: {refusal}"] if refusal else []

    def _wanted(self) -> Registered | None:
        """Return the row's executor, where it is offered, suits and adds as it is asked to."""
        found = next((r for r in self.known if r.name == self.row.executor), None)
        return None if found is None or self._disorder(found) or self.against(found) else found

    def _substitute(self) -> Registered | None:
        tried = sorted(self._candidates(), key=self._disorder)
        return next((r for r in tried if not self.against(r)), None)

    def _candidates(self) -> list[Registered]:
        """Return executors in the order in which they are tried: the row's, then those of later
        rows, of other releases on the device, of no device's table, and of other devices' tables.
        """
        later = self.rows[self.rows.index(self.row) :]
        holding = [row for row in later if row.holds(self.facts)]
        names = [row.executor for row in (*holding, *later, *self._rows_of_other_releases())]
        offered = {r.name: r for r in self.known}
        found = [offered[name] for name in names if name in offered]
        elsewhere = _named(self.facts.op.name)
        ours = [r for r in self.known if r.name not in elsewhere]
        return list({r.name: r for r in (*found, *ours, *self.known)}.values())

    def _rows_of_other_releases(self) -> Iterator[Rule]:
        """Yield the rows of other releases that hold for the call."""
        device, op = self.facts.device, self.facts.op.name
        for ruleset in RULESETS.values():
            if ruleset is not self.hccl.ruleset:
                yield from (row for row in ruleset.rows(device, op) if row.holds(self.facts))

    def _disorder(self, registered: Registered) -> int:
        """Return the distance of an executor from the demanded order of sums: 0 where it keeps it,
        1 where it adds in a fixed order at least, 2 where it adds in the order of arrival.
        """
        if not breaks_order(registered, self.facts):
            return 0
        return 2 if registered.order == "arrival" else 1

    def _substitution(self, chosen: Registered) -> str:
        broken = breaks_order(chosen, self.facts)
        caveat = f", though it {broken}" if broken else ""
        if self.row.executor is None:
            return f"{chosen.name} runs instead{caveat}"
        return (
            f"HCCL would take {self.row.executor}, which {self._why_not()}; "
            f"{chosen.name} is the next that suits{caveat}"
        )

    def _why_not(self) -> str:
        wanted = next((r for r in self.known if r.name == self.row.executor), None)
        if wanted is None and self.row.engine not in ("", "AICPU_TS"):
            return f"is not offered here: programs of {self.row.engine} are not modelled"
        if wanted is None:
            return "is not offered here"
        if self.against(wanted):
            return f"does not suit here: {self.against(wanted)}"
        return breaks_order(wanted, self.facts)

    def _broken(self, chosen: Registered) -> list[str]:
        """Return a sentence about the demand of HCCL_DETERMINISTIC that an executor breaks."""
        broken = breaks_order(chosen, self.facts)
        return [f"HCCL_DETERMINISTIC is not kept: {chosen.name} {broken}"] if broken else []

    def _levels(self, chosen: Registered) -> tuple[dict[str, str], list[str]]:
        """Return HCCL's algorithms where the executor leaves a choice, else its defaults."""
        levels, notes = {}, []
        for level in LEVELS:
            words = chosen.choices.get(level, ())
            wanted = self.forced.get(level) or self.hccl.algorithm_names.get(level, "")
            if len(words) < 2 or not wanted:
                continue
            levels[level] = wanted if wanted in words else words[0]
            if wanted not in words:
                notes.append(
                    f"{chosen.name} does not do {wanted} on {level}, but {', '.join(words)}: "
                    f"{words[0]} runs"
                )
        return levels, notes

    def _rejected(self, chosen: Registered) -> Iterator[Rejected]:
        names = [row.executor for row in self.rows]
        place = {name: at for at, name in reversed([*enumerate(names)])}
        for other in sorted(self.known, key=lambda r: place.get(r.name, len(names))):
            if other.name != chosen.name:
                reason = self._reason_against(other)
                yield Rejected(other.name, reason, other.name in place)

    def _reason_against(self, other: Registered) -> str:
        ruleset = self.hccl.ruleset.name
        rows = [row for row in self.rows if row.executor == other.name]
        if self.against(other):
            return self.against(other)
        if not rows:
            return f"suits, but no row of {ruleset} names it"
        if not any(row.holds(self.facts) for row in rows):
            return min(rows, key=lambda row: row.distance(self.facts)).missing(self.facts)
        if other.name == self.row.executor:
            return "the tables' choice, but the caller named another one"
        if self.row.executor is None:
            return f"suits, but {ruleset} refuses the call before"
        return f"suits, but {self.row.executor} comes first in {ruleset}"

    def against(self, registered: Registered) -> str:
        """Return the reason why an executor cannot run this call; empty if it can."""
        if registered.name not in self._against:
            self._against[registered.name] = self._ask(registered)
        return self._against[registered.name]

    def _ask(self, registered: Registered) -> str:
        if registered.zero_copy and not self.config.zero_copy:
            return "needs user memory that all ranks have registered: zero_copy"
        levels, _ = self._levels(registered)
        op = with_levels(registered.executor, self.op.with_words(levels))
        return reason_against(registered.executor, op, self.topology)


def is_of_other_devices(executor: str, op: str, device: str) -> bool:
    """Return True for an executor that the tables of other devices alone name for an op."""
    return executor in _named(op) and executor not in _named(op, device)


@lru_cache(maxsize=64)
def _named(op: str, device: str = "") -> frozenset[str | None]:
    """Return the executors that some release names for an op: on a device, or on any."""
    tables = [
        table
        for ruleset in RULESETS.values()
        for name, table in ruleset.tables.items()
        if device in ("", name)
    ]
    return frozenset(row.executor for table in tables for row in table.get(op, ()))

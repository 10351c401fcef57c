"""Plans: for each call the selection and the recorded program, made once and kept."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from hccl_py.call.config import Config
from hccl_py.call.ops import OPS
from hccl_py.enums import DataType, ReduceOp
from hccl_py.operators import make_operator
from hccl_py.plugins.discovery import Registered, Registry
from hccl_py.plugins.executor import (
    Executor,
    OpParam,
    Rank,
    RankView,
    ResourceRequest,
    Topology,
    as_recorded,
)
from hccl_py.program.program import Program

if TYPE_CHECKING:
    from hccl_py.orchestration.allowance import Allowance
    from hccl_py.selection import Selection

ExecutorChoice: TypeAlias = str | Executor | type[Executor] | None

CACHED_PLANS = 128
"""Plans that a communicator keeps; the least recently used goes first."""


class BatchingWarning(UserWarning):
    """An executor's code makes ranks fall into very many batches, so that recording is slow."""


@dataclass(frozen=True)
class Plan:
    """A call, planned: its parameters as recorded, the selection, the program."""

    op: OpParam
    selection: Selection
    program: Program

    def _repr_html_(self) -> str:
        """Return the steps of its program as a picture, and a table, for notebooks."""
        return self.program._repr_html_()


class ExecutorChooser(Protocol):
    """Chooses the executor of a call in place of HCCL's rules: by cost, or from a tuning table."""

    def select(
        self, op: OpParam, topology: Topology, config: Config, registry: Registry, *, group: str
    ) -> tuple[Selection, Registered]:
        """Choose, as `hccl_py.selection.select` does; a planner asks once for each call."""


class Planner:
    """Selects and records calls on one topology, with the links that the settings ask for; `group`
    is the name that tags carry. HCCL's rules select where no `chooser` is given. An `allowance`
    counts what is recorded.
    """

    def __init__(
        self,
        topology: Topology,
        config: Config,
        registry: Registry,
        group: str,
        chooser: ExecutorChooser | None = None,
        allowance: Allowance | None = None,
    ) -> None:
        self.topology, self.config = config.linked(topology), config
        self.registry, self.group = registry, group
        self._chooser, self._allowance = chooser, allowance
        self._choose = lru_cache(CACHED_PLANS)(self._ask)
        self._plan = lru_cache(CACHED_PLANS)(self._planned)

    def plan(
        self, op: OpParam, executor: ExecutorChoice, levels: Mapping[str, str] | None = None
    ) -> Plan:
        """Return the plan of a call, from the cache or new; `levels` as in `select`."""
        return self._plan(op, _Wanted(executor), tuple(sorted((levels or {}).items())))

    def select(
        self, op: OpParam, executor: ExecutorChoice, levels: Mapping[str, str] | None = None
    ) -> tuple[Selection, Registered]:
        """Check the call's legality and choose its executor."""
        from hccl_py.selection import select  # whose tables a communicator needs for its first call

        make_operator(op.name).check(op, self.topology)
        registry, name = self.registry, executor
        if name is None and self._chooser is not None:
            return self._choose(op)
        if name is not None and not isinstance(name, str):
            registry, name = registry.with_own(name)
        return select(
            op, self.topology, self.config, registry, name, levels=levels, group=self.group
        )

    def nothing(self, op: OpParam) -> Plan:
        """Return the plan of a call without data: HCCL leaves it before it selects anything."""
        from hccl_py.selection import Selection

        op = replace(op, root=None, pairs=())
        chosen = Selection(
            op=op.name,
            executor="",
            hccl_executor="",
            algorithm={},
            tag="",
            reasons=("the count is 0: there is nothing to do",),
            ruleset="",
        )
        return Plan(op, chosen, self._recorded(_Nothing(), op))

    def limit(self, inline: Collection[tuple[DataType, ReduceOp]]) -> None:
        """Plan for links that reduce on their way no more than this."""
        self.topology = self.topology.reducing(inline)
        self.clear()

    def clear(self) -> None:
        """Let go of all plans."""
        self._plan.cache_clear()
        self._choose.cache_clear()

    def _ask(self, op: OpParam) -> tuple[Selection, Registered]:
        assert self._chooser is not None
        return self._chooser.select(op, self.topology, self.config, self.registry, group=self.group)

    def _planned(self, op: OpParam, wanted: _Wanted, levels: tuple[tuple[str, str], ...]) -> Plan:
        selection, chosen = self.select(op, wanted.executor, dict(levels))
        op = self.config.ordered(op.with_words(selection.levels))
        program = self._recorded(chosen.executor, op)
        if program.batching_hint:
            warnings.warn(program.batching_hint, BatchingWarning, stacklevel=_caller_level())
        return Plan(replace(program.op, name=op.name), selection, program)

    def _recorded(self, executor: Executor, op: OpParam) -> Program:
        from hccl_py.orchestration.record import record

        operator, ccl_bytes = make_operator(op.name), self.config.ccl_bytes
        served = as_recorded(executor, op)
        return record(
            executor, served, self.topology, operator, ccl_bytes, allowance=self._allowance
        )


@dataclass(frozen=True, eq=False)
class _Wanted:
    """A caller's wish as a key: equal for one name, and for the very same executor."""

    executor: ExecutorChoice

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Wanted) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> str | int | None:
        if self.executor is None or isinstance(self.executor, str):
            return self.executor
        return id(self.executor)


def _caller_level() -> int:
    """Return the stack level, for a warning of the function that asks, of the first frame outside
    of this package.
    """
    frame, level = sys._getframe(1), 1
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("hccl_py."):
        frame, level = frame.f_back, level + 1
    return level


def idle(op: OpParam) -> bool:
    """Return True if HCCL returns success at once, before it looks at anything else."""
    return op.extent == 0 and OPS[op.name].returns_when_empty


class _Nothing:
    """Records no task."""

    op: str | tuple[str, ...] = ""
    algorithm = ""

    def suits(self, op: OpParam, topology: Topology) -> bool:
        return True

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        return ResourceRequest()

    def orchestrate(self, op: OpParam, rank: Rank[Any, Any]) -> None:
        return None

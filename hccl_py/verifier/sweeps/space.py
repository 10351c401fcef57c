"""The space of calls that an executor is verified on, and the selection that a sweep runs.

Axes: layout (ranks on servers and superpods), preset, data type, reduce op, mode, amount of data
with the size of the CCL buffers, in place or not, variant (root, or amounts that differ by rank),
algorithm of each level. A choice of the first five is legal if the operator takes it and the
executor suits it; `covering` then picks calls in which every two choices meet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sized
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from math import prod
from random import Random

import numpy as np

from hccl_py.call.algo import parse_algo
from hccl_py.call.op_param import LEVELS, OpParam
from hccl_py.enums import DataType, InPlace, Mode, ReduceOp
from hccl_py.errors import HcclError, PluginError
from hccl_py.operators import Operator, make_operator
from hccl_py.operators.base import Variant
from hccl_py.orchestration.author_errors import author_message
from hccl_py.plugins.executor import (
    Executor,
    Unsuitable,
    choices_of,
    declarations_of,
    executor_name,
    ops_of,
    with_levels,
)
from hccl_py.topology.presets import PRESETS, SWEPT
from hccl_py.topology.topology import Topology
from hccl_py.verifier.sweeps.amounts import amounts_of
from hccl_py.verifier.sweeps.cases import LARGE_CCL, Case, Cases
from hccl_py.verifier.sweeps.covering import Row, covering
from hccl_py.verifier.sweeps.layouts import (
    LARGE_LAYOUTS,
    ServerLayout,
    fitted,
    layouts_of,
    networks_of,
)
from hccl_py.verifier.sweeps.rounds import elements_per_round

DTYPES = tuple(map(DataType, ("fp32", "fp16", "int8", "int64", "int32", "bf16", "uint8", "fp64")))
"""Every size of an element; types that hardware reduces inline, and others."""

ALL_UP_TO = 100
"""Calls up to which a space is run as a whole."""


@dataclass(frozen=True)
class Space:
    """The selected calls, smallest first, the number of kinds of calls, and of those that the
    executor refused, by reason.

    A kind is a choice of layout, preset, data type, reduce op and mode.
    """

    cases: tuple[Case, ...]
    kinds: int
    refused: Counter[str]


def space_of(executor: Executor, cases: Cases) -> Space:
    """Select the calls for an executor. Raises where the narrowed space is illegal as a whole, with
    the operator's reason, and PluginError where `suits` fails.
    """
    spaces = [_Selector(executor, op, cases).select() for op in ops_of(executor)]
    found = sorted((case for space in spaces for case in space.cases), key=lambda case: case.key)
    refused = sum((space.refused for space in spaces), Counter[str]())
    return Space(tuple(found), sum(space.kinds for space in spaces), refused)


def random_cases(executor: Executor, cases: Cases, random: Random, tries: int) -> Iterator[Case]:
    """Yield the suitable calls among `tries` random ones of the space; some may come twice.

    Fast where `space_of` is slow, which looks at all kinds.
    """
    selectors = [_Selector(executor, op, cases) for op in ops_of(executor)]
    for _ in range(tries):
        case = random.choice(selectors).draw(random)
        if case is not None:
            yield case


class _Selector:
    """The axes for one executor, one of its ops and one narrowing."""

    def __init__(self, executor: Executor, op: str, cases: Cases) -> None:
        self._executor = executor
        self._narrowed = cases
        self._operator = make_operator(op)
        cluster = cases.topology or declarations_of(executor).cluster
        self._presets = (cluster,) if cluster else SWEPT
        self._layouts: tuple[ServerLayout | Topology, ...]
        if self._presets[0] in PRESETS:
            self._layouts = layouts_of(cases, self._presets)
        else:
            self._layouts = networks_of(cases, self._presets[0])
        self._dtypes = cases.dtypes or DTYPES
        self._reduces = _reduce_ops(self._operator, cases)
        self._modes = cases.modes or tuple(Mode)
        self._amounts = amounts_of(cases, executor)
        self._in_place = _in_place(self._operator, cases)
        self._variants = _variants(self._operator, cases)
        self._levels = _levels(executor, op, cases.algo)
        self._topologies: dict[tuple[int, int], Topology | None] = {}
        self._refused: Counter[str] = Counter()

    def select(self) -> Space:
        axes = (self._layouts, self._presets, self._dtypes, self._reduces, self._modes)
        bases = self._legal(product(*(range(len(axis)) for axis in axes)))
        free = (len(self._amounts), len(self._in_place), len(self._variants), len(self._levels))
        rows = _selected([base for base in bases if self._is_common(base)], free)
        rows += self._once_each(bases)
        found = {case.text: case for row in rows if (case := self._case(row))}
        ordered = sorted(found.values(), key=lambda case: case.key)
        return Space(tuple(ordered), len(bases) + self._refused.total(), self._refused)

    def draw(self, random: Random) -> Case | None:
        """Draw a choice on every axis; return the call if it is legal and suits."""
        axes: tuple[Sized, ...] = (
            *(self._layouts, self._presets, self._dtypes, self._reduces, self._modes),
            *(self._amounts, self._in_place, self._variants, self._levels),
        )
        row = tuple(random.randrange(len(axis)) for axis in axes)
        topology = self._topology(row)
        if topology is None or not self._is_common(row):
            return None
        op = self._op(row, topology, 1)
        if self._refusal(op, topology) is not None or not self._suits(op, topology):
            return None
        return self._case(row)

    def _refusal(self, op: OpParam, topology: Topology) -> HcclError | None:
        try:
            self._operator.check(op, topology)
        except HcclError as refusal:
            return refusal
        return None

    def _legal(self, bases: Iterator[Row]) -> list[Row]:
        """Return the choices that the operator takes and the executor suits; count the refusals of
        the executor.
        """
        found, legal, error = [], 0, None
        for base in bases:
            topology = self._topology(base)
            if topology is None:
                continue
            op = self._op(base, topology, 1)
            refusal = self._refusal(op, topology)
            if refusal is not None:
                error = error or refusal
                continue
            legal += 1
            if self._suits(op, topology):
                found.append(base)
        if error is not None and not legal:
            raise error
        return found

    def _is_common(self, base: Row) -> bool:
        return self._layouts[base[0]] not in LARGE_LAYOUTS or self._narrowed.has_layout

    def _once_each(self, bases: list[Row]) -> Iterator[Row]:
        seen = {base[:2]: base for base in reversed(bases) if not self._is_common(base)}
        amount = len(self._amounts) - 1
        for base in seen.values():
            yield (*base, amount, 0, len(self._variants) - 1, 0)

    def _case(self, row: Row) -> Case | None:
        """Return the call of a row, unless operator or executor refuse it after all."""
        topology, amount = self._topology(row), self._amounts[row[5]]
        assert topology is not None
        words = dict(zip(LEVELS, self._levels[row[8]], strict=True))
        op = self._op(row, topology, amount.ccl_bytes // self._dtypes[row[2]].itemsize)
        op = replace(op, in_place=self._in_place[row[6]]).with_words(words)
        vary, ranks = self._variants[row[7]], topology.size
        most = elements_per_round(self._executor, vary(op, ranks), topology, amount.ccl_bytes)
        op = vary(replace(op, count=amount.elements(op.unit, ranks, most)), ranks)
        if amount.most_rounds is not None and op.extent > most * amount.most_rounds:
            return None
        if self._refusal(op, topology) is not None or not self._suits(op, topology):
            return None
        return Case(topology, op, amount.ccl_bytes, self._presets[row[1]])

    def _topology(self, row: Row) -> Topology | None:
        """Return the topology of a row; None where the product's servers are smaller."""
        key = row[0], row[1]
        if key not in self._topologies:
            layout = self._layouts[row[0]]
            self._topologies[key] = (
                layout if isinstance(layout, Topology) else fitted(layout, self._presets[row[1]])
            )
        return self._topologies[key]

    def _op(self, row: Row, topology: Topology, count: int) -> OpParam:
        """Return a call with the legal choices of a row, whose data fits one round."""
        op = OpParam(
            self._operator.name,
            count,
            self._dtypes[row[2]],
            self._reduces[row[3]],
            mode=self._modes[row[4]],
        )
        return self._variants[0](op, topology.size)

    def _suits(self, op: OpParam, topology: Topology) -> bool:
        """Ask the executor; an answer that is no truth value is the author's error."""
        where = f"{executor_name(self._executor)}.suits"
        try:
            verdict: object = self._executor.suits(with_levels(self._executor, op), topology)
        except (Exception, SystemExit) as error:
            message, case = author_message(error), Case(topology, op, LARGE_CCL).text
            raise PluginError(
                f"{where}, {case}: {message.text} ({message.line})",
                message.hint or "suits answers True, or what require() returns, for every call.",
            ) from error
        if isinstance(verdict, Unsuitable):
            self._refused[verdict.reason] += 1
        elif not isinstance(verdict, (bool, np.bool_)):
            raise PluginError(
                f"{where} returned a {type(verdict).__name__} instead of True or False.",
                "Return True, or what require() returns.",
            )
        elif not verdict:
            self._refused["its suits() says no"] += 1
        return bool(verdict)


def _selected(bases: list[Row], free: tuple[int, ...]) -> list[Row]:
    """Return all rows where they are few, so that options that name a case select it."""
    if len(bases) * prod(free) > ALL_UP_TO:
        return covering(bases, free)
    return [(*base, *rest) for base in bases for rest in product(*map(range, free))]


def _reduce_ops(operator: Operator, cases: Cases) -> tuple[ReduceOp | None, ...]:
    return (cases.reduce_ops or tuple(ReduceOp)) if operator.reduces else (None,)


def _in_place(operator: Operator, cases: Cases) -> tuple[bool | InPlace, ...]:
    if cases.in_place is not None:
        return (cases.in_place,)
    return (False, True) if operator.in_place else (False,)


def _variants(operator: Operator, cases: Cases) -> tuple[Variant, ...]:
    """Return roots, or amounts that differ by rank, for operators that have them."""
    if operator.rooted and cases.roots:
        return tuple(partial(_with_root, root=root) for root in cases.roots)
    return operator.variants()


def _with_root(op: OpParam, ranks: int, root: int) -> OpParam:
    return replace(op, root=root)


def _levels(executor: Executor, op: str, algo: str) -> tuple[tuple[str, ...], ...]:
    """Return the algorithms of the levels that an executor leaves open, or the ones among them that
    HCCL_ALGO's text names.
    """
    choices, given = choices_of(executor), parse_algo(algo, op)

    def words(level: str) -> tuple[str, ...]:
        offered = choices.get(level, ())
        if len(offered) < 2:
            return ("",)
        return (given[level],) if given.get(level) in offered else offered

    return tuple(product(*map(words, LEVELS)))

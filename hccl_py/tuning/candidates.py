"""Candidates: the ways in which a call can run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

from hccl_py.call.config import Config
from hccl_py.call.op_param import OpParam
from hccl_py.operators import make_operator
from hccl_py.plugins.discovery import Registered, Registry
from hccl_py.plugins.executor import Fidelity, choices_of, fidelity_of, open_levels, situations_of
from hccl_py.plugins.fidelity import UNDECLARED
from hccl_py.selection.gathering import gather_facts
from hccl_py.selection.order import breaks_order
from hccl_py.selection.select import select, ways
from hccl_py.topology.topology import Topology


@dataclass(frozen=True)
class Candidate:
    """An executor, with words for the levels that it leaves open.

    `algorithm` is what runs on each level. `is_hccl` marks what HCCL's rules choose here, and
    `fidelity` says how far that is what HCCL would run.
    """

    executor: str
    levels: dict[str, str] = field(default_factory=dict)
    algorithm: dict[str, str] = field(default_factory=dict)
    is_hccl: bool = False
    fidelity: Fidelity = UNDECLARED

    @property
    def name(self) -> str:
        """The executor and the words that were chosen for it, with spaces between."""
        return " ".join([self.executor, *self.levels.values()])


def candidates(
    op: OpParam, topology: Topology, config: Config, registry: Registry
) -> list[Candidate]:
    """Return every executor that suits a call, once for each choice of words, in a fixed order.

    Where HCCL_DETERMINISTIC asks for an order of sums, those that do not keep it are left out, but
    for what HCCL's rules choose. Raises as `select` where the call is illegal or nothing suits.
    """
    make_operator(op.name).check(op, topology)
    config = config.model_copy(update={"strict": False})
    chosen, _ = select(op, topology, config, registry)
    facts = gather_facts(op, topology, config)
    wanted = [
        (registered, levels)
        for registered in _known(op, registry)
        if registered.name == chosen.executor or not breaks_order(registered.executor, facts)
        for levels in _words(registered, topology)
    ]
    algorithms = ways(op, topology, config, registry, wanted)
    hccl = (chosen.executor, dict(chosen.algorithm))
    situations = situations_of(op, topology)
    return [
        Candidate(
            r.name,
            levels,
            algorithm,
            is_hccl=(r.name, algorithm) == hccl,
            fidelity=fidelity_of(r.executor, [*levels.values(), *situations]),
        )
        for (r, levels), algorithm in zip(wanted, algorithms, strict=True)
        if algorithm is not None
    ]


def _known(op: OpParam, registry: Registry) -> list[Registered]:
    """Return the executors of the op, and of the one that it runs as."""
    served = registry.for_op(make_operator(op.name).runs_as)
    return served + [r for r in registry.for_op(op.name) if r not in served]


def _words(registered: Registered, topology: Topology) -> Iterator[dict[str, str]]:
    """Yield every choice of words for the open levels of an executor."""
    choices = choices_of(registered.executor)
    levels = open_levels(registered.executor, topology)
    for words in product(*(choices[at] for at in levels)):
        yield dict(zip(levels, words, strict=True))

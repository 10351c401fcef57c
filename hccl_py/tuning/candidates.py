"""Candidates: the executors that can run a call, with each algorithm on their open levels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product

from hccl_py.call.config import Config
from hccl_py.call.op_param import OpParam
from hccl_py.operators import make_operator
from hccl_py.plugins.discovery import Registered, Registry
from hccl_py.plugins.executor import Fidelity, cases_of, open_levels
from hccl_py.plugins.fidelity import UNDECLARED
from hccl_py.selection.gathering import gather_facts
from hccl_py.selection.select import algorithm_choices, select
from hccl_py.selection.sum_order import breaks_order
from hccl_py.topology.topology import Topology


@dataclass(frozen=True)
class Candidate:
    """An executor, with names of algorithms for the levels that it leaves open.

    `algorithm` has the algorithm of each level. `is_hccl` marks the choice of HCCL's rules, and
    `fidelity` says how near that is to HCCL.
    """

    executor: str
    levels: dict[str, str] = field(default_factory=dict)
    algorithm: dict[str, str] = field(default_factory=dict)
    is_hccl: bool = False
    fidelity: Fidelity = UNDECLARED

    @property
    def name(self) -> str:
        """The executor and the algorithms that were chosen for it, with spaces between."""
        return " ".join([self.executor, *self.levels.values()])


def candidates(
    op: OpParam, topology: Topology, config: Config, registry: Registry
) -> list[Candidate]:
    """Return each executor that suits a call, once per choice of algorithms, in a fixed order.

    Where HCCL_DETERMINISTIC asks for an order of sums, those that do not keep it are left out,
    except the choice of HCCL's rules. Raises as `select` where the call is illegal or nothing
    suits.
    """
    make_operator(op.name).check(op, topology)
    config = replace(config, strict=False)
    chosen, _ = select(op, topology, config, registry)
    facts, ordered = gather_facts(op, topology, config), config.ordered(op)
    wanted = [
        (registered, levels)
        for registered in registry.for_op(op.name)
        if registered.name == chosen.executor or not breaks_order(registered, facts)
        for levels in _words(registered, topology)
    ]
    algorithms = algorithm_choices(op, topology, config, registry, wanted)
    hccl = (chosen.executor, dict(chosen.algorithm))
    return [
        Candidate(
            r.name,
            levels,
            algorithm,
            is_hccl=(r.name, algorithm) == hccl,
            fidelity=r.fidelity.among(
                cases_of(r.executor, ordered, topology, levels, in_pieces=facts.in_pieces)
            ),
        )
        for (r, levels), algorithm in zip(wanted, algorithms, strict=True)
        if algorithm is not None
    ]


def _words(registered: Registered, topology: Topology) -> Iterator[dict[str, str]]:
    """Yield every choice of algorithms for the open levels of an executor."""
    choices = registered.choices
    levels = open_levels(registered.executor, topology)
    for words in product(*(choices[at] for at in levels)):
        yield dict(zip(levels, words, strict=True))

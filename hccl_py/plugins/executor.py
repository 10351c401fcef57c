"""The contract of an executor: three methods, in the order of the hello-world article.

    suits(op, topology)        算法选择   could it run correctly here?
    resources(op, rank)        资源计算   what does a rank need?
    orchestrate(op, rank)      算法编排   record the tasks of one round

`suits` is about correctness only; whether an executor is chosen is up to the selection tables, the
user, or cost.

A class may declare more in attributes, whose defaults `BaseExecutor` has; deriving from it is up to
the author:

    order        the order in which a reduction adds, one of ORDERS; HCCL_DETERMINISTIC asks for one
    zero_copy    True if it works on user memory that all ranks have registered: it is taken only by
                 a `Communicator(zero_copy=True)`
    fidelity     its relation to HCCL's executor of the same name: `same`, `steps` or `ours`
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias

from hccl_py.call.op_param import LEVELS, OpParam
from hccl_py.call.ops import OPS
from hccl_py.enums import Mode
from hccl_py.errors import ParameterError, did_you_mean
from hccl_py.orchestration.rank import Rank, RankView
from hccl_py.plugins.fidelity import (
    UNDECLARED,
    Fidelity,
    SourceFile,
    is_uneven_tree,
    ours,
    same,
    steps,
)
from hccl_py.plugins.resources import (
    ChannelRequest,
    ChannelResources,
    PlaneRequest,
    ResourceRequest,
)
from hccl_py.topology.topology import Topology

__all__ = [
    "ORDERS",
    "AnyRank",
    "BaseExecutor",
    "BySize",
    "ChannelRequest",
    "ChannelResources",
    "Declarations",
    "Executor",
    "Fidelity",
    "Mode",
    "OpParam",
    "PlaneRequest",
    "Rank",
    "RankView",
    "ResourceRequest",
    "SourceFile",
    "Topology",
    "Unsuitable",
    "as_recorded",
    "cases_of",
    "check_levels",
    "choices_of",
    "declarations_of",
    "executor_name",
    "open_levels",
    "ops_of",
    "ours",
    "require",
    "same",
    "situations_of",
    "steps",
    "with_levels",
]


AnyRank: TypeAlias = Rank[Any, Any]
"""A rank whose input and output may be regions or chunks: for code that serves several ops."""

ORDERS = ("arrival", "fixed", "rank")
"""The order in which an executor adds: as data arrives, so that sums of floats differ from run to
run; the same in every run; by ranks, the same for every element, too.
"""


class Unsuitable:
    """A refusal by `suits`, with the reason; false in a condition."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"Unsuitable({self.reason!r})"


def require(*demands: tuple[bool, str]) -> bool | Unsuitable:
    """Return True if all demands hold, otherwise the first reason against; for use in `suits`."""
    for demand in demands:
        if not (isinstance(demand, tuple) and len(demand) == 2):
            raise TypeError(f"require() takes pairs (condition, reason), not {demand!r}")
        holds, reason = demand
        if not holds:
            return Unsuitable(reason)
    return True


class Executor(Protocol):
    """An algorithm of a plugin package. Instances are made without arguments and keep no state."""

    @property
    def op(self) -> str | tuple[str, ...]:
        """The op that it executes, such as `all_gather`, or several: an attribute of the class."""

    @property
    def algorithm(self) -> str:
        """The algorithm of each level, in HCCL_ALGO's words, such as `level0:mesh`. Where several
        are named, as in `level0:mesh;level1:ring|NHR`, the call chooses one in `op.level0`,
        `op.level1` and `op.level2`; the default is the first.
        """

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Return True if the result of this call would be right on this topology, or the reason
        against.
        """

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest | ChannelResources:
        """Return the resources of each rank; computed once per tag."""

    def orchestrate(self, op: OpParam, rank: Any) -> None:
        """Record one round's tasks on a `Rank`, or on a `ChannelRank` where `resources` returns
        `ChannelResources`; a pure function of its arguments.
        """


class BaseExecutor(Executor):
    """The attributes of an executor, with the defaults of those that a class may leave out."""

    op: str | tuple[str, ...]
    algorithm: str
    order: str = "fixed"
    zero_copy: bool = False
    fidelity: Fidelity = UNDECLARED
    cluster: str = ""
    """The cluster, by its name, from which sweeps draw calls; all products where it is empty."""


class Declarations(NamedTuple):
    """The attributes that an executor class may leave out, as declared or by default."""

    order: str
    zero_copy: bool
    fidelity: Fidelity
    cluster: str


def declarations_of(executor: object) -> Declarations:
    """Return the declarations of an executor, or of its class; any class may leave them out."""
    names = Declarations._fields
    return Declarations(*(getattr(executor, name, getattr(BaseExecutor, name)) for name in names))


def ops_of(executor: Executor) -> tuple[str, ...]:
    """Return the ops that an executor executes."""
    return executor.op if isinstance(executor.op, tuple) else (executor.op,)


def as_recorded(executor: Executor, op: OpParam) -> OpParam:
    """Return a call as an executor records it: a barrier as its all-reduce, but for executors of
    barriers.
    """
    runs_as = OPS[op.name].runs_as
    return op if not runs_as or op.name in ops_of(executor) else replace(op, name=runs_as)


def choices_of(executor: Executor) -> dict[str, tuple[str, ...]]:
    """Return the algorithms that an executor offers on each level, its default first."""
    return dict(_levels(executor.algorithm))


@lru_cache(maxsize=256)
def _levels(algorithm: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    parts = (part.split(":", 1) for part in algorithm.split(";") if ":" in part)
    return tuple((level.strip(), tuple(words.strip().split("|"))) for level, words in parts)


def situations_of(op: OpParam, topology: Topology) -> tuple[str, ...]:
    """Return the situations of a call, which a fidelity may distinguish (`fidelity.SITUATIONS`)."""
    found = [op.mode.value, topology.product.device]
    if op.deterministic:
        found.append("deterministic")
    if op.reduce is not None and not topology.reduces_inline(op.dtype, op.reduce):
        found.append("local_reduce")
    if topology.level0 == "double_ring":
        found.append("double_ring")
    if len(topology.servers) > 1:
        found.append("servers")
    return tuple(found)


def cases_of(
    executor: Executor,
    op: OpParam,
    topology: Topology,
    levels: Mapping[str, str],
    *,
    in_pieces: bool = False,
) -> tuple[str, ...]:
    """Return the cases of a call that an executor's fidelity may distinguish: the words of `levels`
    where it leaves them open, and situations; `in_pieces` is one that depends on the CCL buffers.
    """
    there = [level for level in open_levels(executor, topology) if level in levels]
    words = tuple(levels[level] for level in there)
    outer = [level for level in choices_of(executor) if level in there or level in _OUTER]
    uneven = any(is_uneven_tree(_members(executor, topology, level)) for level in outer)
    more = (("uneven_tree", uneven), ("pieces", in_pieces))
    return (*words, *situations_of(op, topology), *(case for case, holds in more if holds))


_OUTER = ("level1", "level2")


def _members(executor: Executor, topology: Topology, level: str) -> int:
    """Return the number of members of a plane on which an executor runs words."""
    choices = choices_of(executor)
    if choices.get("level0", ("NA",)) == ("NA",):
        return topology.size
    pods = len(topology.superpods)
    if level == "level2":
        return pods
    return len(topology.servers) // (pods if "level2" in choices else 1)


def open_levels(executor: Executor, topology: Topology) -> tuple[str, ...]:
    """Return the levels that an executor leaves open and that have several ranks here; level1 has
    all ranks where there is no level0.
    """
    choices = choices_of(executor)
    is_flat = choices.get("level0", ("NA",)) == ("NA",)
    several = is_flat or len(topology.servers) > 1
    there = max(topology.servers) > 1, several, len(topology.superpods) > 1
    found = zip(LEVELS, there, strict=True)
    return tuple(level for level, is_there in found if is_there and len(choices.get(level, ())) > 1)


def check_levels(executor: Executor, levels: Mapping[str, str]) -> None:
    """Raise ParameterError for algorithms that an executor does not do on a level."""
    choices = choices_of(executor)
    for level, word in levels.items():
        words = choices.get(level, ()) if level in LEVELS else ()
        if word not in words:
            raise ParameterError(
                f"{executor_name(executor)} does not do {word} on {level}.",
                f"It does {', '.join(words)}." if words else did_you_mean(level, choices),
            )


def with_levels(executor: Executor, op: OpParam) -> OpParam:
    """Return the call with the executor's defaults for the levels that it leaves open."""
    choices = choices_of(executor)
    defaults = {level: choices[level][0] for level in LEVELS if level in choices}
    words = defaults | op.words
    return op if words == op.words else op.with_words(words)


def executor_name(executor: Executor) -> str:
    """Return the name by which an executor is selected: its class name."""
    return type(executor).__name__


class BySize(BaseExecutor):
    """An executor that hands every call to another one, by the size of its data.

        class AllReduceBySize(BySize):
            op = "all_reduce"
            algorithm = "level0:mesh"
            sizes = ((0, Halving), (1 << 20, Striped))

    `sizes` has the bytes from which on each executor takes the calls, from 0 and ascending. The
    class is one executor for all commands, and the sweep of `check` tries both sides of every
    threshold. A call's size is `op.size`, the bytes per rank that HCCL's selection looks at. Adds
    in the order that all of its executors keep. Raises ParameterError for sizes that do not ascend
    from 0 and for executors that are none or are of another op.
    """

    sizes: ClassVar[tuple[tuple[int, type[Any]], ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        orders = {declarations_of(executor).order for _, executor in cls.sizes}
        if orders:
            cls.order = min(orders)  # "arrival" before "fixed" before "rank": the loosest

    def __init__(self) -> None:
        name, starts = type(self).__name__, [start for start, _ in self.sizes]
        if starts[:1] != [0] or any(low >= high for low, high in pairwise(starts)):
            raise ParameterError(
                f"{name}.sizes begin at {', '.join(map(str, starts)) or 'nothing'} bytes.",
                "Let them ascend from 0: sizes = ((0, Small), (1 << 20, Large)).",
            )
        ops = self.op if isinstance(self.op, tuple) else (self.op,)
        for start, executor in self.sizes:
            known = getattr(executor, "op", ())
            missing = set(ops) - set(known if isinstance(known, tuple) else (known,))
            if not isinstance(executor, type) or missing:
                raise ParameterError(
                    f"{name}.sizes: what takes calls from {start} bytes on, {executor!r:.60}, is "
                    f"no executor of {' and '.join(sorted(missing or ops))}.",
                    "Name classes that execute what this one does.",
                )
        self._executors: tuple[tuple[int, Executor], ...] = tuple(
            (start, executor()) for start, executor in self.sizes
        )

    @property
    def thresholds(self) -> tuple[int, ...]:
        """The bytes from which on another executor takes the calls."""
        return tuple(start for start, _ in self.sizes[1:])

    def executor_of(self, op: OpParam) -> Executor:
        """Return the executor that takes a call."""
        return next(one for start, one in reversed(self._executors) if start <= op.size)

    def explained(self, op: OpParam) -> str:
        """Name the executor that takes a call, and the sizes that it takes."""
        place = max(k for k, (start, _) in enumerate(self.sizes) if start <= op.size)
        start, executor = self.sizes[place]
        until = [f"below {self.sizes[place + 1][0]}"] if place + 1 < len(self.sizes) else []
        bounds = " and ".join([f"from {start} bytes on", *until])
        return f"{executor.__name__} takes it, as all calls {bounds}; this one has {op.size}"

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Ask the executor that takes the call."""
        executor = self.executor_of(op)
        return executor.suits(with_levels(executor, op), topology)

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest | ChannelResources:
        """Return the resources that the executor of the call asks for."""
        executor = self.executor_of(op)
        return executor.resources(with_levels(executor, op), rank)

    def orchestrate(self, op: OpParam, rank: Any) -> None:
        """Record the tasks of the executor that takes the call."""
        executor = self.executor_of(op)
        executor.orchestrate(with_levels(executor, op), rank)


_OLD_NAMES: dict[str, tuple[Callable[..., Any], str]] = {
    "order_of": (lambda executor: declarations_of(executor).order, "order"),
    "is_zero_copy": (lambda executor: declarations_of(executor).zero_copy, "zero_copy"),
    "fidelity_of": (
        lambda executor, cases=(): declarations_of(executor).fidelity.among(cases),
        "fidelity.among(cases)",
    ),
}


def __getattr__(name: str) -> Any:
    """Return a function by its old name, with a warning."""
    if name not in _OLD_NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    function, attribute = _OLD_NAMES[name]
    text = f"{__name__}.{name}(executor) is declarations_of(executor).{attribute} now."
    warnings.warn(text, DeprecationWarning, stacklevel=2)
    return function

"""The call that a command works on, an op, and the model that its times are by.

An executor is selected and recorded for the op; a source in the place of one is in `sources.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hccl_py.call.call_spec import CallSpec, ClusterSpec
from hccl_py.call.config import Config
from hccl_py.call.counts import read_counts
from hccl_py.call.op_param import OpParam
from hccl_py.cli.errors import say_problems
from hccl_py.cli.options import CallOptions, Sizes, TimeModel, given, one_of
from hccl_py.cli.output import format_levels
from hccl_py.cli.sizes import first_size
from hccl_py.clocks.cost import CostModel
from hccl_py.clocks.cost_files import find_cost
from hccl_py.clocks.stragglers import Stragglers
from hccl_py.communicator.communicator import Communicator
from hccl_py.communicator.planning import Plan
from hccl_py.errors import DeadlockError, ParameterError
from hccl_py.importers import Source
from hccl_py.operators import make_operator
from hccl_py.plugins.authors import author_class
from hccl_py.plugins.discovery import find_platform
from hccl_py.plugins.platforms import ProcessPlatform, Schedule
from hccl_py.selection import Selection
from hccl_py.simulator.entry import NETWORKS, Network
from hccl_py.topology import Topology
from hccl_py.trace.units import format_size

if TYPE_CHECKING:
    from hccl_py.importers.contract import Repetition


class Request(ABC):
    """A call of any size, with its other options checked."""

    def __init__(self, op: str, comm: Communicator, platform: str) -> None:
        self.operator = make_operator(op)
        self.comm, self.topology, self.platform = comm, comm.topology, platform

    minbytes: int
    """The first data size, in bytes."""

    is_fixed: bool
    """True if something else than a size says how much is communicated."""

    cost: CostModel | None = None
    """The cost model of the times that are wanted, where it is known before recording."""

    source: Source | None = None
    """The source, if the request names one."""

    is_recorded: bool = True
    """False if the program is read as it is."""

    is_verified: bool = True
    """False if the program has sizes without addresses, so that it cannot be verified."""

    has_op: bool = True
    """False if the op is not known, so that the program cannot be run."""

    @abstractmethod
    def op(self, size: int) -> OpParam:
        """Return the parameters of the call that communicates hccl_test's data size in bytes."""

    @abstractmethod
    def select(self, op: OpParam) -> Selection:
        """Return the executor that would run, without recording it."""

    @abstractmethod
    def plan(self, op: OpParam) -> Plan:
        """Select and record."""

    @abstractmethod
    def check_sizes(self, sizes: Sizes) -> None:
        """Refuse a range of sizes where there is only one."""

    def repetition(self, op: OpParam) -> Repetition | None:
        """Return the repeated passes of a call that is too large to be recorded, or None."""
        return None

    def hang(self, op: OpParam, error: DeadlockError) -> DeadlockError:
        """Return the error of a call whose program never ends, in the words of its source."""
        return error

    def data_size(self, op: OpParam) -> int:
        """Return hccl_test's data size: the larger one of a rank's input and output, in bytes."""
        return self.operator.data_size(op, self.topology.size)

    def describe(self, op: OpParam) -> str:
        """Return op, size, data type and mode in one phrase."""
        size = format_size(self.data_size(op))
        return f"{describe_op(op)} of {size} bytes, {op.dtype.value}, {op.mode.value}"

    def describe_executor(self, selection: Selection) -> str:
        """Return the executor and its algorithm on each level."""
        levels = format_levels(selection.algorithm)
        return f"{selection.executor}, {levels}" if levels else selection.executor

    def lines_of_levels(self, selection: Selection) -> list[str]:
        """Return a line for each level on which an executor has a choice: why it has this
        algorithm; and one for each word of HCCL_ALGO that is overruled.
        """
        why = selection.why_levels.items()
        said = [
            f"{level} {selection.algorithm[level]}: {text}"
            for level, text in why
            if level != "level0"
        ]
        return [*said, *selection.overruled]


class CallRequest(Request):
    """A call to be selected and recorded."""

    def __init__(
        self,
        options: CallOptions,
        schedule: Schedule | None = None,
        *,
        spec: CallSpec | None = None,
    ) -> None:
        self.spec = spec_of(options) if spec is None else spec
        self.is_fixed = self.spec.is_fixed
        if options.minbytes is not None:
            self._refuse_sizes()
        topology = self.spec.topology()
        self.spec.param(topology.size)  # raises for what does not depend on the size
        comm = communicator(options, topology, schedule)
        super().__init__(self.spec.op, comm, options.platform)
        self.executor = _executor(options.executor)
        self.minbytes = self._fixed_size() if self.is_fixed else first_size(options.minbytes)

    def op(self, size: int) -> OpParam:
        """Return the parameters of the call that communicates hccl_test's data size in bytes."""
        return self.spec.sized(size).param(self.topology.size)

    def select(self, op: OpParam) -> Selection:
        """Return the executor that would run, without recording it."""
        return self.comm.select(op, self.executor)[0]

    def plan(self, op: OpParam) -> Plan:
        """Select and record."""
        return self.comm.plan(op, self.executor)

    def check_sizes(self, sizes: Sizes) -> None:
        """Refuse a range of sizes where there is only one."""
        if any(given(sizes)):
            self._refuse_sizes()

    def _refuse_sizes(self) -> None:
        if self.is_fixed:
            is_barrier = self.spec.counts is None
            reason = "barrier has no data size" if is_barrier else "--counts says the sizes"
            raise ParameterError(f"{reason}.", "Leave -b, -e, -f and -i out.")

    def _fixed_size(self) -> int:
        op = self.op(0)
        self.operator.check(op, self.topology)
        return self.data_size(op)


def spec_of(options: CallOptions) -> CallSpec:
    """Return the call that options describe, at the default size."""
    return CallSpec(
        op=options.op,
        dtype=options.dtype,
        reduce_op=options.reduce_op,
        root=options.root,
        in_place=options.in_place,
        counts=None if options.counts is None else read_counts(options.counts, options.op),
        cluster=cluster_of(options),
        config=Config.load(**_settings(options), op_expansion_mode=options.expansion_mode),
    )


def _settings(options: CallOptions) -> dict[str, Any]:
    """Return the settings of `Config` that options have."""
    return {
        "mode": options.mode,
        "buffsize_mb": options.buffsize,
        "algo": options.algo,
        "deterministic": options.deterministic,
        "strict": options.strict_hccl or None,
        "ruleset": options.ruleset,
        "zero_copy": options.zero_copy,
    }


def cluster_of(options: CallOptions) -> ClusterSpec:
    """Return the place of the ranks by the options."""
    return ClusterSpec(
        options.topology,
        options.rank_table,
        options.ranks,
        options.servers,
        options.devices,
        options.superpods,
    )


def communicator(
    options: CallOptions, topology: Topology, schedule: Schedule | None
) -> Communicator:
    """Return a communicator with the settings of the options; broken plugins are warned about."""
    if options.wire is not None and not isinstance(
        find_platform(options.platform), ProcessPlatform
    ):
        raise ParameterError(
            f"--wire is about messages between processes, and platform {options.platform} has one.",
            "Add --platform distributed, or leave --wire out.",
        )
    if options.device is not None and options.platform != "device":
        raise ParameterError(
            f"--device is about --platform device, and this is platform {options.platform}.",
            "Add --platform device, or leave --device out.",
        )
    comm = Communicator(
        topology=topology,
        platform=options.platform,
        schedule=schedule,
        selection=options.select,
        wire=options.wire,
        device=options.device,
        **_settings(options),
        expansion_mode=options.expansion_mode,
    )
    say_problems(comm.registry.problems)
    return comm


def describe_op(op: OpParam) -> str:
    """Return `all_reduce sum`."""
    return op.name if op.reduce is None else f"{op.name} {op.reduce.spelling}"


def _executor(name: str | None) -> Any:
    """Return an executor for `Communicator.plan`: a name, or an author's class."""
    if name is None or ":" not in name:
        return name
    return author_class(name, "--executor")


@dataclass(frozen=True)
class Model:
    """The cost model, kind of network and slow parts that model times are for, checked."""

    cost: CostModel
    network: Network
    slow: Stragglers
    stragglers: tuple[str, ...]
    """The slow parts, as the user wrote them."""

    def document(self) -> dict[str, Any]:
        """Return the keys of a JSON document that say what the times mean."""
        return {
            "network": self.network,
            "cost": self.cost.name,
            "slow": list(self.stragglers),
            "clock": "model",
        }

    @property
    def conditions(self) -> str:
        """The kind of network, the jitter and the slow parts, in a phrase."""
        cost = self.cost
        chance = [f"jitter {cost.jitter:g} of seed {cost.jitter_seed}"] if cost.jitter else []
        return ", ".join([self.network, *chance, *(f"slow {text}" for text in self.stragglers)])


def model_of(options: TimeModel, request: Request) -> Model:
    """Return the model of the options; from here on the request records for its costs."""
    model = checked_model(options, request.topology)
    request.cost = model.cost
    return model


def checked_model(options: TimeModel, topology: Topology) -> Model:
    """Return the model; ParameterError names the option that is wrong."""
    network = network_named(options.network)
    product = topology.product.name
    cost = CostModel.of(product) if options.cost is None else find_cost(options.cost, product)
    slow = Stragglers.parse(options.slow or [])
    slow.of_ranks(topology.size)
    return Model(cost, network, slow, tuple(options.slow or []))


def network_named(name: str) -> Network:
    """Return the kind of network of that name; ParameterError where there is none."""
    return one_of("--network", name, {network: network for network in NETWORKS})

"""The communicator: ranks on a topology, a platform, and the collectives that a user calls.

A call goes operator, selection, resources (once per tag), recording (once per tag and parameters),
execution.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from hccl_py import collectives
from hccl_py.arrays import Array, Arrays, Data, Output, place
from hccl_py.collectives import Inputs, Ranks, averaged, check_average, index_of, reduction
from hccl_py.config import Config
from hccl_py.discovery import (
    Registered,
    Registry,
    check_platform,
    find_platform,
    installed_executors,
)
from hccl_py.enums import Mode, ReduceOp
from hccl_py.errors import ParameterError
from hccl_py.executor import Executor
from hccl_py.groups import check_name, members_of, members_of_colors
from hccl_py.op_param import OpParam
from hccl_py.operators import make_operator
from hccl_py.planning import BatchingWarning, Chooser, Plan, Planner, idle
from hccl_py.planning import ExecutorChoice as Choice
from hccl_py.platforms import Group, Launcher, Platform, Schedule, Session
from hccl_py.program.program import Program
from hccl_py.selection import Selection
from hccl_py.selection.tags import GROUP_NAME
from hccl_py.topology import Topology, topology_of
from hccl_py.topology.presets import DEFAULT_PRESET

if TYPE_CHECKING:
    from hccl_py.cost import CostModel
    from hccl_py.tuning.table import TuningTable

__all__ = ["BatchingWarning", "Communicator", "Plan", "Result"]

Outputs = Sequence[Array | None] | None
Reduce = str | ReduceOp


@dataclass(frozen=True)
class Result:
    """What a call did; `outputs` has one array per local rank, None where a rank has no output.

    Where a count of 0 left nothing to do, the selection names no executor and the program has no
    task.
    """

    outputs: list[Output]
    selection: Selection
    program: Program


@dataclass(frozen=True)
class Domain:
    """What a communicator is made of: where its ranks are and what serves them. `name` is what tags
    carry, `group` what platforms are told, `ranks` has the numbers that the members of a group have
    in their `parent`.
    """

    topology: Topology
    config: Config
    registry: Registry
    chooser: Chooser | None
    platform: Platform
    schedule: Schedule | None
    group: Group
    ranks: tuple[int, ...]
    name: str = GROUP_NAME
    parent: Communicator | None = None


class Communicator:
    """A communication domain of N ranks.

    `Communicator(ranks=4)` is one Atlas 800T A2 server with four of its NPUs, emulated on CPU. Give
    `servers`, `devices` of each and `superpods` for larger ones, a preset's name or a `Topology` as
    `topology`. `platform` names an installed platform. `schedule` asks the emulated one for one
    interleaving of the asynchronous streams; without it the platform takes the fastest order.
    `executors` adds classes that no installed package brings.

    Settings that are None come from HCCL's environment variables, those without one from `Config`:
    - `mode`: `op_base` or `graph`;
    - `buffsize_mb`: size of CCL_In and of CCL_Out each, in MB of 2^20 bytes, 1 to 1048576;
      HCCL_BUFFSIZE, by default 200;
    - `algo`: algorithms by level, `level0:NA;level1:ring` for all ops or
      `allreduce=level0:NA;level1:NHR/others=level0:NA;level1:ring` op by op; HCCL_ALGO, by default
      HCCL's own choice;
    - `deterministic`: `false`, `true` for sums with the same bits in every run, or `strict` for
      sums in rank order; HCCL_DETERMINISTIC, by default `false`;
    - `strict`: whether to raise where HCCL would refuse a call or take an executor that is not
      offered, by default False;
    - `wire`: what carries the messages of platforms with real processes, `gloo` or `mpi`, also
      inside a host; HCCL_PY_WIRE, by default what started the job, and between hosts only.

    `platform` is the name of one, or one: an object that knows, for example, which of the job's
    processes this is. A process may own some of the ranks only (`local_ranks`); then all processes
    make the same calls, each with the arrays of its own ranks.

    `selection` says who chooses executors: HCCL's `rules`; `cost`, which times every one that suits
    with a cost model, `cost` or else the product's, and takes the fastest; or a tuning table, or
    its file.

    `domain` says all of this at once, as groups have it from their parent; the others are left out.

    The ops of a communicator share its buffers: calls from several threads run one after another.
    Different communicators, also of the same ranks, have nothing in common.

    Every collective takes `inputs`, one array per local rank, and gives one output per local rank:
    new arrays, or those in `out`. `executor` names the executor that runs it, or is one.

    Raises ConfigError for a setting with an illegal value, ParameterError for any other argument
    that is not as described or for ranks that the product has no room for, PluginError for an
    executor or a platform that breaks its contract. Collectives raise ParameterError for arrays or
    ranks that the op does not take and for a closed communicator, NotSupportedError for what the
    product, the data type or `strict` excludes, OrchestrationError for an executor that records
    what is impossible, DeadlockError where streams wait for ever.
    """

    def __init__(
        self,
        ranks: int | None = None,
        *,
        servers: int | None = None,
        devices: int | None = None,
        superpods: int | None = None,
        topology: str | Topology = DEFAULT_PRESET,
        platform: str | Platform = "emulated",
        mode: str | Mode | None = None,
        buffsize_mb: int | None = None,
        algo: str | None = None,
        deterministic: str | None = None,
        strict: bool | None = None,
        schedule: Schedule | None = None,
        executors: Sequence[Executor | type[Executor]] = (),
        selection: str | os.PathLike[str] | TuningTable = "rules",
        cost: CostModel | None = None,
        wire: str | None = None,
        domain: Domain | None = None,
    ) -> None:
        if domain is not None:
            self._enter(domain)
            return
        config = Config.load(
            mode=mode,
            buffsize_mb=buffsize_mb,
            algo=algo,
            deterministic=deterministic,
            strict=strict,
            wire=wire,
        )
        if schedule is not None and not isinstance(schedule, Schedule):
            raise ParameterError(
                f"schedule is {schedule!r}.", "Give hccl_py.Schedule(seed, adversary)."
            )
        if not isinstance(topology, (str, Topology)):
            raise ParameterError(
                f"topology is {topology!r}.", "Give a preset's name or a Topology."
            )
        sizes = {"ranks": ranks, "servers": servers, "devices": devices, "superpods": superpods}
        if isinstance(topology, str):
            whole = {k: None if n is None else index_of(n, k) for k, n in sizes.items()}
            topology = topology_of(**whole, preset=topology)
        elif any(n is not None for n in sizes.values()):
            raise ParameterError(
                "A Topology already says how many ranks there are.",
                "Leave ranks, servers, devices and superpods out.",
            )
        if not isinstance(executors, (list, tuple)):
            raise ParameterError(
                f"executors is {executors!r}.", "Give a list of executors, if only of one."
            )
        registry = installed_executors().copy()
        for executor in executors:
            registry.add(executor, "this communicator")
        chooser = _chooser(selection, cost, config)
        found = _platform(platform)
        world = Group.world(topology.size)
        self._enter(
            Domain(topology, config, registry, chooser, found, schedule, world, world.world_ranks)
        )

    def _enter(self, domain: Domain) -> None:
        self._domain = domain
        self.topology, self.config = domain.config.linked(domain.topology), domain.config
        self.registry, self.name, self.parent = domain.registry, domain.name, domain.parent
        self.ranks = domain.ranks
        self._platform, self._schedule = domain.platform, domain.schedule
        self._planner = Planner(
            self.topology, self.config, self.registry, self.name, domain.chooser
        )
        self._session: Session | None = None
        self._lock = threading.RLock()
        self._groups = 0
        self._is_closed = False

    @property
    def size(self) -> int:
        """Number of ranks."""
        return self.topology.size

    @property
    def local_ranks(self) -> range:
        """The ranks whose data this process owns."""
        with self._lock:
            return self._open_session().local_ranks

    @property
    def clock(self) -> str:
        """What this platform's run times are: `wall` or `model`."""
        return self._platform.clock

    # ---- collectives ----

    def all_reduce(
        self,
        inputs: Inputs,
        op: Reduce = ReduceOp.SUM,
        *,
        out: Outputs = None,
        executor: Choice = None,
    ) -> Result:
        """Give every rank the reduction of all inputs: `sum`, `prod`, `max`, `min`, or `avg`.

        All inputs have one shape and data type. `out` may be the same arrays. `avg` is a sum,
        divided by the number of ranks after it, of floats only; HCCL has none.
        """
        reduce, average = reduction(op)
        data = collectives.same("all_reduce", inputs, self._members, reduce=reduce)
        return self._run(data, out, executor, average)

    def all_gather(self, inputs: Inputs, *, out: Outputs = None, executor: Choice = None) -> Result:
        """Give every rank the inputs of all ranks, joined along the first axis in rank order.

        All inputs have one shape and data type. They may lie at the beginning of their outputs, or
        each in its rank's slot.
        """
        return self._run(collectives.same("all_gather", inputs, self._members), out, executor)

    def all_gather_v(
        self,
        inputs: Inputs,
        counts: npt.ArrayLike | None = None,
        *,
        displs: npt.ArrayLike | None = None,
        out: Outputs = None,
        executor: Choice = None,
    ) -> Result:
        """Give every rank all inputs, which may differ along the first axis and be None.

        `counts` has the rows of each rank; without it the inputs tell. `displs` says in which row
        of the outputs each begins, by default packed in rank order; rows between are 0, or stay as
        they are in `out`.
        """
        data = collectives.blocks("all_gather_v", inputs, self._members, counts, displs, out=out)
        return self._run(data, out, executor)

    def reduce_scatter(
        self,
        inputs: Inputs,
        op: Reduce = ReduceOp.SUM,
        *,
        out: Outputs = None,
        executor: Choice = None,
    ) -> Result:
        """Give every rank its part of the reduction of all inputs, cut along the first axis.

        The ops are those of `all_reduce`. An output may lie at the beginning of its input, or all
        in their ranks' parts.
        """
        reduce, average = reduction(op)
        data = collectives.same("reduce_scatter", inputs, self._members, reduce=reduce)
        return self._run(data, out, executor, average)

    def reduce_scatter_v(
        self,
        inputs: Inputs,
        counts: npt.ArrayLike,
        op: Reduce = ReduceOp.SUM,
        *,
        displs: npt.ArrayLike | None = None,
        out: Outputs = None,
        executor: Choice = None,
    ) -> Result:
        """Give rank r its `counts[r]` rows of the reduction of all inputs: `sum`, `max` or `min`.

        They begin at row `displs[r]` of the inputs, by default packed in rank order.
        """
        reduce = op if isinstance(op, ReduceOp) else ReduceOp.parse(op)
        data = collectives.blocks(
            "reduce_scatter_v", inputs, self._members, counts, displs, reduce=reduce
        )
        return self._run(data, out, executor)

    def broadcast(
        self, inputs: Inputs, root: int = 0, *, out: Outputs = None, executor: Choice = None
    ) -> Result:
        """Give every rank the root's input; the others' may be None.

        HCCL broadcasts in place: give the same arrays as `inputs` and `out`.
        """
        data = collectives.from_root("broadcast", inputs, self._members, root, out)
        return self._run(data, out, executor)

    def reduce(
        self,
        inputs: Inputs,
        root: int = 0,
        op: Reduce = ReduceOp.SUM,
        *,
        out: Outputs = None,
        executor: Choice = None,
    ) -> Result:
        """Give the root the reduction of all inputs; the ops are those of `all_reduce`.

        The others' outputs are None. `out` may have None there too; what an array there holds
        afterwards is open, as in HCCL.
        """
        reduce, average = reduction(op)
        data = collectives.same("reduce", inputs, self._members, reduce=reduce, root=root)
        return self._run(data, out, executor, average)

    def scatter(
        self, inputs: Inputs, root: int = 0, *, out: Outputs = None, executor: Choice = None
    ) -> Result:
        """Give every rank its part of the root's input, cut along the first axis.

        The others' inputs may be None; they are not looked at.
        """
        data = collectives.from_root("scatter", inputs, self._members, root, out)
        return self._run(data, out, executor)

    def gather(
        self, inputs: Inputs, root: int = 0, *, out: Outputs = None, executor: Choice = None
    ) -> Result:
        """Give the root all inputs, joined along the first axis in rank order.

        The others' outputs are None, in `out` too.
        """
        data = collectives.same("gather", inputs, self._members, root=root)
        return self._run(data, out, executor)

    def all_to_all(self, inputs: Inputs, *, out: Outputs = None, executor: Choice = None) -> Result:
        """Give rank r part r of every input, in rank order; inputs are cut along the first axis."""
        return self._run(collectives.same("all_to_all", inputs, self._members), out, executor)

    def all_to_all_v(
        self,
        inputs: Sequence[Any],
        counts: npt.ArrayLike | None = None,
        *,
        send_displs: npt.ArrayLike | None = None,
        recv_displs: npt.ArrayLike | None = None,
        out: Outputs = None,
        executor: Choice = None,
    ) -> Result:
        """Send `counts[i][j]` rows from every rank i to every rank j.

        What a rank sends and what it receives is packed in rank order, or begins in the rows that
        `send_displs[i][j]` and `recv_displs[j][i]` say. Without counts every input is a list of
        arrays, one for each receiver.
        """
        data = collectives.exchange(
            "all_to_all_v", inputs, self._members, counts, send_displs, recv_displs, out=out
        )
        return self._run(data, out, executor)

    def all_to_all_vc(
        self, inputs: Inputs, matrix: npt.ArrayLike, *, out: Outputs = None, executor: Choice = None
    ) -> Result:
        """Send `matrix[i][j]` rows from every rank i to every rank j, packed in rank order."""
        data = collectives.exchange("all_to_all_vc", inputs, self._members, matrix, out=out)
        return self._run(data, out, executor)

    def send_recv(
        self,
        inputs: Inputs,
        pairs: Sequence[Sequence[int]] | None = None,
        *,
        out: Outputs = None,
        executor: Choice = None,
    ) -> Result:
        """Send the input of `src` to `dst` for all `pairs` (src, dst); by default every rank r
        sends to (r + 1) mod N.

        HCCL's Send at one rank, Recv at the other. All messages have one shape. Ranks that send
        nothing have None as input, those that receive nothing as output.
        """
        data = collectives.ring(inputs, self._members, pairs, out)
        return self._run(data, out, executor)

    def batch_send_recv(
        self,
        inputs: Sequence[Any],
        pairs: Sequence[Sequence[int]],
        *,
        out: Outputs = None,
        executor: Choice = None,
    ) -> Result:
        """Send any messages at once, also several between two ranks, and to oneself.

        With `pairs` (src, dst, rows), what a rank sends lies packed in its input, in the order of
        the list; with (src, dst), its input is a list with one array for each message. What a rank
        receives lies packed in its output, in the order of the list; None where that is nothing.
        """
        data = collectives.batch(inputs, self._members, pairs, out)
        return self._run(data, out, executor)

    def barrier(self, *, executor: Choice = None) -> Result:
        """Let nobody go on before everybody has come; there are no outputs.

        HCCL's all-reduce of 8 elements on internal memory, with all-reduce's executors and tag.
        """
        done = self._run(collectives.barrier(self._members), None, executor)
        return Result([], done.selection, done.program)

    # ---- groups ----

    def create_group(
        self,
        ranks: Iterable[int],
        *,
        name: str | None = None,
        buffsize_mb: int | None = None,
        deterministic: str | None = None,
    ) -> Communicator | None:
        """Return a communicator of some of these ranks, numbered from 0 in the order given; None
        where this process owns none of them.

        Its `ranks` has their numbers here, its `parent` is this one. It is HCCL's sub-communicator:
        it has buffers, resources and plans of its own, and lives on when this one is closed. `name`
        is what tags carry. What is None is as here. Every process makes the same groups in the same
        order, also those in which it owns no rank.
        """
        members = members_of(ranks, self.size)
        with self._lock:
            self._check_open()
            self._groups += 1
            number, local = self._groups, self._open_session().local_ranks
        name = f"{self.name}_{number}" if name is None else check_name(name)
        settings = {"buffsize_mb": buffsize_mb, "deterministic": deterministic}
        given = {key: value for key, value in settings.items() if value is not None}
        config = Config.load({}, **(self.config.model_dump() | given))
        if not any(member in local for member in members):
            return None
        domain = replace(
            self._domain,
            topology=self.topology.subset(members),
            config=config,
            schedule=self._schedule and self._schedule.among(members),
            group=self._domain.group.subset(members, number),
            ranks=members,
            name=name,
            parent=self,
        )
        return Communicator(domain=domain)

    def split(
        self, colors: Iterable[Hashable], keys: Iterable[int] | None = None
    ) -> dict[Hashable, Communicator]:
        """Return one group for every colour of which this process owns a rank, in the order of
        their first ranks.

        `colors` and `keys` have an entry for each rank. The ranks of a colour are ordered by key,
        then by number; those with the colour None are in no group.
        """
        found = members_of_colors(colors, keys, self.size)
        made = {color: self.create_group(ranks) for color, ranks in found.items()}
        return {color: group for color, group in made.items() if group is not None}

    # ---- planning and running ----

    def plan(self, op: OpParam, executor: Choice = None) -> Plan:
        """Select and record without running; plans are cached by tag and parameters."""
        with self._lock:
            return self._planner.plan(op, executor)

    def select(self, op: OpParam, executor: Choice = None) -> tuple[Selection, Registered]:
        """Check the call's legality and choose its executor."""
        return self._planner.select(op, executor)

    def expect(self, plan: Plan, runs: int) -> None:
        """Announce how often a plan will run, so that its first run may prepare for that."""
        if plan.op.extent == 0:
            return
        with self._lock:
            self._allocated(plan).expect(plan.selection.tag, plan.program, runs)

    def run_plan(self, plan: Plan, arrays: Arrays) -> None:
        """Run a plan on prepared arrays."""
        if plan.op.extent == 0:
            return
        with self._lock:
            session = self._allocated(plan)
            tag = plan.selection.tag
            session.run(tag, plan.program, arrays.inputs, arrays.outputs).wait()

    def launch(self, work: Callable[[], int]) -> int | None:
        """Run `work`, which returns an exit status, once in a process for every rank; return the
        worst status. None, and nothing is run, where this process can run as it is.
        """
        if not isinstance(self._platform, Launcher):
            return None
        return self._platform.launch(self.size, work)

    def exchange(self, data: bytes) -> list[bytes]:
        """Return what every process gave, in the order of their first ranks; all of them call it.

        Where this process owns all ranks, that is what it gave.
        """
        with self._lock:
            return self._open_session().gather(data)

    def close(self) -> None:
        """Release everything that the communicator holds; it cannot run afterwards."""
        with self._lock:
            self._is_closed = True
            self._planner.clear()
            if self._session is not None:
                self._session.close()
                self._session = None

    def __enter__(self) -> Communicator:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Communicator({self.topology.description}, {self._platform.name})"

    @property
    def _members(self) -> Ranks:
        return Ranks(self.topology, self.local_ranks)

    def _run(self, data: Data, out: Outputs, executor: Choice, average: bool = False) -> Result:
        """Run a call that is laid out, unless it has no data: HCCL looks at nothing else first."""
        operator, local = make_operator(data.op.name), self.local_ranks
        op = replace(data.op, mode=self.config.mode)
        if idle(op):
            plan = self._planner.nothing(op)
            arrays = place(operator, replace(data, op=plan.op), out, self.topology, local)
            return Result(arrays.finish(), plan.selection, plan.program)
        operator.check(op, self.topology)
        if average:
            check_average(op)
        arrays = place(operator, replace(data, op=op), out, self.topology, local)
        plan = self.plan(arrays.op, executor)
        self.run_plan(plan, arrays)
        results = arrays.finish()
        if average:
            averaged(
                [a for a, rank in zip(results, local, strict=True) if rank not in data.open],
                self.size,
            )
        return Result(results, plan.selection, plan.program)

    def _allocated(self, plan: Plan) -> Session:
        """Return the session, holding what the plan's program declares."""
        session = self._open_session()
        session.allocate(plan.selection.tag, plan.program)
        return session

    def _open_session(self) -> Session:
        self._check_open()
        if self._session is None:
            self._session = self._platform.open(
                self.topology, self.config, self._schedule, self._domain.group
            )
        if self._session is None:
            raise ParameterError(
                f"This process owns no rank of {self.name}: {self.topology.description}.",
                "Make a communicator of as many ranks as the job has.",
            )
        return self._session

    def _check_open(self) -> None:
        if self._is_closed:
            raise ParameterError("The communicator is closed.", "Make a new one.")


def _platform(platform: str | Platform) -> Platform:
    if isinstance(platform, str):
        return find_platform(platform)
    if isinstance(platform, type) or not callable(getattr(platform, "open", None)):
        raise ParameterError(
            f"platform is {platform!r:.60}.",
            "Give the name of a platform, or an object that is one.",
        )
    check_platform(platform, "This communicator")
    return platform


def _chooser(
    selection: str | os.PathLike[str] | TuningTable, cost: CostModel | None, config: Config
) -> Chooser | None:
    """Return what chooses executors in place of HCCL's rules, if anything does."""
    if selection == "rules" and cost is None:
        return None
    from hccl_py.tuning.choose import chooser_of, format_selection

    found = chooser_of(selection, cost)
    if found is not None and config.strict:
        raise ParameterError(
            "Strict asks for what HCCL takes, "
            f"selection by {format_selection(selection)} does not.",
            "Leave --strict-hccl (strict) or --select (selection) out.",
        )
    return found

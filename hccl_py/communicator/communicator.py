"""The communicator: ranks on a topology, a platform, and the collectives that a user calls.

A call goes operator, selection, resources (once per tag), recording (once per tag and parameters),
execution.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
import weakref
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from hccl_py.call.config import Config
from hccl_py.call.op_param import OpParam
from hccl_py.communicator.arrays import Array, Arrays, Data, place
from hccl_py.communicator.collective_ops import CallArguments, CollectiveOps, Outputs
from hccl_py.communicator.collectives import Ranks, averaged, check_average
from hccl_py.communicator.device_arrays import DeviceArray, is_array
from hccl_py.communicator.domain import Domain, domain_of
from hccl_py.communicator.groups import check_name, members_of, members_of_colors
from hccl_py.communicator.pending import BoundCall, CallQueue, Pending, Result
from hccl_py.communicator.planning import ExecutorChoice as Choice
from hccl_py.communicator.planning import Plan, Planner, idle
from hccl_py.communicator.tensors import tensors_in
from hccl_py.enums import Mode
from hccl_py.errors import NotSupportedError, ParameterError, PeerLostError
from hccl_py.operators import make_operator
from hccl_py.plugins.discovery import Registered
from hccl_py.plugins.executor import Executor
from hccl_py.plugins.platforms import (
    Abortable,
    Asynchronous,
    Binding,
    Mailboxes,
    Messaging,
    OnDevice,
    Platform,
    ProcessPlatform,
    Schedule,
    Session,
    TaskTimes,
    Timed,
)
from hccl_py.topology import Topology
from hccl_py.topology.presets import DEFAULT_PRESET

if TYPE_CHECKING:
    from hccl_py.clocks.cost import CostModel
    from hccl_py.selection import Selection
    from hccl_py.tuning.table import TuningTable


class Communicator(CollectiveOps):
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
    - `expansion_mode`: where tasks are made, `AI_CPU`, `AIV`, on an Ascend 950 also `AICPU_TS`,
      `CCU_MS`, `CCU_SCHED` or `AIV_ONLY`; HCCL_OP_EXPANSION_MODE, by default the product's own;
    - `strict`: whether to raise where HCCL would refuse a call or take an executor that is not
      offered, by default False;
    - `ruleset`: the release of HCCL whose rules choose, `cann-2025.07` or `cann-2026.08`;
      HCCL_PY_RULESET, by default the newest;
    - `zero_copy`: true if users' memory counts as registered with all ranks, of which HCCL makes
      use on Atlas A3, where all_reduce and reduce_scatter then overwrite their inputs;
      HCCL_PY_ZERO_COPY, by default False;
    - `wire`: what carries the messages of platforms with real processes, `gloo` or `mpi`, also
      inside a host; HCCL_PY_WIRE, by default what started the job, and between hosts only;
    - `device`: what the platform `device` runs on, `cpu`, `cuda` or `npu`; HCCL_PY_DEVICE, by
      default the accelerator that torch finds, else `cpu`.

    `platform` is the name of one, or one: an object that knows, for example, which of the job's
    processes this is. A process may own some of the ranks only (`local_ranks`); then all processes
    make the same calls, each with the arrays of its own ranks.

    `selection` is the way to choose: HCCL's `rules`; `cost`, which times every executor that suits
    with a cost model, `cost` or else the product's, and takes the fastest; or a tuning table, or
    its file.

    `domain` stands for all other arguments: a group has it from its parent.

    The ops of a communicator share its buffers: calls, from several threads too, run one after
    another, in the order in which they were made. Different communicators, also of the same ranks,
    have nothing in common.

    Every collective takes `inputs`, one array per local rank, and gives one output per local rank:
    new arrays, or those in `out`. Where `inputs` and `out` are torch's CPU tensors, so are outputs.
    `executor` names the executor that runs the op, or is one; `stream` is the stream of the caller
    in whose order it runs, on platforms that have streams. With `async_op` a collective comes back
    at once with a `Pending`, whose `wait()` gives the result or raises what the run raises.

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
        expansion_mode: str | None = None,
        strict: bool | None = None,
        ruleset: str | None = None,
        zero_copy: bool | None = None,
        schedule: Schedule | None = None,
        executors: Sequence[Executor | type[Executor]] = (),
        selection: str | os.PathLike[str] | TuningTable = "rules",
        cost: CostModel | None = None,
        wire: str | None = None,
        device: str | None = None,
        domain: Domain | None = None,
    ) -> None:
        if domain is None:
            config = Config.load(
                mode=mode,
                buffsize_mb=buffsize_mb,
                algo=algo,
                deterministic=deterministic,
                op_expansion_mode=expansion_mode,
                strict=strict,
                ruleset=ruleset,
                zero_copy=zero_copy,
                wire=wire,
                device=device,
            )
            domain = domain_of(
                topology,
                {"ranks": ranks, "servers": servers, "devices": devices, "superpods": superpods},
                config,
                platform=platform,
                schedule=schedule,
                executors=executors,
                selection=selection,
                cost=cost,
            )
        self._domain, self.ranks = domain, domain.ranks
        self.topology, self.config = domain.config.linked(domain.topology), domain.config
        self.registry, self.name, self.parent = domain.registry, domain.name, domain.parent
        self._platform, self._schedule = domain.platform, domain.schedule
        self._planner = Planner(
            self.topology, self.config, self.registry, self.name, domain.chooser
        )
        self._session: Session | None = None
        self._templates: Sequence[DeviceArray] | None = None
        self._opening, self._planning = threading.Lock(), threading.Lock()
        self._calls, self._group_numbers = CallQueue(), itertools.count(1)
        self._is_closed = self._has_worker = False

    @property
    def size(self) -> int:
        """Number of ranks."""
        return self.topology.size

    @property
    def local_ranks(self) -> range:
        """The ranks whose data this process owns."""
        return self._open_session().local_ranks

    @property
    def clock(self) -> str:
        """The source of this platform's run times: `wall` or `model`."""
        return self._platform.clock

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
        local, number = self.local_ranks, next(self._group_numbers)
        name = f"{self.name}_{number}" if name is None else check_name(name)
        settings = {"buffsize_mb": buffsize_mb, "deterministic": deterministic}
        given: dict[str, Any] = {key: it for key, it in settings.items() if it is not None}
        config = replace(self.config, **given)
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
        with self._planning:
            return self._planner.plan(op, executor)

    def select(self, op: OpParam, executor: Choice = None) -> tuple[Selection, Registered]:
        """Check the call's legality and choose its executor."""
        return self._planner.select(op, executor)

    def expect(self, plan: Plan, runs: int) -> None:
        """Announce how often a plan will run, so that its first run may prepare for that."""
        session, tag, program = self._open_session(), plan.selection.tag, plan.program

        def announce() -> None:
            session.allocate(tag, program)
            session.expect(tag, program, runs)

        if plan.op.extent:
            self._calls.run(announce)

    def run_plan(self, plan: Plan, arrays: Arrays) -> None:
        """Run a plan on prepared arrays."""
        self._calls.run(partial(_execute, self._open_session(), plan, arrays))

    def bind(self, op: OpParam, inputs: list[Array], outputs: list[Array]) -> BoundCall:
        """Plan an op on one flat input and output per local rank, of the sizes and types that it
        takes: inputs that are their outputs where `op` is in place, else apart from them. Return
        the call, which may be made for as long as the arrays stay where they are.
        """
        session = self._open_session()
        plan = self._planner.nothing(op) if idle(op) else self.plan(op)
        result = Result(list(outputs), plan.selection, plan.program)
        if not (plan.op.extent and isinstance(session, Binding)):
            arrays = Arrays(plan.op, inputs, outputs, list(outputs))
            return BoundCall(self._calls, result, partial(_execute, session, plan, arrays))
        tag, program = plan.selection.tag, plan.program
        session.allocate(tag, program)
        return BoundCall(self._calls, result, session.bind(tag, program, inputs, outputs))

    def time_tasks(self, plan: Plan, arrays: Arrays) -> TaskTimes:
        """Run a plan on prepared arrays, and return when every task began and ended;
        NotSupportedError where the platform does not know.
        """
        session, tag, program = self._open_session(), plan.selection.tag, plan.program
        if not isinstance(session, Timed):
            raise NotSupportedError(
                f"The platform {self._platform.name} does not time single tasks.",
                "Take the platform device, or simulate the program.",
            )

        def run() -> TaskTimes:
            arrays.begin()
            session.allocate(tag, program)
            return session.time_tasks(tag, program, arrays.inputs, arrays.outputs)

        return self._calls.run(run)

    def launch(self, work: Callable[[], int]) -> int | None:
        """Run `work`, which returns an exit status, once in a process for every rank; return the
        worst status. None, and nothing is run, where this process can run as it is.
        """
        if not isinstance(self._platform, ProcessPlatform):
            return None
        return self._platform.launch(work, self.topology, self.config, self._schedule)

    def exchange(self, data: bytes) -> list[bytes]:
        """Return the data of every process, in the order of their first ranks; its own alone where
        this process owns all ranks. Every process calls it, and it takes its turn among the calls.
        """
        return self._calls.run(partial(self._open_session().gather, data))

    def open_mailboxes(self) -> Mailboxes | None:
        """Return the messages between this process's rank and others; None where the platform has
        none between all ranks.
        """
        session = self._open_session()
        return session.open_mailboxes() if isinstance(session, Messaging) else None

    def synchronize(self) -> None:
        """Wait until all calls have ended, on devices too; raise the error of one that failed."""
        session = self._open_session()
        if isinstance(session, Asynchronous):
            self._calls.run(session.synchronize)

    @property
    def placement_templates(self) -> Sequence[DeviceArray] | None:
        """An example array on each local rank's device; None where arrays are the host's."""
        self._open_session()
        return self._templates

    def close(self) -> None:
        """Release everything that the communicator holds, after the calls made before; afterwards
        it cannot run.
        """
        with self._opening:
            self._is_closed = True
        self._calls.run(self._release)
        self._calls.end()
        self._calls.join()

    def abort(self, why: str) -> None:
        """End the running call, if any, at all ranks with PeerLostError, and the calls that wait
        for their turn with ParameterError; then close. Another thread than the call's does so; on
        platforms that cannot end a call, and over messages, this waits for its end.
        """
        self._calls.fail_pending()
        session = self._session
        if self._calls.is_running and isinstance(session, Abortable):
            session.abort(PeerLostError(why, "Start the job anew."))
        self.close()

    def __enter__(self) -> Communicator:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close; where an error ended the block, pending calls fail whose turn has not come."""
        if kind is not None:
            self._calls.fail_pending()
        self.close()

    def __repr__(self) -> str:
        return f"Communicator({self.topology.description}, {self._platform.name})"

    def _open_call(
        self,
        inputs: Any,
        *,
        out: Outputs = None,
        executor: Choice = None,
        stream: object = None,
        async_op: bool = False,
    ) -> CallArguments:
        local, templates = self._open_session().local_ranks, self._templates
        tensors = tensors_in(inputs, out, local, templates) if "torch" in sys.modules else None
        arrays_in, arrays_out = (inputs, out) if tensors is None else (tensors.inputs, tensors.out)
        if is_array(arrays_out) and len(local) == 1:
            arrays_out = [arrays_out]
        ranks = Ranks(self.topology, local, self.exchange, templates)
        return CallArguments(arrays_in, arrays_out, ranks, tensors, executor, stream, async_op)

    def _run_call(self, call: CallArguments, data: Data, average: bool = False) -> Result | Pending:
        """Plan and run a call; HCCL checks nothing of one without data."""
        session, local = self._open_session(), call.ranks.local
        name, op = data.op.name, replace(data.op, mode=self.config.mode)
        operator = make_operator(name)
        empty = self._planner.nothing(op) if idle(op) else None
        if empty is None:
            operator.check(op, self.topology)
            if average:
                check_average(op)
        data = replace(data, op=op if empty is None else empty.op)
        arrays = place(operator, data, call.out, self.topology, local, call.ranks.templates)
        plan = empty or self.plan(arrays.op, call.executor)
        sums = [at for at, rank in enumerate(local) if rank not in data.open] if average else []

        def run() -> Result:
            _execute(session, plan, arrays, call.stream)
            outputs = [] if operator.facts.meets else arrays.finish()
            if sums:
                averaged([outputs[at] for at in sums], self.size)
            if call.tensors is not None:
                outputs = call.tensors.outputs(outputs)
            return Result(outputs, plan.selection, plan.program)

        if not call.async_op:
            return self._calls.run(run)
        if not isinstance(session, Asynchronous):
            return self._start(name, run)
        pending = Pending(name, self._calls, run)  # the device runs what is enqueued here
        self._calls.run(pending.run)()
        return pending

    def _start(self, name: str, call: Callable[[], Result]) -> Pending:
        if not self._has_worker:  # which ends with the communicator, closed or not
            weakref.finalize(self, self._calls.end)
            self._has_worker = True
        return self._calls.start(name, call)

    def _release(self) -> None:
        with self._planning:
            self._planner.clear()
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def _open_session(self) -> Session:
        session = self._session
        if session is not None and not self._is_closed:
            return session
        with self._opening:
            if self._is_closed:
                raise ParameterError("The communicator is closed.", "Make a new one.")
            if self._session is None:
                self._session = self._opened()
            return self._session

    def _opened(self) -> Session:
        group = self._domain.group
        session = self._platform.open(self.topology, self.config, self._schedule, group)
        if session is None:
            raise ParameterError(
                f"This process owns no rank of {self.name}: {self.topology.description}.",
                "Make a communicator of as many ranks as the job has.",
            )
        if isinstance(session, OnDevice):
            self._templates = session.likes
            if session.inline_reductions is not None:
                self._planner.limit(session.inline_reductions)
                self.topology = self._planner.topology
        return session


def _execute(session: Session, plan: Plan, arrays: Arrays, stream: object = None) -> None:
    """Run a plan on a session that holds what the plan's program declares."""
    arrays.begin()
    if plan.op.extent:
        tag, program = plan.selection.tag, plan.program
        session.allocate(tag, program)
        session.run(tag, program, arrays.inputs, arrays.outputs, stream).wait()

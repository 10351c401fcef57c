"""The communicator: ranks on a topology, a platform, and the collectives that a user calls.

A call goes operator, selection, resources (once per tag), recording (once per tag and parameters),
execution.
"""

from __future__ import annotations

import threading
import warnings
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any

import numpy.typing as npt

from hccl_py.arrays import Arrays, prepare
from hccl_py.config import Config
from hccl_py.discovery import Registered, find_platform, installed_executors
from hccl_py.enums import Mode, ReduceOp
from hccl_py.errors import ParameterError
from hccl_py.executor import Executor
from hccl_py.op_param import OpParam
from hccl_py.operators import make_operator
from hccl_py.orchestration.record import record
from hccl_py.platforms import Schedule, Session
from hccl_py.program.program import Program
from hccl_py.selection import Selection, select
from hccl_py.topology import Topology, topology_of
from hccl_py.topology.presets import DEFAULT_PRESET

__all__ = ["BatchingWarning", "Communicator", "Plan", "Result"]

Array = npt.NDArray[Any]
ExecutorChoice = str | Executor | type[Executor] | None

CACHED_PLANS = 128
"""Plans that a communicator keeps; the least recently used goes first."""


class BatchingWarning(UserWarning):
    """An executor's code makes ranks fall into very many batches, so that recording is slow."""


@dataclass(frozen=True)
class Plan:
    """What a call will do: the selection and the recorded program."""

    op: OpParam
    selection: Selection
    program: Program


@dataclass(frozen=True)
class Result:
    """What a call did; `outputs` has one array per local rank."""

    outputs: list[Array]
    selection: Selection
    program: Program


class Communicator:
    """A communication domain of N ranks.

    `Communicator(ranks=4)` is one Atlas 800T A2 server with four of its NPUs, emulated on CPU. Give
    `servers` and `devices` for larger ones, a preset's name or a `Topology` as `topology`. Settings
    that are None come from HCCL's environment variables. `schedule` asks the emulated platform for
    one interleaving of the asynchronous streams; without it the platform takes the fastest order.
    `executors` adds classes that no installed package brings.

    The ops of a communicator share its buffers: calls from several threads run one after another.
    """

    def __init__(
        self,
        ranks: int | None = None,
        *,
        servers: int | None = None,
        devices: int | None = None,
        topology: str | Topology = DEFAULT_PRESET,
        platform: str = "emulated",
        mode: str | Mode | None = None,
        buffsize_mb: int | None = None,
        algo: str | None = None,
        deterministic: str | None = None,
        schedule: Schedule | None = None,
        executors: Sequence[Executor | type[Executor]] = (),
    ) -> None:
        self.config = Config.load(
            mode=mode, buffsize_mb=buffsize_mb, algo=algo, deterministic=deterministic
        )
        if schedule is not None and not isinstance(schedule, Schedule):
            raise ParameterError(
                f"schedule is {schedule!r}.", "Give hccl_py.Schedule(seed, adversary)."
            )
        if not isinstance(topology, (str, Topology)):
            raise ParameterError(
                f"topology is {topology!r}.", "Give a preset's name or a Topology."
            )
        if isinstance(topology, str):
            topology = topology_of(ranks, servers=servers, devices=devices, preset=topology)
        elif (ranks, servers, devices) != (None, None, None):
            raise ParameterError(
                "A Topology already says how many ranks there are.",
                "Leave ranks, servers and devices out.",
            )
        self.topology = topology
        self.registry = installed_executors().copy()
        for executor in executors:
            self.registry.add(executor, "this communicator")
        self._platform = find_platform(platform)
        self._schedule = schedule
        self._session: Session | None = None
        self._plans: OrderedDict[tuple[object, ...], tuple[Plan, ExecutorChoice]] = OrderedDict()
        self._lock = threading.RLock()
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

    def all_gather(
        self,
        inputs: Sequence[npt.ArrayLike],
        *,
        out: Sequence[Array] | None = None,
        executor: ExecutorChoice = None,
    ) -> Result:
        """Give every rank the inputs of all ranks, joined along the first axis in rank order.

        `inputs` holds one array per local rank, all of one shape and data type; `out` takes the
        results.
        """
        return self._call("all_gather", None, inputs, out, executor)

    def all_reduce(
        self,
        inputs: Sequence[npt.ArrayLike],
        op: str | ReduceOp = ReduceOp.SUM,
        *,
        out: Sequence[Array] | None = None,
        executor: ExecutorChoice = None,
    ) -> Result:
        """Give every rank the reduction of all inputs: `sum`, `prod`, `max` or `min`.

        `inputs` holds one array per local rank, all of one shape and data type; `out` takes the
        results and may be the same arrays.
        """
        reduce = op if isinstance(op, ReduceOp) else ReduceOp.parse(op)
        return self._call("all_reduce", reduce, inputs, out, executor)

    def plan(self, op: OpParam, executor: ExecutorChoice = None) -> Plan:
        """Select and record without running; plans are cached by tag and parameters."""
        with self._lock:
            return self._plan(op, executor)

    def _plan(self, op: OpParam, executor: ExecutorChoice) -> Plan:
        key = (op, executor if isinstance(executor, str) or executor is None else id(executor))
        if key in self._plans:
            self._plans.move_to_end(key)
            return self._plans[key][0]
        operator = make_operator(op.name)
        selection, chosen = self.select(op, executor)
        program = record(chosen.executor, op, self.topology, operator, self.config.ccl_bytes)
        if program.batching_hint:
            warnings.warn(program.batching_hint, BatchingWarning, stacklevel=4)
        plan = Plan(op, selection, program)
        self._plans[key] = (plan, executor)  # kept: the key is the executor's id
        if len(self._plans) > CACHED_PLANS:
            self._plans.popitem(last=False)
        return plan

    def select(self, op: OpParam, executor: ExecutorChoice = None) -> tuple[Selection, Registered]:
        """Check the call's legality and choose its executor."""
        make_operator(op.name).check(op, self.topology)
        registry, name = self.registry, executor
        if name is not None and not isinstance(name, str):
            registry = registry.copy()
            wanted = name.__name__ if isinstance(name, type) else type(name).__name__
            registry.executors.pop(wanted, None)
            name = registry.add(executor, "the caller").name
        return select(op, self.topology, self.config, registry, name)

    def expect(self, plan: Plan, runs: int) -> None:
        """Announce how often a plan will run, so that its first run may prepare for that."""
        if plan.op.count == 0:
            return
        with self._lock:
            self._allocated(plan).expect(plan.selection.tag, plan.program, runs)

    def run_plan(self, plan: Plan, arrays: Arrays) -> None:
        """Run a plan on prepared arrays."""
        if plan.op.count == 0:
            return
        with self._lock:
            session = self._allocated(plan)
            session.run(plan.selection.tag, plan.program, arrays.inputs, arrays.outputs)

    def close(self) -> None:
        """Release everything that the communicator holds; it cannot run afterwards."""
        with self._lock:
            self._is_closed = True
            self._plans.clear()
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

    def _call(
        self,
        name: str,
        reduce: ReduceOp | None,
        inputs: Sequence[npt.ArrayLike],
        out: Sequence[Array] | None,
        executor: ExecutorChoice,
    ) -> Result:
        local = self.local_ranks
        arrays = prepare(make_operator(name), inputs, out, local, self.size)
        op = OpParam(name, arrays.count, arrays.dtype, reduce, mode=self.config.mode)
        plan = self.plan(replace(op, in_place=arrays.in_place), executor)
        self.run_plan(plan, arrays)
        return Result(arrays.finish(), plan.selection, plan.program)

    def _allocated(self, plan: Plan) -> Session:
        """Return the session, holding what the plan's program declares."""
        session = self._open_session()
        session.allocate(plan.selection.tag, plan.program)
        return session

    def _open_session(self) -> Session:
        if self._is_closed:
            raise ParameterError("The communicator is closed.", "Make a new one.")
        if self._session is None:
            self._session = self._platform.open(
                self.topology, self.config.ccl_bytes, self._schedule
            )
        return self._session

"""One call from an executor to a program, for users; `record.py` does the work."""

from __future__ import annotations

from hccl_py.call.op_param import OpParam
from hccl_py.errors import NotSupportedError, ParameterError
from hccl_py.operators import make_operator
from hccl_py.orchestration import record as recording
from hccl_py.orchestration.author_errors import reason_against
from hccl_py.plugins.discovery import Registry, installed_executors
from hccl_py.plugins.executor import Executor, as_recorded, check_levels, executor_name, with_levels
from hccl_py.program.program import Program
from hccl_py.topology.topology import Topology

CCL_BYTES = 200 << 20
"""The default size of a CCL buffer in bytes: HCCL's 200 MB."""


def record(
    executor: str | Executor | type[Executor],
    op: OpParam,
    topology: Topology,
    *,
    ccl_bytes: int = CCL_BYTES,
) -> Program:
    """Return the program that an executor records for a call on all ranks of a topology.

        program = hccl.record(MyRing, op, hccl.topology_of(ranks=8))

    `executor` is the name of an installed one (`hccl-py list` shows them), a class, or an instance.
    `op` has everything else about the call: `mode`, `deterministic`, and in `level0`, `level1` and
    `level2` the algorithms of an executor that leaves them open, by default its first. `ccl_bytes`
    is the size of each of a rank's two CCL buffers in bytes, by default 200 MB as HCCL_BUFFSIZE has
    it: op-base calls that do not fit go in rounds. Environment variables are ignored, and nothing
    is selected.

    Raises ParameterError for an executor that does not exist or is for other ops, for parameters
    that HCCL does not take and for a level that the executor does not do, NotSupportedError where
    data type, mode or topology do not suit op or executor, PluginError for an object that is no
    executor, and OrchestrationError, which names ranks and source line, for an executor that does
    something impossible.
    """
    _check_types(op, topology, ccl_bytes)
    operator = make_operator(op.name)
    operator.check(op, topology)
    ready = _executor(executor, op.name)
    served = as_recorded(ready, op)
    check_levels(ready, op.words)
    reason = reason_against(ready, with_levels(ready, served), topology)
    if reason:
        raise NotSupportedError(
            f"{executor_name(ready)} does not suit this call: {reason}.",
            "`hccl-py explain` names the executors of a call that do.",
        )
    return recording.record(ready, served, topology, operator, ccl_bytes)


def _check_types(op: OpParam, topology: Topology, ccl_bytes: int) -> None:
    if not isinstance(op, OpParam):
        raise ParameterError(f"op is {op!r:.60}.", "Give an OpParam.")
    if not isinstance(topology, Topology):
        raise ParameterError(f"topology is {topology!r:.60}.", "Give what topology_of returns.")
    if isinstance(ccl_bytes, bool) or not isinstance(ccl_bytes, int) or ccl_bytes < 1:
        raise ParameterError(f"ccl_bytes is {ccl_bytes!r:.60}.", "Give a number of bytes.")


def _executor(executor: str | Executor | type[Executor], op: str) -> Executor:
    """Return an executor of the op, by name or from what an author gives."""
    registry = installed_executors()
    if not isinstance(executor, str):
        registry = Registry()
        executor = registry.add(executor, "record()").name
    return registry.find(executor, op).executor

"""A call of a plan: the op that it carries out at a data size, and the bytes of every rank."""

from __future__ import annotations

from math import lcm
from typing import NamedTuple

from hccl_interop.common.meaning import Meaning
from hccl_interop.mscclpp.plan import ExecutionPlan
from hccl_interop.mscclpp.sizes import RankSizes
from hccl_py.call.op_param import OpParam
from hccl_py.call.ops import OPS
from hccl_py.enums import DataType, ReduceOp
from hccl_py.errors import ParameterError
from hccl_py.operators import make_operator

_USUAL = 1 << 20


class PlanCall(NamedTuple):
    """The op's parameters, and the chunks of every rank."""

    plan: ExecutionPlan
    op: OpParam
    sizes: tuple[RankSizes, ...]

    @property
    def message_bytes(self) -> int:
        """The bytes that the executor compares with the sizes for which a plan is."""
        of = self.sizes[0]
        return of.outputs if self.plan.collective == "allgather" else of.inputs


def call_of(
    plan: ExecutionPlan,
    meaning: Meaning[ExecutionPlan],
    size: int,
    dtype: DataType,
    reduce: ReduceOp | None = None,
    root: int | None = None,
) -> PlanCall:
    """Return a call whose data has `size` bytes, rounded up to chunks of whole elements that are
    aligned as the plan says.

    ParameterError for a reduction that the plan's operations do not make, and for a root that the
    op does not have.
    """
    own = _reduction(plan)
    if reduce is not None and OPS[meaning.op].reduces and reduce is not own:
        raise ParameterError(
            f"The plan's operations make a {own.spelling}, and not {reduce.spelling}.",
            "Leave -o/--reduce-op out: reduce_op of the operations says it.",
        )
    given = reduce if reduce is not None else (own if OPS[meaning.op].reduces else None)
    op = meaning.call(_rounded(plan, size, dtype), dtype, given, root).op
    inputs, outputs = make_operator(op.name).user_bytes(op, plan.ranks)
    sizes = (
        RankSizes(plan, gpu, int(inputs[rank]), int(outputs[rank]))
        for rank, gpu in enumerate(plan.gpus)
    )
    return PlanCall(plan, op, tuple(sizes))


def usual_size(plan: ExecutionPlan, dtype: DataType) -> int:
    """Return the data size of a call that states none: 1 MiB, or the nearest of the sizes for which
    the plan is.
    """
    size = max(plan.min_bytes, min(_USUAL, plan.max_bytes))
    step = _step(plan, dtype)
    rounded = _rounded(plan, size, dtype)
    return rounded - step if plan.max_bytes < rounded and step < rounded else rounded


def _reduction(plan: ExecutionPlan) -> ReduceOp:
    """Return the reduction of the plan; operations that disagree are a defect of it."""
    found = {op.reduce for _, _, op in plan.reduces}
    known = {reduce.spelling: reduce for reduce in (ReduceOp.MIN, ReduceOp.MAX)}
    return known.get(next(iter(sorted(found)), ""), ReduceOp.SUM)


def _step(plan: ExecutionPlan, dtype: DataType) -> int:
    return plan.chunks * lcm(plan.alignment, dtype.itemsize)


def _rounded(plan: ExecutionPlan, size: int, dtype: DataType) -> int:
    step = _step(plan, dtype)
    return max(step, -(-size // step) * step)

"""A call of a plan: the op that it carries out at a data size, and the bytes of every rank."""

from __future__ import annotations

from math import lcm
from typing import NamedTuple

from hccl_interop.common.meaning import Meaning, MscclCall, usual_size
from hccl_interop.mscclpp.plan import ExecutionPlan
from hccl_interop.mscclpp.sizes import RankSizes
from hccl_py.call.op_param import OpParam
from hccl_py.call.ops import OPS
from hccl_py.enums import DataType, ReduceOp
from hccl_py.errors import ParameterError
from hccl_py.operators import make_operator


class PlanCall(NamedTuple):
    """The op's parameters, and the chunks of every rank. Without `has_op` the op is not known."""

    plan: ExecutionPlan
    op: OpParam
    sizes: tuple[RankSizes, ...]
    has_op: bool = True

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
    call = meaning.call(_rounded(plan, size, dtype), dtype, given, root)
    sizes = (
        RankSizes(plan, gpu, *sizes)
        for gpu, sizes in zip(plan.gpus, _user_bytes(plan, call), strict=True)
    )
    return PlanCall(plan, call.op, tuple(sizes), call.has_op)


def _user_bytes(plan: ExecutionPlan, call: MscclCall) -> list[tuple[int, int]]:
    """Return the bytes of input and output by rank; those of their chunks where no op says them."""
    if not call.has_op:
        chunks = [(gpu.input_chunks, gpu.output_chunks) for gpu in plan.gpus]
        cuts = [of if any(of) else (gpu.cut, 0) for of, gpu in zip(chunks, plan.gpus, strict=True)]
        return [(i * call.chunk, o * call.chunk) for i, o in cuts]
    inputs, outputs = make_operator(call.op.name).user_bytes(call.op, plan.ranks)
    return list(zip(inputs.tolist(), outputs.tolist(), strict=True))


def usual_size_of(plan: ExecutionPlan, dtype: DataType) -> int:
    """Return the data size of a call that states none: 1 MiB, or the nearest of the sizes for which
    the plan is.
    """
    return usual_size(plan.min_bytes, plan.max_bytes, _step(plan, dtype))


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

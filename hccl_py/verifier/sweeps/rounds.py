"""The number of elements that one round of a call takes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from hccl_py.call.op_param import OpParam
from hccl_py.orchestration.rank import RankView
from hccl_py.plugins.executor import Executor, with_levels
from hccl_py.topology.topology import Topology
from hccl_py.values import Diverged, IntArray


def elements_per_round(executor: Executor, op: OpParam, topology: Topology, ccl_bytes: int) -> int:
    """Return the elements of one round of a call; those of a full CCL buffer if the executor states
    no limit, or fails, which recording will report.
    """
    limit = round_limit(executor, op, topology, ccl_bytes)
    return max(ccl_bytes // op.unit if limit is None else limit, 1)


def round_limit(executor: Executor, op: OpParam, topology: Topology, ccl_bytes: int) -> int | None:
    """Return the smallest max_count of all ranks, None if they state none or raise."""
    ranks = np.arange(topology.size)
    try:
        op = with_levels(executor, op)

        def limits(batches: Iterable[IntArray]) -> list[int]:
            views = (RankView(ids, op, topology, ccl_bytes) for ids in batches)
            counts = [executor.resources(op, view).max_count for view in views]
            return [int(count) for count in counts if count is not None]

        try:
            return min(limits([ranks]), default=None)
        except Diverged:
            return min(limits(ranks[:, None]), default=None)
    except (Exception, SystemExit):
        return None

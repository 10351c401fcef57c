"""AllToAll: rank r gets part r of every rank's input, in rank order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hccl_py.call.op_param import OpParam
from hccl_py.call.ops import OPS
from hccl_py.operators.base import Array, Operator
from hccl_py.operators.parts import refuse_others
from hccl_py.topology.topology import Topology


class AllToAll(Operator):
    """`count` times ranks elements in, as many out."""

    facts = OPS["all_to_all"]

    def check(self, op: OpParam, topology: Topology) -> None:
        """Refuse amounts that differ."""
        super().check(op, topology)
        refuse_others(op, "counts", "displs", "matrix")

    def expected(self, op: OpParam, inputs: Sequence[Array]) -> list[Array | None]:
        """Return part r of all inputs for rank r."""
        parts = np.stack(inputs).reshape(len(inputs), len(inputs), -1)
        return [parts[:, rank].reshape(-1) for rank in range(len(inputs))]

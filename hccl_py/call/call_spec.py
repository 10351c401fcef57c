"""A call as a user describes it: on a command line, in a sweep, in a log of hccl_test.

    spec = CallSpec("all_reduce", bytes=1 << 20, cluster=ClusterSpec(ranks=8))
    topology = spec.topology()
    op = spec.param(topology.size)

Options, points of sweeps and logs write it down differently; this is the one step from there to a
topology and to the parameters of the call.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hccl_py.call.config import Config
from hccl_py.call.op_param import Counts, OpParam
from hccl_py.call.ops import COUNTS_OF
from hccl_py.enums import DataType, ReduceOp
from hccl_py.errors import ParameterError
from hccl_py.operators import Operator, make_operator
from hccl_py.topology import Topology, topology_of
from hccl_py.topology.presets import DEFAULT_PRESET

__all__ = ["CallSpec", "ClusterSpec"]


@dataclass(frozen=True)
class ClusterSpec:
    """The place of the ranks: numbers as for `topology_of`, or the file of a rank table.

    `topology` is a product, a network such as `torus:4x4` or the file of one; the default product
    where it is None. With `rank_table` it names the product of the table's devices.
    """

    topology: str | None = None
    rank_table: str | None = None
    ranks: int | None = None
    servers: int | None = None
    devices: int | None = None
    superpods: int | None = None

    @property
    def numbers(self) -> dict[str, int | None]:
        """The arguments of `topology_of` beside the name."""
        return {n: getattr(self, n) for n in ("ranks", "servers", "devices", "superpods")}

    def build(self, config: Config) -> Topology:
        """Build the topology, with the links that the settings ask for.

        Raises ParameterError where names and numbers do not make one, FileError for a bad file.
        """
        if self.rank_table is None:
            preset = DEFAULT_PRESET if self.topology is None else self.topology
            return config.linked(topology_of(**self.numbers, preset=preset))
        for name, number in self.numbers.items():
            if number is not None:
                raise ParameterError(
                    "A rank table says where the ranks are.", f"Leave {name} (--{name}) out."
                )
        from hccl_py.topology.rank_tables import read_rank_table

        table = read_rank_table(self.rank_table)
        inter_hccs = not config.inter_hccs_disable
        return config.linked(table.topology(self.topology, inter_hccs=inter_hccs))

    def digests(self) -> tuple[str, ...]:
        """Return hashes of the files that it names; empty where a name is no file."""
        return _digest(self.topology), _digest(self.rank_table)


@dataclass(frozen=True)
class CallSpec:
    """An op at a data size of hccl_test, in bytes, its parameters, and the place of its ranks.

    `counts` has the elements of every rank, for ops that let them differ; then `bytes` does not
    matter. None stands for the usual: a sum, root 0, amounts as hccl_test makes them.
    """

    op: str
    bytes: int = 1 << 20
    dtype: str = DataType.FP32.value
    reduce_op: str | None = None
    root: int | None = None
    in_place: bool = False
    counts: Counts | None = None
    cluster: ClusterSpec = ClusterSpec()
    config: Config = field(default_factory=Config)

    @property
    def operator(self) -> Operator:
        """The op; ParameterError where there is none of that name."""
        return make_operator(self.op)

    @property
    def is_fixed(self) -> bool:
        """True if counts or the op say how much is communicated, and `bytes` does not matter."""
        return self.counts is not None or self.operator.facts.meets

    def topology(self) -> Topology:
        """Build the topology; raises as `ClusterSpec.build`."""
        return self.cluster.build(self.config)

    def sized(self, size: int) -> CallSpec:
        """Return the same call at another data size, in bytes."""
        return replace(self, bytes=size)

    def param(self, ranks: int) -> OpParam:
        """Return the parameters of the call on so many ranks.

        Raises ParameterError for an op, data type or reduce op that does not exist, for a reduce op
        where there is nothing to reduce, and for a root that is no rank or that the op has not.
        """
        operator, dtype = self.operator, DataType.parse(self.dtype)
        reduce = self._reduce(operator)
        root = self._root(operator, ranks)
        count = operator.count(self.bytes, ranks, dtype.itemsize)
        op = OpParam(
            operator.name, count, dtype, reduce, mode=self.config.mode, in_place=self.in_place
        )
        if self.counts is not None:
            return self._with_counts(op, self.counts)
        op = operator.variants()[0](op, ranks)
        return op if root is None else replace(op, root=root)

    def _root(self, operator: Operator, ranks: int) -> int | None:
        if self.root is not None and not operator.rooted:
            raise ParameterError(f"{operator.name} has no root.", "Leave -r/--root out.")
        if self.root is not None and not 0 <= self.root < ranks:
            raise ParameterError(
                f"Root {self.root} is out of range.",
                f"The communicator has ranks 0 to {ranks - 1}.",
            )
        return self.root

    def _reduce(self, operator: Operator) -> ReduceOp | None:
        if self.reduce_op is not None and (not operator.reduces or operator.facts.meets):
            raise ParameterError(
                f"{operator.name} has no reduce op to choose.", "Leave -o/--reduce-op out."
            )
        reduce = ReduceOp.parse(self.reduce_op or ReduceOp.SUM.spelling)
        return reduce if operator.reduces else None

    def _with_counts(self, op: OpParam, counts: Counts) -> OpParam:
        if op.name not in COUNTS_OF:
            raise ParameterError(
                f"{op.name} takes no counts.", f"These do: {', '.join(COUNTS_OF)}."
            )
        values: Mapping[str, Counts] = {COUNTS_OF[op.name][0]: counts}
        found = replace(op, **values)  # type: ignore[arg-type]
        return replace(found, count=found.extent)


def _digest(name: str | None) -> str:
    """Return a hash of the file of this name; empty where there is none."""
    if name is None or not os.path.isfile(name):
        return ""
    found = hashlib.sha256()
    with open(name, "rb") as file:
        while block := file.read(1 << 20):
            found.update(block)
    return found.hexdigest()

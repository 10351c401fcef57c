"""Values of a Chakra execution trace: the nodes of every rank, and the groups of their calls.

Chakra's words are explained in docs/chakra.md. A trace has sizes and no addresses.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from hccl_py.enums import DataType, ReduceOp

DTYPE, REDUCE_OP, ROOT = "hccl_py.dtype", "hccl_py.reduce_op", "hccl_py.root"
"""Attributes of a communication node that are hccl-py's own; other tools pass over them."""

STREAMS = "hccl_py.streams"
"""The attribute of a file's metadata that names its streams by their numbers."""

GROUP_NAME = "hccl_py.name"
"""The key of a process group for a communicator's name; Chakra's are numbers."""

WORLD = "0"
"""The group of all ranks, as PyTorch and ASTRA-sim call it."""


class NodeType(IntEnum):
    """The kind of a node."""

    INVALID_NODE = 0
    METADATA_NODE = 1
    MEM_LOAD_NODE = 2
    MEM_STORE_NODE = 3
    COMP_NODE = 4
    COMM_SEND_NODE = 5
    COMM_RECV_NODE = 6
    COMM_COLL_NODE = 7
    STORAGE_NODE = 8
    BATCH_NODE = 9
    CHECKPOINT_NODE = 10


class CommType(IntEnum):
    """The collective of a node."""

    ALL_REDUCE = 0
    REDUCE = 1
    ALL_GATHER = 2
    GATHER = 3
    SCATTER = 4
    BROADCAST = 5
    ALL_TO_ALL = 6
    REDUCE_SCATTER = 7
    REDUCE_SCATTER_BLOCK = 8
    BARRIER = 9


OPS: dict[int, str] = {kind: kind.name.lower().removesuffix("_block") for kind in CommType}
"""The op of every collective."""


class Collective(NamedTuple):
    """A collective of a group; `size` is the bytes of a rank's input, of the root's in a scatter.
    `dtype` is None where the trace has none.
    """

    group: str
    op: str
    size: int
    dtype: DataType | None
    reduce: ReduceOp
    root: int


class TraceMessage(NamedTuple):
    """One end of a message; its source sends it, its destination receives it."""

    source: int
    destination: int
    tag: int
    size: int
    dtype: DataType | None


Call: TypeAlias = Collective | TraceMessage


class TraceGroup(NamedTuple):
    """A process group: its ranks in the group's order, and the name of its communicator."""

    ranks: tuple[int, ...]
    title: str


class TraceNode(NamedTuple):
    """A node; `deps` are positions, in the rank's list, of the nodes that it depends on.

    `duration_us`, `num_ops` and `tensor_size` are a kernel's duration, its operations and the bytes
    that it moves. `stream` is None where the trace has none.
    """

    id: int
    name: str
    type: NodeType
    deps: tuple[int, ...]
    duration_us: int
    stream: int | None
    on_cpu: bool
    num_ops: int
    tensor_size: int
    call: Call | None


@dataclass(frozen=True)
class RankFile:
    """The file of one rank, its nodes in topological order; `groups` are the groups that it states,
    by name, and `streams` the names of its streams, empty where it names none.
    """

    file: str
    nodes: tuple[TraceNode, ...]
    groups: dict[str, TraceGroup]
    streams: tuple[str, ...]


@dataclass(frozen=True)
class Trace:
    """The files of all ranks, and every group that is called. `is_in_order` is True for a source
    and a destination where the k-th message sent is the k-th received, all on one stream; otherwise
    tags match messages.
    """

    name: str
    ranks: tuple[RankFile, ...]
    groups: dict[str, TraceGroup]
    is_in_order: dict[tuple[int, int], bool]

    @property
    def streams(self) -> tuple[str, ...]:
        """The names of the streams; empty where the trace names none."""
        return self.ranks[0].streams

    @property
    def node_count(self) -> int:
        """The number of nodes of all ranks."""
        return sum(len(rank.nodes) for rank in self.ranks)

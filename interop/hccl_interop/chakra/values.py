"""What a Chakra execution trace says: nodes of every rank, and the groups that they communicate in.

Chakra's words are explained in docs/chakra.md. A trace has sizes and no addresses.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from hccl_py.enums import DataType, ReduceOp

DTYPE, REDUCE_OP, ROOT = "hccl_py.dtype", "hccl_py.reduce_op", "hccl_py.root"
"""Attributes of a communication node that Chakra has no name for; other tools pass over them."""

STREAMS = "hccl_py.streams"
"""The attribute of a file's metadata that names its streams by their numbers."""

GROUP_NAME = "hccl_py.name"
"""The key of a process group for a communicator's name; Chakra's are numbers."""

WORLD = "0"
"""The group of all ranks, as PyTorch and ASTRA-sim call it."""


class NodeType(IntEnum):
    """What a node is."""

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
    """Which collective a node is."""

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


class Collective(NamedTuple):
    """A collective of a group; `size` is the bytes of a rank's input, of the root's in a scatter.
    `dtype` is None where the trace does not say it.
    """

    group: str
    op: str
    size: int
    dtype: DataType | None
    reduce: ReduceOp
    root: int


class Message(NamedTuple):
    """One end of a message; its source sends it, its destination receives it."""

    source: int
    destination: int
    tag: int
    size: int
    dtype: DataType | None


Call: TypeAlias = Collective | Message


class TraceGroup(NamedTuple):
    """A process group: its ranks, in its own order, and the name that its communicator gets."""

    ranks: tuple[int, ...]
    title: str


class TraceNode(NamedTuple):
    """A node: `deps` are the positions, in the rank's list, of those that come before it.

    `duration_us` is that of a kernel. `num_ops` and `tensor_size` say what it computes and moves.
    `stream` is None where the trace does not say it.
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
    """The file of one rank, its nodes each behind those that it depends on. `groups` are the groups
    that it states, by name, and `streams` the names of its streams, empty where it names none.
    """

    file: str
    nodes: tuple[TraceNode, ...]
    groups: dict[str, TraceGroup]
    streams: tuple[str, ...]


@dataclass(frozen=True)
class Trace:
    """The files of all ranks; `groups` has every group that communicates, and `is_in_order` says of
    a source and a destination whether the k-th message that one sends is the k-th that the other
    receives, on one stream; where it is not, tags tell them apart.
    """

    name: str
    ranks: tuple[RankFile, ...]
    groups: dict[str, TraceGroup]
    is_in_order: dict[tuple[int, int], bool]

    @property
    def streams(self) -> tuple[str, ...]:
        """The names of the streams, where the trace has them."""
        return self.ranks[0].streams

    @property
    def node_count(self) -> int:
        """How many nodes all ranks have."""
        return sum(len(rank.nodes) for rank in self.ranks)

"""The contents of an execution plan of mscclpp as plain values: GPUs, threadblocks, operations.

    {"name": "...", "collective": "allreduce", "protocol": "Simple", "inplace": true,
     "gpus": [{"id": 0, "input_chunks": 2, "output_chunks": 2, "scratch_chunks": 0,
               "channels": [{"channel_type": "memory", "connected_to": [1]}],
               "remote_buffers": [{"rank": 1, "type": "i", "access_channel_types": ["memory"]}],
               "semaphores": [{"init_value": 0}],
               "threadblocks": [{"id": 0, "ops": [...], "channels": [...],
                                 "remote_buffer_refs": [...]}]}]}

A threadblock's operations name channels and remote buffers by their places in its own lists, these
name those of the GPU. Source: microsoft/mscclpp 0.9.0, src/core/executor/execution_plan.cc.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

RELEASE = "0.9.0"
"""The release of mscclpp whose executor this package follows."""


class PlanChunks(NamedTuple):
    """Chunks that an operation reads or writes: of the rank's own `buffer` (`i`, `o` or `s`), or of
    what the threadblock's remote buffer `remote` or its switch channel `switch` leads to.
    """

    first: int
    size: int
    buffer: str = ""
    remote: int = -1
    switch: int = -1

    @property
    def is_local(self) -> bool:
        """True if they are the rank's own."""
        return self.remote < 0 and self.switch < 0


@dataclass(frozen=True)
class PlanOp:
    """One operation. `part` and `parts` say which part of the data it takes, of those that a group
    of threadblocks shares; a pipeline has `unit` bytes a pass over `chunks` chunks, and `inner`
    operations.
    """

    name: str
    line: int
    number: str
    channel_type: str = ""
    channels: tuple[int, ...] = ()
    src: tuple[PlanChunks, ...] = ()
    dst: tuple[PlanChunks, ...] = ()
    reduce: str = ""
    part: int = 0
    parts: int = 1
    barrier: int = 0
    blocks: int = 0
    semaphores: tuple[int, ...] = ()
    unit: int = 0
    chunks: int = 0
    inner: tuple[PlanOp, ...] = ()

    def __str__(self) -> str:
        return f"op {self.number} ({self.name})"

    def every(self) -> Iterator[PlanOp]:
        """Yield the operation and those inside of it."""
        yield self
        yield from self.inner


class RemotePlanBuffer(NamedTuple):
    """A buffer of a peer, and the types of channels that reach it."""

    rank: int
    buffer: str
    access: tuple[str, ...]


class SwitchGroup(NamedTuple):
    """A switch channel: the same buffer of all its ranks."""

    buffer: str
    ranks: tuple[int, ...]


@dataclass(frozen=True)
class PlanBlock:
    """A queue of operations. `channels[type]` and `remotes[type]` list places in the GPU's lists of
    channels and remote buffers.
    """

    id: int
    line: int
    ops: tuple[PlanOp, ...]
    channels: dict[str, tuple[int, ...]]
    remotes: dict[str, tuple[int, ...]]

    def every(self) -> Iterator[PlanOp]:
        """Yield every operation, those inside of pipelines, too."""
        for op in self.ops:
            yield from op.every()


@dataclass(frozen=True)
class PlanGpu:
    """A rank. `peers[type]` has the peer of every channel of a type; `semaphores` their first
    values.
    """

    id: int
    line: int
    input_chunks: int
    output_chunks: int
    scratch_chunks: int
    blocks: tuple[PlanBlock, ...]
    peers: dict[str, tuple[int, ...]]
    switches: tuple[SwitchGroup, ...]
    remotes: tuple[RemotePlanBuffer, ...]
    semaphores: tuple[int, ...]

    @property
    def cut(self) -> int:
        """Into how many chunks data is cut where only scratch has some."""
        return max(1, self.scratch_chunks)

    def peer(self, block: PlanBlock, kind: str, channel: int) -> int:
        """Return the rank that a threadblock's channel leads to."""
        return self.peers[kind][block.channels[kind][channel]]

    def remote(self, block: PlanBlock, kind: str, number: int) -> RemotePlanBuffer:
        """Return the remote buffer that a threadblock names by number."""
        return self.remotes[block.remotes[kind][number]]

    def switch(self, block: PlanBlock, number: int) -> SwitchGroup:
        """Return the switch channel that a threadblock names by number."""
        return self.switches[block.channels["switch"][number]]


@dataclass(frozen=True)
class ExecutionPlan:
    """A plan. `min_bytes` and `max_bytes` are the data sizes for which it is, `is_old` says that it
    is of a release that knew no alignment: its `alignment` is that of later ones.
    """

    file: str
    name: str
    collective: str
    protocol: str
    inplace: bool
    reuse: bool
    double: bool
    threads: int
    alignment: int
    min_bytes: int
    max_bytes: int
    is_old: bool
    gpus: tuple[PlanGpu, ...]
    line: int = 1

    @property
    def ranks(self) -> int:
        """The number of GPUs."""
        return len(self.gpus)

    @property
    def outofplace(self) -> bool:
        """True if it is for calls whose output is another buffer; a plan is for one of the two."""
        return not self.inplace

    @property
    def chunks(self) -> int:
        """Into how many chunks the larger one of input and output is cut; or else scratch."""
        return max(self.gpus[0].input_chunks, self.gpus[0].output_chunks) or self.gpus[0].cut

    @cached_property
    def reduces(self) -> tuple[tuple[PlanGpu, PlanBlock, PlanOp], ...]:
        """The operations that say how they reduce, otherwise than by a sum."""
        found = ((g, b, op) for g, b, op in self.ops() if op.reduce not in ("", "sum"))
        return tuple(found)

    def source(self, line: int) -> str:
        """Return a line of the file as findings name it."""
        return f"{self.file}:{line}"

    def ops(self) -> Iterator[tuple[PlanGpu, PlanBlock, PlanOp]]:
        """Yield every operation with its place."""
        for gpu in self.gpus:
            for block in gpu.blocks:
                for op in block.every():
                    yield gpu, block, op

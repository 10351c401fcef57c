"""Offsets of chunks, as the executor reckons: in bytes, for a call whose buffers have so many.

Source: microsoft/mscclpp 0.9.0, execution_plan.cc (getOffset, getBufferSize, calcOffset) and
execution_kernel.hpp (getOffset).
"""

from __future__ import annotations

from typing import NamedTuple

from hccl_interop.mscclpp.plan import ExecutionPlan, PlanGpu, PlanOp

PREDEFINED = 1 << 26
"""Scratch that plans share which reuse resources."""

MAX_BYTES = 1 << 32
"""Offsets and sizes have 32 bits."""


class RankSizes(NamedTuple):
    """A rank's chunks in bytes."""

    plan: ExecutionPlan
    gpu: PlanGpu
    inputs: int
    outputs: int

    @property
    def _cut(self) -> tuple[int, int]:
        """The bytes that are cut, and into how many chunks."""
        if self.gpu.output_chunks and not self.gpu.input_chunks:
            return self.outputs, self.gpu.output_chunks
        return self.inputs, self.gpu.input_chunks or self.gpu.cut

    def _split(self, size: int, index: int, parts: int) -> int:
        """Return the offset of a part of so many bytes: the first parts take the rest."""
        units = size // self.plan.alignment
        return (index * (units // parts) + min(index, units % parts)) * self.plan.alignment

    @property
    def scratch_chunk(self) -> int:
        """The bytes of a chunk of scratch that plans share."""
        chunks = max(1, self.gpu.scratch_chunks)
        size = -(-(PREDEFINED // (1 + self.plan.double)) // chunks)
        return -(-size // self.plan.alignment) * self.plan.alignment

    @property
    def chunk(self) -> int:
        """The bytes of the largest chunk."""
        size, chunks = self._cut
        return -(-(size // self.plan.alignment) // chunks) * self.plan.alignment

    @property
    def is_folded(self) -> bool:
        """True if chunks of scratch are smaller than those of data, and used over and over."""
        return self.plan.reuse and self.scratch_chunk < self.chunk

    @property
    def scratch(self) -> int:
        """The bytes of scratch that one call has."""
        chunks = self.gpu.scratch_chunks
        if self.is_folded:
            return chunks * self.scratch_chunk
        return chunks * self.chunk * (1 + (self.plan.protocol == "LL"))

    def offset(self, buffer: str, index: int) -> int:
        """Return the offset of a chunk."""
        if buffer == "s" and self.is_folded:
            return index * self.scratch_chunk
        return self._split(self._cut[0], index, self._cut[1])

    def length(self, index: int, count: int) -> int:
        """Return the bytes of so many chunks."""
        size, chunks = self._cut
        return self._split(size, index + count, chunks) - self._split(size, index, chunks)

    def part(self, op: PlanOp, size: int) -> tuple[int, int]:
        """Return the offset of the part of an operation's bytes that its threadblock takes, and its
        bytes.
        """
        begin = self._split(size, op.part, op.parts)
        return begin, self._split(size, op.part + 1, op.parts) - begin

    def passes(self, pipeline: PlanOp) -> int:
        """Return the number of passes of a pipeline."""
        return -(-pipeline.chunks * self.chunk // pipeline.unit)

    def passed(self, buffer: str, offset: int) -> int:
        """Return the offset of a pass in chunks of a buffer."""
        return offset % self.scratch_chunk if buffer == "s" and self.plan.reuse else offset

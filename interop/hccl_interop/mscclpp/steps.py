"""Operations of a call one by one: pipelines written out, chunks as bytes of ranks' buffers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hccl_interop.mscclpp.call import PlanCall
from hccl_interop.mscclpp.operations import FORMS
from hccl_interop.mscclpp.plan import PlanBlock, PlanChunks, PlanGpu, PlanOp
from hccl_interop.mscclpp.sizes import MAX_BYTES
from hccl_py.errors import ParameterError

MAX_STEPS = 1 << 16
"""Operations of a call, all ranks together, that are written out; one that goes to all ranks of a
switch's group counts once for each of them.
"""

SCRATCH = "SCRATCH"
PACKETS = "PACKETS"
"""Scratch as packets see it: their data alone, which is a half of its bytes."""

BUFFERS = {"i": "IN", "o": "OUT", "s": SCRATCH}


class PlanSlice(NamedTuple):
    """Bytes of a rank's buffer."""

    rank: int
    buffer: str
    offset: int
    size: int

    @property
    def stop(self) -> int:
        """The offset behind the last byte."""
        return self.offset + self.size

    def overlaps(self, other: PlanSlice) -> bool:
        """Return True if the two have bytes in common."""
        is_same = self.rank == other.rank and self.buffer == other.buffer
        return is_same and self.offset < other.stop and other.offset < self.stop


class PlanStep(NamedTuple):
    """An operation as it runs once, in pass `number` of a pipeline or outside of one (-1).

    Slices are in the order of its chunks; those of a switch are its ranks', the rank's own first.
    """

    op: PlanOp
    number: int = -1
    src: tuple[PlanSlice, ...] = ()
    dst: tuple[PlanSlice, ...] = ()

    @property
    def reads(self) -> tuple[PlanSlice, ...]:
        """The packets that it waits for."""
        if self.op.channel_type == "port" and self.op.name == "ppkt":
            return ()  # it sends what lies there
        return tuple(s for s in self.src if s.buffer == PACKETS)

    @property
    def packets(self) -> tuple[PlanSlice, ...]:
        """The packets that it writes, but for those that it only writes again as they are."""
        return tuple(s for s in self.dst if s.buffer == PACKETS and s not in self.src)


def steps_of(call: PlanCall) -> dict[tuple[int, int], list[PlanStep]]:
    """Return the steps of every threadblock, by rank and threadblock.

    ParameterError where there are more of them than are written out.
    """
    _check_size(call)
    return {
        (gpu.id, block.id): list(_Steps(call, gpu, block).all())
        for gpu in call.plan.gpus
        for block in gpu.blocks
    }


def _check_size(call: PlanCall) -> None:
    count = 0
    for gpu in call.plan.gpus:
        for block in gpu.blocks:
            for op in block.ops:
                is_pipeline = op.name == "pipeline"
                passes = call.sizes[gpu.id].passes(op) if is_pipeline else 1
                once = op.inner if is_pipeline else (op,)
                count += passes * sum(_reach(gpu, block, one) for one in once)
    if count > MAX_STEPS:
        raise ParameterError(
            f"{call.plan.source(call.plan.line)}: this call makes {count:,} operations, with every "
            f"pass of its pipelines; at most {MAX_STEPS:,} are written out.",
            "Give a smaller -b: every pass does the same on other bytes.",
        )


def _reach(gpu: PlanGpu, block: PlanBlock, op: PlanOp) -> int:
    """Return the number of ranks that an operation reaches by a switch; 1 for one that has none."""
    groups = (gpu.switch(block, chunks.switch) for chunks in op.src + op.dst if chunks.switch >= 0)
    return max((len(group.ranks) for group in groups), default=1)


class _Steps:
    """The steps of a threadblock."""

    def __init__(self, call: PlanCall, gpu: PlanGpu, block: PlanBlock) -> None:
        self._call, self._gpu, self._block = call, gpu, block
        self._sizes = call.sizes[gpu.id]

    def all(self) -> Iterator[PlanStep]:
        """Yield all of them."""
        for op in self._block.ops:
            if op.name == "pipeline":
                for number in range(self._sizes.passes(op) if op.inner else 0):
                    for inner in op.inner:
                        yield self._step(inner, number, op.unit)
            else:
                yield self._step(op, -1, None)

    def _step(self, op: PlanOp, number: int, unit: int | None) -> PlanStep:
        form = FORMS[op.name]
        if not form.moves:
            return PlanStep(op, number)
        sent_as_they_lie = op.name == "ppkt" and op.channel_type == "port"
        src_packets = 0 if sent_as_they_lie else form.src_packets
        offset = 0 if unit is None or form.has_packets else number * unit
        counts = self._counts(op, offset, None if form.has_packets else unit)
        src, dst = (
            tuple(
                found
                for k, chunks in enumerate(side)
                for found in self._slices(op, chunks, counts[k], offset, k >= packets)
            )
            for side, packets in ((op.src, src_packets), (op.dst, form.dst_packets))
        )
        return PlanStep(op, number, src, dst)

    def _counts(self, op: PlanOp, offset: int, unit: int | None) -> list[int]:
        """Return the bytes of every chunk of a side, as the executor reckons: those of the target
        for a put, of the source's for other transfers of several, and else of the first source.
        """
        if op.name in ("put", "pws", "pwsf"):
            of = op.dst
        elif op.name in ("get", "ppkt"):
            of = op.src
        else:
            of = (op.src[0],) * max(len(op.src), len(op.dst))
        found = []
        for chunks in of:
            size = self._sizes.part(op, self._sizes.length(chunks.first, chunks.size))[1]
            left = (size - offset) % MAX_BYTES
            found.append(left if unit is None else min(left, unit))
        return found

    def _slices(
        self, op: PlanOp, chunks: PlanChunks, count: int, offset: int, packets: bool
    ) -> Iterator[PlanSlice]:
        gpu, block, sizes = self._gpu, self._block, self._sizes
        if chunks.switch >= 0:
            group = gpu.switch(block, chunks.switch)
            buffer, others = group.buffer, [rank for rank in group.ranks if rank != gpu.id]
            ranks = [gpu.id, *others]
        elif chunks.remote >= 0:
            remote = gpu.remote(block, op.channel_type, chunks.remote)
            buffer, ranks = remote.buffer, [remote.rank]
        else:
            buffer, ranks = chunks.buffer, [gpu.id]
        begin = sizes.offset(buffer, chunks.first) + sizes.passed(buffer, offset)
        begin += sizes.part(op, sizes.length(chunks.first, chunks.size))[0]
        name = PACKETS if packets and buffer == "s" else BUFFERS[buffer]
        for rank in ranks:
            yield PlanSlice(rank, name, begin, count)

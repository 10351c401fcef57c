"""Defects of a plan that leave no program to be made: what names something that is not there, and
operations that the executor cannot do.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from hccl_interop.common.defects import Defect
from hccl_interop.mscclpp.call import PlanCall
from hccl_interop.mscclpp.operations import FORMS, OpForm
from hccl_interop.mscclpp.plan import RELEASE, ExecutionPlan, PlanBlock, PlanChunks, PlanGpu, PlanOp
from hccl_interop.mscclpp.sizes import MAX_BYTES

MAX_CHANNELS_OF_OP = 8
MAX_CHUNKS_OF_OP = 10
MAX_SEMAPHORES_OF_OP = 16

LIMIT = "RUNTIME_LIMIT"
_MESSAGE = "MESSAGE_MISMATCH"


def structure_of(call: PlanCall) -> Iterator[Defect]:
    """Yield the defects with which no program can be made."""
    plan = call.plan
    for place, gpu in enumerate(plan.gpus):
        if gpu.id != place:
            message = f"The GPU at place {place} has id {gpu.id}: the executor refuses it."
            yield _fatal((gpu.id,), gpu.line, message, "Number GPUs in a row, from 0.")
    yield from _of_sizes(call)
    for gpu in plan.gpus:
        for place, block in enumerate(gpu.blocks):
            if block.id != place:
                message = f"The threadblock at place {place} of GPU {gpu.id} has id {block.id}."
                hint = "Number threadblocks in a row, from 0."
                yield _fatal((gpu.id,), block.line, message, hint)
                return
            found = [*_of_block(gpu, block)]
            yield from found
            if not found:
                for op in block.every():
                    yield from _OfOperation(plan, gpu, block, op).all()
        yield from _of_barriers(gpu)


def _fatal(ranks: tuple[int, ...], line: int, message: str, hint: str, name: str = LIMIT) -> Defect:
    return Defect(name, ranks, line, message, hint, is_fatal=True)


def _of_sizes(call: PlanCall) -> Iterator[Defect]:
    """Yield GPUs whose chunks of input and output differ in size, or lie beyond all offsets."""
    for gpu, sizes in zip(call.plan.gpus, call.sizes, strict=True):
        if max(sizes.inputs, sizes.outputs, sizes.scratch) >= MAX_BYTES:
            message = f"GPU {gpu.id} has a buffer of 4 GiB or more: offsets have 32 bits."
            yield _fatal((gpu.id,), gpu.line, message, "Give a smaller -b.")
        chunks = [gpu.input_chunks, gpu.output_chunks]
        if all(chunks) and sizes.inputs * chunks[1] != sizes.outputs * chunks[0]:
            message = (
                f"GPU {gpu.id} cuts {sizes.inputs} bytes of input into {chunks[0]} chunks and "
                f"{sizes.outputs} of output into {chunks[1]}: these are not alike."
            )
            hint = f"Is the op {call.op.name}? --op says another one."
            yield _fatal((gpu.id,), gpu.line, message, hint)


def _of_block(gpu: PlanGpu, block: PlanBlock) -> Iterator[Defect]:
    """Yield channels and remote buffers that the GPU does not have."""
    where = f"Threadblock {block.id} of GPU {gpu.id}"
    counts = {kind: len(peers) for kind, peers in gpu.peers.items()}
    counts["switch"] = len(gpu.switches)
    for kind, ids in block.channels.items():
        for number in ids:
            if number >= counts[kind]:
                message = f"{where} uses {kind} channel {number}, and there are {counts[kind]}."
                yield _fatal((gpu.id,), block.line, message, "channel_ids are the GPU's.")
            elif kind == "switch" and gpu.id not in gpu.switches[number].ranks:
                message = (
                    f"{where} uses switch channel {number}, whose ranks GPU {gpu.id} is none of."
                )
                yield _fatal((gpu.id,), block.line, message, "Name the GPU in rank_groups.")
    for kind, ids in block.remotes.items():
        for number in ids:
            if number >= len(gpu.remotes):
                message = f"{where} uses remote buffer {number}, and there are {len(gpu.remotes)}."
                yield _fatal((gpu.id,), block.line, message, "remote_buffer_ids are the GPU's.")
            elif kind not in gpu.remotes[number].access:
                message = f"{where} reaches remote buffer {number} over {kind} channels."
                hint = f"Add {kind} to its access_channel_types."
                yield _fatal((gpu.id,), block.line, message, hint)


@dataclass(frozen=True)
class _OfOperation:
    """The defects of one operation."""

    plan: ExecutionPlan
    gpu: PlanGpu
    block: PlanBlock
    op: PlanOp

    @property
    def _where(self) -> str:
        return f"{self.op} of threadblock {self.block.id} of GPU {self.gpu.id}"

    def _fatal(self, message: str, hint: str, name: str = LIMIT) -> Defect:
        return _fatal((self.gpu.id,), self.op.line, f"The {self._where} {message}", hint, name)

    def all(self) -> Iterator[Defect]:
        """Yield them."""
        op, form = self.op, FORMS[self.op.name]
        if op.name == "glre":
            hint = "A gstore to the same chunks makes one glres of the two."
            yield self._fatal(f"is one that the executor of {RELEASE} does not know.", hint)
            return
        crowded = [*self._of_counts()]
        if crowded:
            yield from crowded
            return
        if op.part >= op.parts:
            message = f"takes part {op.part} of {op.parts}."
            yield self._fatal(message, "tb_id counts from 0, up to tbg_size.")
        for number in op.semaphores:
            if number >= len(self.gpu.semaphores):
                message = f"uses semaphore {number}, and there are {len(self.gpu.semaphores)}."
                yield self._fatal(message, "semaphore_ids are the GPU's.")
        if op.name == "ppkt" and op.channel_type == "port":
            form = form._replace(src_packets=0)
        known = [*self._of_channels(form), *self._of_sides(form)]
        yield from known
        if form.moves and op.channel_type == "port" and not known:
            yield from self._of_proxies()

    def _of_counts(self) -> Iterator[Defect]:
        """Yield the members of which an operation has more than the executor keeps."""
        op = self.op
        for noun, count, most in (
            ("channels", len(op.channels), MAX_CHANNELS_OF_OP),
            ("sources", len(op.src), MAX_CHUNKS_OF_OP),
            ("targets", len(op.dst), MAX_CHUNKS_OF_OP),
            ("semaphores", len(op.semaphores), MAX_SEMAPHORES_OF_OP),
        ):
            if count > most:
                message = f"has {count} {noun}, the executor takes {most}."
                yield self._fatal(message, "Make several of it.")

    def _of_channels(self, form: OpForm) -> Iterator[Defect]:
        op = self.op
        needs = form.types and (not form.moves or "r" in self._code("dst") + self._code("src"))
        if needs and form.moves and op.channel_type not in form.types:
            given = f"channel_type {op.channel_type!r}" if op.channel_type else "no channel_type"
            hint = f"The executor does it over {' or '.join(form.types)} channels."
            yield self._fatal(f"has {given}.", hint)
        uses = op.name not in ("get", "ppkt", "put", "rppkt") or op.channel_type == "port"
        if not (uses and form.types and op.channel_type in self.block.channels):
            return
        count = len(self.block.channels[op.channel_type])
        for channel in op.channels:
            if channel >= count and op.channel_type in form.types:
                message = (
                    f"uses {op.channel_type} channel {channel}, and its threadblock has {count}."
                )
                yield self._fatal(message, "channel_ids of an operation are its threadblock's.")

    def _code(self, side: str) -> str:
        """Return the chunks of a side as letters."""
        chunks: tuple[PlanChunks, ...] = getattr(self.op, side)
        return "".join("l" if c.is_local else "r" if c.remote >= 0 else "w" for c in chunks)

    def _of_sides(self, form: OpForm) -> Iterator[Defect]:
        for side, pattern, packets in (
            ("src", form.src, form.src_packets),
            ("dst", form.dst, form.dst_packets),
        ):
            code = self._code(side)
            if form.moves and not re.fullmatch(pattern, code):
                words = {"l": "local", "r": "a peer's", "w": "a switch's"}
                found = ", ".join(words[letter] for letter in code) or "none"
                wanted = (
                    pattern.replace("l", "local ").replace("r", "peer ").replace("w", "switch ")
                )
                hint = f"It takes {wanted.strip()}."
                yield self._fatal(f"has other chunks in {side}_buff than it takes: {found}.", hint)
                return
            for number, chunks in enumerate(getattr(self.op, side) if form.moves else ()):
                defect = self._of_chunks(chunks, number >= packets)
                if defect is not None:
                    yield defect
        if self.op.name in ("put", "pws", "pwsf", "get", "ppkt"):
            counts = len(self.op.src), len(self.op.dst)
            if counts[0] != counts[1]:
                message = f"has {counts[0]} sources and {counts[1]} targets."
                yield self._fatal(message, "Every source goes to one target.", _MESSAGE)

    def _of_chunks(self, chunks: PlanChunks, is_packets: bool) -> Defect | None:
        kind, buffer = self.op.channel_type, chunks.buffer
        if chunks.remote >= 0:
            known = self.block.remotes.get(kind, ())
            if chunks.remote >= len(known):
                message = (
                    f"uses remote buffer {chunks.remote}, and its threadblock has {len(known)}."
                )
                return self._fatal(message, "buffer_id counts its remote_buffer_ids of that type.")
            buffer = self.gpu.remote(self.block, kind, chunks.remote).buffer
        elif chunks.switch >= 0:
            known = self.block.channels["switch"]
            if chunks.switch >= len(known):
                message = (
                    f"uses switch channel {chunks.switch}, and its threadblock has {len(known)}."
                )
                return self._fatal(message, "switch_channel_id counts its channel_ids.")
            buffer = self.gpu.switch(self.block, chunks.switch).buffer
        if is_packets and buffer != "s":
            return self._fatal(f"has packets in buffer {buffer}.", "Packets lie in scratch.")
        return None

    def _of_proxies(self) -> Iterator[Defect]:
        """Yield port channels that are missing, or lead to others than the data is for."""
        op = self.op
        if len(op.channels) < len(op.dst):
            message = f"has {len(op.dst)} targets and {len(op.channels)} channels."
            yield self._fatal(message, "Every target of a port channel has a channel.")
            return
        for channel, chunks in zip(op.channels, op.dst, strict=False):
            peer = self.gpu.peer(self.block, "port", channel)
            remote = self.gpu.remote(self.block, "port", chunks.remote)
            if peer != remote.rank:
                message = (
                    f"sends to a buffer of rank {remote.rank} over port channel {channel}, which "
                    f"leads to rank {peer}."
                )
                yield self._fatal(message, "Channels and targets are in the same order.", _MESSAGE)


def _of_barriers(gpu: PlanGpu) -> Iterator[Defect]:
    """Yield barriers that not as many threadblocks come to as they are for."""
    members: dict[int, set[int]] = defaultdict(set)
    ops: dict[int, list[PlanOp]] = defaultdict(list)
    for block in gpu.blocks:
        for op in block.every():
            if op.name == "barrier":
                members[op.barrier].add(block.id)
                ops[op.barrier].append(op)
    for number, found in ops.items():
        for op in found:
            if op.blocks != len(members[number]):
                message = (
                    f"Barrier {number} of GPU {gpu.id} is for {op.blocks} threadblocks in {op}, "
                    f"and {len(members[number])} come to it."
                )
                hint = "num_threadblocks counts the threadblocks that have the barrier."
                yield _fatal((gpu.id,), op.line, message, hint, "LOST_DEPENDENCY")
                break

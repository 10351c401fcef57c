"""Defects of a plan or a call of it that its program does not show: what the executor
refuses, or takes otherwise than it is meant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from hccl_interop.common.defects import Defect
from hccl_interop.mscclpp.call import PlanCall
from hccl_interop.mscclpp.nops import missing_nops
from hccl_interop.mscclpp.operations import FORMS, MAX_OPS
from hccl_interop.mscclpp.overlaps import Overlaps
from hccl_interop.mscclpp.packets import PacketFlags
from hccl_interop.mscclpp.plan import RELEASE, PlanBlock, PlanGpu, PlanOp
from hccl_interop.mscclpp.steps import PACKETS, SCRATCH, PlanSlice, PlanStep
from hccl_interop.mscclpp.structure import LIMIT
from hccl_py.call.ops import OPS

MAX_CHANNELS = 16
MAX_BARRIERS = 16
MAX_THREADS = 1024
MAX_PASSES = (1 << 16) - 1

_LOST, _MESSAGE, _PACKETS = "LOST_DEPENDENCY", "MESSAGE_MISMATCH", "PACKET_REUSE"
_PLAIN_SENDS = ("put", "pws", "pwsf", "res", "rres", "get", "rre", "glres", "gstore")


def defects_of_call(call: PlanCall) -> Iterator[Defect]:
    """Yield the defects that the plan and the size of the call show."""
    yield from _of_plan(call)
    for gpu in call.plan.gpus:
        for block in gpu.blocks:
            yield from _of_block(gpu, block)
            for op in block.every():
                where = f"{op} of threadblock {block.id} of GPU {gpu.id}"
                for message, hint, is_warning in _of_op(call, gpu, block, op):
                    yield Defect(
                        LIMIT, (gpu.id,), op.line, f"The {where} {message}", hint, False, is_warning
                    )
    yield from _of_switches(call)


def _of_plan(call: PlanCall) -> Iterator[Defect]:
    plan, size = call.plan, call.message_bytes
    if plan.min_bytes > plan.max_bytes:
        message = (
            f"min_message_size is {plan.min_bytes}, and max_message_size is {plan.max_bytes}: no "
            "data size is between them."
        )
        yield Defect(LIMIT, (), plan.line, message, "Exchange the two.")
    elif not plan.min_bytes <= size <= plan.max_bytes:
        message = (
            f"The message of {size} bytes is not between min_message_size, {plan.min_bytes}, and "
            f"max_message_size, {plan.max_bytes}: the executor refuses the call."
        )
        yield Defect(LIMIT, (), plan.line, message, "Give another -b.")
    if plan.threads > MAX_THREADS:
        message = f"num_threads_per_block is {plan.threads}, the executor takes {MAX_THREADS}."
        yield Defect(LIMIT, (), plan.line, message, "Use more threadblocks.")
    for gpu, sizes in zip(plan.gpus, call.sizes, strict=True):
        for name, size, chunks in (
            ("input", sizes.inputs, gpu.input_chunks),
            ("output", sizes.outputs, gpu.output_chunks),
        ):
            if size % plan.alignment or (chunks and size // plan.alignment % chunks):
                message = (
                    f"The {size} bytes of {name} of GPU {gpu.id} are no {chunks} chunks of whole "
                    f"{plan.alignment} bytes: the executor refuses the call."
                )
                yield Defect(LIMIT, (gpu.id,), gpu.line, message, "Give another -b.")
            elif not chunks and not plan.is_old:
                message = (
                    f"{name}_chunks of GPU {gpu.id} is 0: the executor of {RELEASE} divides by it."
                )
                hint = "Say how many chunks the buffer has, also where it is the other one."
                yield Defect(LIMIT, (gpu.id,), gpu.line, message, hint)


def _of_block(gpu: PlanGpu, block: PlanBlock) -> Iterator[Defect]:
    own, where = (gpu.id,), f"Threadblock {block.id} of GPU {gpu.id}"
    ops = [*block.every()]
    if len(ops) > MAX_OPS:
        message = f"{where} has {len(ops)} operations, the executor takes {MAX_OPS}."
        hint = "Spread them over several threadblocks; those in pipelines count, too."
        yield Defect(LIMIT, own, ops[MAX_OPS].line, message, hint)
    for noun, found in (("channels", block.channels), ("remote buffers", block.remotes)):
        for kind, ids in found.items():
            if len(ids) > MAX_CHANNELS:
                message = (
                    f"{where} has {len(ids)} {kind} {noun}, the executor takes {MAX_CHANNELS}."
                )
                yield Defect(LIMIT, own, block.line, message, "Spread them over threadblocks.")


def _of_op(
    call: PlanCall, gpu: PlanGpu, block: PlanBlock, op: PlanOp
) -> Iterator[tuple[str, str, bool]]:
    """Yield message, hint, and whether it is a warning."""
    if op.name == "barrier" and op.barrier >= MAX_BARRIERS:
        message = f"is barrier {op.barrier}, the executor has {MAX_BARRIERS}."
        yield message, "Barriers count from 0.", False
    if op.name == "pipeline":
        passes = call.sizes[gpu.id].passes(op)
        if passes > MAX_PASSES:
            message = f"makes {passes} passes, the executor counts them in 16 bits."
            yield message, "Give a larger unit_size, or a smaller -b.", False
        for inner in op.inner:
            if FORMS[inner.name].has_packets:
                message = f"has packets in its {inner}, which takes all of them in every pass."
                yield message, "Packets do not go through pipelines.", False
    yield from _of_channels(op)
    if op.reduce not in ("", "sum"):
        message = f"has reduce_op {op.reduce!r}: the executor of {RELEASE} adds all the same."
        yield message, "Make it a sum.", False
    yield from _of_sides(op)
    yield from _of_buffers(call, gpu, block, op)


def _of_channels(op: PlanOp) -> Iterator[tuple[str, str, bool]]:
    types = FORMS[op.name].types
    if types and not FORMS[op.name].moves and op.channel_type not in types:
        given = f"channel_type {op.channel_type!r}" if op.channel_type else "no channel_type"
        yield f"has {given}: nothing happens.", f"It is for {' and '.join(types)} channels.", False
    if op.name in ("pws", "pwsf") and op.channel_type == "memory":
        message = "signals nothing: over memory channels the executor only puts."
        yield message, "Put, then signal.", False
    if op.name == "flush" and op.channel_type == "port":
        message = f"is one of which the executor of {RELEASE} flushes no channel."
        yield message, "pwsf flushes; so does an answer of the peer.", True


def _of_sides(op: PlanOp) -> Iterator[tuple[str, str, bool]]:
    if not FORMS[op.name].moves:
        return
    counts = [chunks.size for chunks in (*op.src, *op.dst)]
    if len(set(counts)) > 1:
        found = ", ".join(map(str, counts))
        yield f"has sides of different numbers of chunks: {found}.", "Give all the same.", False
    if op.name == "get":
        for src, dst in zip(op.src, op.dst, strict=False):
            if src.first != dst.first:
                message = (
                    f"gets chunk {src.first} into chunk {dst.first}: the executor of {RELEASE} "
                    "takes the one's place for the other's."
                )
                yield message, "Let the peer put it, or use the same index.", False
                break
    several = len({chunks.buffer for chunks in op.src}) > 1
    if op.name in ("put", "ppkt") and op.channel_type == "memory" and several:
        message = "has sources in several buffers: the executor takes all from the first's."
        yield message, "Make an operation for each buffer.", False


def _of_buffers(
    call: PlanCall, gpu: PlanGpu, block: PlanBlock, op: PlanOp
) -> Iterator[tuple[str, str, bool]]:
    """Yield memory of peers that the executor reaches elsewhere than meant."""
    plan = call.plan
    buffers = set()
    for chunks in (*op.src, *op.dst) if FORMS[op.name].moves else ():
        if chunks.remote >= 0:
            buffers.add(gpu.remote(block, op.channel_type, chunks.remote).buffer)
        elif chunks.switch >= 0:
            buffers.add(gpu.switch(block, chunks.switch).buffer)
    if plan.double and "s" in buffers and op.name in _PLAIN_SENDS:
        message = (
            "reaches scratch of peers in the first half always, and use_double_scratch_buffer has "
            "the call work in the other half every second time."
        )
        yield message, "Only packets go to the half of the call.", False
    if plan.reuse and buffers - {"s"}:
        message = (
            f"reaches {'/'.join(sorted(buffers - {'s'}))} of peers, and with reuse_resources the "
            "executor keeps the addresses of the first call."
        )
        yield message, "Call it with the same buffers always, or go through scratch.", True
    slot = {1: "i", -1: "o"}.get(OPS[call.op.name].own_slot)
    if plan.inplace and slot in buffers:
        message = (
            f"reaches {slot} of a peer, which is its own slot in place: the executor takes the "
            "place of this rank's for it."
        )
        yield message, f"Name the slot in {'o' if slot == 'i' else 'i'}.", False


def _of_switches(call: PlanCall) -> Iterator[Defect]:
    """Yield groups that not all of their ranks have."""
    groups = [Counter(gpu.switches) for gpu in call.plan.gpus]
    for gpu in call.plan.gpus:
        for group, count in groups[gpu.id].items():
            for rank in group.ranks:
                if groups[rank][group] != count:
                    message = (
                        f"GPU {gpu.id} has {count} switch channels of {group.buffer} with ranks "
                        f"{', '.join(map(str, group.ranks))}, GPU {rank} has {groups[rank][group]}."
                    )
                    hint = "All ranks of a group make its channel together."
                    yield Defect(_MESSAGE, (gpu.id, rank), gpu.line, message, hint)
                    return


def defects_of_steps(
    call: PlanCall, steps: Mapping[tuple[int, int], list[PlanStep]]
) -> Iterator[Defect]:
    """Yield the defects of operations one by one."""
    yield from _of_semaphores(call, steps)
    yield from _of_packets(call, steps)
    yield from _of_scratch(call, steps)
    yield from missing_nops(steps)


def _of_semaphores(
    call: PlanCall, steps: Mapping[tuple[int, int], list[PlanStep]]
) -> Iterator[Defect]:
    for gpu in call.plan.gpus:
        change: Counter[int] = Counter()
        lines: dict[int, int] = {}
        for block in gpu.blocks:
            for step in steps[gpu.id, block.id]:
                for number in step.op.semaphores:
                    change[number] += 1 if step.op.name == "sem_release" else -1
                    lines[number] = step.op.line
        for number, by in sorted(change.items()):
            if by:
                more = "more" if by > 0 else "fewer"
                message = (
                    f"Semaphore {number} of GPU {gpu.id} is released {abs(by)} times {more} than "
                    "acquired: the next call begins with another value."
                )
                hint = "A call must leave semaphores as it found them."
                yield Defect(_LOST, (gpu.id,), lines[number], message, hint)


def _of_packets(
    call: PlanCall, steps: Mapping[tuple[int, int], list[PlanStep]]
) -> Iterator[Defect]:
    flags = PacketFlags(steps)
    for key, slice_ in flags.unwritten:
        op = steps[key.rank, key.block][key.position].op
        message = (
            f"The {op} of threadblock {key.block} of GPU {key.rank} waits for packets of scratch "
            f"bytes {slice_.offset} to {slice_.stop}, and not all of them are ever written."
        )
        hint = "The wait never ends: write them, or read others."
        yield Defect(_LOST, (key.rank,), op.line, message, hint)
    for one, other, slice_ in flags.doubles:
        names = []
        for write in (one, other):
            op = steps[write.step.rank, write.step.block][write.step.position].op
            names.append(f"{op} of threadblock {write.step.block} of GPU {write.step.rank}")
        message = (
            f"Packets of rank {slice_.rank} at scratch byte {slice_.offset} are written twice in a "
            f"call, by {names[0]} and by {names[1]}."
        )
        hint = "Their flag is the same: a reader cannot tell the two. Use other chunks of scratch."
        yield Defect(_PACKETS, (slice_.rank,), op.line, message, hint)


def _of_scratch(
    call: PlanCall, steps: Mapping[tuple[int, int], list[PlanStep]]
) -> Iterator[Defect]:
    """Yield scratch that has packets and plain data at once: packets take twice the room."""
    plain: dict[int, list[tuple[PlanSlice, PlanOp]]] = {}
    packed: dict[int, list[tuple[PlanSlice, PlanOp]]] = {}
    for listed in steps.values():
        for step in listed:
            for found in (*step.src, *step.dst):
                table = {SCRATCH: plain, PACKETS: packed}.get(found.buffer)
                if table is not None and found.size:
                    table.setdefault(found.rank, []).append((found, step.op))
    for rank in sorted(plain.keys() & packed.keys()):
        there = Overlaps((2 * s.offset, 2 * s.stop, op) for s, op in packed[rank])
        pairs = (
            (slice_, op, other)
            for slice_, op in plain[rank]
            for other in there.with_bytes_of(slice_.offset, slice_.stop)
        )
        first = next(pairs, None)
        if first is not None:
            slice_, op, other = first
            message = (
                f"Scratch of GPU {rank} from byte {slice_.offset} on has plain data of {op} (line "
                f"{op.line}) and packets of {other} (line {other.line})."
            )
            hint = "Packets take twice the room: use other chunks."
            yield Defect(_PACKETS, (rank,), op.line, message, hint)

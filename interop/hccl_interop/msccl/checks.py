"""Defects of an algorithm that show without its program: steps that the runtime refuses or takes in
another way than its author, and ends of a connection that disagree.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise, zip_longest

from hccl_interop.common.defects import Defect
from hccl_interop.msccl.algorithm import Connection, Gpu, ThreadBlock, XmlAlgorithm, XmlStep
from hccl_interop.msccl.places import signaller
from hccl_interop.msccl.protocols import MAX_COUNT
from hccl_py.call.ops import OPS

MAX_STEPS = 64
MAX_BLOCKS = 64
MAX_CHANNELS = 32
MAX_ON_CHANNEL = 32
_WARP = 32

_LIMIT, _LOST, _MESSAGE = "RUNTIME_LIMIT", "LOST_DEPENDENCY", "MESSAGE_MISMATCH"


def defects_of(algorithm: XmlAlgorithm, op: str) -> list[Defect]:
    """Return the defects in the order of the file."""
    found = [
        *_of_algorithm(algorithm, op),
        *(defect for gpu in algorithm.gpus for defect in _of_gpu(algorithm, gpu, op)),
        *_of_connections(algorithm),
    ]
    return sorted(found, key=lambda defect: defect.line)


def _of_algorithm(algorithm: XmlAlgorithm, op: str) -> Iterator[Defect]:
    low, high = algorithm.min_bytes, algorithm.max_bytes
    if low is not None and high is not None and low > high > 0:
        message = f"minBytes is {low}, and maxBytes is {high}: no data size is between them."
        yield Defect(_LIMIT, (), algorithm.line, message, "Exchange the two.")
    if algorithm.threads % _WARP:
        message = f"nthreads is {algorithm.threads}, which is no multiple of {_WARP}."
        yield Defect(_LIMIT, (), algorithm.line, message, "Give whole warps.")
    if not (algorithm.inplace or algorithm.outofplace):
        message = "inplace and outofplace are both 0: the runtime never takes the algorithm."
        yield Defect(_LIMIT, (), algorithm.line, message, "Set what the algorithm is for.")


def _of_gpu(algorithm: XmlAlgorithm, gpu: Gpu, op: str) -> Iterator[Defect]:
    own = (gpu.id,)
    ids = [block.id for block in gpu.blocks]
    if ids != list(range(len(ids))):
        missing = next(number for number in range(len(ids) + 1) if number not in ids)
        message = (
            f"The threadblocks of GPU {gpu.id} are not numbered in a row: {missing} is missing."
        )
        yield Defect(
            _LIMIT, own, gpu.line, message, "Number them from 0; the runtime refuses gaps."
        )
    if len(ids) > MAX_BLOCKS:
        message = f"GPU {gpu.id} has {len(ids)} threadblocks, the runtime takes {MAX_BLOCKS}."
        yield Defect(_LIMIT, own, gpu.line, message, "Let a threadblock send and receive.")
    yield from _of_chunks(algorithm, gpu, op)
    on_channel: dict[tuple[int, bool], int] = defaultdict(int)
    for block in gpu.blocks:
        yield from _of_block(algorithm, gpu, block)
        for peer, is_sender in ((block.send, True), (block.recv, False)):
            on_channel[block.channel, is_sender] += peer >= 0
    for (channel, is_sender), count in on_channel.items():
        if count > MAX_ON_CHANNEL:
            verb = "send" if is_sender else "receive"
            message = (
                f"{count} threadblocks of GPU {gpu.id} {verb} on channel {channel}, "
                f"the runtime takes {MAX_ON_CHANNEL}."
            )
            yield Defect(_LIMIT, own, gpu.line, message, "Use more channels.")


def _of_chunks(algorithm: XmlAlgorithm, gpu: Gpu, op: str) -> Iterator[Defect]:
    """Yield GPUs whose chunks of input or output do not add up to nchunksperloop."""
    facts, ranks = OPS[op], algorithm.ranks
    gathers, scatters = (
        facts.slots_out and not facts.slots_in,
        facts.slots_in and not facts.slots_out,
    )
    for name, chunks, times in (
        ("i_chunks", gpu.i_chunks, ranks if gathers else 1),
        ("o_chunks", gpu.o_chunks, ranks if scatters else 1),
    ):
        if facts.rooted or facts.members or not chunks or chunks * times == algorithm.chunks:
            continue
        per_rank = f" times {times} ranks" if times > 1 else ""
        message = (
            f"{name} of GPU {gpu.id} is {chunks}{per_rank}, and nchunksperloop is "
            f"{algorithm.chunks}."
        )
        yield Defect(
            _LIMIT, (gpu.id,), gpu.line, message, "The runtime refuses other numbers than 0."
        )


def _of_block(algorithm: XmlAlgorithm, gpu: Gpu, block: ThreadBlock) -> Iterator[Defect]:
    own, where = (gpu.id,), f"Threadblock {block.id} of GPU {gpu.id}"
    if len(block.steps) > MAX_STEPS:
        message = f"{where} has {len(block.steps)} steps, the runtime takes {MAX_STEPS}."
        hint = "Spread them over several threadblocks."
        yield Defect(_LIMIT, own, block.steps[MAX_STEPS].line, message, hint)
    channels = MAX_CHANNELS if algorithm.channels is None else algorithm.channels
    if block.channel >= min(channels, MAX_CHANNELS):
        most = f"nchannels is {channels}" if channels <= MAX_CHANNELS else "the runtime has 32"
        message = f"{where} is on channel {block.channel}, and {most}."
        yield Defect(_LIMIT, own, block.line, message, "Channels count from 0.")
    for position, step in enumerate(block.steps):
        yield from _of_step(gpu, block, position, step)
    for before, step in pairwise(block.steps):
        if step.goes_on_from(before) and step.cnt != before.cnt:
            message = (
                f"The step {step.s} (re) of threadblock {block.id} of GPU {gpu.id} adds {step.cnt} "
                f"chunks to where the step before adds {before.cnt}: the runtime does both at "
                f"once, with {step.cnt}."
            )
            yield Defect(_LIMIT, own, step.line, message, "Give both the same cnt.")


def _of_step(gpu: Gpu, block: ThreadBlock, position: int, step: XmlStep) -> Iterator[Defect]:
    own, where = (
        (gpu.id,),
        f"step {position} ({step.type}) of threadblock {block.id} of GPU {gpu.id}",
    )
    form = step.form
    if step.s != position:
        message = f"{where[0].upper()}{where[1:]} is called s={step.s}."
        hint = "Number the steps of a threadblock from 0: deps counts them by place."
        yield Defect(_LIMIT, own, step.line, message, hint)
    for needed, peer, verb, name in (
        (form.sends, block.send, "sends", "send"),
        (form.receives, block.recv, "receives", "recv"),
    ):
        if needed and peer < 0:
            message = f"The {where} {verb}, and {name} of its threadblock is -1."
            yield Defect(_LIMIT, own, step.line, message, "Name the peer.", is_fatal=True)
    if step.cnt >= MAX_COUNT:
        message = f"The {where} moves {step.cnt} chunks, the runtime takes less than {MAX_COUNT}."
        yield Defect(_LIMIT, own, step.line, message, "Make several steps of it.")
    chunks = {"i": gpu.i_chunks, "o": gpu.o_chunks, "s": gpu.s_chunks}
    checked = (form.src and step.type != "rrc", form.dst and step.type != "rrc")
    for local, is_checked in zip((step.src, step.dst), checked, strict=True):
        if is_checked and local.offset >= chunks[local.buffer]:
            message = (
                f"The {where} uses chunk {local.offset} of buffer {local.buffer}, and "
                f"{local.buffer}_chunks is {chunks[local.buffer]}."
            )
            yield Defect(_LIMIT, own, step.line, message, "Chunks count from 0.")
    yield from _of_dependency(gpu, block, position, step, where)


def _of_dependency(
    gpu: Gpu, block: ThreadBlock, position: int, step: XmlStep, where: str
) -> Iterator[Defect]:
    own = (gpu.id,)
    following = block.steps[position + 1] if position + 1 < len(block.steps) else None
    if step.type == "nop" and step.depid < 0:
        message = f"The {where} waits for nothing, and is not counted: deps of others miss by one."
        yield Defect(_LIMIT, own, step.line, message, "Take it out.")
    elif step.type == "nop" and (following is None or following.depid < 0):
        message = f"The {where} adds a dependency to the next step, which has none of its own."
        if following is None:
            message = f"The {where} adds a dependency to a next step, and there is none."
        hint = "Put one depid on the step itself: the runtime refuses others."
        yield Defect(_LIMIT, own, step.line, message, hint)
    if step.depid < 0:
        return
    target = next((b for b in gpu.blocks if b.id == step.depid), None)
    waits = f"The {where} waits for step {step.deps} of threadblock {step.depid}"
    if target is None:
        message = f"{waits}, and GPU {gpu.id} has no such threadblock."
        yield Defect(_LOST, own, step.line, message, "depid is the id of one of its threadblocks.")
    elif step.deps < 0:
        message = f"{waits}: that is over from the beginning."
        yield Defect(_LOST, own, step.line, message, "deps counts steps from 0.")
    elif step.deps >= len(target.steps):
        message = f"{waits}, which has {len(target.steps)} steps."
        yield Defect(_LOST, own, step.line, message, "deps counts steps from 0.")
    elif not target.steps[step.deps].hasdep or target.steps[step.deps].type == "nop":
        yield _unsignalled(own, step, target, waits)


def _unsignalled(own: tuple[int, ...], step: XmlStep, target: ThreadBlock, waits: str) -> Defect:
    """Return the defect of a step that another waits for, and that does not say when it is over."""
    line = target.steps[step.deps].line
    why = "is a nop" if target.steps[step.deps].type == "nop" else 'has hasdep="0"'
    later = signaller(target, step.deps)
    end = "the wait never ends" if later is None else f"the wait ends with step {later} only"
    message = f"{waits}, which {why} (line {line}): {end}."
    return Defect(
        _LOST, own, step.line, message, 'Set hasdep="1" there.', is_warning=later is not None
    )


def _of_connections(algorithm: XmlAlgorithm) -> Iterator[Defect]:
    """Yield connections that two threadblocks use, and messages that differ at their two ends."""
    sent: dict[Connection, list[tuple[int, XmlStep]]] = defaultdict(list)
    received: dict[Connection, list[tuple[int, XmlStep]]] = defaultdict(list)
    for gpu, block, _, step in algorithm.steps():
        if step.form.sends and block.send >= 0:
            sent[gpu.outgoing(block)].append((block.id, step))
        if step.form.receives and block.recv >= 0:
            received[gpu.incoming(block)].append((block.id, step))
    for name in {**sent, **received}:
        ends = [_shared(name, sent[name], "send"), _shared(name, received[name], "receive")]
        if any(ends):
            yield from (end for end in ends if end)
        else:
            yield from _unequal(name, sent[name], received[name])


def _shared(name: Connection, steps: list[tuple[int, XmlStep]], verb: str) -> Defect | None:
    other = next((step for block, step in steps if block != steps[0][0]), None)
    if other is None:
        return None
    message = f"Two threadblocks of one GPU {verb} on {name}; their messages have no order."
    hint = "Give one of them, and its peer, another channel."
    rank = name.sender if verb == "send" else name.receiver
    return Defect(_LIMIT, (rank,), other.line, message, hint, is_fatal=True)


def _unequal(
    name: Connection, sent: list[tuple[int, XmlStep]], received: list[tuple[int, XmlStep]]
) -> Iterator[Defect]:
    """Yield the first message of which the two ends say different things."""
    ranks = (name.sender, name.receiver)
    for number, (there, here) in enumerate(zip_longest(sent, received)):
        message = f"Message {number} of {name}"
        if there is None or here is None:
            given, verb = (here, "sent") if there is None else (there, "received")
            assert given is not None
            place = f"{'received' if there is None else 'sent'} by step {given[1].s}"
            text = f"{message} is {place} of threadblock {given[0]}, and never {verb}."
            hint = "Every send of a connection needs a receive, in the same order."
            yield Defect(_MESSAGE, ranks, given[1].line, text, hint)
            return
        if there[1].cnt != here[1].cnt:
            text = (
                f"{message} is sent with {there[1].cnt} chunks (line {there[1].line}) and "
                f"received with {here[1].cnt}."
            )
            yield Defect(_MESSAGE, ranks, here[1].line, text, "Give both ends the same cnt.")
            return

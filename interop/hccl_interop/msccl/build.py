"""From an algorithm to a program, as the runtime runs it.

    GPU            rank
    threadblock    sub stream k + 1 of the k-th threadblock; main forks and joins all of them
    connection     link with a FIFO of k slots in the receiver's buffer FIFO, two notifies for each
    send           wait until the slot is free, write into it, post it to the receiver
    receive        wait until the slot is full, take what is in it, post it to the sender (a credit)
    depid, deps    a notify of its own, posted when the other threadblock's step is over

The receiver gives the first credits when it starts, and as many in all as the sender sends
messages: so nothing is left over where both ends agree, and what is left over shows where they do
not.

A dependency is monotonic, it holds as soon as the other threadblock has *reached* the step; only
steps with hasdep="1" say that they have. So the post stands behind the first such step.

Chunks larger than a slot take several passes (`protocols.py`), which are written out one after the
other. Where messages stream, every slice is written, posted, waited for and sent on before the next
one is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hccl_interop.common.meaning import MscclCall
from hccl_interop.common.places import PlacedProgram, PlacedStream
from hccl_interop.msccl.algorithm import Gpu, Local, XmlAlgorithm
from hccl_interop.msccl.layout import FIFO, MAX_TASKS, CallLayout
from hccl_interop.msccl.places import Edges, Place, Role, describe_place
from hccl_interop.msccl.protocols import MessagePart
from hccl_interop.msccl.threadblocks import BlockWriter
from hccl_py.operators import make_operator
from hccl_py.program.builder import ProgramBuilder, TaskNote


def build(
    algorithm: XmlAlgorithm, call: MscclCall, *, keeps_own: bool = True, most: int = MAX_TASKS
) -> PlacedProgram[Place]:
    """Return the program of a call.

    The algorithm has no defects of structure (`checks.py`). ParameterError where the program would
    have more than some `most` tasks. Without `keeps_own`, copies that a call in place makes onto
    themselves are left out: they change nothing.
    """
    layout = CallLayout(algorithm, call, keeps_own=keeps_own)
    layout.check_size(most)
    builder = _builder(layout)
    places: dict[tuple[int, int], Sequence[Place]] = {}
    for gpu in algorithm.gpus:
        places[gpu.id, 0] = _main(layout, gpu, PlacedStream(builder.stream(gpu.id))).places
        edges = Edges(gpu)
        for number, block in enumerate(gpu.blocks, 1):
            stream = PlacedStream[Place](builder.stream(gpu.id, number))
            BlockWriter(layout, gpu, block, stream, edges).write()
            places[gpu.id, number] = stream.places
    rounds, protocol = layout.loop.passes, algorithm.protocol
    program = replace(builder.build(), rounds=rounds, protocol=protocol, has_op=layout.call.has_op)
    return PlacedProgram(program, places, describe_place, lambda p: p.role == Role.DEPENDENCY)


def place_of_call(algorithm: XmlAlgorithm, call: MscclCall) -> str:
    """Return the place of an algorithm and the data size of a call, as errors name them."""
    size = call.chunk * algorithm.chunks
    return f"{algorithm.source(algorithm.line)} at {size} bytes"


def _main(layout: CallLayout, gpu: Gpu, main: PlacedStream[Place]) -> PlacedStream[Place]:
    """Write the main stream of a rank: copies, then all threadblocks are started and joined."""
    for source, target, line in gpu.copies:
        note = TaskNote("copy", layout.algorithm.source(line))
        src, dst = (
            layout.memory(Local(*side), MessagePart(0, 1), None)
            for side in (("i", source), ("o", target))
        )
        if not layout.drops(gpu.id, src, dst):
            main.at(Place(Role.MOVE)).copy(src, dst, note)
    for stream in range(1, len(gpu.blocks) + 1):
        main.at(Place(Role.FORK)).local_post(stream, 0)
    for stream in range(1, len(gpu.blocks) + 1):
        main.at(Place(Role.FORK)).local_wait(stream - 1)
    return main


def _builder(layout: CallLayout) -> ProgramBuilder:
    """Return a builder with the buffers and links of a call; FIFOs learn their links."""
    algorithm, op = layout.algorithm, layout.call.op
    title = f"MSCCL {algorithm.protocol}, {algorithm.chunks} chunks"
    if algorithm.inplace and algorithm.outofplace:
        title += ", also in place"
    executor = f"{title}: {algorithm.name}" if algorithm.name else title
    builder = ProgramBuilder(op, algorithm.ranks, executor, notify_names=layout.signals.names)
    for buffer, sizes in zip(("IN", "OUT"), _user_bytes(layout), strict=True):
        builder.buffer(buffer, sizes)
    if any(gpu.s_chunks for gpu in algorithm.gpus) or any(
        (step.form.src and step.src.buffer == "s") or (step.form.dst and step.dst.buffer == "s")
        for *_, step in algorithm.steps()
    ):
        builder.buffer("SCRATCH", [gpu.s_chunks * layout.call.chunk for gpu in algorithm.gpus])
    if layout.fifos:
        builder.buffer(FIFO, layout.fifo_bytes)
    for name, fifo in layout.fifos.items():
        slots = fifo.slots(layout.protocol.slots, layout.loop.passes)
        fifo.link = builder.link(
            name.sender,
            name.receiver,
            plane=f"channel {name.channel}",
            notifies=layout.signals.count(slots),
            exports={name.receiver: [FIFO]},
        )
    return builder


def _user_bytes(layout: CallLayout) -> tuple[list[int], list[int]]:
    """Return the bytes of IN and OUT by rank; as many as their chunks where no op says them."""
    algorithm, call = layout.algorithm, layout.call
    if not call.has_op:
        chunks = [(gpu.i_chunks, gpu.o_chunks) for gpu in algorithm.gpus]
        return [i * call.chunk for i, _ in chunks], [o * call.chunk for _, o in chunks]
    inputs, outputs = make_operator(call.op.name).user_bytes(call.op, algorithm.ranks)
    return inputs.tolist(), outputs.tolist()

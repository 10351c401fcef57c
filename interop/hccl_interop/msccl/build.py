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

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hccl_interop.msccl.algorithm import Gpu, Local, XmlAlgorithm
from hccl_interop.msccl.layout import FIFO, CallLayout
from hccl_interop.msccl.operation import MscclCall
from hccl_interop.msccl.places import Edges, Place, Role, TaskQueue
from hccl_interop.msccl.protocols import MessagePart
from hccl_interop.msccl.threadblocks import BlockWriter
from hccl_py.formats.json_read import from_value
from hccl_py.formats.models import FORMAT
from hccl_py.formats.op import op_object
from hccl_py.operators import make_operator
from hccl_py.program.program import Program


@dataclass(frozen=True)
class ImportedTasks:
    """A program, and what each task comes from: `places[rank, stream]` in the stream's order."""

    program: Program
    places: Mapping[tuple[int, int], Sequence[Place]]


def build(algorithm: XmlAlgorithm, call: MscclCall, *, keeps_own: bool = True) -> ImportedTasks:
    """Return the program of a call.

    The algorithm has no defects of structure (`checks.py`). ParameterError where the program would
    be too large. Without `keeps_own`, copies that a call in place makes onto themselves are left
    out: they change nothing, and are in nobody's way.
    """
    layout = CallLayout(algorithm, call, keeps_own=keeps_own)
    layout.check_size()
    tasks: dict[str, dict[str, list[list[Any]]]] = {}
    places: dict[tuple[int, int], Sequence[Place]] = {}
    for gpu in algorithm.gpus:
        streams = _streams(layout, gpu)
        tasks[str(gpu.id)] = {str(stream): queue.tasks for stream, queue in streams.items()}
        places |= {(gpu.id, stream): queue.places for stream, queue in streams.items()}
    return ImportedTasks(from_value(_document(layout, tasks), algorithm.file), places)


def _streams(layout: CallLayout, gpu: Gpu) -> dict[int, TaskQueue[Place]]:
    """Return the streams of a rank."""
    main: TaskQueue[Place] = TaskQueue()
    for source, target, line in gpu.copies:
        note: dict[str, object] = {"label": "copy", "source": layout.algorithm.source(line)}
        src, dst = (
            layout.memory(Local(*side), MessagePart(0, 1), None)
            for side in (("i", source), ("o", target))
        )
        if not layout.is_own(gpu.id, src, dst):
            main.add(Place(Role.MOVE), note, "copy", src, dst)
    for stream in range(1, len(gpu.blocks) + 1):
        main.add(Place(Role.FORK), None, "local_post", stream, 0)
    for stream in range(1, len(gpu.blocks) + 1):
        main.add(Place(Role.FORK), None, "local_wait", stream - 1)
    edges = Edges(gpu)
    found = {0: main}
    for number, block in enumerate(gpu.blocks):
        found[number + 1] = BlockWriter(layout, gpu, block, number + 1, edges).queue()
    return found


def _document(
    layout: CallLayout, tasks: dict[str, dict[str, list[list[Any]]]]
) -> dict[str, object]:
    """Return the document of a program file."""
    algorithm = layout.algorithm
    title = f"MSCCL {algorithm.protocol}, {algorithm.chunks} chunks"
    if algorithm.inplace and algorithm.outofplace:
        title += ", also in place"
    return {
        "format": FORMAT,
        "executor": f"{title}: {algorithm.name}" if algorithm.name else title,
        "op": json.loads(json.dumps(op_object(layout.call.op))),
        "ranks": algorithm.ranks,
        "rounds": layout.loop.passes,
        "protocol": algorithm.protocol,
        "buffers": _buffers(layout),
        "notify_names": layout.signals.names,
        "links": [
            {
                "id": fifo.link,
                "ranks": [name.sender, name.receiver],
                "kind": "sdma",
                "notifies": layout.signals.count(
                    fifo.slots(layout.protocol.slots, layout.loop.passes)
                ),
                "plane": f"channel {name.channel}",
                "exports": {str(name.receiver): [FIFO]},
            }
            for name, fifo in layout.fifos.items()
        ],
        "tasks": tasks,
    }


def _buffers(layout: CallLayout) -> dict[str, dict[str, int]]:
    algorithm, op = layout.algorithm, layout.call.op
    inputs, outputs = make_operator(op.name).user_bytes(op, algorithm.ranks)
    scratch = any(gpu.s_chunks for gpu in algorithm.gpus) or any(
        (step.form.src and step.src.buffer == "s") or (step.form.dst and step.dst.buffer == "s")
        for *_, step in algorithm.steps()
    )
    found = {}
    for gpu in algorithm.gpus:
        rank = gpu.id
        sizes = {"IN": int(inputs[rank]), "OUT": int(outputs[rank])}
        sizes |= {"SCRATCH": gpu.s_chunks * layout.call.chunk} if scratch else {}
        sizes |= {FIFO: layout.fifo_bytes[rank]} if layout.fifos else {}
        found[str(rank)] = sizes
    return found

"""From a plan to a program, as the executor runs it.

GPU                rank
threadblock        sub stream k + 1 of the k-th threadblock; main starts and joins all of them
channel            link with a notify that counts at each end
signal, wait       post and wait on it
put, get           write and read
sums               copied into registers, added to there, stored
packets            data in PACKETS, and a notify for every operation that reads it
semaphore          local notify that counts; main gives it its first value
barrier            the first threadblock waits for the others, and lets them go
port channel       a stream of its own for each threadblock that uses it, which is asked to
                   write and to signal, and waited for by a flush
switch channel     reads and writes of all ranks of the group, one by one
pipeline           its passes one after the other
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hccl_interop.mscclpp.call import PlanCall
from hccl_interop.mscclpp.layout import PlanLayout
from hccl_interop.mscclpp.places import PlanPlace
from hccl_interop.mscclpp.steps import PlanStep
from hccl_interop.mscclpp.streams import RankStreams
from hccl_interop.mscclpp.threadblocks import write_block
from hccl_py.formats.json_read import from_value
from hccl_py.formats.models import FORMAT
from hccl_py.formats.op import op_object
from hccl_py.program.program import Program


@dataclass(frozen=True)
class PlanTasks:
    """A program, and what each task comes from: `places[rank, stream]` in the stream's order."""

    program: Program
    places: Mapping[tuple[int, int], Sequence[PlanPlace]]


def build(call: PlanCall, steps: Mapping[tuple[int, int], list[PlanStep]]) -> PlanTasks:
    """Return the program of a call. The plan has no defects of structure (`structure.py`)."""
    layout = PlanLayout(call, steps)
    tasks: dict[str, dict[str, list[list[Any]]]] = {}
    places: dict[tuple[int, int], Sequence[PlanPlace]] = {}
    for gpu in call.plan.gpus:
        streams = RankStreams(layout, gpu)
        for block in gpu.blocks:
            write_block(streams, block)
        streams.finish()
        found = enumerate(streams.queues)
        tasks[str(gpu.id)] = {str(stream): queue.tasks for stream, queue in found}
        places |= {(gpu.id, k): queue.places for k, queue in enumerate(streams.queues)}
    return PlanTasks(from_value(_document(layout, tasks), call.plan.file), places)


def _document(
    layout: PlanLayout, tasks: dict[str, dict[str, list[list[Any]]]]
) -> dict[str, object]:
    """Return the document of a program file."""
    plan = layout.plan
    return {
        "format": FORMAT,
        "executor": f"mscclpp {plan.protocol}, {plan.chunks} chunks: {plan.name}",
        "op": json.loads(json.dumps(op_object(layout.call.op))),
        "ranks": plan.ranks,
        "protocol": plan.protocol,
        "notifies": "counting",
        "alternating": layout.alternating(),
        "buffers": layout.buffers(),
        "notify_names": layout.notify_names(),
        "links": layout.links(),
        "tasks": tasks,
    }

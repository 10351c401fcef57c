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

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hccl_interop.common.places import PlacedProgram
from hccl_interop.mscclpp.call import PlanCall
from hccl_interop.mscclpp.layout import PlanLayout
from hccl_interop.mscclpp.places import PlanPlace
from hccl_interop.mscclpp.steps import PlanStep
from hccl_interop.mscclpp.streams import RankStreams
from hccl_interop.mscclpp.threadblocks import write_block
from hccl_py.program.builder import ProgramBuilder


def build(
    call: PlanCall, steps: Mapping[tuple[int, int], list[PlanStep]]
) -> PlacedProgram[PlanPlace]:
    """Return the program of a call. The plan has no defects of structure (`structure.py`)."""
    plan, layout = call.plan, PlanLayout(call, steps)
    executor = f"mscclpp {plan.protocol}, {plan.chunks} chunks: {plan.name}"
    builder = ProgramBuilder(call.op, plan.ranks, executor, notify_names=layout.notify_names())
    layout.add_to(builder)
    places: dict[tuple[int, int], Sequence[PlanPlace]] = {}
    for gpu in plan.gpus:
        streams = RankStreams(layout, gpu, builder)
        for block in gpu.blocks:
            write_block(streams, block)
        streams.finish()
        places |= {(gpu.id, k): queue.places for k, queue in enumerate(streams.queues)}
    program = replace(
        builder.build(),
        protocol=plan.protocol,
        counts_posts=True,
        alternating=layout.alternating(),
        has_op=call.has_op,
    )
    return PlacedProgram(program, places, PlanPlace.words, PlanPlace.is_authors)

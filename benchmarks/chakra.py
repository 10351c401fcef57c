"""Times to read and to simulate a Chakra trace of a transformer's training step.

    python benchmarks/chakra.py                     # 1 024 ranks
    python benchmarks/chakra.py --ranks 64 --jitter # every kernel of every rank takes another time
    python benchmarks/chakra.py --back              # the trace is written again, with its times

The step is made here: tensor parallelism inside a server, pipeline stages that hand microbatches
on, data parallelism over the rest. It is written to a folder as a trace, and what is measured is
`hccl-py simulate FOLDER`, a whole process held to one core.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import hccl_py as hccl
from hccl_interop.chakra import write_trace
from hccl_py.jobs import Job, JobStream

BF16, SUM = hccl.DataType.BF16, hccl.ReduceOp.SUM
HIDDEN, SEQUENCE = 8192, 4096
PARAMETERS = 12 * HIDDEN * HIDDEN
"""Of one layer."""


@dataclass(frozen=True)
class Step:
    """The shape of a training step."""

    ranks: int
    jitter: bool
    tp: int = 8
    stages: int = 4
    layers: int = 32
    microbatches: int = 4

    def job(self) -> Job:
        """Return the step as a job."""
        return _Maker(self).job()


class _Maker:
    def __init__(self, step: Step) -> None:
        self.step = step
        self.world = hccl.Communicator(ranks=step.ranks)
        self.groups = hccl.parallel_groups(self.world, tp=step.tp, pp=step.stages)
        self.made = Job(self.world.topology)
        self.compute, self.tp, self.dp = map(self.made.stream, ("compute", "tp", "dp"))
        self.per_stage = step.ranks // step.stages
        self.layers = step.layers // step.stages
        self.random = random.Random(1)
        count = HIDDEN * SEQUENCE
        self.activations = hccl.OpParam("all_reduce", count, BF16, SUM)
        self.message = hccl.OpParam("send_recv", count // step.tp, BF16, pairs=((0, 1),))
        self.gradients = hccl.OpParam("all_reduce", PARAMETERS // step.tp, BF16, SUM)
        # Two neighbouring hand-overs share a rank: even and odd ones have streams of their own.
        self.hand_over = {
            (stage, stage + way): (self.made.stream(f"{word} {stage}"), self._pairs(stage, way))
            for word, way in (("forward", 1), ("backward", -1))
            for stage in range(step.stages)
            if 0 <= stage + way < step.stages
        }

    def _pairs(self, stage: int, way: int) -> list[hccl.Communicator]:
        first = stage * self.per_stage
        return [
            self.world.create_group([r, r + way * self.per_stage])
            for r in range(first, first + self.per_stage)
        ]

    def job(self) -> Job:
        """Return the step: all microbatches forward, then all backward."""
        stages = range(self.step.stages)
        for stage in stages:
            for batch in range(self.step.microbatches):
                self._microbatch(stage, 1, f"forward {batch}", 900.0)
        for stage in stages:
            for batch in range(self.step.microbatches):
                last = batch == self.step.microbatches - 1
                self._microbatch(stage, -1, f"backward {batch}", 1800.0, last)
        self.compute.wait(self.dp.record())
        self._kernel(self.compute, "optimizer", 500.0)
        return self.made

    def _microbatch(
        self, stage: int, way: int, name: str, us: float, reduces: bool = False
    ) -> None:
        mine = range(stage * self.per_stage, (stage + 1) * self.per_stage)
        compute, tp, dp = (s.on(mine) for s in (self.compute, self.tp, self.dp))
        self._meet(stage - way, stage, mine, name)
        for layer in range(self.layers):
            for part in ("attention", "mlp"):
                self._kernel(compute, f"{name} {part} {layer}", us)
                tp.wait(compute.record())
                tp.run(self._here(self.groups.tp, mine), self.activations, f"{name} {part}")
                compute.wait(tp.record())
            if reduces:
                dp.wait(compute.record())
                dp.run(self._here(self.groups.dp, mine), self.gradients, f"gradients {layer}")
        self._meet(stage, stage + way, mine, name)

    def _meet(self, source: int, destination: int, mine: range, name: str) -> None:
        """Take or give what one stage hands to the next."""
        if (source, destination) not in self.hand_over:
            return
        stream, pairs = self.hand_over[source, destination]
        here, compute = stream.on(mine), self.compute.on(mine)
        if mine.start == source * self.per_stage:
            here.wait(compute.record())
            here.run(pairs, self.message, f"{name} send")
        else:
            here.run(pairs, self.message, f"{name} receive")
            compute.wait(here.record())

    def _here(self, groups: tuple[hccl.Communicator, ...], mine: range) -> list[hccl.Communicator]:
        return [group for group in groups if group.ranks[0] in mine]

    def _kernel(self, stream: JobStream, label: str, us: float) -> None:
        if self.step.jitter:
            factors = [self.random.uniform(0.95, 1.05) for _ in stream.ranks]
            stream.compute(np.round(us * np.array(factors)).tolist(), label)
        else:
            stream.compute(us, label)


def _timed(folder: str, *options: str) -> Iterator[str]:
    command = [sys.executable, "-m", "hccl_py", "simulate", folder, *options]
    start = time.perf_counter()
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}),
    )
    yield f"{time.perf_counter() - start:.1f} s: hccl-py simulate {' '.join(options[:1])}"
    yield done.stdout + done.stderr


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=1024)
    parser.add_argument("--jitter", action="store_true")
    parser.add_argument("--back", action="store_true", help="write it again, with its times")
    parser.add_argument("--keep", metavar="DIR", help="write the trace here")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.keep or str(Path(scratch) / "step")
        start = time.perf_counter()
        job = Step(given.ranks, given.jitter).job()
        nodes = write_trace(job, folder, prefix="step")
        size = sum(path.stat().st_size for path in Path(folder).iterdir())
        made = time.perf_counter() - start
        print(f"{made:.1f} s: {given.ranks} files, {nodes} nodes, {size >> 20} MiB, made here")
        options = ("--chakra", str(Path(scratch) / "timed")) if given.back else ()
        for line in _timed(folder, *options):
            print(line)


if __name__ == "__main__":
    main()

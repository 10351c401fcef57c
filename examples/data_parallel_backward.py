"""A data-parallel backward pass: how much of the gradients' all-reduce hides behind it.

12 layers of a transformer, bf16 gradients, 32 NPUs in 4 servers. Kernels of the backward pass run
on the compute stream. As soon as a bucket of gradients is complete, an event lets its all-reduce
begin on a stream of its own; the optimizer waits for the last one.
"""

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

import hccl_py as hccl
from hccl_py.jobs import Job, Overlap, overlap
from hccl_py.simulator import Stragglers

LAYERS, HIDDEN, TOKENS = 12, 1024, 4096
FLOPS = 150e12
TENSORS = {"mlp down": 4, "mlp up": 4, "attention out": 1, "qkv": 3}  # in units of HIDDEN**2
MIB = 1 << 20
LAYER = 2 * sum(TENSORS.values()) * HIDDEN**2


def all_reduce(size: int) -> hccl.OpParam:
    return hccl.OpParam("all_reduce", size // 2, hccl.DataType.BF16, hccl.ReduceOp.SUM)


def gradients() -> Iterator[tuple[str, int, float]]:
    """Yield the gradients of the backward pass, last layer first: name, bytes and µs."""
    for layer in reversed(range(LAYERS)):
        for tensor, squares in TENSORS.items():
            weights = squares * HIDDEN**2
            yield f"{tensor} {layer}", 2 * weights, 4 * weights * TOKENS / FLOPS * 1e6


def backward(world: hccl.Communicator, bucket: int, *, overlaps: bool = True) -> Job:
    """Reduce gradients in buckets of at least so many bytes."""
    job = Job(world.topology)
    compute, comm = job.stream("compute"), job.stream("dp")
    ready, filled = [], 0
    for name, size, microseconds in gradients():
        compute.compute(microseconds, name)
        filled += size
        if filled >= bucket:
            ready.append((compute.record(), filled))
            filled = 0
    ready.append((compute.record(), filled))
    for number, (event, size) in enumerate(ready):
        comm.wait(event if overlaps else ready[-1][0])
        comm.run(world, all_reduce(size), f"bucket {number}")
    compute.wait(comm.record())
    compute.compute(300.0, "optimizer")
    return job


def measured(job: Job, *slow: str, network: str = "uncontended") -> Overlap:
    timeline = hccl.simulate(
        job.program(), job.topology, network=network, slow=Stragglers.parse(slow)
    )
    return overlap(timeline)


def compared(world: hccl.Communicator) -> Table:
    """Compare sizes of buckets, and what one slow rank costs all others."""
    table = Table("buckets", "calls", "step ms", "communication", "exposed", "hidden", box=None)
    for name, job, *slow in (
        ("25 MiB, after the backward pass", backward(world, 25 * MIB, overlaps=False)),
        ("one bucket", backward(world, LAYERS * LAYER)),
        ("25 MiB", backward(world, 25 * MIB)),
        ("one per layer", backward(world, LAYER)),
        ("one per tensor", backward(world, 1)),
        ("25 MiB, rank 3 is 1.2x slow", backward(world, 25 * MIB), "rank=3:1.2x"),
    ):
        report = measured(job, *slow)
        worst = report.worst
        table.add_row(
            name,
            str(len(report.calls)),
            *(
                f"{column[worst] / 1e3:.2f}"
                for column in (report.total_us, report.communication_us, report.exposed_us)
            ),
            f"{report.overlapped_us[worst] / report.communication_us[worst]:.0%}",
        )
    return table


def tensor_parallel(world: hccl.Communicator, tp: int) -> Job:
    """Run layers whose activations are reduced in groups of `tp` ranks, which the next layer waits
    for, while the gradients of each layer are reduced across the groups.
    """
    groups = hccl.parallel_groups(world, tp=tp)
    job = Job(world.topology)
    compute, comm, dp = (job.stream(name) for name in ("compute", "tp", "dp"))
    for layer in reversed(range(LAYERS)):
        compute.compute(600.0, f"layer {layer}")
        dp.wait(compute.record())
        dp.run(groups.dp, all_reduce(LAYER // tp), f"gradients {layer}")
        comm.wait(compute.record())
        comm.run(groups.tp, all_reduce(2 * TOKENS * HIDDEN), f"activations {layer}")
        compute.wait(comm.record())
    compute.wait(dp.record())
    return job


def main() -> None:
    console = Console(width=100)
    with hccl.Communicator(servers=4, devices=8) as world:
        console.print(compared(world))
        console.print()
        for tp in (8, 16):
            job = tensor_parallel(world, tp)
            times = [
                f"{network} {measured(job, network=network).exposed_us.max() / 1e3:.2f} ms exposed"
                for network in ("uncontended", "contended")
            ]
            console.print(f"tensor parallel over {tp} ranks: {', '.join(times)}")


main()

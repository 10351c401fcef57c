"""all_reduce: on a ring, and on two ranks with every notify made by hand."""

from hccl_py.enums import Buffer, ReduceOp
from hccl_py.executor import (
    Mode,
    OpParam,
    PlaneRequest,
    Rank,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    require,
)
from hccl_py.orchestration import Link, Notify, Plane, Region, Stream, exchange


class RingAllReduce:
    """Chunks are reduced on their way round the ring; the finished ones go round once more."""

    op = "all_reduce"
    algorithm = "level0:NA;level1:ring"

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        return True

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        # What cannot be reduced inline lands beside; in graph mode that is scratch.
        scratch = op.size if rank.mode is Mode.GRAPH and not rank.inline_reduce else 0
        return ResourceRequest(
            planes=(PlaneRequest("flat", "ring", *exposed(rank)),),
            scratch_bytes=scratch if rank.size > 1 else 0,
            max_count=rank.ccl_bytes // op.unit,
        )

    def orchestrate(self, op: OpParam, rank: Rank[Region, Region]) -> None:
        n, ring, main = rank.size, rank.flat, rank.main
        work = rank.stage_in()
        chunks = work.split(n)
        for step in main.steps("reduce-scatter", n - 1):
            mine, theirs = chunks[(rank.id - 1 - step) % n], chunks[(rank.id - 2 - step) % n]
            exchange(main, ring.right, ring.left, send=mine, recv=theirs, reduce=True)
        for step in main.steps("all-gather", n - 1):
            mine, theirs = chunks[(rank.id - step) % n], chunks[(rank.id - 1 - step) % n]
            exchange(main, ring.right, ring.left, send=mine, recv=theirs)
        rank.deliver(work)


def exposed(rank: RankView) -> tuple[Buffer, ...]:
    if rank.mode is Mode.GRAPH and not rank.inline_reduce:
        return (Buffer.SCRATCH, Buffer.USER_OUT)
    return ()


class HandMadeSum:
    """Two ranks: each reads the other's data into scratch on a sub stream and adds it there."""

    op = "all_reduce"
    algorithm = "level0:NA"

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        return require(
            (topology.size == 2 and topology.is_single_server, "needs 2 ranks of one server"),
            (op.mode is Mode.OP_BASE, "works through CCL buffers: op-base mode only"),
            (op.reduce is ReduceOp.SUM, "adds"),
        )

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        def partner(index: int, size: int) -> list[int]:
            return [size - 1 - index]

        return ResourceRequest(
            planes=(
                PlaneRequest(
                    "flat",
                    partner,
                    input_mem=Buffer.CCL_IN,
                    output_mem=Buffer.CCL_OUT,
                    extra_notifies=1,
                ),
            ),
            sub_streams=1,
            notifies=2,
            scratch_bytes=rank.ccl_bytes,
            max_count=rank.ccl_bytes // op.unit,
        )

    def orchestrate(self, op: OpParam, rank: Rank[Region, Region]) -> None:
        plane: Plane = rank.flat
        link: Link = plane[1 - rank.id]
        main: Stream = rank.main
        sub: Stream = rank.subs[0]
        done, wake = rank.notifies
        assert isinstance(done, Notify)
        mine = rank.ccl_in.head(rank.user_in.size)
        beside = rank.scratch[0 : rank.user_in.size]
        main.copy(mine, rank.user_in)
        main.post(wake)
        sub.wait(wake)
        link.tx_ack(sub)
        link.rx_ack(sub)
        sub.copy(beside, link.remote(mine))
        sub.compute(1.5)
        link.post(sub, 0)  # I have read yours
        link.wait(sub, 0)
        sub.post(done)
        main.wait(done)
        main.reduce(mine, beside, ReduceOp.SUM)
        main.copy(rank.user_out, mine)

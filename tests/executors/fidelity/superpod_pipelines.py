"""Pipelines of several superpods of A3, written from HCCL's sources, as one rank runs them.

Files are those of libochao-huawei/hcomm @ 8958adb under src/legacy/ascend910/algorithm/impl/
coll_executor. Between servers and superpods both run rings. Blocks take turns with the halves A and
B of the CCL buffers, and so with the last two of notifiesMain and of notifiesAux; the last of the
sub streams has level2.
"""

from abc import ABC, abstractmethod

from tests.executors.fidelity import rings as plain
from tests.executors.fidelity.superpods import Executor, Grid
from tests.executors.fidelity.transports import Slice

ALIGN, EIGHT_MB = 128, 8192 * 1024


class Pipeline(Executor, ABC):
    """A rank of a call of `count` elements of `unit` bytes, with a CCL buffer of `room` bytes."""

    def __init__(self, rank: int, grid: Grid, count: int, unit: int, room: int) -> None:
        super().__init__(rank, grid, 0, op_base=True)
        self.count, self.unit, self.room = count, unit, room
        self.form = "aligned" if grid.rings > 1 else ""
        self.base = self.start = 0

    @property
    def sub_streams(self) -> int:
        """CalcStreamNum: two more."""
        return self.ring_subs + 2

    @property
    def blocks(self) -> int:
        """bufferSliceNum, numBlockTotal."""
        return -(-self.count // self.most)

    @property
    def most(self) -> int:
        """CalcLoopMaxCount; reduce_scatter's takes less, BuildPipelineLoopContext."""
        return self.room // 2 // self.grid.size // ALIGN * ALIGN // self.unit

    def block(self, number: int) -> int:
        """Turn to a block; return which half it has."""
        self.start = number * self.most * self.unit
        self.size = min(self.most, self.count - number * self.most) * self.unit
        self.base = number % 2 * (self.room // 2)
        return number % 2

    def slot(self, rank: int) -> Slice:
        """PrepareSlicesL0, with baseOffset."""
        return Slice(self.base + rank * self.size, self.size)

    def user_slot(self, rank: int) -> Slice:
        """PrepareUserMemSlices, from where the block begins in user memory."""
        return Slice(rank * self.count * self.unit + self.start, self.size)

    @property
    def outer(self) -> int:
        """mainStreamL2_, streamL2: subStreams_.back()."""
        return len(self.me.streams) - 1

    @abstractmethod
    def run(self) -> None:
        """RunLoop."""


class AllGather(Pipeline):
    """coll_all_gather/coll_all_gather_pipeline_for_910_93_executor.cc:246 RunLoop."""

    def run(self) -> None:
        """A block's exchange between superpods, then what the block before has inside."""
        self.me.signal_sub(0, self.ring_subs)
        for loop in range(self.blocks + 1):
            if loop < self.blocks:
                self.between(loop)
            if loop >= 1:
                self.within(loop - 1, loop)

    def between(self, number: int) -> None:
        """:173 RunL2Stage."""
        half = self.block(number)
        if number == 0 or number >= 2:
            self.me.await_sub(self.outer, self.ring_subs + half)
        ours = [self.slot(rank) for rank in self.level2]
        self.me.run_on(self.outer, plain.ring_all_gather, self.level2, rdma=True, slices=ours)
        self.me.signal_main(self.outer, self.ring_subs + half)

    def within(self, number: int, loop: int) -> None:
        """:207 RunL1L0Stage."""
        half = self.block(number)
        self.me.await_main(0, self.ring_subs + half)
        self.me.run(plain.ring_all_gather, self.level1, rdma=False, slices=self.sets())
        users = self.places(self.slots(user=True))
        self.all_gather_inside(self.places(self.slots()), self.form, users)
        if loop + 1 < self.blocks:
            self.me.signal_sub(0, self.ring_subs + half)


class ReduceScatter(Pipeline):
    """coll_reduce_scatter/coll_reduce_scatter_pipeline_for_910_93_executor.cc:50 RunLoop."""

    @property
    def most(self) -> int:
        """:117 BuildPipelineLoopContext."""
        return min(super().most, EIGHT_MB // self.unit)

    def run(self) -> None:
        """What a block has inside, then the exchange of the block before between superpods."""
        for i in range(self.blocks + 1):
            if i < self.blocks:
                half = self.block(i)
                if i >= 2:
                    self.me.await_main(0, self.ring_subs + half)
                self.within()
                self.me.signal_sub(0, self.ring_subs + half)
            if i >= 1:
                half = self.block(i - 1)
                self.me.await_sub(self.outer, self.ring_subs + half)
                self.between()
                self.me.signal_main(self.outer, self.ring_subs + half)
        for number in range(max(self.blocks - 2, 0), self.blocks):  # WaitForRemainingL2Signals
            self.me.await_main(0, self.ring_subs + number % 2)

    def within(self) -> None:
        """KernelRunLevel0To1."""
        self.reduce_scatter_inside(self.places(self.slots()), self.form, None)
        self.me.run(plain.ring_reduce_scatter, self.level1, rdma=False, slices=self.sets())

    def between(self) -> None:
        """KernelRunLevel2."""
        ours = [self.slot(rank) for rank in self.level2]
        self.me.run_on(self.outer, plain.ring_reduce_scatter, self.level2, rdma=True, slices=ours)

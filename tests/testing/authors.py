"""Executors as authors write them, right and wrong, for tests of the testing kit."""

from typing import Any

from hccl_py.orchestration import exchange
from hccl_py.plugins.executor import Mode, PlaneRequest, ResourceRequest, Unsuitable, require


class Turns:
    """A right all_gather: every rank reads one peer after the other. 2 to 4 ranks of one server."""

    op = "all_gather"
    algorithm = "level0:mesh"

    def suits(self, op: Any, topology: Any) -> bool | Unsuitable:
        return require(
            (topology.is_single_server, "one server"),
            (2 <= topology.size <= 4, "2 to 4 ranks"),
            (op.mode is Mode.OP_BASE, "op-base mode"),
        )

    def resources(self, op: Any, rank: Any) -> ResourceRequest:
        most = rank.ccl_bytes // op.unit
        return ResourceRequest(planes=(PlaneRequest("flat", "mesh"),), max_count=most)

    def orchestrate(self, op: Any, rank: Any) -> None:
        staged = rank.ccl_in.head(rank.user_in.size)
        rank.main.copy(staged, rank.user_in)
        rank.main.copy(rank.user_out[rank.id], staged)
        for k in range(1, rank.size):
            to, frm = rank.flat[(rank.id + k) % rank.size], rank.flat[(rank.id - k) % rank.size]
            self.step(rank, to, frm, staged, rank.user_out[(rank.id - k) % rank.size])
        self.end(rank)

    def step(self, rank: Any, to: Any, frm: Any, staged: Any, recv: Any) -> None:
        to.tx_ack(rank.main)
        frm.rx_ack(rank.main)
        rank.main.copy(recv, frm.remote(staged))
        frm.tx_data_signal(rank.main)
        to.rx_data_signal(rank.main)

    def end(self, rank: Any) -> None:
        """Nothing more to do."""


class NoAcks(Turns):
    """Reads without asking whether the data is there."""

    def step(self, rank: Any, to: Any, frm: Any, staged: Any, recv: Any) -> None:
        rank.main.copy(recv, frm.remote(staged))
        frm.tx_data_signal(rank.main)
        to.rx_data_signal(rank.main)


class LeavesEarly(Turns):
    """Does not say when it has read a peer's memory."""

    def step(self, rank: Any, to: Any, frm: Any, staged: Any, recv: Any) -> None:
        to.tx_ack(rank.main)
        frm.rx_ack(rank.main)
        rank.main.copy(recv, frm.remote(staged))


class NeverAnswers(Turns):
    """Waits for a DataSignal that nobody posts."""

    def step(self, rank: Any, to: Any, frm: Any, staged: Any, recv: Any) -> None:
        to.tx_ack(rank.main)
        frm.rx_ack(rank.main)
        rank.main.copy(recv, frm.remote(staged))
        to.rx_data_signal(rank.main)


class OwnInput(Turns):
    """Takes its own data instead of the peer's."""

    def step(self, rank: Any, to: Any, frm: Any, staged: Any, recv: Any) -> None:
        super().step(rank, to, frm, staged, recv)
        rank.main.copy(recv, staged)


class Overflows(Turns):
    """Stages more than a CCL buffer holds, for lack of a max_count."""

    def resources(self, op: Any, rank: Any) -> ResourceRequest:
        return ResourceRequest(planes=(PlaneRequest("flat", "mesh"),))


class OneRound(Turns):
    """Is right while one round takes everything: it works at the beginning of user memory."""

    def orchestrate(self, op: Any, rank: Any) -> None:
        if rank.user_in.offset > 0:
            return
        super().orchestrate(op, rank)


class ClobbersItsInput(Turns):
    """Reads its input again at the end: in place it is output by then."""

    def end(self, rank: Any) -> None:
        rank.main.copy(rank.user_out[rank.id], rank.user_in)


class KeepsState(Turns):
    """Counts its calls, and does something else every other time."""

    calls = 0

    def orchestrate(self, op: Any, rank: Any) -> None:
        type(self).calls += 1
        super().orchestrate(op, rank)
        if self.calls % 2:
            staged = rank.user_in.size
            rank.main.copy(rank.ccl_out.head(staged), rank.ccl_in.head(staged))


class OneTooMany(Turns):
    """Ends with a ring of notifies that orders nothing."""

    def end(self, rank: Any) -> None:
        exchange(
            rank.main, rank.flat[(rank.id + 1) % rank.size], rank.flat[(rank.id - 1) % rank.size]
        )


class WokenTwice(Turns):
    """A sub stream waits for main's copy, and then for a notify that main posted before that."""

    def resources(self, op: Any, rank: Any) -> ResourceRequest:
        most = rank.ccl_bytes // op.unit
        planes = (PlaneRequest("flat", "mesh"),)
        return ResourceRequest(planes=planes, sub_streams=1, notifies=3, max_count=most)

    def end(self, rank: Any) -> None:
        done, wake, again = rank.notifies
        sub, beside = rank.subs[0], rank.ccl_out.head(rank.user_in.size)
        rank.main.post(wake)
        rank.main.copy(beside, rank.ccl_in.head(rank.user_in.size))
        rank.main.post(again)
        sub.wait(again)
        sub.wait(wake)
        sub.copy(rank.user_out[rank.id], beside)
        sub.post(done)
        rank.main.wait(done)


class Raises(Turns):
    """Fails while it records."""

    def orchestrate(self, op: Any, rank: Any) -> None:
        rank.mian.copy(rank.user_out[rank.id], rank.user_in)


class SuitsNothing(Turns):
    """Refuses every call."""

    def suits(self, op: Any, topology: Any) -> Unsuitable:
        return Unsuitable("it is Sunday")


EXECUTORS = (Turns, NoAcks)

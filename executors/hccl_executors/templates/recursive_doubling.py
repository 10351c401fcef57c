"""Recursive doubling in slots: partners at distance 1, 2, 4, .. add each other's partial sums, each
step's in a slot of its own, so that no rank waits for a reader before it goes on; for SDMA links.

With b = 2^k the largest power of two up to p, rank r of the first p - b has the helper r + b.

    p = b    slot 1 gets the data, and the partner adds its own there          step 1
             slot s + 1 gets slot s, and the partner's slot s is added         step s + 1 = 2 .. k;
             the last one in user memory
    p > b    slots 0 and 1 get the data, to which helpers have added theirs    before
             the partner's slot s - 1 is added to slot s                       step s = 1 .. k
             slot k goes to user memory, and helpers read it                   after

Between two steps the partner hears that its slot has been used, the next slot is filled, the next
partner is met: all on main. HCCL has a form with two sub streams for that, which it does not run.

Cost for p ranks and n bytes: p = b: k(α + nβ + nγ); otherwise (k + 1)(α + nβ + nγ) + α + nβ, of
which early Acks hide an α for some p. Source: HCCL's AllReduceHDOptim (hcomm b5f3e5b,
alg_template/temp_all_reduce).
"""

from hccl_py.orchestration import Link, Plane, Region
from hccl_py.plugins.executor import AnyRank


def slots_needed(p: int) -> int:
    """Return the number of slots for p ranks."""
    return (p - 1).bit_length()


def recursive_doubling_all_reduce(rank: AnyRank, plane: Plane, memory: Region) -> None:
    """Leave in user_out the sum of all ranks' user_in; `memory` is exported and has room for the
    slots. Three ranks or more.
    """
    doubling = _Doubling(rank, plane, memory)
    doubling.fill()
    if plane.id < doubling.block:
        doubling.run()
    if doubling.has_helpers:
        doubling.hand_out()


class _Doubling:
    """One rank's slots, and where it stands."""

    def __init__(self, rank: AnyRank, plane: Plane, memory: Region) -> None:
        p, size = int(plane.size), rank.user_in.size
        self.rank, self.plane, self.main = rank, plane, rank.main
        self.steps = p.bit_length() - 1
        self.block = 1 << self.steps
        self.has_helpers = p > self.block
        self.slots = [memory[i * size : (i + 1) * size] for i in range(slots_needed(p))]

    def into(self, step: int) -> Region:
        """Return the memory of the sum of step 1 .. k."""
        is_last = step == self.steps and not self.has_helpers
        return self.rank.user_out if is_last else self.slots[step]

    def fill(self) -> None:
        """Put the data where the first step finds it; helpers add theirs."""
        main, data = self.main, self.rank.user_in
        if not self.has_helpers:
            main.copy(self.slots[1], data)
            return
        with main.phase("helpers add"):
            if self.plane.id >= self.block:
                helped = self.plane[self.plane.id - self.block]
                helped.rx_ack(main)
                main.reduce(helped.remote(self.slots[0]), data)
                helped.tx_data_signal(main)
                return
            main.copy(self.slots[0], data)
            if self.plane.id + self.block < self.plane.size:
                helper = self.plane[self.plane.id + self.block]
                helper.tx_ack(main)
                helper.rx_data_signal(main)
            main.copy(self.slots[1], self.slots[0])

    def run(self) -> None:
        """Add the partners' sums."""
        main = self.main
        partner = self.partner(1)
        for step in (i + 1 for i in main.steps("all-reduce", self.steps)):
            if step == 1:
                partner.tx_ack(main)
                partner.rx_ack(main)
            if step == 1 and not self.has_helpers:
                main.reduce(partner.remote(self.slots[1]), self.rank.user_in)
            else:
                main.reduce(self.into(step), partner.remote(self.slots[step - 1]))
            if step < self.steps:
                partner = self.between(step, partner)
        partner.tx_data_signal(main)
        partner.rx_data_signal(main)

    def between(self, step: int, partner: Link) -> Link:
        """Leave one partner, fill the next slot and meet the next partner, which is returned."""
        following = self.partner(step + 1)
        self.part(partner)
        self.main.copy(self.into(step + 1), self.slots[step])
        following.tx_ack(self.main)
        following.rx_ack(self.main)
        return following

    def part(self, partner: Link) -> None:
        """Say that the partner's slot has been used, and hear it."""
        partner.tx_data_signal(self.main)
        partner.rx_data_signal(self.main)

    def partner(self, step: int) -> Link:
        """Return the partner of step 1 .. k."""
        return self.plane[self.plane.id ^ (1 << (step - 1))]

    def hand_out(self) -> None:
        """Bring the sum to user memory, that of helpers too."""
        main, total = self.main, self.slots[self.steps]
        with main.phase("helpers read"):
            if self.plane.id >= self.block:
                helped = self.plane[self.plane.id - self.block]
                helped.rx_ack(main)
                main.copy(self.rank.user_out, helped.remote(total))
                helped.tx_data_signal(main)
            elif self.plane.id + self.block < self.plane.size:
                helper = self.plane[self.plane.id + self.block]
                helper.tx_ack(main)
                main.copy(self.rank.user_out, total)
                helper.rx_data_signal(main)
            else:
                main.copy(self.rank.user_out, total)

"""All-to-all in a mesh: pairs of ranks at growing gaps, both neighbours at a gap at once.

HCCL: InsTempAlltoAllVMesh1D. Up to 16 pairs are under way, each on a thread and in a slot of the
HCCL buffer of its own: a rank writes its block into the peer's slot, and copies what it got there
to the output.
"""

from __future__ import annotations

from collections.abc import Iterator

from hccl_executors.aicpu.duplex import exchange_write
from hccl_executors.aicpu.seats import Seat, Template
from hccl_py.orchestration import Chunks
from hccl_py.values import RankInt

MOST_PAIRS = 16


class PairsOfRanks(Template):
    """The template; its main thread copies the rank's own block."""

    def subs(self, n: int) -> int:
        return at_once(n)

    def scratch(self, n: int) -> int:
        return at_once(n)

    def run(self, seat: Seat, source: Chunks, target: Chunks, slots: Chunks) -> None:
        """Send block i of `source` to rank i, and receive its block into block i of `target`."""
        seat.pre_sync()
        if source[seat.me].size > 0:
            seat.main.copy(target[seat.me], source[seat.me])
        for peer, mine, theirs in self.pairs(seat):
            thread, channel = seat.threads[1 + mine], seat.channel(peer)
            sent, received = source[peer], target[peer]
            moves = [(slots[theirs].head(sent.size), sent)]
            exchange_write(thread, channel, moves, sends=sent.size, receives=received.size)
            if received.size > 0:
                thread.copy(received, slots[mine].head(received.size))
        seat.post_sync()

    def pairs(self, seat: Seat) -> Iterator[tuple[RankInt, int, int]]:
        """Yield (peer, my slot, the peer's slot) of every pair in turn."""
        n, each = seat.n, (at_once(seat.n) + 1) // 2
        for gap in range(1, n // 2 + 1):
            near, far = each - 1 - (gap - 1) % each, each + (gap - 1) % each
            if 2 * gap == n:
                yield (seat.me + gap) % n, 0, 0
                return
            yield (seat.me - gap) % n, near, far
            yield (seat.me + gap) % n, far, near


def at_once(n: int) -> int:
    """Return the number of a rank's pairs that are under way at once."""
    return min(MOST_PAIRS, n - 1)

"""RHD, recursive halving and doubling: partners at distances of powers of two exchange halves.

With b = 2^k the largest power of two up to p, the first 2(p - b) ranks form pairs of an even and an
odd rank. One of each pair, by default the even one, is in the block of b members; q is a member's
number in the block. The other one hands its data to its partner before and gets it back afterwards.

    halving,  step s, m = 2^(k-1-s): partner q xor m, send the partner's m slices, receive and
                                     reduce the m slices that hold q's own
    doubling, step s, m = 2^s:       partner q xor m, send the m slices around q's own, receive the
                                     partner's

    reduce-scatter  pairs reduce everything, halving over slices of one or two chunks, the odd
                    rank's chunk goes back
    all-gather      the odd rank's chunk comes, doubling, everything goes back
    all-reduce      pairs reduce, halving, doubling, pairs copy; the work is cut in b slices
    broadcast       whole buffers, step s to the partner q xor 2^(k-1-s), then to the pair's other
    reduce          pairs reduce, halving, then slices are gathered: step s from q xor 2^s

In broadcast and reduce the block has all odd ranks of the pairs if the root is one of them
(`rhd_pattern`).

Cost for p ranks and n bytes, p = b: reduce-scatter kα+(p-1)/p·n(β+γ), all-gather kα+(p-1)/p·nβ,
all-reduce the sum. Otherwise reduce-scatter (α+nβ+nγ)+Σ(α+(m+min(p-b,m))n/p(β+γ))+(α+nβ/p) with m =
b/2, b/4, .., 1 (HCCL's documents count ⌈p/2^i⌉, as if pairs were spread evenly), all-gather the
same without γ, all-reduce (2k+2)α+(2(b-1)/b+2)nβ+((b-1)/b+1)nγ, reduce
(2k+1)α+(2(b-1)/b+1)nβ+((b-1)/b+1)nγ. Broadcast ⌈log2 p⌉(α+nβ). Both ends of a transfer meet before
it and after it, so over SDMA every α here is two. Source: Thakur, Rabenseifner and Gropp,
"Optimization of collective communication operations in MPICH", 2005; HCCL's public documents and
code (H-D_R).
"""

from collections.abc import Callable, Iterable
from functools import partial

from hccl_executors.templates.signals import data_received
from hccl_py.orchestration import Chunks, Plane, Region, Stream
from hccl_py.orchestration.exchange import rx_data, tx_data
from hccl_py.orchestration.transport import Link
from hccl_py.values import RankInt

Slices = Callable[[RankInt, int], list[Region]]
"""From (first, count) to the memory of so many slices of the block."""


class _Block:
    """The block of 2^k members, and where this rank stands.

    `id` is the number of a member, or that of the pair's member for the other rank of a pair.
    """

    def __init__(self, plane: Plane, root: int = 0) -> None:
        p = int(plane.size)
        self.plane = plane
        self.steps = p.bit_length() - 1
        self.size = 1 << self.steps
        self.pairs = p - self.size
        self.odd = _odd(p, root)
        self.is_paired = bool(plane.id < 2 * self.pairs)
        self.is_member = not self.is_paired or bool(plane.id % 2 == self.odd)
        self.id = plane.id // 2 if self.is_paired else plane.id - self.pairs
        self.root = root // 2 if root < 2 * self.pairs else root - self.pairs

    @property
    def other(self) -> Link:
        """The link to the other rank of the pair."""
        return self.plane[self.plane.id ^ 1]

    def partner(self, distance: int) -> Link:
        """Return the link to the member at this distance, a power of two."""
        number = self.id ^ distance
        # The first are in pairs: 2 * number + odd. The others: number + pairs.
        return self.plane[
            number + self.pairs + (number < self.pairs) * (number + self.odd - self.pairs)
        ]

    def slices(self, chunks: Chunks) -> Slices:
        """Return slices of one chunk, or of two where both ranks of a pair have one."""

        def start(number: RankInt) -> RankInt:
            found: RankInt = number + self.pairs + (number < self.pairs) * (number - self.pairs)
            return found

        def taken(first: RankInt, count: int) -> list[Region]:
            low = start(first)
            return chunks.series(low, 1, int(start(first + count) - low))

        return taken


def _odd(p: int, root: int) -> int:
    """Return 1 where the odd ranks of the pairs are in the block, because the root is one."""
    pairs = p - (1 << (p.bit_length() - 1))
    return root % 2 if root < 2 * pairs else 0


def rhd_pattern(root: int = 0) -> Callable[[int, int], Iterable[int]]:
    """Return the links for an op with this root; pattern `rhd` has those for even roots."""

    def peers(index: int, size: int) -> Iterable[int]:
        block = 1 << (size.bit_length() - 1)
        pairs, odd = size - block, _odd(size, root)
        if index < 2 * pairs:
            yield index ^ 1
            if index % 2 != odd:
                return
        number = index // 2 if index < 2 * pairs else index - pairs
        for step in range(block.bit_length() - 1):
            partner = number ^ (1 << step)
            yield 2 * partner + odd if partner < pairs else partner + pairs

    return peers


def rhd_reduce_scatter(stream: Stream, plane: Plane, chunks: Chunks) -> None:
    """Leave in chunk r of rank r the reduction of all ranks' chunk r; other chunks hold partial
    results.
    """
    block = _Block(plane)
    _reduce_pairs(stream, block, chunks.series(0, 1, len(chunks)))
    if block.is_member:
        _halve(stream, block, block.slices(chunks))
    if block.is_paired:
        with stream.phase("to the pair's other"):
            _hand_back(stream, block, [chunks[plane.id | 1]])


def rhd_all_gather(stream: Stream, plane: Plane, chunks: Chunks) -> None:
    """Leave in every rank all chunks; rank r starts with chunk r."""
    block = _Block(plane)
    if block.is_paired:
        with stream.phase("to the pair's member"):
            _hand_in(stream, block, [chunks[plane.id | 1]])
    if block.is_member:
        _double(stream, block, block.slices(chunks))
    _copy_pairs(stream, block, chunks.series(0, 1, len(chunks)))


def rhd_all_reduce(stream: Stream, plane: Plane, work: Region) -> None:
    """Leave in `work` of every rank the reduction of all ranks' `work`."""
    block = _Block(plane)
    _reduce_pairs(stream, block, [work])
    if block.is_member:
        slices = _even_slices(work, block)
        _halve(stream, block, slices)
        _double(stream, block, slices)
    _copy_pairs(stream, block, [work])


def rhd_broadcast(stream: Stream, plane: Plane, work: Region, root: int) -> None:
    """Leave in `work` of every rank what the root has there."""
    block = _Block(plane, root)
    away = block.id ^ block.root
    for step in stream.steps("broadcast", block.steps if block.is_member else 0):
        distance = block.size >> (step + 1)
        if away % distance == 0:
            partner = block.partner(distance)
            _one_way(stream, partner, [work], sends=not away & distance)
    _copy_pairs(stream, block, [work])


def rhd_reduce(
    stream: Stream, plane: Plane, work: Region, root: int, *, answered: bool = True
) -> None:
    """Leave in `work` of the root the reduction of all ranks' `work`; others hold partial results.
    Without `answered`, partners do not meet again after a step of halving, as over links of a mesh
    in HCCL: over SDMA (3k + 1)α + 2(p-1)/p·nβ + (p-1)/p·nγ for p = 2^k.
    """
    block = _Block(plane, root)
    _reduce_pairs(stream, block, [work])
    if not block.is_member:
        return
    slices = _even_slices(work, block)
    _halve(stream, block, slices, answered=answered)
    away = block.id ^ block.root
    for step in stream.steps("gather", block.steps):
        count = 1 << step
        if away % count == 0:
            partner = block.partner(count)
            sends = bool(away & count)
            first = block.id if sends else block.id ^ count
            _one_way(stream, partner, slices(first & -count, count), sends=sends)


def _both(
    stream: Stream,
    partner: Link,
    send: list[Region],
    recv: list[Region],
    *,
    reduce: bool = False,
    answered: bool = True,
) -> None:
    """Meet, send and receive, and meet again: neither goes on before both have received."""
    partner.tx_ack(stream)
    partner.rx_ack(stream)
    tx_data(stream, partner, send, reduce=reduce)
    answer = partial(data_received, stream, partner) if answered else lambda: None
    rx_data(stream, partner, recv, reduce=reduce, then=answer)


def _one_way(
    stream: Stream, partner: Link, data: list[Region], *, sends: bool, reduce: bool = False
) -> None:
    """Send data to a partner, or receive it; the other way nothing goes, with all its signals."""
    _both(stream, partner, data if sends else [], [] if sends else data, reduce=reduce)


def _halve(stream: Stream, block: _Block, slices: Slices, *, answered: bool = True) -> None:
    """Leave in each member's slice the reduction of all members' slices."""
    for step in stream.steps("halving", block.steps):
        count = block.size >> (step + 1)
        partner = block.partner(count)
        send, recv = slices((block.id ^ count) & -count, count), slices(block.id & -count, count)
        _both(stream, partner, send, recv, reduce=True, answered=answered)


def _double(stream: Stream, block: _Block, slices: Slices) -> None:
    """Leave in every member all members' slices."""
    for step in stream.steps("doubling", block.steps):
        count = 1 << step
        partner = block.partner(count)
        send, recv = slices(block.id & -count, count), slices((block.id ^ count) & -count, count)
        _both(stream, partner, send, recv)


def _reduce_pairs(stream: Stream, block: _Block, everything: list[Region]) -> None:
    if block.is_paired:
        with stream.phase("pairs reduce"):
            _hand_in(stream, block, everything, reduce=True)


def _copy_pairs(stream: Stream, block: _Block, everything: list[Region]) -> None:
    if block.is_paired:
        with stream.phase("pairs copy"):
            _hand_back(stream, block, everything)


def _hand_in(stream: Stream, block: _Block, data: list[Region], reduce: bool = False) -> None:
    """Move data from the pair's other rank to its member."""
    _one_way(stream, block.other, data, sends=not block.is_member, reduce=reduce)


def _hand_back(stream: Stream, block: _Block, data: list[Region]) -> None:
    """Move data from the pair's member to its other rank."""
    _one_way(stream, block.other, data, sends=block.is_member)


def _even_slices(work: Region, block: _Block) -> Slices:
    chunks = work.split(block.size)
    return lambda first, count: chunks.series(first, 1, count)

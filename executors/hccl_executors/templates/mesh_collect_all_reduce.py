"""All-reduce over a mesh whose sums do not depend on timing: chunk r of every rank comes to rank r,
beside the others, is reduced there by halves, and is read by all ranks; for SDMA links and a power
of two.

Memory as large as the data has p slots, slot r for the own chunk of rank r, whose sum ends there.
Chunks of the others lie in the p - 2 next to it, as far as slots 0 to p - 2 go (the last rank: 1 to
p - 1). The last peer adds to the own one right away:

    p = 4, rank 0:    slot   0          1        2
            rank     0, +1      3        2
    sums    slot 0 += slot 2, slot 0 += slot 1

Chunks are multiples of 16 KiB, if p - 1 of them fit the data, or else of 512 bytes, or of elements.

Cost for p ranks and n bytes: 2α + 2nβ/p + (p - 1)/p·nγ, as main adds alone. Source: HCCL's
AllReduceLocalReduce (hcomm b5f3e5b, alg_template/temp_all_reduce).
"""

from hccl_executors.templates.chunk_mesh import read_all
from hccl_executors.templates.mesh_collect import ALIGN, ON_CHIP
from hccl_executors.templates.mesh_peers import empty_copy, exchange_acks, peer_assignments
from hccl_py.orchestration import Plane, Region
from hccl_py.plugins.executor import AnyRank
from hccl_py.values import RankInt


def cut(size: int, p: int, unit: int) -> int:
    """Return to what the chunks of `size` bytes are aligned, elements having `unit`."""
    for align in (ALIGN, ON_CHIP):
        if _chunk(size, p, align) * (p - 1) <= size:
            return align
    return unit


def fits(size: int, p: int, unit: int) -> bool:
    """True if memory as large as the data has room for the slots."""
    return _chunk(size, p, cut(size, p, unit)) * (p - 1) <= size


def _chunk(size: int, p: int, align: int) -> int:
    each = -(-size // p)
    return -(-each // align) * align


def collected_all_reduce(rank: AnyRank, plane: Plane, memory: Region, unit: int) -> None:
    """Leave in user_out the sum of all ranks' user_in; `memory` is exported."""
    p, size = int(plane.size), int(rank.user_in.size)
    align = cut(size, p, unit)
    inputs = rank.user_in.split(p, align)
    each = _chunk(size, p, align)

    def slot(owner: RankInt, k: RankInt) -> Region:
        """Return slot k of a rank, which the last one counts from 1."""
        start = (owner // (p - 1) + k) * each
        return memory[start : start + inputs[owner].size]

    with rank.main.phase("collect"):
        rank.main.copy(slot(plane.id, _own(plane.id, p)), inputs[plane.id])
        members = peer_assignments(rank, plane, by_main=True)
        with rank.fork():
            exchange_acks(members)
            empty_copy(rank, memory)
        empty_copy(rank, memory)
        with rank.fork():
            empty_copy(rank, memory)
            for k, (stream, peer, link) in enumerate(members, 1):
                if k == p - 1:
                    stream.reduce(link.remote(slot(peer, _own(peer, p))), inputs[peer])
                else:
                    place = (peer + k + peer // (p - 1) * (p - 2)) % (p - 1)
                    stream.copy(link.remote(slot(peer, place)), inputs[peer])
                link.tx_data_signal(stream)
                link.rx_data_signal(stream)
            empty_copy(rank, memory)
        empty_copy(rank, memory)
    me = int(plane.id)
    with rank.main.phase("local reduce"):
        for into, added in _sums(me, p):
            rank.main.reduce(slot(me, into), slot(me, added))
    with rank.main.phase("all-gather"):
        chunks = memory.head(size).split(p, align)
        read_all(rank, plane, chunks, rank.user_out.split(p, align))


def _own(owner: RankInt, p: int) -> RankInt:
    """Return the slot of a rank's own chunk, the last of the last rank."""
    return owner - owner // (p - 1)


def _sums(me: int, p: int) -> list[tuple[int, int]]:
    """Return the pairs of slots to add, so that the sum ends in the own one: first the slots beyond
    a power of two, then half to half.
    """
    kept = 1 << ((p - 1).bit_length() - 1)
    extra, first, left = p - 1 - kept, 0, me
    pairs = [(i, kept + i) for i in range(extra)]
    if me >= kept:
        pairs = [(added, into) for into, added in pairs]
        first, left = extra, min(me - kept + 1, kept - 1)
    while kept > 1:
        kept //= 2
        lower = [(first + i, first + kept + i) for i in range(kept)]
        if left >= kept:
            lower = [(added, into) for into, added in lower]
            first, left = first + kept, left - kept
        pairs += lower
    return pairs

"""Star over a mesh: all-reduce of small data at one rank, to which all others write at once, and
from which all read the sum; for SDMA links.

    reduce         rank 0 puts its own data into its sum and lets all others write
                   added       every rank adds to the sum, atomically, in an open order
                   collected   every rank but 1 writes beside, rank 1 adds; then rank 0 folds
                               what lies beside in half, time after time: the order is fixed
    broadcast      rank 0 lets all others read the sum

Only rank 0 wakes sub streams: one for every peer but the last, which main waits for. HCCL wakes all
that it has.

Cost for p ranks and n bytes: added 2(α + nβ) + nγ, where all add side by side; collected
2(α + nβ) + (p - 1)nγ, of which rank 0 adds (p - 2)n in ⌈log2(p - 1)⌉ tasks. Source: HCCL's
AllReduceReduceBcast and AllReduceLocalReduceBcast (hcomm b5f3e5b, alg_template/temp_all_reduce).
"""

from hccl_py.orchestration import Plane, Region
from hccl_py.plugins.executor import AnyRank


def star_all_reduce_added(rank: AnyRank, plane: Plane, total: Region) -> None:
    """Leave in user_out the sum of all ranks' user_in, added in `total` of rank 0 as it comes;
    `total` is exported, and may be user_out itself.
    """
    main = rank.main
    with main.phase("reduce"):
        if plane.id == 0:
            _copy(rank, total, rank.user_in)
            _let_all(rank, plane)
        else:
            first = plane[0]
            first.rx_ack(main)
            main.reduce(first.remote(total), rank.user_in)
            first.tx_data_signal(main)
    _broadcast(rank, plane, total, rank.user_out)


def star_all_reduce_collected(
    rank: AnyRank, plane: Plane, memory: Region, out: Region | None = None
) -> None:
    """Leave in `out`, by default user_out, the sum of all members' user_in, added in a fixed order
    in `memory` of member 0: exported, with room for the data of every member but one.
    """
    main, size = rank.main, rank.user_in.size
    total = memory.head(size)
    with main.phase("reduce"):
        if plane.id == 0:
            _copy(rank, total, rank.user_in)
            _let_all(rank, plane)
        else:
            first = plane[0]
            first.rx_ack(main)
            if plane.id == 1:
                main.reduce(first.remote(total), rank.user_in)
            else:
                place = memory[(plane.id - 1) * size : plane.id * size]
                main.copy(first.remote(place), rank.user_in)
            first.tx_data_signal(main)
    if plane.id == 0:
        with main.phase("local reduce"):
            _fold(rank, memory, int(plane.size) - 1)
    _broadcast(rank, plane, total, out or rank.user_out)


def _fold(rank: AnyRank, memory: Region, pieces: int) -> None:
    """Leave in the first of so many pieces the sum of all: first what exceeds a power of two, then
    the upper half, each in one task.
    """
    size = rank.user_in.size
    while pieces > 1:
        kept = 1 << (pieces.bit_length() - 1)
        kept = kept // 2 if kept == pieces else kept
        added = pieces - kept
        rank.main.reduce(memory.head(added * size), memory[kept * size : pieces * size])
        pieces = kept


def _broadcast(rank: AnyRank, plane: Plane, total: Region, out: Region) -> None:
    main = rank.main
    with main.phase("broadcast"):
        if plane.id == 0:
            if total.buffer != out.buffer:
                main.copy(out, total)
            _let_all(rank, plane)
        else:
            first = plane[0]
            first.rx_ack(main)
            main.copy(out, first.remote(total))
            first.tx_data_signal(main)


def _let_all(rank: AnyRank, plane: Plane) -> None:
    """Let all members use this rank's memory at once, and wait until they have."""
    with rank.fork() as subs:
        peers = int(plane.size) - 1
        for i, stream in enumerate([*subs[: peers - 1], rank.main], 1):
            plane[i].tx_ack(stream)
            plane[i].rx_data_signal(stream)


def _copy(rank: AnyRank, dst: Region, src: Region) -> None:
    """Copy, unless both are the caller's one buffer."""
    if not (rank.is_in_place and dst.buffer == rank.user_out.buffer):
        rank.main.copy(dst, src)

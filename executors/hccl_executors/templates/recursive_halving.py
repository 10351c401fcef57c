"""Recursive halving with reads: reduce-scatter of small data among a power of two, for SDMA links.

    step 1         partner r xor p/2: a rank puts its half of the chunks, the one that has its own,
                   in CCL_Out, and adds its other half to the partner's
    step s > 1     partner r xor p/2^s: of what is left, add the partner's half that has the own
                   chunk to the own one, by a read
    in the end     copy the own chunk out while the last partner hears that it has been read

Between two reads, one sub stream tells a partner that it has been read, while main meets the next.

Cost for p = 2^k ranks and n bytes: kα + (p-1)/p·n(β+γ), one task for the data of each step. Source:
HCCL's ReduceScatterHDStage (hcomm b5f3e5b, alg_template/temp_reduce_scatter).
"""

from hccl_executors.templates.mesh_peers import empty_copy
from hccl_py.orchestration import Chunks, Plane, Region
from hccl_py.plugins.executor import AnyRank


def recursive_halving_reduce_scatter(
    rank: AnyRank, plane: Plane, chunks: Chunks, memory: Region, mine: Region
) -> None:
    """Leave in `mine` the reduction of all ranks' chunk r; `memory` is exported and holds half of
    the chunks. Four ranks or more.
    """
    main, half, size = rank.main, int(plane.size) // 2, chunks.largest
    steps = half.bit_length()
    land = memory.head(half * size).split(half, align=1)
    with main.phase(f"reduce-scatter 1/{steps}"):
        low, partner = plane.id // half * half, plane[plane.id ^ half]
        kept, given = chunks.series(low, 1, half), chunks.series(half - low, 1, half)
        places = list(land) if len(kept) > 1 else [memory.head(half * size)]
        main.copy(places, kept)
        with partner.handshake(main):
            main.reduce([partner.remote(place) for place in places], given)
    partner = plane[plane.id ^ (half >> 1)]
    partner.tx_ack(main)
    partner.rx_ack(main)
    for step in range(1, steps):
        width = half >> step
        with main.phase(f"reduce-scatter {step + 1}/{steps}"):
            low = plane.id % half // width * width
            region = memory[low * size : (low + width) * size]
            main.reduce(region, partner.remote(region))
            if width > 1:
                following = plane[plane.id ^ (width >> 1)]
                with rank.fork(1) as (sub,):
                    partner.tx_data_signal(sub)
                    partner.rx_data_signal(sub)
                    following.tx_ack(main)
                    following.rx_ack(main)
                partner = following
    with main.phase("deliver"), rank.fork(1) as (sub,):
        partner.tx_data_signal(main)
        partner.rx_data_signal(main)
        sub.copy(mine, land[plane.id % half])
    empty_copy(rank, memory)

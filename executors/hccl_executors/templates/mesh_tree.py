"""Tree over a mesh: broadcast of small data from user memory to user memory, near ranks first; for
SDMA links.

d is a rank's distance to the right of the root, L = ceil(log2 p).

    step 0            the root writes to d = 1, and copies to its own `work` meanwhile
    step 1 .. L - 2   d below 2^s lets d + 2^s read; so a rank has the buffer from the one whose
                      distance lacks the first 1 of d's binary digits
    step L - 1        as before, into user memory; who lets read copies to its own meanwhile, and
                      so do ranks without a reader

Cost for p ranks and n bytes: L(α + nβ). Source: HCCL's BroadcastHD (hcomm b5f3e5b,
alg_template/temp_broadcast/broadcast_oneshot.cc).
"""

from hccl_executors.templates.mesh_peers import empty_copy
from hccl_py.orchestration import Link, Plane, Region
from hccl_py.plugins.executor import AnyRank


def mesh_tree_broadcast(rank: AnyRank, plane: Plane, work: Region, root: int) -> None:
    """Leave in user_out of every rank what the root has in user_in; `work` is exported and may be
    user_out itself. Three ranks or more.
    """
    p = int(plane.size)
    distance = int((plane.id - root) % p)
    steps = (p - 1).bit_length()
    first = distance.bit_length() - 1 if distance else 0  # the step in which the buffer comes

    def other(step: int) -> Link:
        return plane[((distance ^ (1 << step)) + root) % p]

    for step in rank.main.steps("broadcast", steps):
        is_last = step == steps - 1
        if step < first:
            continue
        if is_last and distance % (1 << step) >= p - (1 << step):
            _deliver(rank, work)
        elif step > first or (is_last and not distance):
            _let_read(rank, other(step), work, is_last=is_last, is_root=not distance)
        elif step:
            _read(rank, other(step), work, is_last=is_last)
        elif distance:
            _let_write(rank, other(step))
        else:
            _write(rank, other(step), work)


def _write(rank: AnyRank, child: Link, work: Region) -> None:
    empty_copy(rank, work)
    with rank.fork() as (sub,):
        if not (rank.is_in_place and work.buffer == rank.user_out.buffer):
            sub.copy(work, rank.user_in)
        child.rx_ack(rank.main)
        rank.main.copy(child.remote(work), rank.user_in)
        child.tx_data_signal(rank.main)


def _let_write(rank: AnyRank, parent: Link) -> None:
    parent.tx_ack(rank.main)
    parent.rx_data_signal(rank.main)


def _let_read(rank: AnyRank, child: Link, work: Region, *, is_last: bool, is_root: bool) -> None:
    if not is_last:
        child.tx_ack(rank.main)
        child.rx_data_signal(rank.main)
        return
    with rank.fork() as (sub,):
        if not is_root and work.buffer != rank.user_out.buffer:
            sub.copy(rank.user_out, work)
        child.tx_ack(rank.main)
        child.rx_data_signal(rank.main)
    empty_copy(rank, work)


def _read(rank: AnyRank, parent: Link, work: Region, *, is_last: bool) -> None:
    parent.rx_ack(rank.main)
    rank.main.copy(rank.user_out if is_last else work, parent.remote(work))
    parent.tx_data_signal(rank.main)


def _deliver(rank: AnyRank, work: Region) -> None:
    if work.buffer != rank.user_out.buffer:
        rank.main.copy(rank.user_out, work)

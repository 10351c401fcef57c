"""NHR and NB of HCCL, written from its sources: one function per template, as one rank runs it.

Files are those of xiaobingling93-pixel/cann-hcomm @ b5f3e5b under src/algorithm/base/alg_template.
"""

from collections.abc import Sequence
from itertools import compress, pairwise

from tests.executors.fidelity.rings import Part
from tests.executors.fidelity.transports import Link, Member, Slice, handshake, merged


def steps_of(size: int) -> int:
    """nonuniform_hierarchical_ring_base.cc:144 GetStepNumInterServer."""
    return (size - 1).bit_length()


def places(size: int, *, keep: bool) -> list[int]:
    """Where NHR keeps each slice: nonuniform_hierarchical_ring_base.cc:23 GetRankMapping."""
    tree = list(range(size))
    length = size
    for step in range(0 if keep else steps_of(size)):
        if (size - 1 + (1 << step)) // (1 << (step + 1)) <= 1:
            break
        moved, is_last = list(tree), False
        for start in range(0, size, max(length, 1)):
            end = min(start + length, size)
            for at in range(start, end):
                half, odd = divmod(at - start, 2)
                moved[start + (half if not odd else (at - start + length) // 2)] = tree[at]
            is_last |= (end - start) % 2 == 1
        tree = moved
        if is_last:
            break
        length >>= 1
    found = [0] * size
    for at, rank in enumerate(tree):
        found[rank] = at
    return found


def _picked(
    slices: Sequence[Slice], where: Sequence[int], first: int, by: int, n: int
) -> list[Slice]:
    return [slices[where[(first + i * by) % len(where)]] for i in range(n)]


def _moved(
    slices: Sequence[Part], where: Sequence[int], first: int, by: int, n: int
) -> list[Slice]:
    """What a step of NHR moves: MergeSlices of what GetStepInfo picks."""
    parts = [slices[where[(first + i * by) % len(where)]] for i in range(n)]
    return merged([one for part in parts for one in ([part] if isinstance(part, Slice) else part)])


def _nhr_step(
    left: Link | None,
    right: Link | None,
    tx: Sequence[Slice],
    rx: Sequence[Slice],
    *,
    reduce: bool = False,
    answered: bool = True,
    meets: bool = False,
) -> None:
    """all_gather_nhr.cc:90 SdmaRx and :110 RdmaTxRx; reduce_scatter_nhr.cc:407-437 likewise, with
    the barrier closed by coll_reduce_scatter_comm_executor.cc:152, or not: `meets`. So it is on
    Atlas A3, as impl/hccl_alg.cc:304 of libochao-huawei/hcomm @ 8958adb says of atomic writes.
    """
    link = left or right
    if link is None:
        return
    if not link.rdma:
        if right:
            right.tx_ack()
        if left:
            left.rx_ack()
            left.read(rx, reduce=reduce)
            left.tx_data_signal()
        if right:
            right.rx_data_signal()
        return
    if left:
        left.tx_ack()
    if right:
        right.rx_ack()
        right.tx_async(tx, reduce=reduce)
    if left:
        left.rx_async(rx, reduce=reduce)
    if left and answered:
        left.post_fin_ack()
    if right and answered:
        right.wait_fin_ack()
    if left and right and meets:
        handshake(left, right)


def nhr_all_gather(me: Member, slices: Sequence[Part], *, merge: bool = False) -> None:
    """all_gather_nhr.cc:129 RunAllGather, :213 GetStepInfo."""
    size, count = me.size, steps_of(me.size)
    where = places(size, keep=not merge)
    for step in range(count):
        width = 1 << (count - 1 - step)
        n = (size - 1 + width) // (2 * width)
        tx = _moved(slices, where, me.rank, -2 * width, n)
        rx = _moved(slices, where, me.rank - width, -2 * width, n)
        _nhr_step(me.link(me.rank - width), me.link(me.rank + width), tx, rx)


def nhr_reduce_scatter(
    me: Member, slices: Sequence[Part], *, merge: bool = False, meets: bool = False
) -> None:
    """reduce_scatter_nhr.cc:373 RunReduceScatterNHR, :497 GetStepInfo."""
    size = me.size
    where = places(size, keep=not merge)
    for step in range(steps_of(size)):
        width = 1 << step
        n = (size - 1 + width) // (2 * width)
        tx = _moved(slices, where, me.rank - width, -2 * width, n)
        rx = _moved(slices, where, me.rank, -2 * width, n)
        left, right = me.link(me.rank + width), me.link(me.rank - width)
        _nhr_step(left, right, tx, rx, reduce=True, meets=meets)


def nhr_all_reduce(me: Member, slices: Sequence[Slice], *, meets: bool = False) -> None:
    """all_reduce_nhr.cc:51-61: reduce-scatter and all-gather of slices in other places."""
    nhr_reduce_scatter(me, slices, merge=True, meets=meets)
    nhr_all_gather(me, slices, merge=True)


def nhr_reduce_one_shot(me: Member, whole: Slice, root: int = 0) -> None:
    """reduce_nhr_oneshot.cc:147 RunReduceNHROneshot, :186 GetStepInfo; RdmaTxRx has no DataAck."""
    size, away = me.size, (me.rank - root) % me.size
    for step in range(steps_of(size)):
        width, left, right = 1 << step, None, None
        if away // (2 * width) < (size - 1 + width) // (2 * width):
            if (away + width) % (2 * width) == 0:
                right = me.link(me.rank - width)
            if away % (2 * width) == 0:
                left = me.link(me.rank + width)
        _nhr_step(left, right, [whole], [whole], reduce=True, answered=False)


def nhr_broadcast_one_shot(me: Member, whole: Slice, root: int = 0) -> None:
    """broadcast_nhr_oneshot.cc:128 RunBroadcastNHROneshot, :165 GetStepInfo."""
    size, away, count = me.size, (me.rank - root) % me.size, steps_of(me.size)
    for step in range(count):
        width, left, right = 1 << (count - 1 - step), None, None
        if away // (2 * width) < (size - 1 + width) // (2 * width):
            if away % (2 * width) == 0:
                right = me.link(me.rank + width)
            if (away + width) % (2 * width) == 0:
                left = me.link(me.rank - width)
        _nhr_step(left, right, [whole], [whole])


def nhr_all_reduce_one_shot(me: Member, whole: Slice) -> None:
    """all_reduce_nhr_oneshot.cc:51-56: over trees to rank 0 and back."""
    nhr_reduce_one_shot(me, whole)
    nhr_broadcast_one_shot(me, whole)


def _picked_by(size: int, away: int, step: int) -> list[int]:
    """The slices that the rank `away` from the root sends in a step of a scatter, of NHR or NB,
    named by how far away their own ranks are.
    """
    width = 1 << step
    n = (size - 1 + width) // (2 * width)
    return [(away + (2 * i + 1) * width) % size for i in range(n)]


def _owned(size: int, away: int, step: int) -> list[bool]:
    """Whether the rank `away` from the root has what it sends in a step of a scatter."""
    has = [set(range(size)), *(set[int]() for _ in range(1, size))]
    for earlier in range(step):
        for sender in range(min(1 << earlier, size - (1 << earlier))):
            has[sender + (1 << earlier)] |= has[sender] & {*_picked_by(size, sender, earlier)}
    return [slot in has[away] for slot in _picked_by(size, away, step)]


def sends_all_it_has(size: int) -> bool:
    """Whether nobody sends in a scatter what it does not have."""
    return all(
        all(_owned(size, away, step))
        for step in range(steps_of(size))
        for away in range(min(1 << step, size - (1 << step)))
    )


def nhr_scatter(
    me: Member,
    slices: Sequence[Slice],
    root: int = 0,
    *,
    merge: bool = False,
    only_owned: bool = False,
) -> None:
    """scatter_nhr.cc:165 RunScatterNHR, :93 SdmaRx, :124 RdmaTxRx, :252 GetStepInfo; there is no
    barrier. `only_owned` leaves out what the sender does not have.
    """
    size, count, away = me.size, steps_of(me.size), (root - me.rank) % me.size
    where = places(size, keep=not merge)
    for step in range(count):
        width = 1 << step
        n = (size - 1 + width) // (2 * width)
        is_cut = size & (size - 1) and step == count - 1
        senders = size - width if is_cut else width
        left = right = None
        if away < senders:
            right, sender, first = me.link(me.rank - width), away, me.rank - width
        elif width <= away < senders + width:
            left, sender, first = me.link(me.rank + width), away - width, me.rank
        else:
            continue
        part = _picked(slices, where, first, -2 * width, n)
        if only_owned:
            part = [*compress(part, _owned(size, sender, step))]
        _nhr_step(left, right, merged(part), merged(part))


def nhr_broadcast(
    me: Member, slices: Sequence[Slice], root: int = 0, *, only_owned: bool = False
) -> None:
    """broadcast_nhr.cc:54-79: scatter and all-gather of slices in other places."""
    nhr_scatter(me, slices, root, merge=True, only_owned=only_owned)
    nhr_all_gather(me, slices, merge=True)


def nb_scatter(
    me: Member,
    slices: Sequence[Slice],
    root: int = 0,
    *,
    barrier: bool = True,
    only_owned: bool = False,
) -> None:
    """scatter_nb.cc:24 RunScatterNB, :52 and :87 its halves, :175 the barrier: slices go one by
    one, and a DataSignal says that they have come. `only_owned` leaves out what the sender does not
    have.
    """
    size, count, away = me.size, steps_of(me.size), (me.rank - root) % me.size
    has = [me.rank == root] * size
    for step in range(count):
        width = 1 << step
        n = (size - 1 + width) // (2 * width)
        if away < width and (step != count - 1 or away < size - width):
            right, at, part = me.link(me.rank + width), (me.rank + width) % size, []
            for _ in range(n):
                if has[at]:
                    part.append(slices[at])
                    at = (at + 2 * width) % size
            if only_owned:
                part = [*compress(part, _owned(size, away, step))]
            right.rx_ack()
            right.tx_async(part)
            right.rx_data_signal()
        elif width <= away < 2 * width:
            left = me.link(me.rank - width)
            part = _picked(slices, range(size), me.rank, 2 * width, n)
            if only_owned:
                part = [*compress(part, _owned(size, away - width, step))]
            for i in range(1, n + 1):
                has[(me.rank + i * 2 * width) % size] = True
            left.tx_ack()
            left.rx_async(part)
            left.tx_data_signal()
    if barrier:
        handshake(me.link(me.rank - 1), me.link(me.rank + 1))


def nb_broadcast(
    me: Member, slices: Sequence[Slice], root: int = 0, *, only_owned: bool = False
) -> None:
    """broadcast_nb.cc:65-87: scatter without a barrier, then all-gather."""
    nb_scatter(me, slices, root, barrier=False, only_owned=only_owned)
    nb_all_gather(me, slices)


def nb_broadcast_binary(me: Member, whole: Slice, root: int = 0) -> None:
    """broadcast_nb_binary.cc:59 RunBroadcastNBBinary: over SDMA a second Ack says that the data has
    come, PostFin of transport_p2p.cc:1650 of libochao-huawei/hcomm @ 8958adb.
    """
    size, count, away = me.size, steps_of(me.size), (me.rank - root) % me.size
    for step in range(count):
        width = 1 << step
        if away < width and (step != count - 1 or away < size - width):
            right = me.link(me.rank + width)
            right.rx_ack()
            right.tx_async([whole])
            (right.wait_fin_ack if me.rdma else right.rx_ack)()
        elif width <= away < 2 * width:
            left = me.link(me.rank - width)
            left.tx_ack()
            left.rx_async([whole])
            (left.post_fin_ack if me.rdma else left.tx_ack)()


def _nb_step(
    me: Member, step: int, tx: Sequence[Slice], rx: Sequence[Slice], *, reduce: bool = False
) -> None:
    """all_gather_nb.cc:152-181, reduce_scatter_nb.cc:182-213: empty slices do not go, and links
    that reduce on their way end a step with a barrier.
    """
    left, right = me.link(me.rank - (1 << step)), me.link(me.rank + (1 << step))
    tx, rx = [s for s in tx if s.size], [s for s in rx if s.size]
    if rx:
        left.tx_ack()
    if tx:
        right.rx_ack()
        right.tx_async(tx, reduce=reduce)
    if rx:
        left.rx_async(rx, reduce=reduce)
        left.post_fin_ack()
    if tx:
        right.wait_fin_ack()
    if not me.rdma:
        handshake(left, right)


def nb_all_gather(me: Member, slices: Sequence[Slice]) -> None:
    """all_gather_nb.cc:102 RunAllGather."""
    size, where = me.size, range(me.size)
    for step in range(steps_of(size)):
        width = 1 << step
        n = min(width, size - width)
        tx = _picked(slices, where, me.rank, -1, n)
        _nb_step(me, step, tx, _picked(slices, where, me.rank - width, -1, n))


def nb_reduce_scatter(me: Member, slices: Sequence[Slice]) -> None:
    """reduce_scatter_nb.cc:115 RunReduceScatterNB."""
    size, where = me.size, range(me.size)
    for step in range(steps_of(size)):
        width = 1 << step
        n = (size - 1 + width) // (2 * width)
        tx = _picked(slices, where, me.rank + width, 2 * width, n)
        _nb_step(me, step, tx, _picked(slices, where, me.rank, 2 * width, n), reduce=True)


def nb_slices(size: int, count: int) -> list[Slice]:
    """all_reduce_nb.cc:134-148, :193 GetSliceSizeOfNB."""
    each = -(-size // count)
    unit = 128 if each > 128 << 10 else 128 << 10
    each = -(-each // unit) * unit
    starts = [min(i * each, size) for i in range(count + 1)]
    return [Slice(a, b - a) for a, b in pairwise(starts)]


def nb_all_reduce(me: Member, whole: Slice) -> None:
    """all_reduce_nb.cc:146-185."""
    slices = nb_slices(whole.size, me.size)
    nb_reduce_scatter(me, slices)
    nb_all_gather(me, slices)

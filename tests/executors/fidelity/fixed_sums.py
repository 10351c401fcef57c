"""HCCL's all-reduces whose sums have a fixed order, for links that reduce, written from its
sources, as one rank runs them.

Files are those of libochao-huawei/hcomm @ 8958adb under
src/legacy/ascend910/algorithm/base/alg_template/temp_all_reduce. Streams are as in meshes.py; the
last peer is served by main.
"""

from collections.abc import Iterator

from tests.executors.fidelity.meshes import Mesh
from tests.executors.fidelity.transports import Link, Member, Slice

SLICE = 128
ALIGN, ON_CHIP = 16384, 512


def rounded(size: int, align: int) -> int:
    """RoundUpWithDivisor."""
    return -(-size // align) * align


def cut(size: int, parts: int, align: int) -> list[Slice]:
    """all_reduce_chunk_mesh.cc:68 PrepareSlice: slices rounded up, the last ones take what is
    left.
    """
    each = rounded(-(-size // parts), align)
    starts = [min(part * each, size) for part in range(parts)]
    return [Slice(start, min(each, size - start)) for start in starts]


def _links(me: Mesh, by: int) -> Iterator[Link]:
    """The peers 1, 2, .. further in direction `by`, with the streams that serve them."""
    for k in range(1, me.size):
        yield me.link(0 if k == me.size - 1 else k, me.rank + by * k)


def _acks(me: Mesh, by: int) -> None:
    me.wake()
    for link in _links(me, by):
        link.tx_ack()
        link.rx_ack()


def _read_all(me: Mesh, slices: list[Slice], starts: list[int]) -> None:
    """RunAllGather, all_reduce_chunk_mesh.cc:285 and all_reduce_local_reduce.cc:363: slice k is
    read from where rank k has its sum.
    """
    _acks(me, -1)
    me.join()
    me.wake()
    for link in _links(me, -1):
        one = slices[link.peer]
        link.move("read", starts[link.peer], one.offset, one.size)
        link.tx_data_signal()
        link.rx_data_signal()
    me.join()


def chunk_mesh(me: Mesh, size: int, unit: int) -> None:
    """all_reduce_chunk_mesh.cc:187 and :285. A slice is cut again, one part for every peer."""
    p, slices = me.size, cut(size, me.size, SLICE)
    mine = slices[me.rank]
    parts = cut(mine.size, p - 1, SLICE)
    _acks(me, 1)
    for turn in range(1, p):
        me.join()
        me.wake()
        for k in range(1, p):
            gap = (k + turn - 1) % (p - 1) if k + turn > p else k + turn - 1
            part = parts[k - 1]
            link = me.link(0 if k == p - 1 else k, me.rank + gap)
            link.read([Slice(mine.offset + part.offset, part.size)], reduce=True)
    for k in range(1, p):
        link = me.link(0 if k == p - 1 else k, me.rank + (p - 1 if k == 1 else k - 1))
        link.tx_data_signal()
        link.rx_data_signal()
    me.join()
    _read_all(me, slices, [one.offset for one in slices])


def one_shot(me: Mesh, size: int, unit: int) -> None:
    """all_reduce_mesh_oneshot.cc:80 RunAllReduceOne, of main alone."""
    for k in range(1, me.size):
        link = me.link(0, me.rank + k)
        link.tx_ack()
        link.rx_ack()
        link.read([Slice(0, size)], reduce=True)
        link.tx_data_signal()
        link.rx_data_signal()


def local_reduce(me: Mesh, size: int, unit: int) -> None:
    """all_reduce_local_reduce.cc:71 PrepareSlice, :192 RunReduceScatter, :363 RunAllGather; the
    memory of the slots is as large as the data.
    """
    p, align = me.size, ALIGN
    for smaller in (ON_CHIP, unit):
        if rounded(-(-size // p), align) * (p - 1) > size:
            align = smaller
    slices, each = cut(size, p, align), rounded(-(-size // p), align)
    _acks(me, 1)
    me.join()
    me.wake()
    for k, link in enumerate(_links(me, 1), 1):
        to, one = link.peer, slices[link.peer]
        if k == p - 1:
            slot = to - 1 if to == p - 1 else to
        else:
            slot = (to + k) % (p - 1)
            if to == p - 1:
                slot = (slot + p - 2) % (p - 1)
        first = each if to == p - 1 else 0
        kind = "write_reduce" if k == p - 1 else "write"
        link.move(kind, one.offset, first + slot * each, one.size)
        link.tx_data_signal()
        link.rx_data_signal()
    me.join()
    _read_all(me, slices, [k * each for k in range(p)])


def doubling_direct(me: Mesh, size: int, unit: int) -> None:
    """all_reduce_doubling_direct.cc:60 RunAllReduce and :138 RunInlineReduce: the first of several
    steps writes, all others read.
    """
    steps = me.size.bit_length() - 1
    for step in range(steps):
        link = me.link(0, me.rank ^ 1 << step)
        link.tx_ack()
        link.rx_ack()
        writes = step == 0 and steps > 1
        link.move("write_reduce" if writes else "read_reduce", 0, 0, size)
        link.tx_data_signal()
        link.rx_data_signal()


def doubling(me: Member, whole: Slice) -> None:
    """all_reduce_doubling.cc:101 RunAllReduce: what is copied before a step shows a partner what
    has been added so far.
    """
    for step in range(me.size.bit_length() - 1):
        link = me.link(me.rank ^ (1 << step))
        link.tx_ack()
        link.rx_ack()
        link.read([whole], reduce=True)
        link.tx_data_signal()
        link.rx_data_signal()

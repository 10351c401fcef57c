"""One step of a template: data goes to one neighbour and comes from another, over any kind of link.

SDMA *pulls*: the sender posts Ack ("my data is ready"), the receiver waits, reads, posts
DataSignal, the sender waits. RDMA *pushes*: the receiver posts Ack ("my memory is free"), the
sender waits, writes, posts DataSignal, the receiver waits and posts DataAck, the sender waits. Each
end records by its own link's kind, so a ring over servers works as it is.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hccl_py.enums import Buffer
from hccl_py.orchestration.recorder import orchestration_error
from hccl_py.orchestration.region import Region, pieces
from hccl_py.orchestration.stream import Memory, Stream
from hccl_py.orchestration.transport import Link
from hccl_py.values import values_of

_PLACES = {
    "source": "Name where the sender has it with source=..., or send and receive at one place.",
    "land": "Name where it is to land with land=..., or send and receive at one place.",
}


def exchange(
    stream: Stream,
    to: Link | None = None,
    frm: Link | None = None,
    send: Memory = (),
    recv: Memory = (),
    *,
    reduce: bool = False,
    source: Region | None = None,
    land: Region | None = None,
) -> None:
    """Send `send` over `to` and receive `recv` over `frm`; one-sided where either link is None.

    By default data keeps its place: what lies in `send` here arrives at the same place there, in
    exported memory. A step of a ring all-gather is

        exchange(stream, ring.right, ring.left, send=slots[mine], recv=slots[theirs])

    `reduce` adds the arriving data to `recv`. State it at both ends: a push reduces at the sender.
    Where a link cannot reduce inline, data lands beside (`Rank.landing`) and is reduced from there.

    Where data leaves from one place and arrives at another one, or `recv` is not exported, name the
    places of the way between, the same at every rank: `source`, where the sender has the data and a
    pull reads it, and `land`, where a push writes it, to be copied to `recv`, or reduced into it,
    from there. Several pieces lie one after the other in both. A pairwise all-to-all stages in
    CCL_In and lands in CCL_Out:

        exchange(stream, links[to], links[frm], staged, rank.user_out[frm],
                 source=rank.ccl_in, land=rank.ccl_out)

    Raises OrchestrationError where all ranks send from one place, receive at another one, and name
    no place between.
    """
    send, recv = pieces(send), pieces(recv)
    pull = frm is not None and not frm.rdma
    push = to is not None and bool(to.rdma)
    if to is not None and frm is not None and ((pull and not source) or (push and not land)):
        _check_places(stream, to, send, recv, "source" if pull else "land")
    if to is not None and not push:
        to.tx_ack(stream)  # you may read mine
    if frm is not None and not pull:
        frm.tx_ack(stream)  # you may write into mine
    if frm is not None and pull:
        frm.rx_ack(stream)
        _pull(stream, frm, recv, reduce, source, land)
    if to is not None and push:
        to.rx_ack(stream)
        _push(stream, to, send, reduce, land)
        to.tx_data_signal(stream)
    if frm is not None and not pull:
        frm.rx_data_signal(stream)
        _arrive(stream, frm, recv, reduce, land)
        frm.tx_data_ack(stream)
    if to is not None:
        if push:
            to.rx_data_ack(stream)
        else:
            to.rx_data_signal(stream)


def tx_data(stream: Stream, to: Link, send: Memory, *, reduce: bool = False) -> None:
    """Let the peer have `send`, which keeps its place: post DataSignal, over RDMA after a write.

    HCCL's TxAsync, and with rx_data its other kind of step: the receiver posts Ack first, over SDMA
    too, and no signal follows the read. The next Ack, or a barrier, must prove that it is over.
    `reduce` is that of `exchange`.
    """
    if to.rdma:
        _push(stream, to, pieces(send), reduce, None)
    to.tx_data_signal(stream)


def rx_data(
    stream: Stream,
    frm: Link,
    recv: Memory,
    *,
    reduce: bool = False,
    then: Callable[[], None] = lambda: None,
) -> None:
    """Wait for the peer's DataSignal and, over SDMA, read the data that it sends with tx_data;
    HCCL's RxAsync. `then` records what follows the transfer, before a sum of what landed beside.
    """
    recv = pieces(recv)
    frm.rx_data_signal(stream)
    beside: list[Region] = []
    if not frm.rdma:
        beside = _read(stream, frm, recv, [frm.remote(region) for region in recv], reduce, None)
    elif reduce and not frm.inline_reduce:
        beside = _landings(frm, recv, None)
    then()
    if beside:
        stream.reduce(recv, beside)


def _check_places(
    stream: Stream, to: Link, send: list[Region], recv: list[Region], missing: str
) -> None:
    """Refuse data that cannot keep its place: all ranks send from one and receive at another.

    Only ranks that all send to each other receive in this call what others send in it; in a
    pipeline, a rank may send data of an earlier call.
    """
    if not send or not recv or not _are_apart(send[0], recv[0]):
        return
    if np.isin(values_of(to.peer), values_of(to.rank.id)).all():
        out, into = (_format(regions[0]) for regions in (send, recv))
        raise orchestration_error(
            f"Data keeps its place, but every rank sends {out} and receives into {into}",
            _PLACES[missing],
            stream=stream.index,
        )


def _are_apart(send: Region, recv: Region) -> bool:
    """True if all ranks of a batch send from one place and receive at another one."""
    if send.buffer != recv.buffer:
        return True
    is_common = isinstance(send.offset, int) and isinstance(recv.offset, int)
    return is_common and send.offset != recv.offset


def _format(region: Region) -> str:
    name = Buffer(region.buffer).spelling
    return f"{name} from byte {region.offset}" if isinstance(region.offset, int) else name


def _pull(
    stream: Stream,
    frm: Link,
    recv: list[Region],
    reduce: bool,
    source: Region | None,
    land: Region | None,
) -> None:
    theirs = [frm.remote(r) for r in (_cut(source, recv) if source else recv)]
    beside = _read(stream, frm, recv, theirs, reduce, land)
    if beside:
        stream.reduce(recv, beside)
    frm.tx_data_signal(stream)


def _read(
    stream: Stream,
    frm: Link,
    recv: list[Region],
    theirs: list[Region],
    reduce: bool,
    land: Region | None,
) -> list[Region]:
    """Read into `recv`, or beside it what is still to be added there, and return that."""
    beside = _landings(frm, recv, land) if reduce and not frm.inline_reduce else []
    if beside:
        stream.copy(beside, theirs)
    else:
        (stream.reduce if reduce else stream.copy)(recv, theirs)
    return beside


def _push(stream: Stream, to: Link, send: list[Region], reduce: bool, land: Region | None) -> None:
    if reduce and to.inline_reduce and not land:
        stream.reduce([to.remote(r) for r in send], send)
    else:
        places = _landings(to, send, land) if reduce or land else send
        stream.copy([to.remote(r) for r in places], send)


def _arrive(
    stream: Stream, frm: Link, recv: list[Region], reduce: bool, land: Region | None
) -> None:
    """Move pushed data from its landing to its place, unless it landed there."""
    if reduce and (land or not frm.inline_reduce):
        stream.reduce(recv, _landings(frm, recv, land))
    elif land:
        for to, beside in zip(recv, _landings(frm, recv, land), strict=True):
            if to.buffer != beside.buffer or to.offset != beside.offset:
                stream.copy(to, beside)


def _landings(link: Link, regions: list[Region], land: Region | None) -> list[Region]:
    return _cut(land, regions) if land else [link.rank.landing(r) for r in regions]


def _cut(memory: Region, regions: list[Region]) -> list[Region]:
    """Return consecutive parts of `memory`, as large as the regions."""
    parts, start = [], 0
    for region in regions:
        parts.append(memory[start : start + region.size])
        start += region.size
    return parts

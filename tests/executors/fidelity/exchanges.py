"""HCCL's all-to-alls, written from its sources, as one rank runs them.

Files are those of xiaobingling93-pixel/cann-hcomm @ b5f3e5b under src/algorithm: templates in
base/alg_template, executors in impl/coll_executor/coll_all_to_all. Streams are 0 for main and
1, 2, .. for subs. Of the two lists of notifies, number k of the first is ("..", 0, k) here and
number k of the second ("..", k + 1, 0), whichever streams use them.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tests.executors.fidelity.transports import Event, Link, handshake

Sizes = Sequence[Sequence[int]]
"""Bytes from every rank to every rank."""


class Call(NamedTuple):
    """An exchange, the bytes of a CCL buffer, and the ranks that SDMA reaches: those of a server of
    `devices` ranks, or all; `pod` of them where it reaches several servers.
    """

    op: str
    sizes: Sizes
    ccl: int
    devices: int
    pod: int = 0

    @property
    def ranks(self) -> int:
        return len(self.sizes)

    def send_offset(self, rank: int, to: int) -> int:
        return sum(self.sizes[rank][:to])

    def recv_offset(self, rank: int, frm: int) -> int:
        return sum(row[rank] for row in self.sizes[:frm])

    @property
    def fits(self) -> bool:
        """coll_all_to_all_executor.cc:176 UpdateAlltoAllZCopyMode."""
        ranks = range(self.ranks)
        most = max(
            max(self.send_offset(r, self.ranks), self.recv_offset(r, self.ranks)) for r in ranks
        )
        return most <= self.ccl


class Worker:
    """A rank of an exchange with its streams."""

    def __init__(self, rank: int, call: Call, subs: int) -> None:
        self.rank, self.call = rank, call
        self.streams: list[list[Event]] = [[] for _ in range(subs + 1)]

    def link(self, stream: int, peer: int) -> Link:
        pod = self.call.pod or self.call.devices
        return Link(self.streams[stream], peer, rdma=peer // pod != self.rank // pod)

    def post(self, stream: int, owner: int, number: int) -> None:
        self.streams[stream].append(("post", owner, number))

    def wait(self, stream: int, owner: int, number: int) -> None:
        self.streams[stream].append(("wait", owner, number))

    def wake(self, sub: int, by: int = 0) -> None:
        """The second list's notify of a sub: posted by main, or another."""
        self.post(by, sub, 0)
        self.wait(sub, sub, 0)

    def join(self, sub: int, to: int = 0) -> None:
        """The first list's notify of a sub."""
        self.post(sub, 0, sub - 1)
        self.wait(to, 0, sub - 1)


Streams = list[list[Event]]


def direct_full_mesh(rank: int, call: Call) -> Streams:
    """temp_alltoallv/alltoallv_direct_fullmesh.cc:1302 RunAsync."""
    n, others = call.devices, call.ranks - call.devices
    concurrent = min(8, n)
    me = Worker(rank, call, 2 * concurrent + (2 if others else 0))
    if others:
        _run_rdma(me, 2 * concurrent + 1)
    if n > 1:
        _run_sdma(me, concurrent)
    if others:
        me.join(2 * concurrent + 1)
    return me.streams


def _run_rdma(me: Worker, control: int) -> None:
    """:1095 ProcessRdmaData, :990 GetNextDstRank, :1001 GetPreSrcRank, :1086 in
    SendRecvRdmaData; rdmaConcurrentNum_ is 1.
    """
    call, n, total = me.call, me.call.devices, me.call.ranks
    mover, block = control + 1, me.call.ccl // 2
    start = me.rank // n * n
    end = start + n - 1
    to, frm = (me.rank + n) % total, (me.rank + total - n) % total
    me.wake(control)
    for _ in range(total - n):
        if to >= total:
            to %= total
        if to == start:
            to += n
        to %= total
        dst, to = to, to + 1
        if frm == end:
            frm = (frm + total - n) % total
        src = frm
        frm = total - 1 if frm == 0 else frm - 1
        me.wake(mover, by=control)
        sent, received = call.sizes[me.rank][dst], call.sizes[src][me.rank]
        sends, receives = -(-sent // block), -(-received // block)
        tx, rx = me.link(mover, dst), me.link(mover, src)
        for step in range(max(sends, receives)):
            has_send, has_recv = step < sends, step < receives
            if has_recv:
                rx.tx_ack()
            if has_send:
                tx.rx_ack()
                tx.move("rdma_write", 0, block, min(block, sent - step * block))
                tx.tx_data_signal()
            if has_recv:
                rx.rx_data_signal()
                rx.post_fin_ack()
            if has_send:
                tx.wait_fin_ack()
        me.join(mover, to=control)


def _run_sdma(me: Worker, concurrent: int) -> None:
    """:1228 RunSDMA, :1154 RunSDMATasks, :929 RunGroupFullMeshAlltoall."""
    call, n, rank = me.call, me.call.devices, me.rank
    start = rank // n * n
    big = max(call.sizes[rank]) > 1 << 20
    groups = 2 if big or call.op != "all_to_all" else 1
    block = call.ccl // (concurrent * groups)
    if block > 16384:
        block = block // 16384 * 16384
    peers = [p for p in range(start, start + n) if p != rank]
    total = max(
        max(-(-call.sizes[rank][p] // block), -(-call.sizes[p][rank] // block)) for p in peers
    )
    rounds = -(-n // concurrent)
    for step in range(total):
        left = n - 1
        for number in range(rounds):
            if left <= 0:
                break
            group = min(left, concurrent)
            pairs = _rank_set(me, concurrent, number, group)
            if big and number == 0:
                _wake(me, concurrent, len(pairs))
                _join(me, concurrent, len(pairs))
            _wake(me, 0, len(pairs))
            _meet_and_read(me, pairs, number, step, block, concurrent, groups, big, rounds)
            _join(me, 0, len(pairs))
            if big and number < rounds - 1:
                _join(me, concurrent, len(pairs))
            left -= group


def _rank_set(me: Worker, concurrent: int, number: int, group: int) -> list[tuple[int, int]]:
    """:434 UpdatePartialCommunicationRankSet: pairs of a side and a rank."""
    n, start = me.call.devices, me.rank // me.call.devices * me.call.devices
    place, per_round = me.rank - start, concurrent // 2
    count = (group + 1) // 2 if group < concurrent else per_round
    found: list[list[tuple[int, int]]] = [[], [], []]
    for i in range(number * per_round + 1, number * per_round + count + 1):
        left, right = start + (place + n - i) % n, start + (place + i) % n
        if left == right:
            found[2].append((2, left))
        else:
            found[0].append((0, left))
            found[1].append((1, right))
    return found[0] + found[1] + found[2]


def _meet_and_read(
    me: Worker, pairs: list[tuple[int, int]], number: int, step: int, block: int, concurrent: int,
    groups: int, big: bool, rounds: int,
) -> None:  # fmt: skip
    """:880 SendRecvData, :586 NotifyRemoteRankStart, :768 SDMAwithRemoteRankAndNotifyEnd, :173
    UpdateCurrRankRecvInfo for the place in the peer's CCL_In.
    """
    call, rank = me.call, me.rank

    def has(length: int) -> bool:
        return step < -(-length // block)

    for stream, (_, peer) in enumerate(pairs, start=1):
        if has(call.sizes[rank][peer]):
            me.link(stream, peer).tx_ack()
        if has(call.sizes[peer][rank]):
            me.link(stream, peer).rx_ack()
    _join(me, 0, len(pairs))
    _wake(me, 0, len(pairs))
    if big and number < rounds - 1:
        _wake(me, concurrent, len(pairs))
    half, n = concurrent // 2, call.devices
    for stream, (side, peer) in enumerate(pairs, start=1):
        link, length = me.link(stream, peer), call.sizes[peer][rank]
        gap = ((rank - peer) if side == 0 else (peer - rank)) % n
        index = (half - (gap - number * half), half - 1 + (gap - number * half), 0)[side]
        if groups == 2 and number % 2:
            index += concurrent
        if has(length):
            to = call.recv_offset(rank, peer) + step * block
            link.move("read", index * block, to, min(block, length - step * block))
            link.tx_data_signal()
        if has(call.sizes[rank][peer]):
            link.rx_data_signal()


def _wake(me: Worker, first: int, count: int) -> None:
    for sub in range(first + 1, first + count + 1):
        me.wake(sub)


def _join(me: Worker, first: int, count: int) -> None:
    for sub in range(first + 1, first + count + 1):
        me.join(sub)


Piece = tuple[int, int, int]
"""Where something is, where it goes, and its bytes."""


def _tx(link: Link, pieces: Sequence[Piece]) -> None:
    """TxAsync, transport_p2p.cc:1190, transport_ibverbs.cc:1279."""
    if link.rdma:
        for source, to, size in pieces:
            if size:
                link.move("rdma_write", source, to, size)
    link.tx_data_signal()


def _rx(link: Link, pieces: Sequence[Piece]) -> None:
    """RxAsync, transport_p2p.cc:1239, transport_ibverbs.cc:1705."""
    link.rx_data_signal()
    if not link.rdma:
        for source, to, size in pieces:
            if size:
                link.move("read", source, to, size)


Pieces = Callable[[int, int], list[Piece]]
"""What one member has for another one."""


def _pairwise(
    link: Callable[[int], Link], at: int, size: int, pieces: Pieces, ccl: int | None
) -> None:
    """temp_alltoallv/alltoallv_pairwise.cc:237 and alltoallv_staged_pairwise.cc:92 without `ccl`,
    :110 and :130 with it.
    """
    for i in range(1, size):
        prev, following = (at + size - i) % size, (at + i) % size
        rx, tx = link(prev), link(following)
        if ccl is None:
            rx.tx_ack()
            tx.rx_ack()
            _tx(tx, pieces(at, following))
            _rx(rx, pieces(prev, at))
            handshake(rx, tx)
            continue
        sent, received = (
            sum(p[2] for p in pieces(*ends)) for ends in ((at, following), (prev, at))
        )
        for k in range(max(-(-sent // ccl), -(-received // ccl))):
            out, into = min(ccl, sent - k * ccl), min(ccl, received - k * ccl)
            if into > 0:
                rx.tx_ack()
            if out > 0:
                tx.rx_ack()
                _tx(tx, [(0, 0, out)])
            if into > 0:
                _rx(rx, [(0, 0, into)])
                rx.tx_ack()
            if out > 0:
                tx.rx_ack()
                tx.tx_data_signal()
            if into > 0:
                rx.rx_data_signal()


def full_mesh(rank: int, call: Call, *, graph: bool = False) -> Streams:
    """coll_all_to_all_v_fullmesh_executor.cc:88."""
    me = Worker(rank, call, 0)

    def pieces(frm: int, to: int) -> list[Piece]:
        return [(call.send_offset(frm, to), call.recv_offset(to, frm), call.sizes[frm][to])]

    straight = graph or call.fits
    _pairwise(
        lambda peer: me.link(0, peer), rank, call.ranks, pieces, None if straight else call.ccl
    )
    return me.streams


def staged(
    rank: int,
    call: Call,
    *,
    servers: int,
    graph: bool = False,
    switched: bool = False,
    asked: bool = False,
) -> Streams:
    """coll_all_to_all_v_staged_executor.cc:383 KernelRun; `switched` where HCCS_SW joins devices,
    `asked` where HCCL_ALGO has pairwise on both levels (:249, and :52 for streams).
    """
    n = call.ranks // servers
    straight = graph or call.fits
    mesh = straight and not switched and not asked and n > 1
    me = Worker(rank, call, max(n - 2, 0) if mesh else 0)
    server, device = divmod(rank, n)
    one_step = servers == 1 and straight and not graph

    def handed_on(owner: int, server_to: int, device_frm: int) -> int:
        """Where (s, e) keeps what (s, device_frm) has for (server_to, e)."""
        s, e = divmod(owner, n)
        before = [
            (t, d) for t in range(servers) for d in range(n) if (t, d) < (server_to, device_frm)
        ]
        return sum(call.sizes[s * n + d][t * n + e] for t, d in before)

    def inside(frm: int, to: int) -> list[Piece]:
        a, b = server * n + frm, server * n + to
        if one_step:
            return [(call.send_offset(a, b), call.recv_offset(b, a), call.sizes[a][b])]
        return [
            (call.send_offset(a, t * n + to), handed_on(b, t, frm), call.sizes[a][t * n + to])
            for t in range(servers)
        ]

    def between(frm: int, to: int) -> list[Piece]:
        a, b = frm * n + device, to * n + device
        return [
            (handed_on(a, to, d), call.recv_offset(b, frm * n + d), call.sizes[frm * n + d][b])
            for d in range(n)
        ]

    def neighbour(peer: int) -> Link:
        return me.link(0, server * n + peer)

    def remote(peer: int) -> Link:
        return me.link(0, peer * n + device)

    if mesh:
        _staged_mesh(me, n, inside)
    else:
        _pairwise(neighbour, device, n, inside, None if straight else call.ccl)
    if not one_step:
        _pairwise(remote, server, servers, between, None if straight else call.ccl)
    return me.streams


def _staged_mesh(me: Worker, n: int, pieces: Pieces) -> None:
    """temp_alltoallv/alltoallv_staged_mesh.cc:110 RunZCopyMode, :148 LoadTask. Main posts and waits
    for notifies of its own lists there; the sub streams are told and tell.
    """
    server, device = divmod(me.rank, n)
    for sub in range(1, n - 1):
        me.wake(sub)
    for i in range(1, n):
        peer = (device + i) % n
        link = me.link(0 if i == 1 else i - 1, server * n + peer)
        link.tx_ack()
        link.rx_ack()
        _tx(link, pieces(device, peer))
        _rx(link, pieces(peer, device))
        handshake(link, link)
    for sub in range(1, n - 1):
        me.join(sub)


def pipeline(rank: int, call: Call) -> Streams:
    """temp_alltoall/allltoall_pipeline_base.cc:77 RunAsync, in op-base mode; which template,
    coll_all_to_all_v_2level_pipeline_excecutor.cc:16 and :130.
    """
    n, total = call.devices, call.ranks
    largest = max(max(row) for row in call.sizes)
    ends = [max(call.send_offset(r, total), call.recv_offset(r, total)) for r in range(total)]
    me = Worker(rank, call, n)
    if max(largest * total, *ends) <= call.ccl:
        _ccl_enough(me)
    else:
        _ping_pong(me, largest)
    return me.streams


def _inside(me: Worker) -> list[int]:
    return [i for i in range(me.call.devices) if i != me.rank % me.call.devices]


def _wake_inside(me: Worker) -> None:
    for i in _inside(me):
        me.wake(i + 1)


def _join_inside(me: Worker) -> None:
    for i in _inside(me):
        me.join(i + 1)


def _read_inside(me: Worker, places: Callable[[int], Piece]) -> None:
    server = me.rank // me.call.devices * me.call.devices
    for i in _inside(me):
        link = me.link(i + 1, server + i)
        link.tx_ack()
        link.rx_ack()
        source, to, size = places(i)
        if size:
            link.move("read", source, to, size)
        link.tx_data_signal()
        link.rx_data_signal()


def _between(me: Worker, step: int, sent: list[Piece], received: list[Piece]) -> None:
    n = me.call.devices
    servers, (server, device) = me.call.ranks // n, divmod(me.rank, n)
    rx = me.link(device + 1, (server + servers - 1 - step) % servers * n + device)
    tx = me.link(device + 1, (server + 1 + step) % servers * n + device)
    rx.tx_ack()
    tx.rx_ack()
    _tx(tx, sent)
    _rx(rx, received)
    rx.post_fin_ack()
    tx.wait_fin_ack()
    handshake(rx, tx)


def _ccl_enough(me: Worker) -> None:
    """allltoall_pipeline_mesh_pairwise_ccl_enough.cc:242-286."""
    call, n = me.call, me.call.devices
    servers, (server, device) = call.ranks // n, divmod(me.rank, n)

    def block(rank: int, to: int) -> tuple[int, int]:
        """The beginning and the bytes of what a rank has for a server."""
        low, high = call.send_offset(rank, to * n), call.send_offset(rank, to * n + n)
        return low, high - low

    def landed(owner: int, frm: int) -> int:
        """Where the block of the equal device of a server lies."""
        s, d = divmod(owner, n)
        return sum(block(t * n + d, s)[1] for t in range(frm))

    def blocks(frm: int, to: int) -> Piece:
        a, b = frm * n + device, to * n + device
        return (block(a, to)[0], landed(b, frm), block(a, to)[1])

    def read(behind: int) -> None:
        frm = (server + servers - behind) % servers

        def places(peer: int) -> Piece:
            sender = frm * n + peer
            first = call.send_offset(sender, me.rank) - call.send_offset(sender, server * n)
            source = landed(server * n + peer, frm) + first
            return source, call.recv_offset(me.rank, sender), call.sizes[sender][me.rank]

        _read_inside(me, places)

    me.wake(device + 1)
    _wake_inside(me)
    read(0)
    for step in range(servers - 1):
        to, frm = (server + 1 + step) % servers, (server + servers - 1 - step) % servers
        _between(me, step, [blocks(server, to)], [blocks(frm, server)])
        me.join(device + 1)
        _join_inside(me)
        if step < servers - 2:
            me.wake(device + 1)
        _wake_inside(me)
        read(step + 1)
    _join_inside(me)


def _ping_pong(me: Worker, largest: int) -> None:
    """allltoall_pipeline_mesh_pairwise_ping_pong.cc:345 PreProcess, :406 PipelineSend, :448
    PostProcess; first turns, the header's :90-96.
    """
    call, n = me.call, me.call.devices
    servers, (server, device) = call.ranks // n, divmod(me.rank, n)
    half = call.ccl // 2
    block = half // n
    if block > 16384:
        block = block // 16384 * 16384
    steps = -(-largest // block)
    sends_ping = receives_ping = True
    reads_ping = False

    def half_of(sender: int, to: int, sub: int, start: int) -> list[Piece]:
        """HCCL's send a half to its end. What lies between and behind the pieces is left out, which
        nobody fills or reads.
        """
        sizes = [call.sizes[sender][to * n + e] - sub * block for e in range(n)]
        filled = [min(block, max(size, 0)) for size in sizes]
        if filled == [block] * n:
            return [(start, start, n * block)]
        return [(start + e * block, start + e * block, size) for e, size in enumerate(filled)]

    def read(behind: int, sub: int) -> None:
        nonlocal reads_ping
        frm = (server + servers - behind) % servers

        def places(peer: int) -> Piece:
            sender = frm * n + peer
            size = min(block, max(call.sizes[sender][me.rank] - sub * block, 0))
            source = (0 if reads_ping else half) + device * block
            return source, call.recv_offset(me.rank, sender) + sub * block, size

        _read_inside(me, places)
        reads_ping = not reads_ping

    me.wake(device + 1)
    _wake_inside(me)
    read(0, 0)
    for step in range(servers - 1):
        for sub in range(steps):
            out, into = (0 if sends_ping else half), (0 if receives_ping else half)
            sender = (server + servers - 1 - step) % servers * n + device
            sent = half_of(me.rank, (server + 1 + step) % servers, sub, out)
            _between(me, step, sent, half_of(sender, server, sub, into))
            sends_ping, receives_ping = not sends_ping, not receives_ping
            _join_inside(me)
            me.join(device + 1)
            _wake_inside(me)
            read(step + 1, sub)
            if step < servers - 2 or sub < steps - 1:
                me.wake(device + 1)
    _join_inside(me)
    for sub in range(1, steps):
        _wake_inside(me)
        read(0, sub)
        _join_inside(me)


def duo(rank: int, call: Call) -> Streams:
    """temp_alltoallv/alltoallv_for_310p.cc:205 RunAlltoAllVFor310P, of four ranks."""
    block = call.ccl // 2 // 128 * 128
    most = block - 128
    me = Worker(rank, call, 1 if rank % 2 else 2)
    largest = max(max(row) for row in call.sizes)
    for times in range(-(-largest // most)):
        for step in range(1, 5):
            _duo_step(me, step, times * most, most, block)
    return me.streams


def _duo_step(me: Worker, step: int, start: int, most: int, block: int) -> None:
    """:418 RunMainSendRecvBuffer with :318 UpdateMainStepMemInfo, :458 RunMinorSendRecvBuffer with
    :482 UpdateMinorStepMemInfo; neighbours :233.
    """
    call, rank = me.call, me.rank
    first = rank % 2 == 0
    for sub in range(1, len(me.streams)):
        me.wake(sub)
    right_main = (rank + 2) % 4 if first else (rank + 1) % 4
    right_minor = (rank + 3) % 4 if first else (rank + 2) % 4
    left_main = (rank - 2) % 4 if first else (rank - 3) % 4
    left_minor = (rank - 1) % 4 if first else (rank - 2) % 4

    def read(stream: int, frm: int, src: int, dst: int, half: int, into: int | None) -> None:
        """`into` is the half of a buffer, or None for the output."""
        left = max(call.sizes[src][dst] - start, 0)
        size, offset = min(left, most), call.recv_offset(dst, src) + start
        shift = offset % 128
        link = me.link(stream, frm)
        link.tx_ack()
        link.rx_ack()
        if size:
            to = offset if into is None else into * block + shift
            link.move("read", half * block + shift, to, size)
        link.tx_data_signal()
        link.rx_data_signal()

    mate = rank + 1 if first else rank - 1
    if first and step == 1:
        read(2, mate, mate, right_minor, 0, 1)
        read(1, left_main, left_main, mate, 1, 0)
    elif first and step == 2:
        read(2, mate, mate, right_main, 0, 1)
        read(1, left_main, left_minor, mate, 1, 0)
    elif first and step == 3:
        read(2, mate, mate, rank, 0, None)
        read(1, left_main, left_minor, rank, 1, None)
    elif first:
        read(1, left_main, left_main, rank, 0, None)
    elif step < 4:
        read(1, mate, (mate, left_main, left_minor)[step - 1], rank, 0, None)
    for sub in range(1, len(me.streams)):
        me.join(sub)


def by_peers(streams: Streams, rank: int, n: int) -> Streams:
    """A pipeline's streams, numbered by HCCL after the peers in the server, numbered by how far
    those are instead, and that for other servers last. The order in which main wakes streams, and
    waits for them, is that of a hash table in HCCL: as sets.
    """
    device = rank % n
    turned = [0, *((device + k) % n + 1 for k in range(1, n)), device + 1]
    number = {old: new for new, old in enumerate(turned)}

    def renamed(event: Event) -> Event:
        if event[0] not in ("post", "wait") or isinstance(event[2], str):
            return event
        kind, owner, k = event
        return (kind, 0, number[k + 1] - 1) if owner == 0 else (kind, number[owner], 0)

    found = [[renamed(event) for event in streams[old]] for old in turned]
    return [unordered(found[0]), *found[1:]]


def unordered(main: list[Event]) -> list[Any]:
    """Posts that follow each other, and waits, as sorted lists."""
    found: list[list[Event]] = []
    for event in main:
        if found and found[-1][0][0] == event[0]:
            found[-1].append(event)
        else:
            found.append([event])
    return [sorted(group) for group in found]

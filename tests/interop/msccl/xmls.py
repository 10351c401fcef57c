"""A small writer of MSCCL XML files for tests: rings, pairs and whatever a test spells out.

Xml("allreduce", gpus=2, chunks=2, inplace=1)
    .tb(0, send=1, recv=1)
    .step("s", "i", 1).step("rrc", "i", 0, dst=("i", 0))
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Step:
    type: str
    src: tuple[str, int]
    dst: tuple[str, int]
    cnt: int = 1
    dep: tuple[int, int] = (-1, -1)
    hasdep: int = 0
    s: int | None = None
    line: int = 0


@dataclass
class Tb:
    gpu: int
    id: int
    send: int
    recv: int
    chan: int
    steps: list[Step] = field(default_factory=list)

    def step(
        self,
        kind: str,
        src: tuple[str, int] = ("i", -1),
        dst: tuple[str, int] = ("o", -1),
        cnt: int = 1,
        dep: tuple[int, int] = (-1, -1),
        hasdep: int = 0,
        s: int | None = None,
    ) -> Tb:
        self.steps.append(Step(kind, src, dst, cnt, dep, hasdep, s))
        return self


class Xml:
    """An `<algo>`; `text()` writes it, one element per line, and notes the lines of all steps."""

    def __init__(self, coll: str, gpus: int, chunks: int, **more: object) -> None:
        self.gpus = gpus
        usual = {"name": "own", "proto": "Simple", "nchannels": 1, "inplace": 0}
        self.attributes = usual | {"nchunksperloop": chunks, "ngpus": gpus, "coll": coll} | more
        self.chunks: dict[int, tuple[int, int, int]] = {}
        self.copies: dict[int, list[tuple[int, int]]] = {}
        self.usual = (chunks, chunks, 0)
        self.tbs: list[Tb] = []

    def tb(
        self, gpu: int, send: int = -1, recv: int = -1, chan: int = 0, id: int | None = None
    ) -> Tb:
        number = sum(tb.gpu == gpu for tb in self.tbs) if id is None else id
        self.tbs.append(Tb(gpu, number, send, recv, chan))
        return self.tbs[-1]

    def text(self) -> str:
        lines = ["<algo " + " ".join(f'{k}="{v}"' for k, v in self.attributes.items()) + ">"]
        for gpu in range(self.gpus):
            i, o, s = self.chunks.get(gpu, self.usual)
            lines.append(f'  <gpu id="{gpu}" i_chunks="{i}" o_chunks="{o}" s_chunks="{s}">')
            lines += [f'    <copy i_off="{i}" o_off="{o}"/>' for i, o in self.copies.get(gpu, [])]
            for tb in self.tbs:
                if tb.gpu != gpu:
                    continue
                lines.append(
                    f'    <tb id="{tb.id}" send="{tb.send}" recv="{tb.recv}" chan="{tb.chan}">'
                )
                for number, step in enumerate(tb.steps):
                    s = number if step.s is None else step.s
                    lines.append(
                        f'      <step s="{s}" type="{step.type}" srcbuf="{step.src[0]}" '
                        f'srcoff="{step.src[1]}" dstbuf="{step.dst[0]}" dstoff="{step.dst[1]}" '
                        f'cnt="{step.cnt}" depid="{step.dep[0]}" deps="{step.dep[1]}" '
                        f'hasdep="{step.hasdep}"/>'
                    )
                    step.line = len(lines)
                lines.append("    </tb>")
            lines.append("  </gpu>")
        return "\n".join([*lines, "</algo>", ""])


def ring_all_reduce(
    ranks: int, proto: str = "Simple", channels: int = 1, *, inplace: int = 1
) -> Xml:
    """Reduce-scatter and all-gather round a ring, one threadblock per channel, fused steps."""
    xml = Xml(
        "allreduce", ranks, ranks * channels, proto=proto, nchannels=channels, inplace=inplace
    )
    out = "i" if inplace else "o"

    def at(rank: int, back: int, chan: int) -> int:
        return ((rank - back) % ranks) * channels + chan

    for rank in range(ranks):
        for chan in range(channels):
            tb = xml.tb(rank, send=(rank + 1) % ranks, recv=(rank - 1) % ranks, chan=chan)
            tb.step("s", ("i", at(rank, 0, chan)), (out, at(rank, 0, chan)))
            for k in range(1, ranks - 1):
                tb.step("rrs", ("i", at(rank, k, chan)), (out, at(rank, k, chan)))
            tb.step("rrcs", ("i", at(rank, ranks - 1, chan)), (out, at(rank, ranks - 1, chan)))
            for k in range(ranks - 2):
                tb.step("rcs", ("i", at(rank, k, chan)), (out, at(rank, k, chan)))
            tb.step("r", ("i", at(rank, ranks - 2, chan)), (out, at(rank, ranks - 2, chan)))
    return xml


def all_pairs(coll: str, ranks: int, proto: str = "LL", **more: object) -> Xml:
    """Everybody sends to everybody on a threadblock each; what is one's own is copied.

    `coll` is allgather or alltoall.
    """
    gathers = coll == "allgather"
    xml = Xml(coll, ranks, ranks, proto=proto, **more)
    xml.usual = (1 if gathers else ranks, ranks, 0)
    for rank in range(ranks):
        for peer in range(ranks):
            source = 0 if gathers else peer
            if peer == rank:
                xml.tb(rank).step("cpy", ("i", source), ("o", rank))
            else:
                tb = xml.tb(rank, send=peer, recv=peer)
                tb.step("s", ("i", source), ("o", rank)).step("r", ("i", 0), ("o", peer))
    return xml


def sums_in_scratch(ranks: int) -> Xml:
    """All-reduce among few ranks: everybody's data into scratch, then sums in rank order, with
    dependencies between threadblocks and nops for those beyond the first.
    """
    xml = Xml("allreduce", ranks, 1, proto="LL")
    xml.usual = (1, 1, ranks)
    for rank in range(ranks):
        peers = [peer for peer in range(ranks) if peer != rank]
        for peer in peers:
            tb = xml.tb(rank, send=peer, recv=peer)
            tb.step("s", ("i", 0), ("s", rank)).step("r", ("i", 0), ("s", peer), hasdep=1)
        last = xml.tb(rank)
        last.step("cpy", ("i", 0), ("o", 0))
        for number in range(1, len(peers)):
            last.step("nop", dep=(number, 1), cnt=0)
        for number, peer in enumerate(peers):
            last.step("re", ("s", peer), ("o", 0), dep=(0, 1) if number == 0 else (-1, -1))
    return xml


def exchange(proto: str = "Simple") -> Xml:
    """Two GPUs that send each other three chunks in one step, and then receive."""
    xml = Xml("alltoall", 2, 6, proto=proto)
    for gpu in range(2):
        xml.tb(gpu).step("cpy", ("i", 3 * gpu), ("o", 3 * gpu), cnt=3)
        tb = xml.tb(gpu, send=1 - gpu, recv=1 - gpu)
        tb.step("s", ("i", 3 * (1 - gpu)), cnt=3).step("r", dst=("o", 3 * (1 - gpu)), cnt=3)
    return xml

"""Execution plans as somebody may write them: a small writer of the format, and algorithms with it.

plan = PlanText("allreduce", ranks=2, chunks=(2, 2, 0))
tb = plan.block(0)
tb.op("put", [local("i", 0)], [plan.remote(tb, 1, "i", 1)], channel_type="memory")
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

Op = dict[str, Any]


def local(buffer: str, index: int, size: int = 1) -> Op:
    return {"type": buffer, "index": index, "size": size}


class Block:
    """A threadblock: its operations, and what it names of its GPU's."""

    def __init__(self, plan: PlanText, rank: int, number: int) -> None:
        self.plan, self.rank, self.number = plan, rank, number
        self.ops: list[Op] = []
        self.channels: dict[str, list[int]] = {}
        self.remotes: dict[str, list[int]] = {}

    def op(self, name: str, src: Iterable[Op] = (), dst: Iterable[Op] = (), **members: Any) -> Op:
        found: Op = {"name": name, **members}
        if src:
            found["src_buff"] = list(src)
        if dst:
            found["dst_buff"] = list(dst)
        self.ops.append(found)
        return found

    def nop(self) -> None:
        self.op("nop")

    def channel(self, peer: int, kind: str = "memory") -> int:
        """Return this threadblock's number of a channel of its own to a peer."""
        ids = self.channels.setdefault(kind, [])
        connected = self.plan.connected[self.rank].setdefault(kind, [])
        connected.append(peer)
        ids.append(len(connected) - 1)
        return len(ids) - 1

    def switch(self, buffer: str, ranks: list[int]) -> int:
        groups = self.plan.switches[self.rank]
        if (buffer, ranks) not in groups:
            groups.append((buffer, ranks))
        ids = self.channels.setdefault("switch", [])
        if groups.index((buffer, ranks)) not in ids:
            ids.append(groups.index((buffer, ranks)))
        return ids.index(groups.index((buffer, ranks)))

    def remote(self, peer: int, buffer: str, index: int, size: int = 1, kind: str = "memory") -> Op:
        known = self.plan.remotes[self.rank]
        if (peer, buffer) not in known:
            known.append((peer, buffer))
        number = known.index((peer, buffer))
        ids = self.remotes.setdefault(kind, [])
        if number not in ids:
            ids.append(number)
        return {"buffer_id": ids.index(number), "index": index, "size": size}

    def meet(self, *channels: int) -> None:
        """Tell the peers of these channels, and wait until each has said the same."""
        self.signal(*channels)
        self.wait(*channels)
        self.nop()

    def signal(self, *channels: int, kind: str = "memory", name: str = "signal") -> Op:
        return self.op(name, channel_ids=list(channels), channel_type=kind)

    def wait(self, *channels: int, kind: str = "memory", name: str = "wait") -> Op:
        return self.op(name, channel_ids=list(channels), channel_type=kind)


class PlanText:
    """A plan: what it says of all GPUs, and their threadblocks."""

    def __init__(
        self, collective: str, ranks: int, chunks: tuple[int, int, int], **members: Any
    ) -> None:
        self.ranks, self.chunks = ranks, chunks
        self.members: dict[str, Any] = {
            "name": "own",
            "collective": collective,
            "protocol": "Simple",
            "inplace": False,
            "reuse_resources": False,
            "num_threads_per_block": 256,
            "use_double_scratch_buffer": False,
            "buffer_alignment": 16,
            "min_message_size": 0,
            "max_message_size": (1 << 64) - 1,
            **members,
        }
        self.blocks: list[list[Block]] = [[] for _ in range(ranks)]
        self.connected: list[dict[str, list[int]]] = [{} for _ in range(ranks)]
        self.remotes: list[list[tuple[int, str]]] = [[] for _ in range(ranks)]
        self.switches: list[list[tuple[str, list[int]]]] = [[] for _ in range(ranks)]
        self.semaphores: list[list[int]] = [[] for _ in range(ranks)]

    def block(self, rank: int) -> Block:
        self.blocks[rank].append(Block(self, rank, len(self.blocks[rank])))
        return self.blocks[rank][-1]

    def peers(self, rank: int) -> list[int]:
        return [peer for peer in range(self.ranks) if peer != rank]

    def semaphore(self, rank: int, first: int = 0) -> int:
        self.semaphores[rank].append(first)
        return len(self.semaphores[rank]) - 1

    def document(self) -> dict[str, Any]:
        return {**self.members, "gpus": [self._gpu(rank) for rank in range(self.ranks)]}

    def _gpu(self, rank: int) -> dict[str, Any]:
        channels: list[Op] = [
            {"channel_type": kind, "connected_to": peers}
            for kind, peers in self.connected[rank].items()
        ]
        channels += [
            {
                "channel_type": "switch",
                "buffer_type": buffer,
                "rank_groups": [{"size": len(ranks), "ranks": ranks}],
            }
            for buffer, ranks in self.switches[rank]
        ]
        inputs, outputs, scratch = self.chunks
        return {
            "id": rank,
            "input_chunks": inputs,
            "output_chunks": outputs,
            "scratch_chunks": scratch,
            "channels": channels,
            "remote_buffers": [
                {"rank": peer, "type": buffer, "access_channel_types": ["memory", "port"]}
                for peer, buffer in self.remotes[rank]
            ],
            "semaphores": [{"init_value": first} for first in self.semaphores[rank]],
            "threadblocks": [
                {
                    "id": block.number,
                    "ops": block.ops,
                    "channels": [
                        {"channel_type": kind, "channel_ids": ids}
                        for kind, ids in block.channels.items()
                    ],
                    "remote_buffer_refs": [
                        {"access_channel_type": kind, "remote_buffer_ids": ids}
                        for kind, ids in block.remotes.items()
                    ],
                }
                for block in self.blocks[rank]
            ],
        }

    def text(self) -> str:
        return json.dumps(self.document(), indent=1)

    def line(self, op: Op) -> int:
        """Return the line on which an operation begins in the text, by a mark put there."""
        op["#"] = "here"
        lines = self.text().splitlines()
        del op["#"]
        marked = next(number for number, line in enumerate(lines) if '"#"' in line)
        depth = 0
        for number in range(marked, -1, -1):
            depth += lines[number].count("}") - lines[number].count("{")
            if depth < 0:
                return number + 1
        raise AssertionError("every operation is in an object")


def puts_all_gather(ranks: int = 3, *, inplace: bool = False) -> PlanText:
    """Every rank copies its chunk, lets all know that it has begun, puts and says so."""
    plan = PlanText("allgather", ranks, (1, ranks, 0), inplace=inplace)
    for rank in range(ranks):
        tb = plan.block(rank)
        peers = plan.peers(rank)
        channels = [tb.channel(peer) for peer in peers]
        own = local("o", rank) if inplace else local("i", 0)
        if not inplace:
            tb.op("copy", [local("i", 0)], [local("o", rank)])
            tb.nop()
        tb.signal(*channels, name="rlxsignal" if inplace else "signal")
        tb.wait(*channels, name="rlxwait" if inplace else "wait")
        tb.nop()
        puts = [tb.remote(peer, "o", rank) for peer in peers]
        tb.op("put", [own] * len(peers), puts, channel_type="memory")
        tb.nop()
        tb.meet(*channels)
    return plan


def reduce_scatter_in_place(ranks: int = 3) -> PlanText:
    """Every rank adds its chunk of all inputs, which its output is a part of, reading those of the
    others.
    """
    plan = PlanText("reducescatter", ranks, (ranks, 1, 0), inplace=True)
    for rank in range(ranks):
        tb = plan.block(rank)
        peers = [peer for peer in range(ranks) if peer != rank]
        channels = [tb.channel(peer) for peer in peers]
        tb.signal(*channels)
        tb.wait(*channels)
        tb.nop()
        theirs = [tb.remote(peer, "i", rank) for peer in peers]
        into = [local("o", 0)]
        tb.op("rre", [local("i", rank), *theirs], into, channel_type="memory", reduce_op="sum")
        tb.nop()
        tb.signal(*channels)
        tb.wait(*channels)
    return plan


def read_reduce(ranks: int = 3) -> PlanText:
    """Every rank adds its chunk of all inputs, reading those of the others, and puts the sum."""
    plan = PlanText("allreduce", ranks, (ranks, ranks, 0))
    for rank in range(ranks):
        tb = plan.block(rank)
        peers = plan.peers(rank)
        channels = [tb.channel(peer) for peer in peers]
        tb.meet(*channels)
        tb.op(
            "rres",
            [local("i", rank), *(tb.remote(peer, "i", rank) for peer in peers)],
            [local("o", rank), *(tb.remote(peer, "o", rank) for peer in peers)],
            channel_type="memory",
            reduce_op="sum",
        )
        tb.nop()
        tb.meet(*channels)
    return plan


def packet_all_gather(ranks: int = 2, *, double: bool = True) -> PlanText:
    """Every rank sends its chunk as packets and takes those of others: nobody says that he has
    them, so a call must not write where the one before it may still read.
    """
    plan = PlanText(
        "allgather",
        ranks,
        (1, ranks, ranks),
        protocol="LL",
        inplace=True,
        use_double_scratch_buffer=double,
    )
    for rank in range(ranks):
        peers = plan.peers(rank)
        tb = plan.block(rank)
        there = [tb.remote(peer, "s", rank) for peer in peers]
        tb.op("ppkt", [local("o", rank)] * len(peers), there, channel_type="memory")
        for peer in peers:
            plan.block(rank).op("upkt", [local("s", peer)], [local("o", peer)])
    return plan


def packet_all_reduce(ranks: int = 2, group: int = 1) -> PlanText:
    """Every chunk goes as packets to the rank that adds it, and its sum as packets to all. With a
    group, as many threadblocks share each operation.
    """
    chunks = (ranks, ranks, 2 * ranks)
    plan = PlanText(
        "allreduce", ranks, chunks, protocol="LL", inplace=True, use_double_scratch_buffer=True
    )
    for rank in range(ranks):
        peers = plan.peers(rank)
        for part in range(group):
            shared = {"tbg_info": {"tb_id": part, "tbg_size": group}} if group > 1 else {}
            tb = plan.block(rank)
            tb.op(
                "ppkt",
                [local("i", peer) for peer in peers],
                [tb.remote(peer, "s", rank) for peer in peers],
                channel_type="memory",
                **shared,
            )
            tb.op(
                "respkt",
                [local("i", rank), *(local("s", peer) for peer in peers)],
                [local("i", rank), *(tb.remote(peer, "s", ranks + rank) for peer in peers)],
                channel_type="memory",
                reduce_op="sum",
                **shared,
            )
            last = plan.block(rank)
            for peer in peers:
                last.op("upkt", [local("s", ranks + peer)], [local("i", peer)], **shared)
    return plan


def port_exchange(ranks: int = 2, name: str = "pwsf") -> PlanText:
    """An all-to-all over port channels."""
    plan = PlanText("alltoall", ranks, (ranks, ranks, 0))
    for rank in range(ranks):
        tb = plan.block(rank)
        peers = plan.peers(rank)
        channels = [tb.channel(peer, "port") for peer in peers]
        tb.signal(*channels, kind="port")
        tb.wait(*channels, kind="port")
        tb.op("copy", [local("i", rank)], [local("o", rank)])
        tb.nop()
        tb.op(
            name,
            [local("i", peer) for peer in peers],
            [tb.remote(peer, "o", rank, kind="port") for peer in peers],
            channel_ids=channels,
            channel_type="port",
        )
        if name == "put":
            tb.op("flush", channel_ids=channels, channel_type="port")
            tb.signal(*channels, kind="port")
        tb.wait(*channels, kind="port")
        tb.nop()
    return plan


def switch_all_reduce(ranks: int = 3) -> PlanText:
    """Every rank has the switch add its chunk and store the sum at all."""
    plan = PlanText("allreduce", ranks, (ranks, ranks, 0), inplace=True)
    for rank in range(ranks):
        tb = plan.block(rank)
        peers = plan.peers(rank)
        channels = [tb.channel(peer) for peer in peers]
        group = tb.switch("i", list(range(ranks)))
        tb.meet(*channels)
        chunk = {"switch_channel_id": group, "index": rank, "size": 1}
        tb.op("glres", [chunk], [dict(chunk)], channel_type="switch", reduce_op="sum")
        tb.nop()
        tb.meet(*channels)
    return plan


def pipelined_gather(first: int = 2) -> PlanText:
    """Two ranks: one threadblock takes pieces to scratch, another one puts them to the peer, round
    and round; a semaphore says that a piece is there, another one that there is room.
    """
    plan = PlanText("allgather", 2, (1, 2, 1))
    for rank in range(2):
        there, room = plan.semaphore(rank), plan.semaphore(rank, first)
        filler, sender = plan.block(rank), plan.block(rank)
        filler.op("copy", [local("i", 0)], [local("o", rank)])
        context = {"unit_size": 64, "num_chunks": 1}
        filler.op(
            "pipeline",
            iter_context=context,
            ops=[
                {"name": "sem_acquire", "semaphore_ids": [room]},
                {"name": "nop"},
                {"name": "copy", "src_buff": [local("i", 0)], "dst_buff": [local("s", 0)]},
                {"name": "nop"},
                {"name": "sem_release", "semaphore_ids": [there]},
            ],
        )
        channel = sender.channel(1 - rank)
        sender.meet(channel)
        put = {
            "name": "put",
            "src_buff": [local("s", 0)],
            "dst_buff": [sender.remote(1 - rank, "o", rank)],
            "channel_type": "memory",
        }
        sender.op(
            "pipeline",
            iter_context=context,
            ops=[
                {"name": "sem_acquire", "semaphore_ids": [there]},
                {"name": "nop"},
                put,
                {"name": "nop"},
                {"name": "sem_release", "semaphore_ids": [room]},
            ],
        )
        sender.nop()
        sender.meet(channel)
    return plan


def barrier_between_blocks(blocks: int = 3) -> PlanText:
    """One rank takes its chunks through scratch: threadblocks meet before they read others'."""
    plan = PlanText("allreduce", 1, (blocks, blocks, blocks))
    for number in range(blocks):
        tb = plan.block(0)
        tb.op("copy", [local("i", number)], [local("s", number)])
        tb.op("barrier", barrier_id=1, num_threadblocks=blocks)
        other = (number + 1) % blocks
        tb.op("copy", [local("s", other)], [local("o", other)])
        tb.op("barrier", barrier_id=1, num_threadblocks=blocks)
    return plan

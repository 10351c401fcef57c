"""A writer of logs as HCCL's checker prints them, and a few collectives in that form."""

import re
from dataclasses import dataclass, field

Memory = tuple[str, int, int]


def link(kind: str, rank: int) -> str:
    return f"remoteRank={rank}, link=link prototyp=LinkProtoStub::{kind}"


def memory(part: Memory) -> str:
    return f"DataSlice[BufferType::{part[0]}, offset={part[1]}, size={part[2]}]"


def copy(src: Memory, dst: Memory) -> str:
    return f"LocalCopy[srcSlice={memory(src)}, dstSlice={memory(dst)}]"


def add(src: Memory, dst: Memory, dtype: int = 4, op: int = 0) -> str:
    numbers = f"dataType={dtype}, reduceOp={op}"
    return f"LocalReduce[{numbers}, srcSlice={memory(src)}, dstSlice={memory(dst)}]"


def local_post(topic: int) -> str:
    return f"LocalPostTo[topicId={topic}]"


def local_wait(topic: int) -> str:
    return f"LocalWaitFrom[topicId={topic}]"


def signal(word: str, rank: int, notify: str, tag: str = "TAG", kind: str = "SDMA") -> str:
    return f"{word}[{link(kind, rank)}, notifyType=NotifyTypeStub::{notify}, originated tag={tag}]"


def post(rank: int, notify: str = "READY", tag: str = "TXACK", kind: str = "SDMA") -> str:
    return signal("Post", rank, notify, tag, kind)


def wait(rank: int, notify: str = "READY", tag: str = "RXACK", kind: str = "SDMA") -> str:
    return signal("Wait", rank, notify, tag, kind)


def read(rank: int, there: Memory, here: Memory, kind: str = "SDMA") -> str:
    return f"Read[{link(kind, rank)}, localSlice={memory(here)}, remoteSlice={memory(there)}]"


def write(rank: int, here: Memory, there: Memory, kind: str = "SDMA") -> str:
    return f"Write[{link(kind, rank)}, localSlice={memory(here)}, remoteSlice={memory(there)}]"


def reducing(
    word: str,
    rank: int,
    here: Memory,
    there: Memory,
    *,
    dtype: int = 4,
    op: int = 0,
    kind: str = "SDMA",
) -> str:
    numbers = f"dataType={dtype}, reduceOp={op}"
    slices = f"localSlice={memory(here)}, remoteSlice={memory(there)}"
    return f"{word}[{link(kind, rank)}, {numbers}, {slices}]"


Tasks = list[list[list[str]]]
"""[rank][queue][index]"""


def printed(tasks: Tasks) -> list[str]:
    """What `PrintTask` prints."""
    lines = []
    for rank, queues in enumerate(tasks):
        lines += ["=" * 55, f"rank id is {rank}"]
        for queue, items in enumerate(queues):
            lines += ["-" * 55, f"stream/queue id is {queue}"]
            lines += [
                f"[rankId:{rank}, queueId:{queue}, index:{index}] {task}"
                for index, task in enumerate(items)
            ]
    return lines


_NOTIFIES = ("READY", "FIN", "FIN_ACK")


def in_hccl_words(task: str, rank: int) -> str:
    """A task as the checker of hccl prints it: notifies have numbers of their own, every rank has
    one CCL buffer, and what lies where is in hexadecimal.
    """
    name, _, members = task.partition("[")
    if name in ("Post", "Wait"):
        peer, kind = int(members[11 : members.index(",")]), members.split("::")[1].split(",")[0]
        notify = members.split("NotifyTypeStub::")[1].split(",")[0]
        waits, posts = (peer, rank) if name == "Post" else (rank, peer)
        number = 100 * waits + 10 * posts + _NOTIFIES.index(notify)
        link_text = f"link=link prototyp=LinkProtoStub::{kind}"
        tail = f"notifyType=NotifyTypeStub::READY, originated tag={name.upper()}]"
        return f"[{name}]:[remoteRank={peer}, notifyId={number}, {link_text}, {tail}"
    members = re.sub(r"(offset|size)=(\d+)", lambda m: f"{m[1]}=0x{int(m[2]):X}", members)
    return f"[{name}]:[{members}".replace("INPUT_CCL", "CCL").replace("OUTPUT_CCL", "CCL")


def printed_by_hccl(tasks: Tasks) -> list[str]:
    """What `PrintTask` of hccl prints."""
    lines = []
    for rank, queues in enumerate(tasks):
        lines += ["=" * 55, f"rankId is : {rank} "]
        for queue, items in enumerate(queues):
            lines += [f"threadIdx : {queue}, taskNum : {len(items)} ", "-" * 55]
            lines += [
                f"rankIdx:{rank}, threadIdx:{queue}, {in_hccl_words(task, rank)}" for task in items
            ]
    return lines


def error(text: str, place: str = "task_graph_generator.cc:98") -> str:
    return f"[2026-05-09 03:18:42.356][pid:7][ERROR][{place}] [7]{text}"


@dataclass
class Log:
    """A run of GoogleTest."""

    lines: list[str] = field(default_factory=lambda: ["[==========] Running 3 tests."])

    def test(
        self, name: str, tasks: Tasks | None = None, said: tuple[str, ...] = (), result: str = ""
    ) -> "Log":
        self.lines.append(f"[ RUN      ] {name}")
        self.lines += printed(tasks) if tasks else []
        self.lines += said or (
            "Cost time: bilateral= 0.1, checkMem= 1e-05",
            "Cost time: checkSem= 2e-05",
        )
        self.lines.append(f"[{result or '       OK'} ] {name} (12 ms)")
        return self

    def hccl_test(self, name: str, tasks: Tasks, said: tuple[str, ...] = ()) -> "Log":
        self.lines += [f"[ RUN      ] {name}", *printed_by_hccl(tasks), *said]
        self.lines.append(f"[{'  FAILED ' if said else '       OK'} ] {name} (12 ms)")
        return self

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


def all_gather(ranks: int, size: int = 64) -> Tasks:
    """Every rank reads from all others, a sub queue for each of them."""

    def queue(rank: int, k: int) -> list[str]:
        peer = (rank + k) % ranks
        back = (rank - k) % ranks
        return [
            local_wait(2 * (k - 1)),
            post(back),
            wait(peer),
            read(peer, ("INPUT_CCL", 0, size), ("OUTPUT", peer * size, size)),
            post(peer, "FIN", "TXDATASIGNAL"),
            wait(back, "FIN", "RXDATASIGNAL"),
            local_post(2 * (k - 1) + 1),
        ]

    def main(rank: int) -> list[str]:
        staged = [copy(("INPUT", 0, size), ("INPUT_CCL", 0, size))]
        starts = [local_post(2 * k) for k in range(ranks - 1)]
        own = [copy(("INPUT", 0, size), ("OUTPUT", rank * size, size))]
        return staged + starts + own + [local_wait(2 * k + 1) for k in range(ranks - 1)]

    return [[main(rank), *(queue(rank, k) for k in range(1, ranks))] for rank in range(ranks)]


def all_reduce_of_two(size: int = 256, dtype: int = 4, op: int = 0) -> Tasks:
    """Each of two ranks writes its data over RDMA into the other one's CCL buffer, and adds."""

    def main(rank: int) -> list[str]:
        peer = 1 - rank
        return [
            post(peer, kind="RDMA"),
            wait(peer, kind="RDMA"),
            write(peer, ("INPUT", 0, size), ("OUTPUT_CCL", 0, size), kind="RDMA"),
            post(peer, "FIN", "TXASYNC", kind="RDMA"),
            wait(peer, "FIN", "RXASYNC", kind="RDMA"),
            copy(("INPUT", 0, size), ("OUTPUT", 0, size)),
            add(("OUTPUT_CCL", 0, size), ("OUTPUT", 0, size), dtype, op),
            post(peer, "FIN_ACK", "POSTFINACK", kind="RDMA"),
            wait(peer, "FIN_ACK", "WAITFINACK", kind="RDMA"),
        ]

    return [[main(0)], [main(1)]]


def reduce_scatter_of_two(size: int = 64) -> Tasks:
    """Each of two ranks adds the part of the other one that is its own, by ReadReduce."""

    def main(rank: int) -> list[str]:
        peer, own = 1 - rank, rank * size
        return [
            copy(("INPUT", 0, 2 * size), ("INPUT_CCL", 0, 2 * size)),
            post(peer),
            wait(peer),
            reducing(
                "ReadReduce",
                peer,
                ("INPUT_CCL", own, size),
                ("INPUT_CCL", own, size),
                dtype=3,
                op=2,
            ),
            post(peer, "FIN"),
            wait(peer, "FIN"),
            copy(("INPUT_CCL", own, size), ("OUTPUT", 0, size)),
        ]

    return [[main(0)], [main(1)]]

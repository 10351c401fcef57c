"""The canonical form of a run: what both HCCL's tasks and recorded programs are compared as.

A run has for every rank its streams, main first, and for every stream its events in order. Empty
transfers are left out, and streams without events at the end. Which object HCCL takes for a notify
between two streams is a name: here it is called by the streams that post it and wait for it.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from hccl_py.enums import DataType, LinkKind, ReduceOp, TaskKind
from hccl_py.program.program import Program
from hccl_py.program.transports import turns_of


class Event(NamedTuple):
    """One task. `peer` and `link` are of tasks between ranks, `notify` of posts and waits, `source`
    and `target` (buffer, offset) of tasks that move `size` bytes, `reduction` (dtype, op) of those
    that reduce.
    """

    kind: str
    peer: int | None = None
    link: str = ""
    notify: str = ""
    size: int = 0
    source: tuple[str, int] = ("", 0)
    target: tuple[str, int] = ("", 0)
    reduction: str = ""

    def __str__(self) -> str:
        where = f" rank {self.peer} {self.link}" if self.peer is not None else ""
        if not self.size:
            return f"{self.kind}{where} {self.notify}"
        from_, to = (f"{buffer}+{offset}".lstrip("+") for buffer, offset in self[5:7])
        return f"{self.kind}{where} {self.size} B {from_} -> {to} {self.reduction}".rstrip()


Stream: TypeAlias = list[Event]
Run: TypeAlias = list[list[Stream]]
"""By rank, by stream."""

_SIGNALS = {"READY": "Ack", "FIN": "DataSignal", "FIN_ACK": "DataAck"}
_BUFFERS = {
    "IN": "INPUT",
    "OUT": "OUTPUT",
    "CCL_IN": "INPUT_CCL",
    "CCL_OUT": "OUTPUT_CCL",
}
_NOTIFYING: dict[int, str] = {TaskKind.NOTIFY_POST: "post", TaskKind.NOTIFY_WAIT: "wait"}
_KINDS: dict[int, str] = {
    TaskKind.COPY: "local_copy",
    TaskKind.REDUCE: "local_reduce",
    TaskKind.READ: "read",
    TaskKind.READ_REDUCE: "read_reduce",
    TaskKind.WRITE: "write",
    TaskKind.WRITE_REDUCE: "write_reduce",
    TaskKind.RDMA_WRITE: "write",
    TaskKind.RDMA_WRITE_REDUCE: "write_reduce",
}


# ---- what HCCL did ----


def run_of_tasks(tasks: Sequence[Sequence[Sequence[Sequence[Any]]]]) -> Run:
    """Return the run of a driver's answer."""
    return [_finished([[_event(task) for task in stream] for stream in rank]) for rank in tasks]


def run_of_threads(
    tasks: Sequence[Sequence[Sequence[Sequence[Any]]]], asked: Sequence[Mapping[str, Any]]
) -> Run:
    """Return the run of an answer of `pub`, given the resources of every rank: the host's stream
    and its two notifies with main are left out, and notifies of channels numbered by channel.
    """
    ends = [_ChannelEnds.of(rank, one) for rank, one in zip(tasks, asked, strict=True)]
    run = []
    for number, rank in enumerate(tasks):
        found: list[Stream] = []
        for stream in (rank[1][1:-1], *rank[2:]):
            found.append([])
            for task in stream:
                if task[0] in ("post", "wait"):
                    owner = ends[task[1] if task[0] == "post" else number]
                    task = [*task[:3], *owner.notify(task[3])]
                found[-1].append(_event(task))
        run.append(_finished(found))
    return run


class _ChannelEnds(NamedTuple):
    """The number of a rank's first notify of a channel, and of every channel how many there are to
    the same peer before it.
    """

    first: int
    turns: list[int]

    @classmethod
    def of(
        cls, streams: Sequence[Sequence[Sequence[Any]]], asked: Mapping[str, Any]
    ) -> _ChannelEnds:
        """Notifies are numbered in the order of requests: threads, host and main, channels."""
        threads = sum(many * notifies for _, many, notifies in asked.get("threads", ()))
        peers = [peer for _, peer, _, _ in asked.get("channels", ())]
        turns = [peers[:place].count(peer) for place, peer in enumerate(peers)]
        return cls(streams[0][1][1] + threads + 3, turns)

    def notify(self, number: int) -> tuple[int, int]:
        """Return the turn of a notify's channel, and its number there."""
        channel, index = divmod(number - self.first, NOTIFIES)
        return self.turns[channel], index


NOTIFIES = 3
"""Notifies of a channel."""


def channel_notify(turn: int, index: int) -> str:
    """Name a notify of a pair's channel: its number, and of several channels which one."""
    return f"notify {index}" + (f" of channel {turn}" if turn else "")


def _event(task: Sequence[Any]) -> Event:
    kind = task[0]
    if kind in ("post", "wait") and len(task) == 5:
        return Event(kind, task[1], task[2], channel_notify(task[3], task[4]))
    if kind in ("local_post", "local_wait"):
        return Event(kind, notify=str(task[1]))
    if kind in ("post", "wait"):
        is_extra = task[5] in ("POST", "WAIT")
        name = f"extra notify {task[3]}" if is_extra else _SIGNALS[task[4]]
        return Event(kind, task[1], task[2], name)
    if kind in ("local_copy", "local_reduce"):
        (source, begins, size), (target, to, _) = task[1:3]
        return Event(kind, None, "", "", size, (source, begins), (target, to), _words(task[3:]))
    if kind == "other":
        return Event(f"other: {task[1]}")
    here, there = task[3:5]
    source, target = (there, here) if kind.startswith("read") else (here, there)
    ends = (source[0], source[1]), (target[0], target[1])
    return Event(kind, task[1], task[2], "", here[2], *ends, _words(task[5:]))


def _words(reduction: Sequence[str]) -> str:
    return " ".join(reduction).replace("REDUCE_", "").lower()


# ---- what was recorded ----


def run_of_program(program: Program) -> Run:
    """Return the run of a recorded program."""
    tasks, transports = program.tasks, program.transports
    slots, number, stride = program.local_notifies.slots, transports.cells, transports.stride
    links = [LinkKind(kind).name for kind in transports.kind.tolist()]
    on_channels = "CCL" in program.buffers
    turns = turns_of(transports.plane * 0, transports.rank, transports.peer).tolist()
    own = [str(slot) for slot in slots]
    common = [transports.name_of(index) for index in range(stride)]
    instructions = _instructions(program)
    names = ("instruction", "cell", "end", "peer", "size", "src_offset", "dst_offset")
    columns = list(zip(*(getattr(tasks, name).tolist() for name in names), strict=True))
    run = []
    for rank in range(program.ranks):
        streams: list[Stream] = [[] for _ in range(program.streams)]
        for row in columns[tasks.first[rank] : tasks.first[rank + 1]]:
            which, cell, end, peer, size, begins, to = row
            word, stream, source, target, how, is_local = instructions[which]
            if not source:
                if cell >= number:
                    event = Event(f"local_{word}", None, "", own[(cell - number) % len(own)])
                else:
                    index = cell % stride
                    name = channel_notify(turns[end], index) if on_channels else common[index]
                    event = Event(word, peer, links[end], name)
            else:
                link, other = links[end] if end >= 0 else "", None if is_local else peer
                event = Event(word, other, link, "", size, (source, begins), (target, to), how)
            streams[stream].append(event)
        run.append(_finished(streams))
    return run


class _Shared(NamedTuple):
    """What all ranks of an instruction share; posts and waits have no buffers."""

    word: str
    stream: int
    source: str = ""
    target: str = ""
    reduction: str = ""
    is_local: bool = False


def _instructions(program: Program) -> list[_Shared]:
    """Return the words of a program's instructions."""
    table = program.tasks.table
    buffers = [_BUFFERS.get(name, name) for name in program.buffers]
    if program.op.name == "broadcast":
        buffers = [buffer if buffer != "OUTPUT" else "INPUT" for buffer in buffers]
    names = ("kind", "stream", "src_buffer", "dst_buffer", "dtype", "reduce")
    found = []
    for row in zip(*(getattr(table, name).tolist() for name in names), strict=True):
        kind, stream, source, target, dtype, reduce = row
        if kind in _NOTIFYING:
            found.append(_Shared(_NOTIFYING[kind], stream))
            continue
        word = _KINDS[kind]
        how = _reduction(dtype, reduce) if "reduce" in word else ""
        ends = buffers[source], buffers[target]
        found.append(_Shared(word, stream, *ends, how, word.startswith("local")))
    return found


_DTYPES = {"bf16": "bfp16"}


def _reduction(dtype: int, reduce: int) -> str:
    name = DataType.from_number(dtype).value
    return f"{_DTYPES.get(name, name)} {ReduceOp(reduce).name.lower()}"


# ---- both ----


def _finished(streams: list[Stream]) -> list[Stream]:
    """Leave out what moves nothing, and name the notifies between streams."""
    kept = _named([[e for e in events if _does(e)] for events in streams])
    while kept and not kept[-1]:
        kept.pop()
    return kept


def _does(event: Event) -> bool:
    """Return whether a task does anything: memory copied to itself is where an op has one."""
    if not event.size:
        return bool(event.notify) or ":" in event.kind
    return event.kind != "local_copy" or event.source != event.target


def _named(streams: list[Stream]) -> list[Stream]:
    """Name every notify between streams by who posts and who waits, and by its number if there are
    several of them.
    """
    users: dict[str, dict[str, list[int]]] = {}
    for number, events in enumerate(streams):
        for event in events:
            if event.kind in ("local_post", "local_wait"):
                ends = users.setdefault(event.notify, {"local_post": [], "local_wait": []})
                if number not in ends[event.kind]:
                    ends[event.kind].append(number)
    named, count = {}, Counter[str]()
    for notify, ends in users.items():
        name = ">".join(",".join(map(str, ends[kind])) for kind in ends)
        turn = f".{count[name]}" if count[name] else ""
        for kind in ends:
            named[kind, notify] = Event(kind, notify=name + turn)
        count[name] += 1
    return [[named.get((e.kind, e.notify), e) for e in events] for events in streams]


# ---- how closely two runs are compared ----


def _whole(event: Event) -> Event | None:
    return event


def _between(event: Event) -> Event | None:
    if event.size and event.peer is None:
        return None
    kind, peer, link, notify, size, source, target, reduction = event
    return Event(kind, peer, link, notify, size, ("", source[1]), ("", target[1]), reduction)


def _sizes(event: Event) -> Event | None:
    if event.size and event.peer is None:
        return None
    return event._replace(source=("", 0), target=("", 0))


CLOSENESS: dict[str, Callable[[Event], Event | None]] = {
    "all": _whole,
    "but for local copies": _between,
    "but for places": _sizes,
}
"""From strict to weak: every task; without copies and reductions between a rank's own buffers and
without the names of buffers; without offsets in them as well.
"""


def seen(run: Run, closeness: str) -> Run:
    """Return a run as it is compared."""
    keep = CLOSENESS[closeness]
    return [[[e for e in map(keep, events) if e] for events in rank] for rank in run]


_AS_WRITTEN = "Event(" + ", ".join(f"{name}=%r" for name in Event._fields) + ")"
"""An event's text in golden runs: its repr, which costs a call of Python for each event."""


class _Texts(dict[Event, str]):
    """The texts of events, each written once: most posts and waits come again."""

    def __missing__(self, event: Event) -> str:
        return self.setdefault(event, _AS_WRITTEN % event)


def digest(events: Iterable[Event]) -> str:
    """Return four characters for the events of a stream, none for no events."""
    texts = _Texts()
    text = "\n".join(texts[event] for event in events)
    found = hashlib.sha256(text.encode()).digest()[:3]
    return base64.b64encode(found, b"-_").decode() if text else ""

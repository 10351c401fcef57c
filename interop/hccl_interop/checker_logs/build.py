"""From the tasks of a test to a program.

    rank                      rank
    queue                     stream, 0 is main
    LocalPostTo, LocalWaitFrom  a notify of the rank for every topic
    Post, Wait                notify of a link: READY is Ack, FIN is DataSignal, FIN_ACK is DataAck
    link                      one for two ranks and SDMA or RDMA

So HCCL's checker matches posts and waits: those of a rank by topic alone, those between two ranks
by the link's protocol, the kind of notify and its number. It counts posts, though, where a notify
of the hardware holds one bit: a post that comes before the last one is consumed is a finding here.

In hcomm's dialect `Transport::Post` and `Wait` have an index that the log does not print; their
posts stand for one notify of the link, the fourth. In hccl's every notify has a number, which is
one of the rank that waits; those of an end are the link's notifies 0, 1, 2, ... in their order.

How large buffers are is not printed: they end where tasks do, but for INPUT and OUTPUT of a known
op.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from hccl_interop.checker_logs.lines import LoggedSlice, LoggedTask
from hccl_interop.checker_logs.operation import FoundOp
from hccl_py.documents.checks import defect
from hccl_py.enums import LinkKind, TaskKind
from hccl_py.operators import make_operator
from hccl_py.program.builder import BufferSlice, ProgramBuilder, TaskNote, TaskStream
from hccl_py.program.limits import LIMIT
from hccl_py.program.program import Program

Queues = Sequence[Sequence[Sequence[LoggedTask]]]
"""Tasks, [rank][queue][index]."""

NOTIFY_NAMES = ("Ack", "DataSignal", "DataAck", "notify of Post")

BUFFERS = {
    "INPUT": "IN",
    "OUTPUT": "OUT",
    "INPUT_CCL": "CCL_IN",
    "OUTPUT_CCL": "CCL_OUT",
    "CCL": "CCL",
    "SCRATCH": "SCRATCH",
    "INPUT_AIV": "AIV_IN",
    "OUTPUT_AIV": "AIV_OUT",
}
NOTIFIES = {"READY": 0, "FIN": 1, "FIN_ACK": 2}
INDEXED = 3
INDEXED_TAGS = ("POST", "WAIT")
_TOPICS = 1 << 12
"""Topics up to here keep their numbers."""

_KINDS = {
    "LocalCopy": TaskKind.COPY,
    "LocalReduce": TaskKind.REDUCE,
    "Read": TaskKind.READ,
    "ReadReduce": TaskKind.READ_REDUCE,
    "Write": TaskKind.WRITE,
    "WriteReduce": TaskKind.WRITE_REDUCE,
}


def all_tasks(queues: Queues) -> Iterator[LoggedTask]:
    """Yield the tasks of all ranks."""
    return chain.from_iterable(chain.from_iterable(queues))


def check_tasks(queues: Queues) -> None:
    """Refuse peers, memory and notifies that do not exist."""
    ranks = len(queues)
    for task in all_tasks(queues):
        place = f"line {task.line}"
        if task.peer >= ranks:
            hint = "Are ranks missing at the end of the test?"
            raise defect(place, f"a remoteRank below {ranks}", str(task.peer), hint)
        if task.peer == task.rank:
            raise defect(place, "another rank", f"rank {task.peer} itself", "It has no link.")
        if task.notify and task.notify not in NOTIFIES:
            hint = "Those of the collective communication unit are not read."
            expected = f"a notifyType of {', '.join(NOTIFIES)}"
            raise defect(place, expected, task.notify, hint)
        for part in (task.src, task.dst):
            if part is not None and part.buffer not in BUFFERS:
                expected = f"a buffer of {', '.join(BUFFERS)}"
                hint = "Memory inside a processor is not read."
                raise defect(place, expected, part.buffer, hint)
            if part is not None and part.offset + part.size > LIMIT:
                found = str(part.offset + part.size)
                raise defect(place, "memory below 2**62 bytes", found, "Is the line whole?")


def extents(queues: Queues) -> list[dict[str, int]]:
    """Return the end of the last byte that tasks touch in each buffer, by the program's names, of
    every rank.
    """
    found: list[dict[str, int]] = [defaultdict(int) for _ in queues]
    for task in all_tasks(queues):
        for part, rank in _memory(task):
            name = BUFFERS[part.buffer]
            found[rank][name] = max(found[rank][name], part.offset + part.size)
    return found


def build(
    name: str, file: str, queues: Queues, sizes: Sequence[Mapping[str, int]], found: FoundOp
) -> Program:
    """Return the program of a test whose `extents` are `sizes`; without an op where `found` is
    open.
    """
    links = _Links(queues)
    names = () if links.are_numbered else NOTIFY_NAMES
    builder = ProgramBuilder(found.op, len(queues), name, notify_names=names)
    for buffer, bytes_of in _buffers(sizes, found).items():
        builder.buffer(buffer, bytes_of)
    links.add_to(builder)
    for rank, streams in enumerate(queues):
        topics = _Topics(streams)
        for number, tasks in enumerate(streams):
            stream = builder.stream(rank, number)
            for task in tasks:
                _write(stream, task, links, topics, TaskNote(source=f"{file}:{task.line}"))
    return replace(builder.build(), has_op=not found.open)


def _memory(task: LoggedTask) -> Iterator[tuple[LoggedSlice, int]]:
    """Yield the memory that a task touches, each with the rank that has it."""
    remote = {"Read": 0, "ReadReduce": 0, "Write": 1, "WriteReduce": 1}.get(task.name)
    for side, part in enumerate((task.src, task.dst)):
        if part is not None:
            yield part, task.peer if side == remote else task.rank


def _buffers(sizes: Sequence[Mapping[str, int]], found: FoundOp) -> dict[str, list[int]]:
    """Return the bytes of buffers by rank: as many as tasks of any rank touch, but for IN and OUT
    of a known op.
    """
    ranks = len(sizes)
    most = {"IN": 0, "OUT": 0}
    for of_rank in sizes:
        for name, end in of_rank.items():
            most[name] = max(most.get(name, 0), end)
    buffers = {name: [end] * ranks for name, end in most.items()}
    if not found.open:
        inputs, outputs = make_operator(found.op.name).user_bytes(found.op, ranks)
        buffers |= {"IN": inputs.tolist(), "OUT": outputs.tolist()}
    return buffers


class _Links:
    """A link for every two ranks that have tasks over a protocol, and the notifies of its ends."""

    def __init__(self, queues: Queues) -> None:
        self._shown: dict[_Key, dict[int, set[str]]] = {}
        numbered: dict[tuple[_Key, int], set[int]] = defaultdict(set)
        self._notifies: dict[_Key, int] = defaultdict(int)
        for task in all_tasks(queues):
            if task.link is None:
                continue
            key = _key(task)
            shown = self._shown.setdefault(key, defaultdict(set))
            if task.topic >= 0:
                numbered[_end(task)].add(task.topic)
            elif task.notify:
                self._notifies[key] = max(self._notifies[key], self.notify(task) + 1)
            for part, rank in _memory(task):
                if rank != task.rank:
                    shown[rank].add(BUFFERS[part.buffer])
        self._numbers = {key: number for number, key in enumerate(sorted(self._shown, key=_order))}
        self._index = {
            end: {topic: index for index, topic in enumerate(sorted(topics))}
            for end, topics in numbered.items()
        }
        for (key, _), topics in numbered.items():
            self._notifies[key] = max(self._notifies[key], len(topics))

    @property
    def are_numbered(self) -> bool:
        """True if notifies have numbers instead of names."""
        return bool(self._index)

    def number(self, task: LoggedTask) -> int:
        """Return the builder's number of a task's link."""
        return self._numbers[_key(task)]

    def notify(self, task: LoggedTask) -> int:
        """Return the index of the notify that a task posts or waits for."""
        if task.topic >= 0:
            return self._index[_end(task)][task.topic]
        return INDEXED if task.tag in INDEXED_TAGS else NOTIFIES[task.notify]

    def add_to(self, builder: ProgramBuilder) -> None:
        """Add all links to a builder, which numbers them in this order."""
        for key in self._numbers:
            builder.link(
                *key[:2],
                key[2],
                plane=key[2].name,
                notifies=self._notifies[key],
                exports={rank: sorted(names) for rank, names in self._shown[key].items()},
            )


_Key = tuple[int, int, LinkKind]


def _end(task: LoggedTask) -> tuple[_Key, int]:
    """Return the link of a post or wait, and the rank that waits."""
    return _key(task), task.peer if task.name == "Post" else task.rank


def _key(task: LoggedTask) -> _Key:
    assert task.link is not None
    return min(task.rank, task.peer), max(task.rank, task.peer), task.link


def _order(key: _Key) -> tuple[int, int, int]:
    return int(key[2]), key[0], key[1]


class _Topics:
    """The notifies of a rank. One belongs to the stream that waits for it first; where none does,
    to the one that posts it first. Its index is the topic, or where topics are large numbers, its
    place among them.
    """

    def __init__(self, streams: Sequence[Sequence[LoggedTask]]) -> None:
        self._owner: dict[int, int] = {}
        for name in ("LocalWaitFrom", "LocalPostTo"):
            for stream, tasks in enumerate(streams):
                for task in tasks:
                    if task.name == name:
                        self._owner.setdefault(task.topic, stream)
        known = sorted(self._owner)
        own = known and known[-1] < _TOPICS
        self._index = {topic: topic if own else k for k, topic in enumerate(known)}

    def __getitem__(self, topic: int) -> tuple[int, int]:
        return self._owner[topic], self._index[topic]


def _write(
    stream: TaskStream, task: LoggedTask, links: _Links, topics: _Topics, note: TaskNote
) -> None:
    """Append a task of a log to its stream."""
    if task.name == "LocalPostTo":
        stream.local_post(*topics[task.topic], note)
    elif task.name == "LocalWaitFrom":
        owner, index = topics[task.topic]
        stream.local_wait(index, note, owner=owner)
    elif task.name == "Post":
        stream.post(links.number(task), links.notify(task), note)
    elif task.name == "Wait":
        stream.wait(links.number(task), links.notify(task), note)
    else:
        stream.move(
            _KINDS[task.name],
            _place(task.src),
            _place(task.dst),
            note,
            link=None if task.link is None else links.number(task),
            dtype=task.dtype,
            reduce=task.reduce,
        )


def _place(part: LoggedSlice | None) -> BufferSlice:
    assert part is not None
    return BUFFERS[part.buffer], part.offset, part.size

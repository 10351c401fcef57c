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

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain
from typing import Any

from hccl_interop.checker_logs.lines import LoggedSlice, LoggedTask
from hccl_interop.checker_logs.operation import FoundOp
from hccl_py.documents.checks import defect
from hccl_py.enums import LinkKind
from hccl_py.formats.checks import LIMIT
from hccl_py.formats.json_read import from_value
from hccl_py.formats.models import FORMAT
from hccl_py.formats.op import op_object
from hccl_py.operators import make_operator
from hccl_py.program.program import Program

Queues = Sequence[Sequence[Sequence[LoggedTask]]]
"""Tasks, [rank][queue][index]."""

NOTIFY_NAMES = ["Ack", "DataSignal", "DataAck", "notify of Post"]

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

_KINDS = {LinkKind.SDMA: "sdma", LinkKind.RDMA: "rdma"}
_NAMES = {
    "Read": "read",
    "Write": "write",
    "ReadReduce": "read_reduce",
    "WriteReduce": "write_reduce",
}


def all_tasks(queues: Queues) -> Iterator[LoggedTask]:
    """Yield the tasks of all ranks."""
    return chain.from_iterable(chain.from_iterable(queues))


def check_tasks(queues: Queues) -> None:
    """Refuse what no program could say: peers, memory and notifies that do not exist."""
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
    """Return where in each buffer, by the program's names, the last byte ends that tasks touch, of
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
    rows: dict[str, dict[str, list[list[Any]]]] = {}
    links, place = _Links(queues), cache(_place)  # slices repeat, and lists of them are read only
    for rank, streams in enumerate(queues):
        topics = _Topics(streams)
        rows[str(rank)] = {
            str(stream): [
                [*_row(task, links, topics, place), _note(task, file, topics)] for task in tasks
            ]
            for stream, tasks in enumerate(streams)
            if tasks
        }
    document = {
        "format": FORMAT,
        "executor": name,
        "op": json.loads(json.dumps(op_object(found.op))),
        "ranks": len(queues),
        "buffers": _buffers(sizes, found),
        "notify_names": [] if links.are_numbered else NOTIFY_NAMES,
        "links": links.documents(),
        "tasks": rows,
    }
    program = from_value(document, file)
    return replace(program, has_op=not found.open)


def _memory(task: LoggedTask) -> Iterator[tuple[LoggedSlice, int]]:
    """Yield the memory that a task touches, each with the rank that has it."""
    remote = {"Read": 0, "ReadReduce": 0, "Write": 1, "WriteReduce": 1}.get(task.name)
    for side, part in enumerate((task.src, task.dst)):
        if part is not None:
            yield part, task.peer if side == remote else task.rank


def _buffers(sizes: Sequence[Mapping[str, int]], found: FoundOp) -> dict[str, dict[str, int]]:
    common: dict[str, int] = defaultdict(int)
    for of_rank in sizes:
        for name, end in of_rank.items():
            common[name] = max(common[name], end)
    buffers = {str(rank): {"IN": 0, "OUT": 0} | common for rank in range(len(sizes))}
    if not found.open:
        inputs, outputs = make_operator(found.op.name).user_bytes(found.op, len(sizes))
        for rank in range(len(sizes)):
            buffers[str(rank)] |= {"IN": int(inputs[rank]), "OUT": int(outputs[rank])}
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
        """Whether notifies have numbers instead of names."""
        return bool(self._index)

    def name(self, task: LoggedTask) -> str:
        """Return how a task names its link."""
        return f"link:{self._numbers[_key(task)]}"

    def notify(self, task: LoggedTask) -> int:
        """Return the index of the notify that a task posts or waits for."""
        if task.topic >= 0:
            return self._index[_end(task)][task.topic]
        return INDEXED if task.tag in INDEXED_TAGS else NOTIFIES[task.notify]

    def documents(self) -> list[dict[str, object]]:
        """Return the objects of all links."""
        return [
            {
                "id": number,
                "ranks": list(key[:2]),
                "kind": _KINDS[key[2]],
                "notifies": self._notifies[key],
                "plane": key[2].name,
                "exports": {str(r): sorted(names) for r, names in self._shown[key].items()},
            }
            for key, number in self._numbers.items()
        ]


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


_Placed = Callable[[LoggedSlice | None], list[object]]


def _row(task: LoggedTask, links: _Links, topics: _Topics, place: _Placed) -> list[Any]:
    """Return a task as program files have it."""
    reduce = [] if task.reduce is None else [task.reduce.spelling]
    if task.name == "LocalCopy":
        return ["copy", place(task.src), place(task.dst)]
    if task.name == "LocalReduce":
        return ["reduce", *reduce, place(task.src), place(task.dst)]
    if task.name == "LocalPostTo":
        return ["local_post", *topics[task.topic]]
    if task.name == "LocalWaitFrom":
        return ["local_wait", topics[task.topic][1]]
    if task.name in ("Post", "Wait"):
        return [task.name.lower(), links.name(task), links.notify(task)]
    return [_NAMES[task.name], links.name(task), *reduce, place(task.src), place(task.dst)]


def _note(task: LoggedTask, file: str, topics: _Topics) -> dict[str, object]:
    """Return the object at the end of a task."""
    note: dict[str, object] = {"source": f"{file}:{task.line}"}
    if task.name == "LocalWaitFrom" and topics[task.topic][0] != task.queue:
        note["owner"] = topics[task.topic][0]
    if task.dtype is not None:
        note["dtype"] = task.dtype.value
    return note


def _place(part: LoggedSlice | None) -> list[object]:
    assert part is not None
    return [BUFFERS[part.buffer], part.offset, part.size]

"""The task lists of a JSON file, laid end to end: by rank, then stream, then position; and what
stands in a task of every name.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hccl_py.documents.checks import a_list, at, defect, format_value
from hccl_py.enums import TaskKind
from hccl_py.formats.checks import Where, numbered
from hccl_py.program.limits import MAX_NUMBER
from hccl_py.values import IntArray


class TaskForm(NamedTuple):
    """The members behind the name of a task; `remote` is the slice that lies at the peer."""

    kind: TaskKind
    members: tuple[str, ...]
    remote: str = ""

    def usage(self, name: str) -> str:
        """Return the task as one would write it."""
        return f'["{name}", {", ".join(self.members)}]'


SHAPES = {
    "copy": TaskForm(TaskKind.COPY, ("src", "dst")),
    "reduce": TaskForm(TaskKind.REDUCE, ("op", "src", "dst")),
    "read": TaskForm(TaskKind.READ, ("peer", "src", "dst"), "src"),
    "read_reduce": TaskForm(TaskKind.READ_REDUCE, ("peer", "op", "src", "dst"), "src"),
    "write": TaskForm(TaskKind.WRITE, ("peer", "src", "dst"), "dst"),
    "write_reduce": TaskForm(TaskKind.WRITE_REDUCE, ("peer", "op", "src", "dst"), "dst"),
    "post": TaskForm(TaskKind.NOTIFY_POST, ("peer", "index")),
    "wait": TaskForm(TaskKind.NOTIFY_WAIT, ("peer", "index")),
    "compute": TaskForm(TaskKind.COMPUTE, ("us",)),
    "local_post": TaskForm(TaskKind.NOTIFY_POST, ("stream", "index")),
    "local_wait": TaskForm(TaskKind.NOTIFY_WAIT, ("index",)),
}
NAMES = tuple(SHAPES)
CODES = {name: code for code, name in enumerate(NAMES)}


@dataclass(frozen=True, eq=False)
class Rows:
    """Queue q of (rank[q], stream[q]) holds tasks first[q] .. first[q + 1] - 1."""

    tasks: list[list[Any]]
    queue_rank: IntArray
    queue_stream: IntArray
    first: IntArray

    def __len__(self) -> int:
        return int(self.first[-1])

    @cached_property
    def rank(self) -> IntArray:
        """The rank of every row."""
        return np.repeat(self.queue_rank, np.diff(self.first))

    @cached_property
    def stream(self) -> IntArray:
        """The stream of every row."""
        return np.repeat(self.queue_stream, np.diff(self.first))

    def path(self, row: int, *keys: int | str) -> str:
        """Return the JSON path of a task, or of a part of it."""
        queue = int(np.searchsorted(self.first, row, "right")) - 1
        rank, stream = str(self.queue_rank[queue]), str(self.queue_stream[queue])
        return at("tasks", rank, stream, row - int(self.first[queue]), *keys)

    def where(self, rows: IntArray, *keys: int | str) -> Where:
        """Return the paths of one part of some tasks."""
        return lambda k: self.path(int(rows[k]), *keys)

    def picked(self, rows: IntArray) -> list[list[Any]]:
        """Return some tasks."""
        return [self.tasks[row] for row in rows.tolist()]

    @cached_property
    def names(self) -> list[str]:
        """The name of every task."""
        return [task[0] for task in self.tasks]

    @cached_property
    def has_note(self) -> npt.NDArray[np.bool_]:
        """True for each task that ends with an object."""
        return np.fromiter((type(task[-1]) is dict for task in self.tasks), bool, len(self))

    @cached_property
    def fields(self) -> IntArray:
        """The number of members of each task beside its name and the object at its end."""
        return np.fromiter(map(len, self.tasks), np.int64, len(self)) - self.has_note - 1


def rows_from(value: object, ranks: int) -> Rows:
    """Return the tasks of the object `tasks`; every one is a list with a name in front."""
    lists: list[list[Any]] = []
    queues: list[tuple[int, int]] = []
    for rank, streams in numbered("tasks", value, ranks, "rank"):
        place = at("tasks", str(rank))
        for stream, tasks in numbered(place, streams, MAX_NUMBER, "stream"):
            lists.append(a_list(at(place, str(stream)), tasks, "Write the tasks in brackets."))
            queues.append((rank, stream))
    rank_column, stream_column = np.array(queues, np.int64).reshape(-1, 2).T
    first = np.concatenate([[0], np.cumsum(list(map(len, lists)))]).astype(np.int64)
    rows = Rows(list(chain.from_iterable(lists)), rank_column, stream_column, first)
    _check_names(rows)
    return rows


def _check_names(rows: Rows) -> None:
    are_lists = set(map(type, rows.tasks)) <= {list} and all(rows.tasks)
    if are_lists and set(map(type, rows.names)) <= {str}:
        return
    for row, task in enumerate(rows.tasks):
        if type(task) is not list or not task:
            raise defect(rows.path(row), "a task", format_value(task), 'Such as ["post", 1, 0].')
        if type(task[0]) is not str:
            hint = 'A task starts with its name, such as "copy".'
            raise defect(rows.path(row, 0), "the name of a task", format_value(task[0]), hint)

"""Columns from which a program is built in bulk.

A *side* of a link is its end at one of its two ranks: 2·link at the first one, 2·link + 1 at the
second.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from hccl_py.errors import ParameterError
from hccl_py.program.transports import NOTIFY_NAMES
from hccl_py.values import IntArray

Column = TypeVar("Column", bound=npt.NDArray[np.generic])


class BuildError(ParameterError):
    """Columns that no program can hold: `expected` and `found` say what is wrong with the task of
    number `row`, or with all of them where that is -1.
    """

    def __init__(self, expected: str, found: str, hint: str, row: int = -1) -> None:
        place = "The program" if row < 0 else f"Task {row} of the program"
        super().__init__(f"{place}: expected {expected}, found {found}.", hint)
        self.expected, self.found, self.row = expected, found, row


class TaskColumns:
    """One value per task. Tasks of a rank are together, ranks in their order; those of one of its
    streams are in the stream's order.

    `end` is the side of the link that a task uses, -1 for none. `notify` is the number of a notify
    of that end or, where `owner` is not -1, of the stream `owner` of the task's rank. Offsets and
    sizes are bytes; buffers, labels and lines are numbers, -1 for none.
    """

    def __init__(self, rank: IntArray, stream: IntArray) -> None:
        tasks = len(rank)
        self.rank, self.stream = rank, stream
        self.src_offset, self.src_size, self.dst_offset, self.dst_size = (
            np.zeros(tasks, np.int64) for _ in range(4)
        )
        self.end = np.full(tasks, -1)
        self.owner, self.notify, self.label, self.line = (
            np.full(tasks, -1, np.int32) for _ in range(4)
        )
        self.kind, self.src_buffer, self.dst_buffer, self.dtype, self.reduce = (
            np.full(tasks, -1, np.int8) for _ in range(5)
        )
        self.round = np.zeros(tasks, np.int32)
        self.joined = np.zeros(tasks, np.int8)
        self.microseconds = np.zeros(tasks)

    def __len__(self) -> int:
        return len(self.rank)


@dataclass(frozen=True, eq=False)
class LinkColumns:
    """Links: `ranks` has shape [links, 2], `plane` numbers the names in `planes`, `kind` is a
    LinkKind. `exports` lists the buffers, by number, that each side shows, 2 · links lists.

    `notifies` has shape [links, 2]: how many notifies each side has, -1 where that is as many as
    its rank requests or its tasks use.
    """

    planes: tuple[str, ...]
    ranks: IntArray
    plane: IntArray
    kind: npt.NDArray[np.int8]
    exports: list[list[int]]
    notifies: IntArray
    notify_names: tuple[str, ...] = NOTIFY_NAMES


@dataclass(frozen=True, eq=False)
class RequestColumns:
    """Resources that ranks request. A rank that does not state a part of them requests what its
    tasks use.

    `streams` has a number per rank, -1 where it is not stated. `local` has columns (rank, stream,
    notifies) of the ranks that `states_local`, `ends` has columns (side of a link, notifies) of
    those that `states_ends`; sides that are left out have none.
    """

    streams: IntArray
    states_local: npt.NDArray[np.bool_]
    local: tuple[IntArray, IntArray, IntArray]
    states_ends: npt.NDArray[np.bool_]
    ends: tuple[IntArray, IntArray]

    @staticmethod
    def as_used(ranks: int) -> RequestColumns:
        """Return the requests of ranks that state nothing."""
        none, silent = np.zeros(0, np.int64), np.zeros(ranks, bool)
        return RequestColumns(np.full(ranks, -1), silent, (none, none, none), silent, (none, none))


def frozen(column: Column) -> Column:
    """Return a column, which is read-only from now on."""
    column.flags.writeable = False
    return column

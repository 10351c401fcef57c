"""The notifies that pay the α of a step: by HCCL's numbers, or by the messages that they announce.

By number, over SDMA it is the Ack that lets data go, over RDMA the DataSignal that follows the
data; extra notifies stand for these. That is right for programs whose transports are HCCL's.

By message, it is the notify that stands for data, of any number:

    a write, then the next post on its stream and transport    the message is there
    a wait, then a read on its stream and transport            the peer lets the message go

All other notifies (a slot that is free, an answer, a barrier) cost `notify_us`. A notify that is
used for both pays α each time. It is found from the batches, without expanding them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hccl_py.clocks.cost import CostModel
from hccl_py.enums import READS, WRITES, TaskKind
from hccl_py.program.instruction import Batch
from hccl_py.program.program import Program
from hccl_py.program.transports import ACK, DATA_ACK, OWN_NOTIFIES
from hccl_py.values import PerRank, RankInt, values_of

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class AlphaRule:
    """Cells below `cells` are those of transports, `stride` for each of their ends. `of_messages`
    has for each whether it stands for a message, None where numbers count.
    """

    cells: int
    stride: int
    of_messages: Bools | None

    @staticmethod
    def of(program: Program, cost: CostModel) -> AlphaRule:
        """Return the rule of a cost model for a program."""
        transports = program.transports
        found = _of_messages(program) if cost.alpha_by == "message" else None
        return AlphaRule(transports.cells, transports.stride, found)

    @property
    def is_by_number(self) -> bool:
        """True where a notify's number alone decides, not its cell."""
        return self.of_messages is None

    def pays(self, cell: npt.NDArray[np.int64] | int, is_rdma: Bools) -> Bools:
        """Return a mask of the posts that pay α, by their cells; `is_rdma` is that of their
        transports. Inside a rank none does.
        """
        is_remote = np.less(cell, self.cells)
        if self.of_messages is not None:
            return np.append(self.of_messages, False)[np.where(is_remote, cell, -1)]
        notify = np.mod(cell, self.stride)
        is_answer, is_extra = (
            np.equal(notify, ACK) | np.equal(notify, DATA_ACK),
            notify >= OWN_NOTIFIES,
        )
        by_number = np.where(is_rdma, ~is_answer, np.equal(notify, ACK) | is_extra)
        return np.asarray(is_remote & by_number)


def _of_messages(program: Program) -> Bools:
    """Return a mask of the cells of transports that stand for messages."""
    found = np.zeros(program.transports.cells, np.bool_)
    for batch in program.batches:
        for cells in _cells_of(batch):
            found[values_of(cells)] = True
    return found


def _cells_of(batch: Batch) -> list[RankInt]:
    """Return the columns of cells that stand for the messages of a batch."""
    found: dict[object, RankInt] = {}
    written: set[object] = set()
    waited: dict[object, RankInt] = {}
    for i in batch.instructions:
        at = i.stream, _identity(i.end)
        if i.kind in WRITES:
            written.add(at)
        elif i.kind == TaskKind.NOTIFY_POST and at in written:
            written.discard(at)
            found[_identity(i.cell)] = i.cell
        elif i.kind == TaskKind.NOTIFY_WAIT:
            waited[at] = i.cell
        elif i.kind in READS and at in waited:
            found[_identity(waited[at])] = waited[at]
    return list(found.values())


def _identity(value: RankInt) -> object:
    return value.key() if isinstance(value, PerRank) else value

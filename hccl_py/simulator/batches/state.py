"""Columns that the loops over batches read and change: a program, clocks, noted times."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hccl_py.simulator.batches.columns import PooledColumns
from hccl_py.values import Floats, IntArray


class Instructions(NamedTuple):
    """Queue q has instructions first[q] .. first[q + 1] - 1 and lanes lane_first[q] .. . The six
    numbers of an instruction are a row of `columns`.
    """

    first: IntArray
    lane_first: IntArray
    kinds: npt.NDArray[np.int8]
    columns: IntArray
    pool: PooledColumns


class State(NamedTuple):
    """The clock of every lane; when what each cell holds was set, -1 for an empty one; until when
    each RDMA connection is busy. Microseconds.
    """

    clock: Floats
    cell: Floats
    connection: Floats


class Notes(NamedTuple):
    """Times of tasks of some lanes, kept on the way: those of queue q are first[q] .. first[q + 1]
    - 1, all 0 where none are kept.

    `lane` is a noted lane's place in its queue, `row` where its first task stands in `times`, of
    which `most` are kept: start, end and effect in µs, [rows, 3]. `spent` adds up what all of its
    tasks take, those that work and those that wait, [noted, 2]; `begin` is room for each.
    """

    first: IntArray
    lane: IntArray
    row: IntArray
    most: IntArray
    times: Floats
    spent: Floats
    begin: Floats

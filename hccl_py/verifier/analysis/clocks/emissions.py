"""The loop's findings: pairs of nodes in no order, and for accesses the interval of memory."""

from __future__ import annotations

from hccl_py.verifier.analysis.clocks.arrays import EMISSIONS, EMITTED, STATUS, ClockState

BESIDE_READ, BESIDE_WRITE, UNORDERED_SUM, REUSE = 0, 1, 2, 3
OVERRUN, TWO_WAITS, CONNECTION, NOT_STARTED, NOT_JOINED = 4, 5, 6, 7, 8
"""Kinds of emissions, each with two nodes, the earlier in the walk first. A read and a write, two
writes, or two atomic sums are in no order; a write follows an RDMA read that is issued but not
over; a post may find its notify still set; two waits of one notify are in no order, or two issues
on one connection; a sub stream works before its main, or after it.
"""


def emit(s: ClockState, what: int, early: int, late: int, interval: int) -> None:
    """Emit a pair of nodes; neighbouring intervals of the same pair become one entry."""
    n = s.counts[EMISSIONS]
    if n > 0 and interval >= 0:
        last = n - 1
        same = s.emitted[last, 0] == what and s.emitted[last, 1] == early
        if same and s.emitted[last, 2] == late and s.emitted[last, 4] == interval:
            s.emitted[last, 4] = interval + 1
            return
    if n == len(s.emitted):
        s.counts[STATUS] = EMITTED
        return
    s.emitted[n, 0] = what
    s.emitted[n, 1] = early
    s.emitted[n, 2] = late
    s.emitted[n, 3] = interval
    s.emitted[n, 4] = interval + 1
    s.counts[EMISSIONS] = n + 1


HELPERS = (emit,)

"""The classes of findings: stable names, the severity and the meaning of each."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class Severity(IntEnum):
    """The severity of a finding: only errors make a report fail."""

    HINT = 0
    WARNING = 1
    ERROR = 2

    @property
    def spelling(self) -> str:
        """The severity as written in every output."""
        return self.name.lower()


class FindingClass(NamedTuple):
    """A class of findings."""

    name: str
    severity: Severity
    meaning: str


def _classes(severity: Severity, **meanings: str) -> dict[str, FindingClass]:
    return {name: FindingClass(name, severity, meaning) for name, meaning in meanings.items()}


RECORDING = _classes(
    Severity.ERROR,
    CODE_CRASHED="C++ code that ends in a signal, an exception or an exit",
    CODE_ENDLESS="C++ code that does not end",
    DEVICE_MEMORY_TOUCHED="device memory that C++ code reads or writes itself",
    UNKNOWN_HANDLE="a thread, channel, context or memory that was never acquired",
    WRONG_ADDRESS="an address that is not where the call needs it",
    WRONG_TOKEN="memory of one rank used with the token of another",
    UNDEFINED_VALUE="a register of the CCU that is read before its value is certain",
    INVALID_ARGUMENT="an argument that HCCL refuses",
    UNSUPPORTED_CALL="a call that recording does not model",
    CALL_FAILED="an op or a kernel that returns an error",
    ONE_SIDED_CHANNEL="a channel that only one of its two ranks acquires",
)
"""Classes that only recording shows, of C++ code and of executors on channels."""

IMPORTING = _classes(
    Severity.ERROR,
    RUNTIME_LIMIT="a feature that MSCCL's or mscclpp's runtime refuses, or takes in another sense",
    LOST_DEPENDENCY="a step of such an algorithm whose dependency is never signalled, or is none",
    MESSAGE_MISMATCH="a message whose two ends disagree",
    MISSING_NOP="operations of a threadblock of mscclpp that threads may do in another order",
    PACKET_REUSE="packets of mscclpp written over others that their flags do not tell apart",
)
"""Classes of foreign algorithms only: their programs do not show such defects."""

CLASSES: dict[str, FindingClass] = {
    **RECORDING,
    **IMPORTING,
    **_classes(
        Severity.ERROR,
        SILENT_RANK="a rank that issues nothing although the op needs it",
        WAIT_WITHOUT_POST="a wait whose notify never gets enough posts",
        DEADLOCK_CYCLE="waits that form a cycle",
        UNMATCHED_POST="a post that no wait consumes: it breaks the next op",
        NOTIFY_OVERRUN="a notify used again before its last use is known to be over",
        WAITS_UNORDERED="two waits of one notify that counts, in no order",
        NOTIFY_INDEX_OUT_OF_RANGE="a notify beyond those that were requested",
        UNDECLARED_CHANNEL="a transport that was never requested",
        UNDECLARED_STREAM="a stream that was never requested",
        RESOURCE_MISMATCH="two ends of a transport that were not requested alike",
        RESOURCE_EXCEEDED="more resources than the product has",
        CONCURRENT_OPS="two ops of one communicator on unordered streams",
        CONNECTION_UNORDERED="two unordered streams of a rank on one RDMA connection",
        STREAM_NOT_STARTED="a sub stream that works before main started it",
        STREAM_NOT_JOINED="a sub stream that works after main's last task",
        RACE_RW="a read and a write of the same memory, in no order",
        RACE_WW="two writes of the same memory, in no order",
        RDMA_SOURCE_REUSE="memory that is overwritten before RDMA is known to have sent it",
        INPLACE_CLOBBER="input that is overwritten before its last use when IN is OUT",
        OUT_OF_BOUNDS="a slice beyond its buffer",
        REMOTE_NOT_EXPORTED="memory of a peer that its transport does not export",
        TRANSFER_TOO_LARGE="one task beyond what the product's hardware takes",
        UNSUPPORTED_INLINE_REDUCE="an inline reduce that the product's hardware cannot do",
        SELF_OVERLAP="source and destination of one task overlap",
        SLICE_LEN_MISMATCH="source and destination of one task differ in length",
        DTYPE_MISMATCH="a reduction of another data type than the op's, or of parts of elements",
        READ_UNDEFINED="a read of memory that was never written",
        REDUCE_INTO_UNDEFINED="a reduction into memory that was never written",
        OUTPUT_MISSING="output that was never written",
        WRONG_SOURCE="output with another rank's data",
        WRONG_OFFSET="output with the right rank's data, from the wrong place",
        WRONG_REDUCE_OP="a reduction with another op than the call's",
        MISSING_CONTRIBUTION="a rank that is absent from a reduction",
        DOUBLE_CONTRIBUTION="a rank that counts more than once in a reduction",
    ),
    **_classes(
        Severity.WARNING,
        REDUCE_ORDER_NONDET="unordered sums in floating point: the last bit varies from run to run",
    ),
    **_classes(
        Severity.HINT,
        RESOURCE_UNUSED="requested, never used",
        UNALIGNED="a slice off the product's preferred alignment",
        REDUNDANT_SYNC="a synchronisation that others imply",
        DEAD_TRANSFER="data that is moved and never read",
    ),
}
"""Every class by name, worst first; the order of a report."""

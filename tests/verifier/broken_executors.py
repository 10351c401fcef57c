"""For every class of findings an executor that shows it, and the same one put right:
`Example(True)` and `Example(False)` differ in one detail.
"""

from __future__ import annotations

from tests.verifier.broken.memory import (
    DtypeMismatch,
    InplaceClobber,
    OutOfBounds,
    ReadUndefined,
    ReduceIntoUndefined,
    SelfOverlap,
    SliceLenMismatch,
    TransferTooLarge,
    Unaligned,
    UnsupportedInlineReduce,
)
from tests.verifier.broken.mesh import Gather
from tests.verifier.broken.order import (
    ConcurrentOps,
    ConnectionUnordered,
    DeadlockCycle,
    NotifyOverrun,
    RaceRw,
    RaceWw,
    RdmaSourceReuse,
    ReduceOrderNondet,
    RedundantSync,
    SilentRank,
    StreamNotJoined,
    StreamNotStarted,
    UnmatchedPost,
    WaitWithoutPost,
)
from tests.verifier.broken.requests import (
    NotifyIndexOutOfRange,
    RemoteNotExported,
    ResourceExceeded,
    ResourceMismatch,
    ResourceUnused,
    UndeclaredChannel,
    UndeclaredStream,
)
from tests.verifier.broken.results import (
    DeadTransfer,
    DoubleContribution,
    MissingContribution,
    OutputMissing,
    WrongOffset,
    WrongReduceOp,
    WrongSource,
)

EXECUTORS: dict[str, type[Gather]] = {
    "WAIT_WITHOUT_POST": WaitWithoutPost,
    "DEADLOCK_CYCLE": DeadlockCycle,
    "UNMATCHED_POST": UnmatchedPost,
    "NOTIFY_OVERRUN": NotifyOverrun,
    "NOTIFY_INDEX_OUT_OF_RANGE": NotifyIndexOutOfRange,
    "UNDECLARED_CHANNEL": UndeclaredChannel,
    "UNDECLARED_STREAM": UndeclaredStream,
    "RESOURCE_MISMATCH": ResourceMismatch,
    "RESOURCE_EXCEEDED": ResourceExceeded,
    "CONCURRENT_OPS": ConcurrentOps,
    "CONNECTION_UNORDERED": ConnectionUnordered,
    "SILENT_RANK": SilentRank,
    "STREAM_NOT_STARTED": StreamNotStarted,
    "STREAM_NOT_JOINED": StreamNotJoined,
    "RACE_RW": RaceRw,
    "RACE_WW": RaceWw,
    "RDMA_SOURCE_REUSE": RdmaSourceReuse,
    "INPLACE_CLOBBER": InplaceClobber,
    "OUT_OF_BOUNDS": OutOfBounds,
    "REMOTE_NOT_EXPORTED": RemoteNotExported,
    "TRANSFER_TOO_LARGE": TransferTooLarge,
    "UNSUPPORTED_INLINE_REDUCE": UnsupportedInlineReduce,
    "SELF_OVERLAP": SelfOverlap,
    "SLICE_LEN_MISMATCH": SliceLenMismatch,
    "DTYPE_MISMATCH": DtypeMismatch,
    "READ_UNDEFINED": ReadUndefined,
    "REDUCE_INTO_UNDEFINED": ReduceIntoUndefined,
    "OUTPUT_MISSING": OutputMissing,
    "WRONG_SOURCE": WrongSource,
    "WRONG_OFFSET": WrongOffset,
    "WRONG_REDUCE_OP": WrongReduceOp,
    "MISSING_CONTRIBUTION": MissingContribution,
    "DOUBLE_CONTRIBUTION": DoubleContribution,
    "REDUCE_ORDER_NONDET": ReduceOrderNondet,
    "RESOURCE_UNUSED": ResourceUnused,
    "UNALIGNED": Unaligned,
    "REDUNDANT_SYNC": RedundantSync,
    "DEAD_TRANSFER": DeadTransfer,
}

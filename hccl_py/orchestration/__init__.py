"""The recording API of executors: ranks in batches, planes, streams, notifies, regions, links."""

from hccl_py.orchestration.exchange import exchange
from hccl_py.orchestration.layout import Layout
from hccl_py.orchestration.plane import Plane
from hccl_py.orchestration.rank import Rank
from hccl_py.orchestration.region import Chunks, Region
from hccl_py.orchestration.stream import Notify, Stream
from hccl_py.orchestration.transport import Link
from hccl_py.values import PerBool, PerRank

__all__ = [
    "Chunks",
    "Layout",
    "Link",
    "Notify",
    "PerBool",
    "PerRank",
    "Plane",
    "Rank",
    "Region",
    "Stream",
    "exchange",
]

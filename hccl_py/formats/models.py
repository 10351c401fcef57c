"""The envelope of `hccl-py.program/1` as pydantic models. An `object` is checked where it is read:
task lists by columns, the others by `op`, `links` and `memory`.
"""

from __future__ import annotations

from typing import Literal

from hccl_py.documents.models import Strict

FORMAT = "hccl-py.program/1"

LinkName = Literal["sdma", "rdma"]
NotifyKind = Literal["one-bit", "counting"]


class FileModel(Strict):
    """A program file, in the short form (`link`, `exported`) or the general one (`links`).

    `executor`, `rounds` (where the last rounds have no task), `plane`, `protocol` and `engine` are
    what hccl-py adds; `notifies` and `alternating` what other runtimes have.
    """

    format: Literal["hccl-py.program/1"]
    executor: str = ""
    op: object
    ranks: int
    rounds: int | None = None
    calls: list[object] | None = None
    protocol: Literal["", "Simple", "LL", "LL128"] = ""
    engine: Literal["", "aicpu_ts", "ccu", "host"] = ""
    notifies: NotifyKind = "one-bit"
    alternating: list[object] | None = None
    link: LinkName | None = None
    plane: str | None = None
    notify_names: list[object] | None = None
    stream_names: list[object] | None = None
    exported: list[object] | None = None
    links: list[object] | None = None
    buffers: object
    resources: dict[str, object] | None = None
    tasks: object


class OpModel(Strict):
    """The call that the program carries out; only a barrier does without a data type."""

    name: str
    dtype: str | None = None
    count: int | None = None
    reduce: str | None = None
    root: int | None = None
    in_place: object = False
    mode: Literal["op_base", "graph"] = "op_base"
    counts: object = None
    displs: object = None
    matrix: object = None
    pairs: object = None
    level0: str = ""
    level1: str = ""
    level2: str = ""
    deterministic: bool = False


class ResourceModel(Strict):
    """The requests of one rank; a part that is left out is not checked against use."""

    streams: int | None = None
    local_notifies: dict[str, object] | None = None
    channel_notifies: dict[str, object] | None = None


class TransportModel(Strict):
    """A transport between two ranks."""

    id: int
    ranks: list[object]
    kind: LinkName
    exports: dict[str, object]
    notifies: int = 3
    plane: str = "flat"

"""The envelope of `hccl-py.program/1` as pydantic models; task lists are checked by columns."""

from __future__ import annotations

from typing import Any, Literal

from hccl_py.documents.models import Strict

__all__ = ["FORMAT", "FileModel", "OpModel", "ResourceModel", "TransportModel"]

FORMAT = "hccl-py.program/1"

LinkName = Literal["sdma", "rdma"]


class FileModel(Strict):
    """A program file, in the short form (`link`, `exported`) or the general one (`links`).

    `executor`, `rounds` (where the last rounds have no task) and `plane` are what hccl-py adds.
    """

    format: Literal["hccl-py.program/1"]
    executor: str = ""
    op: Any
    ranks: int
    rounds: int | None = None
    calls: list[Any] | None = None
    link: LinkName | None = None
    plane: str | None = None
    notify_names: list[Any] | None = None
    exported: list[Any] | None = None
    links: list[Any] | None = None
    buffers: Any
    resources: dict[str, Any] | None = None
    tasks: Any


class OpModel(Strict):
    """The call that the program carries out; only a barrier does without a data type."""

    name: str
    dtype: str | None = None
    count: int | None = None
    reduce: str | None = None
    root: int | None = None
    in_place: Any = False
    mode: Literal["op_base", "graph"] = "op_base"
    counts: Any = None
    displs: Any = None
    matrix: Any = None
    pairs: Any = None
    level1: str = ""
    level2: str = ""
    deterministic: bool = False


class ResourceModel(Strict):
    """What one rank requests; a part that is left out is not checked against use."""

    streams: int | None = None
    local_notifies: dict[str, Any] | None = None
    channel_notifies: dict[str, Any] | None = None


class TransportModel(Strict):
    """A transport between two ranks."""

    id: int
    ranks: list[Any]
    kind: LinkName
    exports: dict[str, Any]
    notifies: int = 3
    plane: str = "flat"

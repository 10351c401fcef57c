"""The members of an execution plan as pydantic models. What the executor passes over is passed over
here, too: other tools add members of their own.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

_Count = Annotated[int, Field(ge=0, le=(1 << 31) - 1)]
_Positive = Annotated[int, Field(ge=1, le=(1 << 31) - 1)]
_Id = Annotated[int, Field(ge=0, le=255)]
_Bytes = Annotated[int, Field(ge=0, le=(1 << 64) - 1)]
_Buffer = Literal["i", "o", "s"]
_Channel = Literal["memory", "port", "switch", "none"]


class _Loose(BaseModel):
    """No conversions: true is not a number."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class ChunksModel(_Loose):
    """Chunks of a buffer: local, remote, or of a switch channel."""

    index: _Count
    size: _Count
    type: _Buffer | None = None
    buffer_id: _Id | None = None
    switch_channel_id: _Id | None = None


class PartModel(_Loose):
    """The part of an operation that a threadblock of a group takes."""

    tb_id: _Count
    tbg_size: _Positive


class IterModel(_Loose):
    """The steps of a pipeline through chunks."""

    unit_size: _Positive
    num_chunks: _Count


class PlanOpModel(_Loose):
    """An operation; what is in a pipeline is read by itself."""

    name: str
    channel_type: _Channel | None = None
    channel_ids: list[_Id] = []
    src_buff: list[ChunksModel] = []
    dst_buff: list[ChunksModel] = []
    reduce_op: str = ""
    tbg_info: PartModel | None = None
    barrier_id: _Id = 0
    num_threadblocks: _Count = 0
    semaphore_ids: list[_Count] = []
    iter_context: IterModel | None = None
    ops: list[object] = []


class RefsModel(_Loose):
    """The channels of a threadblock."""

    channel_type: _Channel
    channel_ids: list[_Count]


class RemoteRefsModel(_Loose):
    """The remote buffers of a threadblock."""

    access_channel_type: _Channel
    remote_buffer_ids: list[_Count]


class PlanBlockModel(_Loose):
    """A threadblock."""

    id: _Count
    ops: list[object]
    channels: list[RefsModel] = []
    remote_buffer_refs: list[RemoteRefsModel] = []


class RanksModel(_Loose):
    """A group of a switch channel."""

    ranks: list[_Count]


class ChannelsModel(_Loose):
    """Channels of a GPU; releases before the alignment call the buffer of a switch `buff`."""

    channel_type: _Channel
    connected_to: list[_Count] = []
    buffer_type: _Buffer | None = None
    buff: _Buffer | None = None
    rank_groups: list[RanksModel] = []


class RemoteBufferModel(_Loose):
    """A buffer of a peer."""

    rank: _Count
    type: _Buffer
    access_channel_types: list[_Channel]


class SemaphoreModel(_Loose):
    """A semaphore between threadblocks."""

    init_value: _Count


class GpuModel(_Loose):
    """A GPU."""

    id: _Count
    input_chunks: _Count
    output_chunks: _Count
    scratch_chunks: _Count
    threadblocks: list[object]
    channels: list[ChannelsModel] = []
    remote_buffers: list[RemoteBufferModel] = []
    semaphores: list[SemaphoreModel] = []


class PlanModel(_Loose):
    """A plan."""

    name: str
    collective: str
    protocol: Literal["Simple", "LL"]
    inplace: bool
    gpus: list[object]
    reuse_resources: bool = False
    use_double_scratch_buffer: bool = False
    num_threads_per_block: _Positive = 1024
    buffer_alignment: _Positive | None = None
    min_message_size: _Bytes = 0
    max_message_size: _Bytes = (1 << 64) - 1

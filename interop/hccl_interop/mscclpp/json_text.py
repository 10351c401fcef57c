"""From the text of an execution plan to its values; what is no plan is refused in a sentence.

A JSON parser forgets lines. The brackets of a document that is JSON come in the order in which its
objects do, so one look at the text has the line of every object.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from hccl_interop.mscclpp.operations import FORMS
from hccl_interop.mscclpp.plan import (
    ExecutionPlan,
    PlanBlock,
    PlanChunks,
    PlanGpu,
    PlanOp,
    RemotePlanBuffer,
    SwitchGroup,
)
from hccl_interop.mscclpp.schema import (
    ChunksModel,
    GpuModel,
    PlanBlockModel,
    PlanModel,
    PlanOpModel,
)
from hccl_py.documents.checks import a_list, an_object, at, defect, format_value
from hccl_py.documents.disk import PathLike, format_path, read_file
from hccl_py.documents.kind import FileKind, named
from hccl_py.documents.models import checked
from hccl_py.documents.parse import decoded, parse_document
from hccl_py.errors import FileError, ProgramFileError, did_you_mean

PLAN_LIMIT = 32 << 20
"""Bytes of a file that are read unless the caller allows more."""

_SNIFFED = 1 << 28
"""Bytes of the largest file that is looked at."""

MAX_GPUS = 1 << 12
MAX_BLOCKS = 1 << 10
"""Threadblocks of a GPU: all of them run at once, so they are no more than it has processors."""

MAX_READ = 1 << 17
"""Operations of all GPUs together, and channels."""

MSCCLPP = FileKind(
    noun="execution plan",
    parts="operations",
    error=ProgramFileError,
    larger="Allow more with --max-size.",
    depth="An operation of a pipeline is the deepest there is.",
)

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{\n]')
_KINDS = ("memory", "port")


def is_plan(data: bytes) -> bool:
    """Return True if a JSON text is an execution plan: it has GPUs, and names no format of ours."""
    if b'"gpus"' not in data or b'"hccl-py.program/' in data:
        return False
    try:
        value = parse_document(data, MSCCLPP)
    except FileError:
        return b'"threadblocks"' in data
    return isinstance(value, dict) and "gpus" in value and "format" not in value


def is_plan_file(path: PathLike) -> bool:
    """Return True if a file is an execution plan; one that cannot be read is none."""
    try:
        return is_plan(read_file(path, _SNIFFED, MSCCLPP))
    except FileError:
        return False


def read_plan(path: PathLike, max_bytes: int | None = None) -> ExecutionPlan:
    """Return the plan of a file.

    Raises ProgramFileError for a file that cannot be read, is too large, or says what no plan
    could: its message is one sentence with the JSON path.
    """
    limit = PLAN_LIMIT if max_bytes is None else max_bytes
    return plan_from(read_file(path, limit, MSCCLPP), format_path(path))


def plan_from(data: bytes, name: str) -> ExecutionPlan:
    """Return the plan of a file's bytes; raises as `read_plan`."""
    return named(f"{name:.200}", MSCCLPP, lambda: _PlanReader(data, name).plan())


class _PlanReader:
    """Reads one file."""

    def __init__(self, data: bytes, file: str) -> None:
        self._file = file
        text = decoded(data, MSCCLPP).removeprefix("\ufeff")
        self._document = an_object("", parse_document(text, MSCCLPP), "A plan is an object.")
        self._lines = dict(zip(map(id, _objects(self._document)), _lines_in(text), strict=True))
        self._ops = self._channels = 0

    def plan(self) -> ExecutionPlan:
        """Return everything."""
        document = self._document
        gpus = a_list("gpus", document.get("gpus"), "A plan has a list of GPUs.")
        if any(isinstance(gpu, dict) and "inputChunks" in gpu for gpu in gpus):
            hint = "Plans with inputChunks are of mscclpp before 0.7; write them anew."
            raise defect("gpus[0]", "input_chunks", "inputChunks", hint)
        model = checked(PlanModel, document)
        if not 0 < len(gpus) <= MAX_GPUS:
            hint = "Every rank has one."
            raise defect("gpus", f"1 to {MAX_GPUS} GPUs", str(len(gpus)), hint)
        found = tuple(self._gpu(at("gpus", k), gpu, len(gpus)) for k, gpu in enumerate(gpus))
        return ExecutionPlan(
            file=self._file,
            name=model.name,
            collective=model.collective,
            protocol=model.protocol,
            inplace=model.inplace,
            reuse=model.reuse_resources,
            double=model.use_double_scratch_buffer,
            threads=model.num_threads_per_block,
            alignment=model.buffer_alignment or 16,
            min_bytes=model.min_message_size,
            max_bytes=model.max_message_size,
            is_old=model.buffer_alignment is None,
            gpus=found,
        )

    def _gpu(self, path: str, value: object, ranks: int) -> PlanGpu:
        model = checked(GpuModel, value, path)
        peers: dict[str, list[int]] = {kind: [] for kind in _KINDS}
        switches: list[SwitchGroup] = []
        for number, channel in enumerate(model.channels):
            here = at(path, "channels", number)
            if channel.channel_type == "switch":
                buffer = channel.buffer_type or channel.buff
                if buffer is None:
                    raise defect(here, "buffer_type", "none", "A switch channel is of a buffer.")
                for group in channel.rank_groups:
                    _check_ranks(here, group.ranks, ranks)
                    switches.append(SwitchGroup(buffer, tuple(group.ranks)))
            elif channel.channel_type in peers:
                _check_ranks(here, channel.connected_to, ranks, without=model.id)
                peers[channel.channel_type] += channel.connected_to
                self._channels += len(channel.connected_to)
            if self._channels > MAX_READ:
                raise defect(here, f"at most {MAX_READ:,} channels", "more", "Use fewer GPUs.")
        for number, remote in enumerate(model.remote_buffers):
            _check_ranks(at(path, "remote_buffers", number), [remote.rank], ranks, model.id)
        if len(model.threadblocks) > MAX_BLOCKS:
            hint, found = "All of them run at once.", str(len(model.threadblocks))
            raise defect(at(path, "threadblocks"), f"at most {MAX_BLOCKS:,}", found, hint)
        blocks = enumerate(model.threadblocks)
        return PlanGpu(
            id=model.id,
            line=self._line(value),
            input_chunks=model.input_chunks,
            output_chunks=model.output_chunks,
            scratch_chunks=model.scratch_chunks,
            blocks=tuple(self._block(at(path, "threadblocks", k), block) for k, block in blocks),
            peers={kind: tuple(found) for kind, found in peers.items()},
            switches=tuple(switches),
            remotes=tuple(
                RemotePlanBuffer(b.rank, b.type, tuple(b.access_channel_types))
                for b in model.remote_buffers
            ),
            semaphores=tuple(semaphore.init_value for semaphore in model.semaphores),
        )

    def _block(self, path: str, value: object) -> PlanBlock:
        model = checked(PlanBlockModel, value, path)
        channels: dict[str, list[int]] = {kind: [] for kind in (*_KINDS, "switch")}
        remotes: dict[str, list[int]] = {kind: [] for kind in _KINDS}
        for refs in model.channels:
            channels.get(refs.channel_type, []).extend(refs.channel_ids)
        for buffers in model.remote_buffer_refs:
            remotes.get(buffers.access_channel_type, []).extend(buffers.remote_buffer_ids)
        ops = enumerate(model.ops)
        return PlanBlock(
            id=model.id,
            line=self._line(value),
            ops=tuple(self._op(at(path, "ops", k), op, str(k)) for k, op in ops),
            channels={kind: tuple(found) for kind, found in channels.items()},
            remotes={kind: tuple(found) for kind, found in remotes.items()},
        )

    def _op(self, path: str, value: object, number: str) -> PlanOp:
        model = checked(PlanOpModel, value, path)
        self._ops += 1
        if self._ops > MAX_READ:
            raise defect(path, f"at most {MAX_READ:,} operations", "more", MSCCLPP.larger)
        if model.name not in FORMS:
            hint = did_you_mean(model.name[:40], FORMS)
            raise defect(at(path, "name"), "an operation", format_value(model.name), hint)
        is_pipeline = model.name == "pipeline"
        context = model.iter_context
        if is_pipeline and context is None:
            raise defect(path, "iter_context", "none", "A pipeline says what a pass takes.")
        if is_pipeline and number.count("."):
            hint = "The executor reads one level."
            raise defect(path, "no pipeline in a pipeline", "one", hint)
        inner = enumerate(model.ops) if is_pipeline else ()
        group = model.tbg_info
        return PlanOp(
            name=model.name,
            line=self._line(value),
            number=number,
            channel_type=model.channel_type or "",
            channels=tuple(model.channel_ids),
            src=_chunks(at(path, "src_buff"), model.src_buff),
            dst=_chunks(at(path, "dst_buff"), model.dst_buff),
            reduce=model.reduce_op,
            part=0 if group is None else group.tb_id,
            parts=1 if group is None else group.tbg_size,
            barrier=model.barrier_id,
            blocks=model.num_threadblocks,
            semaphores=tuple(model.semaphore_ids),
            unit=0 if context is None else context.unit_size,
            chunks=0 if context is None else context.num_chunks,
            inner=tuple(self._op(at(path, "ops", k), op, f"{number}.{k}") for k, op in inner),
        )

    def _line(self, value: object) -> int:
        return self._lines[id(value)]


def _chunks(path: str, models: list[ChunksModel]) -> tuple[PlanChunks, ...]:
    found = []
    for number, model in enumerate(models):
        said = (model.type, model.buffer_id, model.switch_channel_id)
        if sum(value is not None for value in said) != 1:
            hint = "Chunks are local (type), a peer's (buffer_id) or a switch's."
            names = "one of type, buffer_id and switch_channel_id"
            raise defect(at(path, number), names, "none or several", hint)
        found.append(
            PlanChunks(
                first=model.index,
                size=model.size,
                buffer=model.type or "",
                remote=-1 if model.buffer_id is None else model.buffer_id,
                switch=-1 if model.switch_channel_id is None else model.switch_channel_id,
            )
        )
    return tuple(found)


def _check_ranks(path: str, found: list[int], ranks: int, without: int = -1) -> None:
    for rank in found:
        if rank >= ranks or rank == without:
            hint = f"There are {ranks} GPUs." if rank >= ranks else "A GPU needs none to itself."
            raise defect(path, "another rank" if rank < ranks else "a rank", str(rank), hint)
    if len(set(found)) < len(found) and without < 0:
        raise defect(path, "every rank once", "one twice", "A group has every rank once.")


def _objects(value: object) -> Iterator[dict[str, Any]]:
    """Yield all objects of a document, in the order in which their brackets open."""
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict):
            yield found
            waiting.extend(reversed(found.values()))
        elif isinstance(found, list):
            waiting.extend(reversed(found))


def _lines_in(text: str) -> Iterator[int]:
    """Yield the lines on which objects open."""
    line = 1
    for token in _TOKEN.finditer(text):
        if token[0] == "\n":
            line += 1
        elif token[0] == "{":
            yield line

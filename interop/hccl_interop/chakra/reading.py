"""From the bytes of a rank's file to its nodes; other bytes are refused in a sentence.

A file is a row of messages, each behind its length: GlobalMetadata, then nodes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from hccl_interop.chakra.order import ordered
from hccl_interop.chakra.schema import messages
from hccl_interop.chakra.values import (
    DTYPE,
    GROUP_NAME,
    OPS,
    REDUCE_OP,
    ROOT,
    STREAMS,
    WORLD,
    Call,
    Collective,
    CommType,
    NodeType,
    RankFile,
    TraceGroup,
    TraceMessage,
    TraceNode,
)
from hccl_py.documents.checks import defect, format_value
from hccl_py.documents.kind import FileKind, named
from hccl_py.enums import DataType, ReduceOp
from hccl_py.errors import FileError, HcclError, ProgramFileError

MAX_NODES = 1 << 20
MAX_BYTES = 1 << 36
"""Of one call or message: a device has less memory than that."""

MAX_US = 10**12
MAX_WORK = (1 << 63) - 1
MAX_STREAM = (1 << 31) - 1
MAX_NAME = 127

CHAKRA = FileKind(
    noun="Chakra trace",
    parts="nodes",
    error=ProgramFileError,
    larger="Take a trace of fewer steps.",
    suffixes=(".et",),
    mark=re.compile(re.escape(STREAMS.encode())),  # what hccl-py writes names its streams
)

_NODE_TYPES = {int(kind): kind for kind in NodeType}

_READ = {
    *("is_cpu_op", "num_ops", "tensor_size", "stream", "comm_type", "comm_size", "pg_name"),
    *("comm_group", "comm_src", "comm_dst", "comm_tag", DTYPE, REDUCE_OP, ROOT),
}
"""The attributes that are read."""


def rank_trace_from(data: bytes, file: str, rank: int) -> RankFile:
    """Return the nodes and groups of a rank's file; ProgramFileError for bytes that are no trace,
    and for a node without a required attribute.
    """
    return named(f"{file:.200}", CHAKRA, lambda: _FileReader(data, file, rank).read())


class _FileReader:
    """The parser of one file."""

    def __init__(self, data: bytes, file: str, rank: int) -> None:
        self._data, self._file, self._rank = data, file, rank
        self._groups: dict[str, TraceGroup] = {}

    def read(self) -> RankFile:
        metadata, node = messages()
        frames = _frames(self._data)
        start, first = next(frames, (0, None))
        if first is None:
            raise defect("byte 0", "GlobalMetadata", "an empty file", _CUT)
        streams = _streams(_parsed(metadata, first, start, "GlobalMetadata"))
        parsed: list[Any] = []
        for start, frame in frames:
            if len(parsed) == MAX_NODES:
                raise defect(f"byte {start}", f"at most {MAX_NODES:,} nodes", "more", CHAKRA.larger)
            parsed.append(_parsed(node, frame, start, "a Node"))
        positions = {message.id: number for number, message in enumerate(parsed)}
        if len(positions) < len(parsed):
            twice = next(m.id for n, m in enumerate(parsed) if positions[m.id] != n)
            raise defect(f"node {twice}", "an id of its own", "it twice", "Ids name nodes.")
        nodes = ordered([self._node(message, positions) for message in parsed])
        return RankFile(self._file, nodes, self._groups, streams)

    def _node(self, message: Any, positions: dict[int, int]) -> TraceNode:
        at = f"node {message.id}"
        kind = _NODE_TYPES.get(message.type)
        if kind is None:
            hint = f"Chakra's are {NodeType.METADATA_NODE} to {max(NodeType)}."
            raise defect(f"{at}: type", "a node type", str(message.type), hint)
        deps = _positions(at, [*message.ctrl_deps, *message.data_deps], positions)
        if kind is NodeType.METADATA_NODE and "pg_name" in message.inputs.values:
            for name, group in _stated_groups(at, message.inputs.values).items():
                if self._groups.setdefault(name, group) != group:
                    expected = "the ranks that a node before states"
                    raise defect(f"{at}: group {name}", expected, "others", "Name it anew.")
        values = _NodeAttributes(at, message.attr)
        return TraceNode(
            id=message.id,
            name=message.name[:200],
            type=kind,
            deps=deps,
            duration_us=_number(at, message.duration_micros, MAX_US, "duration_micros"),
            stream=values.number("stream", MAX_STREAM),
            on_cpu=values.flag("is_cpu_op"),
            num_ops=values.number("num_ops", MAX_WORK) or 0,
            tensor_size=values.number("tensor_size", MAX_WORK) or 0,
            call=self._call(kind, values),
        )

    def _call(self, kind: NodeType, values: _NodeAttributes) -> Call | None:
        if kind is NodeType.COMM_COLL_NODE:
            return _collective(values)
        if kind is NodeType.COMM_SEND_NODE:
            return self._message(values, "comm_src", "comm_dst")
        if kind is NodeType.COMM_RECV_NODE:
            return self._message(values, "comm_dst", "comm_src")
        return None

    def _message(self, values: _NodeAttributes, own: str, other: str) -> TraceMessage:
        """Return one end of a message; `own` is by default this rank."""
        ends = {
            own: values.number(own, MAX_STREAM, self._rank),
            other: values.required(other, MAX_STREAM, "It says the rank at the other end."),
        }
        if ends[own] != self._rank:
            hint = f"The file is that of rank {self._rank}."
            raise defect(f"{values.at}: {own}", str(self._rank), str(ends[own]), hint)
        if ends[other] == self._rank:
            hint = "A kernel copies inside a rank."
            raise defect(f"{values.at}: {other}", "another rank", str(self._rank), hint)
        return TraceMessage(
            source=ends["comm_src"] or 0,
            destination=ends["comm_dst"] or 0,
            tag=values.number("comm_tag", MAX_STREAM) or 0,
            size=values.required("comm_size", MAX_BYTES, "It is the message's bytes."),
            dtype=values.dtype(),
        )


_CUT = "Was the file cut off, or is it no .et file?"


def _frames(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield messages, each behind the byte at which it begins."""
    at, end = 0, len(data)
    while at < end:
        start, length, shift = at, 0, 0
        while True:
            if at == end or shift > 28:
                raise defect(f"byte {start}", "the length of a message", "none", _CUT)
            byte = data[at]
            at += 1
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        if length > end - at:
            left = f"{end - at} bytes to the end of the file"
            raise defect(f"byte {start}", f"a message of {length} bytes", left, _CUT)
        yield start, data[at : at + length]
        at += length


def _parsed(message: Any, frame: bytes, start: int, what: str) -> Any:
    """Return a message of a class; FileError for bytes that are none, and for a first message that
    is not GlobalMetadata.
    """
    from google.protobuf.message import DecodeError
    from google.protobuf.unknown_fields import UnknownFieldSet

    found = message()
    try:
        found.ParseFromString(frame)
    except (DecodeError, UnicodeDecodeError):
        raise defect(f"byte {start}", what, "bytes that are none", _CUT) from None
    if what == "GlobalMetadata" and len(UnknownFieldSet(found)):
        raise defect(f"byte {start}", what, "another message", "It comes before the nodes.")
    return found


def _positions(at: str, deps: list[int], positions: dict[int, int]) -> tuple[int, ...]:
    try:
        return tuple(dict.fromkeys([positions[dep] for dep in deps]))
    except KeyError as error:
        raise defect(
            f"{at}: dependencies", "nodes of this file", f"node {error.args[0]}", _MISSING
        ) from None


_MISSING = "Dependencies are inside a rank; what is not in its file cannot end."


def _number(at: str, value: object, most: int, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise defect(
            f"{at}: {name}", f"an integer from 0 to {most}", format_value(value), "Write it so."
        )
    return value


class _NodeAttributes:
    """The attributes of a node by name."""

    def __init__(self, at: str, attributes: Any) -> None:
        self.at = at
        self._values: dict[str, object] = {}
        for attribute in attributes:
            name = attribute.name
            if name in _READ:
                which = attribute.WhichOneof("value")
                value = None if which is None else getattr(attribute, which)
                self._values[name] = _plain(value)

    def has(self, name: str) -> bool:
        return name in self._values

    def number(self, name: str, most: int, default: int | None = None) -> int | None:
        """Return an integer, or `default`."""
        if name not in self._values:
            return default
        return _number(self.at, self._values[name], most, name)

    def required(self, name: str, most: int, hint: str) -> int:
        """Return an integer that a node must have."""
        if name not in self._values:
            raise defect(f"{self.at}: {name}", "an integer", "none", hint)
        return _number(self.at, self._values[name], most, name)

    def flag(self, name: str) -> bool:
        """Return a flag; integers serve, too."""
        value = self._values.get(name, False)
        if not isinstance(value, (bool, int)):
            raise defect(f"{self.at}: {name}", "true or false", format_value(value), "Write it so.")
        return bool(value)

    def text(self, name: str) -> str:
        """Return a text; numbers serve, too."""
        value = self._values.get(name, "")
        is_text = isinstance(value, (str, int)) and not isinstance(value, bool)
        if not is_text or len(str(value)) > MAX_NAME:
            expected = f"a text of at most {MAX_NAME} characters"
            raise defect(f"{self.at}: {name}", expected, format_value(value), "Write it so.")
        return str(value)

    def dtype(self) -> DataType | None:
        """Return the data type, None where the node has none."""
        return self._parsed(DTYPE, DataType.parse) if self.has(DTYPE) else None

    def reduce(self) -> ReduceOp:
        """Return the reduction, by default a sum."""
        return self._parsed(REDUCE_OP, ReduceOp.parse) if self.has(REDUCE_OP) else ReduceOp.SUM

    def _parsed(self, name: str, parse: Any) -> Any:
        try:
            return _known(parse, self.text(name))
        except FileError:
            raise
        except HcclError as error:
            raise FileError(f"{self.at}: {name}: {error.message}", error.hint) from None


@lru_cache(64)
def _known(parse: Any, text: str) -> Any:
    return parse(text)


def _plain(value: object) -> object:
    """Return the value of an attribute; a list as an empty list, bytes as text."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return [] if not isinstance(value, bytes) else value.decode("utf-8", "replace")


def _collective(values: _NodeAttributes) -> Collective:
    hint = f"Chakra's are {min(CommType)} to {max(CommType)}."
    kind = values.required("comm_type", 1 << 62, hint)
    op = OPS.get(kind)
    if op is None:
        raise defect(f"{values.at}: comm_type", "a collective", str(kind), hint)
    group = values.text("pg_name" if values.has("pg_name") else "comm_group")
    size = 0
    if op != "barrier":
        size = values.required("comm_size", MAX_BYTES, "It is the bytes of a rank's input.")
    return Collective(
        group=group or WORLD,
        op=op,
        size=size,
        dtype=values.dtype(),
        reduce=values.reduce(),
        root=values.number(ROOT, MAX_STREAM) or 0,
    )


def _streams(metadata: Any) -> tuple[str, ...]:
    """Return the streams' names in a file's metadata."""
    for attribute in metadata.attr:
        if attribute.name == STREAMS:
            names = tuple(attribute.string_list.values)
            if len(set(names)) < len(names) or not all(names):
                raise defect(STREAMS, "names of streams", "one twice, or an empty one", "Name all.")
            return names
    return ()


def _stated_groups(at: str, text: str) -> dict[str, TraceGroup]:
    """Return the process groups of a metadata node: JSON, which PyTorch writes inside a list."""
    first, last = text.find("[{"), text.rfind("}]")
    try:
        listed = json.loads(text[first : last + 2]) if 0 <= first < last else None
        return {
            _name_of(group["pg_name"]): TraceGroup(
                tuple(_number(at, rank, MAX_STREAM, "rank") for rank in group["ranks"]),
                _name_of(group.get(GROUP_NAME, group["pg_name"])),
            )
            for group in listed or ()
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, FileError):
        raise defect(
            f"{at}: inputs.values",
            "process groups, objects with pg_name and ranks",
            format_value(text),
            "PyTorch writes them so.",
        ) from None


def _name_of(given: object) -> str:
    name = str(given)
    if not 1 <= len(name) <= MAX_NAME:
        raise ValueError(name)
    return name

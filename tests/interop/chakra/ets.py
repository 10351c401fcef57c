"""Chakra's .et files as bytes, written and read by the rules of protobuf's wire format alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

METADATA, COMP, SEND, RECV, COLL = 1, 4, 5, 6, 7
ALL_REDUCE, REDUCE, ALL_GATHER, GATHER, SCATTER, BROADCAST, ALL_TO_ALL, REDUCE_SCATTER = range(8)
BARRIER = 9

Value = int | str | bool | list[str]


@dataclass
class Et:
    """A node of a file; `deps` are ids."""

    id: int
    type: int
    name: str = ""
    deps: Sequence[int] = ()
    us: int = 0
    attrs: dict[str, Value] = field(default_factory=dict)
    values: str = ""
    ctrl: Sequence[int] = ()
    start: int = 0


def coll(id: int, kind: int, size: int, group: str = "", **more: Value) -> Et:
    attrs: dict[str, Value] = {"comm_type": kind, "comm_size": size, "is_cpu_op": False}
    return Et(id, COLL, f"coll {id}", attrs=attrs | ({"pg_name": group} if group else {}) | more)


def groups(id: int, ranks: dict[str, list[int]]) -> Et:
    """Process groups, as PyTorch writes them: a list in a text in a list."""
    listed = [{"pg_name": name, "pg_desc": "x", "ranks": of} for name, of in ranks.items()]
    values = f"['{json.dumps(listed)}']"
    return Et(id, METADATA, "## process_group:init ##", values=values)


def write(folder: Path, ranks: Sequence[Sequence[Et]], prefix: str = "own") -> Path:
    folder.mkdir(exist_ok=True)
    for rank, nodes in enumerate(ranks):
        (folder / f"{prefix}.{rank}.et").write_bytes(encode(nodes))
    return folder


def encode(nodes: Sequence[Et], metadata: bytes | None = None) -> bytes:
    first = _text(1, "0.0.4") if metadata is None else metadata
    return b"".join(framed(part) for part in (first, *map(_node, nodes)))


def decode(data: bytes) -> tuple[dict[str, Value], list[Et]]:
    """Return the attributes of the metadata, and the nodes."""
    at, frames = 0, []
    while at < len(data):
        length, at = _read_varint(data, at)
        frames.append(data[at : at + length])
        at += length
    head = dict(_read_attr(value) for number, value in _fields(frames[0]) if number == 2)  # type: ignore[arg-type]
    return head, [_read_node(frame) for frame in frames[1:]]


def framed(data: bytes) -> bytes:
    return varint(len(data)) + data


def varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def _number(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value % (1 << 64)) if value else b""


def _bytes(number: int, value: bytes) -> bytes:
    return varint(number << 3 | 2) + framed(value)


def _text(number: int, value: str) -> bytes:
    return _bytes(number, value.encode()) if value else b""


def attr(name: str, value: Value) -> bytes:
    if isinstance(value, bool):
        said = varint(27 << 3) + varint(value)
    elif isinstance(value, int):
        said = varint(9 << 3) + varint(value % (1 << 64))
    elif isinstance(value, str):
        said = _bytes(29, value.encode())
    else:
        said = _bytes(30, b"".join(_bytes(1, text.encode()) for text in value))
    return _text(1, name) + said


def _node(node: Et) -> bytes:
    packed = [b"".join(map(varint, ids)) for ids in (node.ctrl, node.deps)]
    parts = [_number(1, node.id), _text(2, node.name), _number(3, node.type)]
    parts += [_bytes(4 + k, ids) for k, ids in enumerate(packed) if ids]
    parts += [_number(6, node.start), _number(7, node.us)]
    parts += [_bytes(8, _text(1, node.values))] if node.values else []
    parts += [_bytes(10, attr(name, value)) for name, value in node.attrs.items()]
    return b"".join(parts)


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        key, at = _read_varint(data, at)
        if key & 7 == 0:
            value, at = _read_varint(data, at)
            yield key >> 3, value
        else:
            assert key & 7 == 2, "neither floats nor fixed numbers are written"
            length, at = _read_varint(data, at)
            yield key >> 3, data[at : at + length]
            at += length


def _read_attr(data: bytes) -> tuple[str, Value]:
    name, value = "", 0
    found: Value = value
    for number, part in _fields(data):
        if number == 1:
            assert isinstance(part, bytes)
            name = part.decode()
        elif number == 30:
            assert isinstance(part, bytes)
            found = [text.decode() for _, text in _fields(part) if isinstance(text, bytes)]
        else:
            found = part.decode() if isinstance(part, bytes) else part
    return name, found


def _read_node(data: bytes) -> Et:
    node = Et(0, 0)
    for number, value in _fields(data):
        if isinstance(value, int):
            names = {1: "id", 3: "type", 6: "start", 7: "us"}
            setattr(node, names[number], value)
        elif number == 2:
            node.name = value.decode()
        elif number in (4, 5):
            ids, at = [], 0
            while at < len(value):
                one, at = _read_varint(value, at)
                ids.append(one)
            node.ctrl, node.deps = (ids, node.deps) if number == 4 else (node.ctrl, ids)
        elif number == 8:
            node.values = next(t.decode() for k, t in _fields(value) if k == 1)  # type: ignore[union-attr]
        elif number == 10:
            name, said = _read_attr(value)
            node.attrs[name] = said
    return node

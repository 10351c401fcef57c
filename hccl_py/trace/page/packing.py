"""Columns of numbers as bytes that pack well: the narrowest type, byte planes, gzip, base64.

A block is the length of a header (four bytes), the header as JSON, and the columns. Of a column all
lowest bytes come first, then all second ones, and so on: neighbours are alike, which gzip likes.
static/decode.js reads it.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[Any]

_LEVEL = 4
"""Of gzip: 6 takes three times as long and saves a twentieth."""


def block(header: Mapping[str, Any], columns: Mapping[str, Numbers]) -> bytes:
    """Return a header and columns as base64; the header gets a key `columns` that says where."""
    entries: dict[str, Any] = {}
    parts: list[bytes] = []
    offset = 0
    for name, values in columns.items():
        entries[name], data = _column(np.ascontiguousarray(values).reshape(-1), offset)
        parts.append(data)
        offset += len(data)
    head = json.dumps({**header, "columns": entries}, allow_nan=False).encode("ascii")
    raw = b"".join([len(head).to_bytes(4, "little"), head, *parts])
    return base64.b64encode(gzip.compress(raw, _LEVEL, mtime=0))


def _column(values: Numbers, offset: int) -> tuple[dict[str, Any], bytes]:
    entry: dict[str, Any] = {"length": len(values)}
    if len(values) == 0:
        return {**entry, "type": "i1", "constant": 0}, b""
    narrow = _narrow(values)
    entry["type"] = f"{narrow.dtype.kind}{narrow.dtype.itemsize}"
    first = narrow[0].item()
    if np.isfinite(first) and (narrow == first).all():
        return {**entry, "constant": first}, b""
    planes = narrow.view(np.uint8).reshape(len(narrow), narrow.dtype.itemsize)
    return {**entry, "offset": offset}, planes.T.tobytes()


def _narrow(values: Numbers) -> Numbers:
    """Return the same numbers in the narrowest little-endian type that a browser has; integers
    beyond 32 bits as floats, which hold them exactly below 2 ** 53.
    """
    if values.dtype.kind == "f":
        return values.astype(f"<f{values.dtype.itemsize}")
    low, high = int(values.min()), int(values.max())
    for kind in (np.int8, np.int16, np.int32):
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return values.astype(np.dtype(kind).newbyteorder("<"))
    return values.astype("<f8")

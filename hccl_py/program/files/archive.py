"""An npz file as bytes: numpy's format, with fixed dates, read without trust.

numpy reads it too (`np.load`). Reading takes only plain arrays of numbers, and never more bytes
than the archive's directory announces and the caller allows.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hccl_py.documents.checks import defect
from hccl_py.errors import FileError

__all__ = ["Array", "narrow", "pack", "unpack"]

Array = npt.NDArray[Any]

_DATE = (1980, 1, 1, 0, 0, 0)
_LEVEL = 6
_PLAIN_TYPES = "iuf"
_BROKEN = "The file is damaged or was written by another tool: write it again with hccl-py."


def pack(arrays: Mapping[str, Array]) -> bytes:
    """Return the bytes of an npz file; the same arrays give the same bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, array in arrays.items():
            member = zipfile.ZipInfo(f"{name}.npy", _DATE)
            member.create_system = 3  # Unix, on every system
            content = io.BytesIO()
            np.lib.format.write_array(content, np.ascontiguousarray(array), allow_pickle=False)
            archive.writestr(member, content.getvalue(), zipfile.ZIP_DEFLATED, _LEVEL)
    return out.getvalue()


def unpack(data: bytes, names: Sequence[str], max_bytes: int) -> dict[str, Array]:
    """Return those of the named arrays that an npz file has."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            present = set(archive.namelist())
            infos = [archive.getinfo(f"{name}.npy") for name in names if f"{name}.npy" in present]
            total = sum(info.file_size for info in infos)
            if total > max_bytes:
                raise defect("", f"at most {max_bytes:,} bytes", f"{total:,}", _BROKEN)
            return {info.filename[:-4]: _array(archive, info) for info in infos}
    except FileError:
        raise
    except Exception as error:  # zipfile, zlib and numpy raise a dozen kinds for broken input
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise FileError(f"$: not an npz file of a program ({reason:.120}).", _BROKEN) from None


def narrow(array: Array) -> Array:
    """Return whole numbers in the smallest type that holds them."""
    low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
    for kind in (np.int8, np.int16, np.int32):
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return array.astype(kind)
    return array.astype(np.int64)


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Array:
    """Read an array; its header must agree with the bytes that are there."""
    content = io.BytesIO(archive.read(info))
    version = np.lib.format.read_magic(content)
    if version != (1, 0):
        raise ValueError(f"{info.filename} has version {version} of the npy format")
    shape, in_columns, dtype = np.lib.format.read_array_header_1_0(content)
    data = content.read()
    count = int(np.prod(np.array(shape, object))) if shape else 1
    if dtype.kind not in _PLAIN_TYPES or count * dtype.itemsize != len(data):
        raise ValueError(f"{info.filename} does not hold {shape} plain numbers")
    flat = np.frombuffer(data, dtype)
    return flat.reshape(shape, order="F" if in_columns else "C")

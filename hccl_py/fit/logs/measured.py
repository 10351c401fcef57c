"""Logs of measurements, by whichever of the known tests they were printed."""

from __future__ import annotations

import re

from hccl_py.documents.disk import PathLike, format_path, read_file
from hccl_py.documents.kind import FileKind
from hccl_py.errors import FileError
from hccl_py.fit.logs.hccl_test import HcclTestReader, LogTable
from hccl_py.fit.logs.nccl_tests import NcclTestsReader
from hccl_py.fit.logs.rccl_tests import RcclFileReader

MOST_BYTES = 64_000_000

_KIND = FileKind(
    noun="log",
    parts="lines",
    larger="Give the part of the log that holds the tables.",
    text="Give what hccl_test or nccl-tests prints.",
)

_RANK_PREFIX = re.compile(r"^\s*(\[[\d,]+\]\s*(<\w+>)?:?|\d+:)\s*")


def read_log(path: PathLike) -> list[LogTable]:
    """Return the tables of a file in their order; FileError where it has none, or a time that no
    call takes.
    """
    data, name = read_file(path, MOST_BYTES, _KIND), f"{format_path(path):.200}"
    if b"\0" in data:
        raise FileError(f"{name}: the file is not text.", "Give what a test prints.")
    readers = HcclTestReader(name), NcclTestsReader(name), RcclFileReader(name)
    for number, line in enumerate(data.decode("utf-8-sig", "replace").splitlines(), 1):
        for reader in readers:
            reader.read(number, _RANK_PREFIX.sub("", line))
    tables = sorted((t for r in readers for t in r.tables), key=lambda table: table[0])
    if not tables:
        raise FileError(
            f"{name}: there is no table of hccl_test or nccl-tests.",
            "A header begins with data_size(Bytes): | aveg_time(us):, or with # size count type.",
        )
    return [table for _, table in tables]

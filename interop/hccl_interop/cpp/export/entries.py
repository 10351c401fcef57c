"""The functions of ops in HCCL's API, and the kernel's OpParam made of their parameters."""

from __future__ import annotations

from typing import NamedTuple

from hccl_interop.cpp.export.text import listed


class _Entry(NamedTuple):
    """A function of HCCL's API, and its parameters before the communicator."""

    function: str
    parameters: tuple[str, ...]

    def named(self, *names: str) -> str:
        """Return the first of these names that a parameter has; "" where none does."""
        mine = {parameter.split()[-1] for parameter in self.parameters}
        return next((name for name in names if name in mine), "")

    def buffer(self, name: str) -> str:
        """Return a buffer as the expression of a `void*`; "" where the function has none."""
        found = self.named(name, "buf")
        is_const = f"const void* {found}" in self.parameters
        return f"const_cast<void*>({found})" if is_const else found

    @property
    def elements(self) -> str:
        """The parameter with the call's count."""
        return self.named("count", "sendCount", "recvCount")

    @property
    def dtype(self) -> str:
        """The parameter with the call's data type."""
        return self.named("dataType", "sendType")


_TYPE = "HcclDataType dataType"
_DATA = ("uint64_t count", _TYPE)
_REDUCTION, _ROOT = "HcclReduceOp op", "uint32_t root"
_BUFFERS = ("void* sendBuf", "void* recvBuf")
_ALL_TO_ALL = (
    *("const void* sendBuf", "uint64_t sendCount", "HcclDataType sendType"),
    *("const void* recvBuf", "uint64_t recvCount", "HcclDataType recvType"),
)

_ENTRIES: dict[str, tuple[_Entry, ...]] = {
    "all_reduce": (_Entry("HcclAllReduce", (*_BUFFERS, *_DATA, _REDUCTION)),),
    "reduce_scatter": (
        _Entry("HcclReduceScatter", (*_BUFFERS, "uint64_t recvCount", _TYPE, _REDUCTION)),
    ),
    "reduce": (_Entry("HcclReduce", (*_BUFFERS, *_DATA, _REDUCTION, _ROOT)),),
    "all_gather": (_Entry("HcclAllGather", (*_BUFFERS, "uint64_t sendCount", _TYPE)),),
    "broadcast": (_Entry("HcclBroadcast", ("void* buf", *_DATA, _ROOT)),),
    "scatter": (_Entry("HcclScatter", (*_BUFFERS, "uint64_t recvCount", _TYPE, _ROOT)),),
    "all_to_all": (_Entry("HcclAlltoAll", _ALL_TO_ALL),),
    "send_recv": (
        _Entry("HcclSend", ("void* sendBuf", *_DATA, "uint32_t destRank")),
        _Entry("HcclRecv", ("void* recvBuf", *_DATA, "uint32_t srcRank")),
    ),
}

CAN_EXPORT = tuple(_ENTRIES)
"""Ops that a custom op can stand for."""


class _EntryFields(NamedTuple):
    """The members of an OpParam that an entry fills in, and how."""

    input: str
    output: str
    buffer: str
    dtype: str
    reduction: str
    has_unit: bool


_OURS = _EntryFields(
    *("input", "output", "static_cast<char*>({})", "static_cast<HcommDataType>({})"),
    *("reduceOp = static_cast<HcommReduceOp>(op)", True),
)
_CONTEST = _EntryFields("inputPtr", "outputPtr", "{}", "{}", "reduceType = op", False)

_CONDITIONS = {
    "op": "op != kReduceOp",
    "root": "root != kRoot",
    "recvType": "recvType != kDataType || recvCount != sendCount",
}


def functions_of(op: str) -> tuple[str, ...]:
    """Return the names of an op's functions."""
    return tuple(entry.function for entry in _ENTRIES[op])


def write_entries(op: str, suffix: str = "") -> str:
    """Return the definitions of an op's functions, for the one call of custom.h; names end in the
    suffix.
    """
    return "\n\n".join(_written(entry, _fixed(entry), suffix) for entry in _ENTRIES[op])


def write_open_entries(op: str) -> str:
    """Return the definitions for calls of any data type, reduction and root."""
    return "\n\n".join(_written(entry, _open(entry, _OURS)) for entry in _ENTRIES[op])


def write_contest_entries(op: str) -> str:
    """Return the definitions that fill in the OpParam of the contest's organisers."""
    return "\n\n".join(
        _written(entry, _open(entry, _CONTEST), members=_CONTEST) for entry in _ENTRIES[op]
    )


def _fixed(entry: _Entry) -> list[str]:
    tests = [f"{entry.dtype} != kDataType"]
    tests += [test for name, test in _CONDITIONS.items() if entry.named(name)]
    return [
        *_refused(" || ".join(tests)),
        "    OpParam param{};",
        "    param.dataType = static_cast<HcommDataType>(kDataType);",
    ]


def _open(entry: _Entry, members: _EntryFields) -> list[str]:
    lines = []
    if entry.named("recvType"):
        lines += _refused("recvType != sendType || recvCount != sendCount")
    lines += [
        "    OpParam param{};",
        f"    param.dataType = {members.dtype.format(entry.dtype)};",
        *([f"    param.unit = SizeOf({entry.dtype});"] if members.has_unit else ()),
    ]
    found = entry.named("root", "destRank", "srcRank")
    return [*lines, f"    param.root = {found};"] if found else lines


def _refused(condition: str) -> list[str]:
    return [f"    if ({condition}) {{", "        return HCCL_E_NOT_SUPPORT;", "    }"]


def _written(
    entry: _Entry, begin: list[str], suffix: str = "", members: _EntryFields = _OURS
) -> str:
    head = f'extern "C" HcclResult {entry.function}{suffix}('
    given = [*entry.parameters, "HcclComm comm", "aclrtStream stream"]
    lines = listed(head, given, ")", len(head))
    lines += ["{", *begin, f"    param.count = {entry.elements};"]
    if entry.named("op"):
        lines.append(f"    param.{members.reduction};")
    for member, name in ((members.input, "sendBuf"), (members.output, "recvBuf")):
        if value := entry.buffer(name):
            lines.append(f"    param.{member} = {members.buffer.format(value)};")
    lines += ["    return Run(comm, stream, param);", "}"]
    text = "\n".join(lines)
    for name in ("destRank", "srcRank"):  # an exported kernel knows the pairs
        if text.count(name) == 1:
            text = text.replace(f"uint32_t {name}", f"uint32_t /* {name} */")
    return text

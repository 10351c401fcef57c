"""The functions that stand for ops in HCCL's API, and how a call becomes the kernel's OpParam."""

from __future__ import annotations

from typing import NamedTuple

from hccl_interop.cpp.export.text import listed


class _Entry(NamedTuple):
    """A function: its parameters before the communicator, and which of them is what."""

    name: str
    parameters: tuple[str, ...]
    input: str
    output: str
    elements: str
    dtype: str = "dataType"

    @property
    def names(self) -> list[str]:
        """The names of the parameters."""
        return [parameter.split()[-1] for parameter in self.parameters]


_DATA = ("uint64_t count", "HcclDataType dataType")
_REDUCTION = "HcclReduceOp op"
_BUFFERS = ("void* sendBuf", "void* recvBuf")

_ENTRIES: dict[str, tuple[_Entry, ...]] = {
    "all_reduce": (
        _Entry("HcclAllReduce", (*_BUFFERS, *_DATA, _REDUCTION), "sendBuf", "recvBuf", "count"),
    ),
    "reduce_scatter": (
        _Entry(
            "HcclReduceScatter",
            (*_BUFFERS, "uint64_t recvCount", "HcclDataType dataType", _REDUCTION),
            "sendBuf",
            "recvBuf",
            "recvCount",
        ),
    ),
    "reduce": (
        _Entry(
            "HcclReduce",
            (*_BUFFERS, *_DATA, _REDUCTION, "uint32_t root"),
            "sendBuf",
            "recvBuf",
            "count",
        ),
    ),
    "all_gather": (
        _Entry(
            "HcclAllGather",
            (*_BUFFERS, "uint64_t sendCount", "HcclDataType dataType"),
            "sendBuf",
            "recvBuf",
            "sendCount",
        ),
    ),
    "broadcast": (
        _Entry("HcclBroadcast", ("void* buf", *_DATA, "uint32_t root"), "buf", "buf", "count"),
    ),
    "scatter": (
        _Entry(
            "HcclScatter",
            (*_BUFFERS, "uint64_t recvCount", "HcclDataType dataType", "uint32_t root"),
            "sendBuf",
            "recvBuf",
            "recvCount",
        ),
    ),
    "all_to_all": (
        _Entry(
            "HcclAlltoAll",
            (
                "const void* sendBuf",
                "uint64_t sendCount",
                "HcclDataType sendType",
                "const void* recvBuf",
                "uint64_t recvCount",
                "HcclDataType recvType",
            ),
            "const_cast<void*>(sendBuf)",
            "const_cast<void*>(recvBuf)",
            "sendCount",
            "sendType",
        ),
    ),
    "send_recv": (
        _Entry("HcclSend", ("void* sendBuf", *_DATA, "uint32_t destRank"), "sendBuf", "", "count"),
        _Entry("HcclRecv", ("void* recvBuf", *_DATA, "uint32_t srcRank"), "", "recvBuf", "count"),
    ),
}

CAN_EXPORT = tuple(_ENTRIES)
"""Ops that a custom op can stand for."""

_CONDITIONS = {
    "op": "op != kReduceOp",
    "root": "root != kRoot",
    "recvType": "recvType != kDataType || recvCount != sendCount",
}


def write_entries(op: str) -> str:
    """Return the definitions of the functions that stand for an op, for the call that custom.h
    says.
    """
    return "\n".join(_written(entry, _fixed(entry)) for entry in _ENTRIES[op])


def write_open_entries(op: str) -> str:
    """Return the definitions for calls of any data type, reduction and root."""
    return "\n".join(_written(entry, _open(entry)) for entry in _ENTRIES[op])


def _fixed(entry: _Entry) -> list[str]:
    tests = [f"{entry.dtype} != kDataType"]
    tests += [_CONDITIONS[name] for name in ("op", "root", "recvType") if name in entry.names]
    return [
        *_refused(" || ".join(tests)),
        "    OpParam param{};",
        "    param.dataType = static_cast<HcommDataType>(kDataType);",
    ]


def _open(entry: _Entry) -> list[str]:
    tests = ["recvType != sendType || recvCount != sendCount"] if "recvType" in entry.names else []
    lines = _refused(tests[0]) if tests else []
    lines += [
        "    OpParam param{};",
        f"    param.dataType = static_cast<HcommDataType>({entry.dtype});",
        f"    param.unit = SizeOf({entry.dtype});",
    ]
    found = next((name for name in ("root", "destRank", "srcRank") if name in entry.names), None)
    return [*lines, f"    param.root = {found};"] if found else lines


def _refused(condition: str) -> list[str]:
    return [f"    if ({condition}) {{", "        return HCCL_E_NOT_SUPPORT;", "    }"]


def _written(entry: _Entry, begin: list[str]) -> str:
    head = f'extern "C" HcclResult {entry.name}('
    given = [*entry.parameters, "HcclComm comm", "aclrtStream stream"]
    lines = listed(head, given, ")", len(head))
    lines += ["{", *begin, f"    param.count = {entry.elements};"]
    if "op" in entry.names:
        lines.append("    param.reduceOp = static_cast<HcommReduceOp>(op);")
    for member, value in (("input", entry.input), ("output", entry.output)):
        if value:
            lines.append(f"    param.{member} = static_cast<char*>({value});")
    lines += ["    return Run(comm, stream, param);", "}", ""]
    text = "\n".join(lines)
    for name in ("destRank", "srcRank"):  # an exported kernel knows the pairs
        if text.count(name) == 1:
            text = text.replace(f"uint32_t {name}", f"uint32_t /* {name} */")
    return text

"""A project to start from: an op in C++ with a simple, correct algorithm."""

from __future__ import annotations

import re

from hccl_interop.cpp.export.entries import CAN_EXPORT, write_open_entries
from hccl_interop.cpp.export.starting_ccu import ccu_project
from hccl_interop.cpp.export.text import camel_case, filled, project_files
from hccl_py.errors import ParameterError, did_you_mean

_LONGEST = 60
"""Characters of a name."""

_READ = (
    "HcommReadOnThread(main, peer.channel, param.output + number * param.bytes, {source}, "
    "param.bytes)"
)

_READ_REDUCE = """\
HcommReadReduceOnThread(main, peer.channel, param.output, {source},
                                        param.count, param.dataType, param.reduceOp)"""

_SLOT = " + param.rank * param.bytes"
"""From a buffer's begin to the slot of the rank."""

_ALL_SLOTS = "param.ranks * param.bytes"


def _all_ranks_read(
    staged: str, fetch: str, source: str = "", *, to: str = "", own: str = ""
) -> tuple[str, dict[str, str]]:
    """Return template and names of the algorithm in which all ranks read from all peers.

    `staged` are the bytes that a rank copies to its HCCL buffer, `fetch` is the read from a peer,
    and `source`, `to` and `own` are the offsets in the peer's buffer, the output and the input.
    """
    return "all_ranks_read", {
        "staged": staged,
        "mine_to": f"param.output{to}",
        "mine_from": f"param.input{own}",
        "fetch": fetch.format(source=f"peer.ccl{source}"),
    }


_ALGORITHMS: dict[str, tuple[str, dict[str, str]]] = {
    "all_gather": _all_ranks_read("param.bytes", _READ, to=_SLOT),
    "all_reduce": _all_ranks_read("param.bytes", _READ_REDUCE),
    "reduce_scatter": _all_ranks_read(_ALL_SLOTS, _READ_REDUCE, _SLOT, own=_SLOT),
    "all_to_all": _all_ranks_read(_ALL_SLOTS, _READ, _SLOT, to=_SLOT, own=_SLOT),
    "broadcast": ("read_from_root", {"staged": "param.bytes", "theirs": "root.ccl", "mine": ""}),
    "scatter": (
        "read_from_root",
        {
            "staged": _ALL_SLOTS,
            "theirs": f"root.ccl{_SLOT}",
            "mine": "    CHK_RET(HcommLocalCopyOnThread(main, param.output, "
            f"param.input{_SLOT}, param.bytes));\n",
        },
    ),
    "reduce": ("root_reads_all", {}),
    "send_recv": ("receiver_reads", {}),
}
"""The template of every op, and the names to fill in."""

_ROOTED = "peer != param.rank && (peer == param.root || param.rank == param.root)"

_PEERS = {
    "all_ranks_read": "peer != param.rank",
    "read_from_root": _ROOTED,
    "root_reads_all": _ROOTED,
    "receiver_reads": "peer == param.root",
}
"""The condition for a channel to a peer."""


def starting_project(name: str, op: str, engine: str = "aicpu") -> dict[str, str]:
    """Return the files of a project, by path, whose kernels are an engine's: "aicpu" or "ccu".

    ParameterError for a name that C++ does not allow, and for an op without a custom op.
    """
    if not re.fullmatch("[a-z][a-z0-9_]*", name) or len(name) > _LONGEST:
        raise ParameterError(
            f"{name!r} is no name for a project in C++.",
            f"It has up to {_LONGEST} small letters, digits and _, such as my_gather.",
        )
    if op not in CAN_EXPORT:
        hint = did_you_mean(op, CAN_EXPORT, listed_by="`hccl-py new --help`")
        raise ParameterError(f"No custom op in C++ can stand for {op!r}.", hint)
    if engine == "ccu":
        return ccu_project(name, op)
    algorithm, fill = _ALGORITHMS[op]
    has_root = algorithm != "all_ranks_read"
    kernel = f"{camel_case(name)}Kernel"
    host = filled(
        "op.cc",
        op=name,
        title="The algorithm is in op_kernel_aicpu/exec_op.cc.",
        includes="#include <cstdio>\n\n" if has_root else "",
        predicates=filled("start/size_of"),
        connect=filled("host/describe") + filled("host/connect", remote_memories=""),
        acquire_takes="const OpParam& param",
        tag=filled("start/tag", name=name) if has_root else f'    const char* tag = "{name}";\n',
        buffer="    res.cclBytes = size;\n",
        call=filled("start/call"),
        workers="",
        registered="",
        connecting=filled(
            "host/connecting",
            ranks="param.ranks",
            condition=_PEERS[algorithm],
            layer=0,
            memories="",
            notifies="kChannelNotifies",
            peers="peers",
        ),
        kernel=kernel,
        entries=write_open_entries(op),
    )
    exec_op = filled(
        "start/exec_op.cc",
        name=name,
        kernel=kernel,
        idea=filled(f"start/{algorithm}_idea"),
        body=filled(f"start/{algorithm}", **fill),
    )
    return project_files(name, op, filled("start/custom.h"), host, exec_op, "--ranks 8 -b 1M")

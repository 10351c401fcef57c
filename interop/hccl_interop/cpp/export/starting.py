"""A project to start from: an op in C++ whose algorithm is as plain as one can be, and right."""

from __future__ import annotations

import re

from hccl_interop.cpp.export.entries import CAN_EXPORT, write_open_entries
from hccl_interop.cpp.export.files import filled
from hccl_interop.cpp.export.text import camel_case
from hccl_py.errors import ParameterError, did_you_mean

_LONGEST = 60
"""Characters of a name."""

_READ = """\
        CHK_RET(HcommReadOnThread(main, peer.channel, {to}, {source}, param.bytes));
"""

_READ_REDUCE = """\
        CHK_RET(HcommReadReduceOnThread(main, peer.channel, param.output, {source},
                                        param.count, param.dataType, param.reduceOp));
"""

_OWN_SLOT = "{base} + param.rank * param.bytes"
_ALL_SLOTS = "param.ranks * param.bytes"

_BODIES: dict[str, tuple[str, dict[str, str]]] = {
    "all_gather": (
        "everybody",
        {
            "staged": "param.bytes",
            "mine_to": _OWN_SLOT.format(base="param.output"),
            "mine_from": "param.input",
            "fetch": _READ.format(to="param.output + number * param.bytes", source="peer.ccl"),
        },
    ),
    "all_reduce": (
        "everybody",
        {
            "staged": "param.bytes",
            "mine_to": "param.output",
            "mine_from": "param.input",
            "fetch": _READ_REDUCE.format(source="peer.ccl"),
        },
    ),
    "reduce_scatter": (
        "everybody",
        {
            "staged": _ALL_SLOTS,
            "mine_to": "param.output",
            "mine_from": _OWN_SLOT.format(base="param.input"),
            "fetch": _READ_REDUCE.format(source=_OWN_SLOT.format(base="peer.ccl")),
        },
    ),
    "all_to_all": (
        "everybody",
        {
            "staged": _ALL_SLOTS,
            "mine_to": _OWN_SLOT.format(base="param.output"),
            "mine_from": _OWN_SLOT.format(base="param.input"),
            "fetch": _READ.format(
                to="param.output + number * param.bytes", source=_OWN_SLOT.format(base="peer.ccl")
            ),
        },
    ),
    "broadcast": (
        "from_root",
        {"staged": "param.bytes", "theirs": "root.ccl", "mine": ""},
    ),
    "scatter": (
        "from_root",
        {
            "staged": _ALL_SLOTS,
            "theirs": _OWN_SLOT.format(base="root.ccl"),
            "mine": "    CHK_RET(HcommLocalCopyOnThread(main, param.output, "
            f"{_OWN_SLOT.format(base='param.input')}, param.bytes));\n",
        },
    ),
    "reduce": ("to_root", {}),
    "send_recv": ("pair", {}),
}

_BUFFER = "    res.cclBytes = size;\n"

_CALL = """\
    if (rankSize > kMostRanks || param.unit == 0) {
        return HCCL_E_NOT_SUPPORT;
    }
    param.ranks = rankSize;
    param.bytes = param.count * param.unit;
"""

_CONNECTING = """\
    for (uint32_t peer = 0; peer < param.ranks; ++peer) {
        if (%s) {
            HcclChannelDesc desc;
            CHK_RET(Describe(comm, param.rank, peer, 0, desc));
            CHK_RET(Connect(comm, desc, kChannelNotifies, res.peers[peer]));
        }
    }
"""


_PEERS = {
    "everybody": "peer != param.rank",
    "from_root": "peer != param.rank && (peer == param.root || param.rank == param.root)",
    "to_root": "peer != param.rank && (peer == param.root || param.rank == param.root)",
    "pair": "peer == param.root",
}
"""Whom a rank has a channel to."""

_TAG = """\
char tag[HCCL_RES_TAG_MAX_LEN];  // other roots have other channels
    (void)snprintf(tag, sizeof(tag), "{name}.%u", param.root);\
"""


def starting_project(name: str, op: str) -> dict[str, str]:
    """Return the files of a project, by path.

    ParameterError for a name that is none in C++, and for an op that no custom op can stand for.
    """
    if not re.fullmatch("[a-z][a-z0-9_]*", name) or len(name) > _LONGEST:
        raise ParameterError(
            f"{name!r} is no name for a project in C++.",
            f"It has up to {_LONGEST} small letters, digits and _, such as my_gather.",
        )
    if op not in CAN_EXPORT:
        hint = did_you_mean(op, CAN_EXPORT, listed_by="`hccl-py new --help`")
        raise ParameterError(f"No custom op in C++ can stand for {op!r}.", hint)
    body, fill = _BODIES[op]
    kernel = f"{camel_case(name)}Kernel"
    return {
        "CMakeLists.txt": filled("CMakeLists.txt", target=name),
        "hccl-py.toml": filled("hccl-py.toml", op=op),
        "include/custom.h": filled("start/custom.h"),
        f"op_host/{op}.cc": filled(
            "op.cc",
            op=name,
            title="The algorithm is in op_kernel_aicpu/exec_op.cc.",
            includes="" if body == "everybody" else "#include <cstdio>\n\n",
            predicates=filled("start/size_of"),
            connect=filled("connect", remote_memories=""),
            acquire_takes="const OpParam& param",
            tag=f'const char* tag = "{name}";' if body == "everybody" else _TAG.format(name=name),
            buffer=_BUFFER,
            call=_CALL,
            workers="",
            registered="",
            connecting=_CONNECTING % _PEERS[body],
            kernel=kernel,
            entries=write_open_entries(op).rstrip("\n"),
        ),
        "op_kernel_aicpu/exec_op.cc": filled(
            "start/exec_op.cc",
            name=name,
            kernel=kernel,
            idea=filled(f"start/{body}_idea"),
            body=filled(f"start/{body}", **fill),
        ),
        "test/check.sh": filled("check.sh", options="--ranks 8 -b 1M"),
    }

"""A project to start from: an op in C++ with a simple, correct algorithm."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from hccl_interop.cpp.export.entries import CAN_EXPORT, write_contest_entries, write_open_entries
from hccl_interop.cpp.export.starting_ccu import ccu_project
from hccl_interop.cpp.export.text import camel_case, filled, project_files
from hccl_py.errors import ParameterError, did_you_mean

_LONGEST = 60
"""Characters of a name."""

_READ = (
    "HcommReadOnThread(main, peer.channel, part.output + number * part.stride, {source}, "
    "part.bytes)"
)

_READ_REDUCE = """\
HcommReadReduceOnThread(main, peer.channel, part.output, {source},
                                        part.count, param.dataType, param.reduceOp)"""

_STAGED = " + param.rank * part.bytes"
"""From the begin of an HCCL buffer to the slot of the rank."""

_MINE = " + param.rank * part.stride"
"""From the begin of a rank's data in the user's memory to the rank's own."""

_ALL_SLOTS = "all"


def _all_ranks_read(
    staged: str, fetch: str, source: str = "", *, to: str = "", own: str = ""
) -> tuple[str, dict[str, str]]:
    """Return template and names of the algorithm in which all ranks read from all peers.

    `staged` tells whether a rank copies its data to its HCCL buffer or that for all ranks, `fetch`
    is the read from a peer, and `source`, `to` and `own` are the offsets in the peer's buffer, the
    output and the input.
    """
    return "all_ranks_read", {
        "stage": staged,
        "mine_to": f"part.output{to}",
        "mine_from": f"part.input{own}",
        "fetch": fetch.format(source=f"peer.ccl{source}"),
    }


_ALGORITHMS: dict[str, tuple[str, dict[str, str]]] = {
    "all_gather": _all_ranks_read("one", _READ, to=_MINE),
    "all_reduce": _all_ranks_read("one", _READ_REDUCE),
    "reduce_scatter": _all_ranks_read(_ALL_SLOTS, _READ_REDUCE, _STAGED, own=_MINE),
    "all_to_all": _all_ranks_read(_ALL_SLOTS, _READ, _STAGED, to=_MINE, own=_MINE),
    "broadcast": ("read_from_root", {"stage": "one", "theirs": "root.ccl", "mine": ""}),
    "scatter": (
        "read_from_root",
        {
            "stage": _ALL_SLOTS,
            "theirs": f"root.ccl{_STAGED}",
            "mine": "    CHK_RET(HcommLocalCopyOnThread(main, part.output, "
            f"part.input{_MINE}, part.bytes));\n",
        },
    ),
    "reduce": ("root_reads_all", {}),
    "send_recv": ("receiver_reads", {}),
}
"""The template of every op, and the names to fill in."""

_ROOTED = "peer != param.rank && (peer == param.root || param.rank == param.root)"

_FIXED = (
    *("include/common.h", "include/log.h"),
    *("op_host/launch_aicpu_kernel.cc", "op_host/launch_aicpu_kernel.h"),
    *("op_kernel_aicpu/aicpu_kernel.cc", "op_kernel_aicpu/exec_op.h"),
)
"""Files of which a contest's organisers have their own."""

_CLUSTER = "--topology ascend950-2x8 --buffsize 400"
_SIZES = (4, "512K", "512M", (400 << 20) + 4)
_SLICED = ("reduce_scatter", "all_gather", "scatter", "all_to_all")
_SLICED_SIZES = (64, "512K", "512M", (400 << 20) + 64)
"""Sizes of a contest; of data that 16 ranks share, the nearest."""

_WORDS = {
    "ranks": "param.rankSize",
    "rank": "param.myRank",
    "input": "param.inputPtr",
    "dataType": "HcommDataType(param.dataType)",
    "reduceOp": "HcommReduceOp(param.reduceType)",
}
"""Members of our OpParam, as those of the contest's organisers."""

_PEERS = {
    "all_ranks_read": "peer != param.rank",
    "read_from_root": _ROOTED,
    "root_reads_all": _ROOTED,
    "receiver_reads": "peer == param.root",
}
"""The condition for a channel to a peer."""


def starting_project(
    name: str, op: str, engine: str = "aicpu", *, contest: bool = False
) -> dict[str, str]:
    """Return the files of a project, by path, whose kernels are an engine's: "aicpu" or "ccu".

    A project for a `contest` has the form of its organisers: three of their files are written.
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
        if contest:
            raise ParameterError(
                "--contest writes the form that contests have for the engine aicpu.",
                "Leave --contest or --engine ccu out.",
            )
        return ccu_project(name, op)
    return _contest(name, op) if contest else _project(name, op)


def _project(name: str, op: str) -> dict[str, str]:
    has_root = _ALGORITHMS[op][0] != "all_ranks_read"
    kernel = f"{camel_case(name)}Kernel"
    host = filled(
        "op.cc",
        op=name,
        title="The algorithm is in op_kernel_aicpu/exec_op.cc.",
        includes="#include <cstdio>\n\n" if has_root else "",
        predicates=filled("start/size_of"),
        connect=_connect(),
        acquire_takes="const OpParam& param",
        tag=filled("start/tag", name=name) if has_root else f'    const char* tag = "{name}";\n',
        buffer="    res.cclBytes = size;\n",
        call=filled("start/call"),
        workers="",
        registered="",
        connecting=_connecting(op),
        kernel=kernel,
        entries=write_open_entries(op),
    )
    exec_op = _exec_op(
        name,
        op,
        {},
        form="",
        includes='#include "custom.h"\n',
        resources="Resources",
        namespace="",
        end="",
        call=filled("start/opened"),
        kernel=filled("start/kernel", kernel=kernel),
    )
    resources = filled("start/resources", notifies=filled("start/notifies"))
    header = filled("start/custom.h", resources=resources)
    return project_files(name, op, header, host, exec_op, "--ranks 8 -b 1M")


def _contest(name: str, op: str) -> dict[str, str]:
    """Return a project in the form of the contest's organisers, tested on their cluster."""
    host = filled(
        "contest/op.cc",
        name=name,
        connect=_connect(),
        connecting=_renamed(_connecting(op), _WORDS),
        entries=write_contest_entries(op),
    )
    exec_op = _exec_op(
        name,
        op,
        _WORDS,
        form=f"// This file may be changed, as include/custom.h and op_host/{op}.cc may.\n",
        includes='#include "custom.h"\n\n#include "exec_op.h"\n#include "log.h"\n',
        resources="AlgResourceCtx",
        namespace="ops_hccl ",
        end=" ops_hccl",
        call=filled("contest/opened"),
        kernel="",
    )
    resources = filled("start/resources", notifies=filled("contest/notifies"))
    header = filled("contest/custom.h", op=op, resources=resources)
    files = project_files(name, op, header, host, exec_op, "")
    sizes = _SLICED_SIZES if op in _SLICED else _SIZES
    check = filled("contest/checks", cluster=_CLUSTER, sizes=" ".join(map(str, sizes)))
    files["test/check.sh"] = filled("check.sh", check=check, options=f"{_CLUSTER} -b 512K")
    return files | {path: filled(f"contest/{Path(path).name}") for path in _FIXED}


def _exec_op(name: str, op: str, members: Mapping[str, str], **form: str) -> str:
    """Return the kernel's file in a form that has its own names of members of OpParam."""
    algorithm, fill = _ALGORITHMS[op]
    stage = fill.get("stage", "one")
    body = filled(f"start/{algorithm}", **fill | {"stage": filled(f"start/stage_{stage}")})
    slots = " / param.ranks" if stage == _ALL_SLOTS else ""
    return (
        filled(
            "start/exec_op.cc",
            name=name,
            idea=filled(f"start/{algorithm}_idea"),
            body=_renamed(body, members),
            share=_renamed(slots, members),
            **form,
        ).rstrip()
        + "\n"
    )


def _connect() -> str:
    return filled("host/describe") + filled("host/connect", remote_memories="")


def _connecting(op: str) -> str:
    return filled(
        "host/connecting",
        ranks="param.ranks",
        condition=_PEERS[_ALGORITHMS[op][0]],
        layer=0,
        memories="",
        notifies="kChannelNotifies",
        peers="peers",
    )


def _renamed(text: str, members: Mapping[str, str]) -> str:
    """Return code with other names of the members of OpParam."""
    return re.sub(r"\bparam\.(\w+)", lambda found: members.get(found[1], found[0]), text)

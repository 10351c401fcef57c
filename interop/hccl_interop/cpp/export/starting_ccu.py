"""A project to start from whose kernel is the CCU's: all ranks read from all peers."""

from __future__ import annotations

from hccl_interop.cpp.export.entries import write_open_entries
from hccl_interop.cpp.export.text import camel_case, filled
from hccl_py.errors import ParameterError, did_you_mean

_OWN_SLOT = "uint64_t(param.rank) * param.bytes"

_OFFSETS = {
    "all_gather": "0",
    "all_to_all": _OWN_SLOT,
    "broadcast": "0",
    "all_reduce": "0",
    "reduce_scatter": _OWN_SLOT,
}
"""The place of what a rank reads in every input, by op."""

_CALL = "--topology ascend950-2x8 -b 512K"

_SUMS = ("all_reduce", "reduce_scatter")
_ROOTED = ("broadcast",)

_ONE_MOVE_EACH = """\
// - Every rank reads all peers one after the other. Read several at once into the HCCL buffer, and
//   add them there.
"""


def ccu_project(name: str, op: str) -> dict[str, str]:
    """Return the files of a project for the CCU; ParameterError for an op that has none."""
    if op not in _OFFSETS:
        hint = did_you_mean(op, _OFFSETS) or f"These have one: {', '.join(_OFFSETS)}."
        raise ParameterError(f"No project for the CCU starts with {op!r}.", hint)
    kernel = f"{camel_case(name)}Kernel"
    is_one = op in (*_SUMS, *_ROOTED)
    host = filled(
        "ccu/op.cc",
        name=name,
        kernel=kernel,
        size_of=filled("start/size_of"),
        describe=filled("host/describe"),
        destinations="1" if is_one else "param.ranks",
        offset=_OFFSETS[op],
        entries=write_open_entries(op),
    )
    text = filled(
        "ccu/ccu_kernel.cc",
        name=name,
        kernel=kernel,
        destinations="1" if is_one else "param.ranks",
        further=_ONE_MOVE_EACH if op in _SUMS else "",
        body=_body(op),
    )
    return {
        "CMakeLists.txt": filled("ccu/CMakeLists.txt", target=name),
        "hccl-py.toml": filled("hccl-py.toml", op=op),
        "include/custom.h": filled("ccu/custom.h", kernel=kernel),
        f"op_host/{op}.cc": host,
        "op_kernel_ccu/ccu_kernel.cc": text,
        "test/check.sh": filled("check.sh", check=f"hccl-py check . {_CALL}", options=_CALL),
    }


def _body(op: str) -> str:
    if op in _SUMS:
        return filled("ccu/sums")
    if op in _ROOTED:
        return filled(
            "ccu/reads",
            own="    (void)ownSource;  // the root has its data in place\n",
            mine="0",
            skip="        if (peer != param.root) {\n            continue;\n        }\n",
            which="0",
            wait="if (all != 0) {\n        ccu::EventWait(arrived, all);\n    }",
        )
    return filled(
        "ccu/reads",
        own=filled("ccu/own"),
        mine="uint16_t(1U << param.rank)",
        skip="",
        which="peer",
        wait="ccu::EventWait(arrived, all);",
    )

"""The host code in C++: threads, channels, registered memory, launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hccl_interop.cpp.export.channels import JoinedPlane
from hccl_interop.cpp.export.entries import write_entries
from hccl_interop.cpp.export.fitting import Fitter
from hccl_interop.cpp.export.memory import USER
from hccl_interop.cpp.export.text import filled
from hccl_py.call.op_param import OpParam
from hccl_py.enums import READS, WRITES
from hccl_py.program.program import Program


def write_host(
    op: OpParam,
    name: str,
    title: str,
    kernel: str,
    planes: Sequence[JoinedPlane],
    shown: Mapping[str, int],
    fitter: Fitter,
    *,
    has_workers: bool,
) -> str:
    """Return the host code.

    `name` is that of a program among others, "" for one alone; `shown` are the user's memories that
    peers access, with their size as a multiple of the call's bytes.
    """
    registered = "".join(
        filled(
            "host/registered",
            owner=owner,
            number=number,
            size="param.bytes" if slots == 1 else f"param.bytes * {slots}",
        )
        for number, (owner, slots) in enumerate(shown.items())
    )
    memories = f"    HcclMemHandle memories[{len(shown)}];\n" if shown else ""
    tag = f"hccl_py.{name or op.name}"
    return filled(
        "op.cc",
        op=op.name,
        title=title,
        includes="#include <cstdio>\n#include <string>\n\n" if shown else "",
        predicates="".join(f"{plane.predicate(fitter)}\n" for plane in planes),
        connect=filled("host/describe") + filled("host/connect", remote_memories=_remote(shown))
        if planes
        else "",
        acquire_takes="const OpParam& param" if planes else "const OpParam&",
        tag=filled("host/tag", name=tag) if shown else f'    const char* tag = "{tag}";\n',
        buffer=filled("host/buffer"),
        call=filled("host/call"),
        workers=filled("host/workers") if has_workers else "",
        registered=memories + registered,
        connecting="".join(_connecting(plane, shown) for plane in planes),
        kernel=kernel,
        entries=write_entries(op.name, "Custom" if name else ""),
    )


def _connecting(plane: JoinedPlane, shown: Mapping[str, int]) -> str:
    return filled(
        "host/connecting",
        ranks="kRanks",
        condition=f"{plane.function}(param.rank, peer)",
        layer=plane.first_layer,
        memories=filled("host/memories", count=len(shown)) if shown else "",
        notifies=plane.constant,
        peers=plane.name,
    )


def _remote(shown: Mapping[str, int]) -> str:
    each = "".join(filled("host/remote_one", owner=owner) for owner in shown)
    return filled("host/remote", each=each) if shown else ""


def shown_to_peers(program: Program) -> dict[str, int]:
    """Return the user's memories that peers access, each with its size as a multiple of the call's
    bytes.
    """
    names = program.buffers
    found = set()
    for batch in program.batches:
        for one in batch.instructions:
            if one.kind in READS:
                found.add(names[one.src_buffer])
            if one.kind in WRITES:
                found.add(names[one.dst_buffer])
    size = max(program.op.size, 1)
    return {
        owner: -(-int(program.buffer_sizes[:, names.index(name)].max()) // size)
        for name, owner in USER.items()
        if name in found
    }

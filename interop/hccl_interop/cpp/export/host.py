"""The host code in C++: threads, channels, registered memory, launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hccl_interop.cpp.export.channels import JoinedPlane
from hccl_interop.cpp.export.entries import write_entries
from hccl_interop.cpp.export.files import filled
from hccl_interop.cpp.export.fitting import Fitter
from hccl_interop.cpp.export.memory import USER
from hccl_py.call.op_param import OpParam
from hccl_py.enums import READS, WRITES
from hccl_py.program.program import Program

_TAG = """\
char tag[HCCL_RES_TAG_MAX_LEN];  // peers know the addresses of the call's memory
    (void)snprintf(tag, sizeof(tag), "{name}.%p.%p.%llu", static_cast<void*>(param.input),
                   static_cast<void*>(param.output), static_cast<unsigned long long>(param.bytes));\
"""

_WORKERS = """\
    CHK_RET(HcclThreadAcquire(comm, COMM_ENGINE_AICPU_TS, kThreads - 1, kWorkerNotifies,
                              &res.threads[1]));
"""

_REGISTERED = """\
    const CommMem {owner}{{COMM_MEM_TYPE_DEVICE, param.{owner}, {size}}};
    CHK_RET(HcclCommMemReg(comm, "{owner}", &{owner}, &memories[{number}]));
"""

_CONNECTING = """\
    for (uint32_t peer = 0; peer < kRanks; ++peer) {{
        if ({joined}(param.rank, peer)) {{
            HcclChannelDesc desc;
            CHK_RET(Describe(comm, param.rank, peer, {layer}, desc));
{memories}\
            CHK_RET(Connect(comm, desc, {notifies}, res.{peers}[peer]));
        }}
    }}
"""

_MEMORIES = """\
            desc.memHandles = memories;
            desc.memHandleNum = {count};
"""

_REMOTE = """\
    uint32_t num = 0;
    CommMem* memories = nullptr;
    char** tags = nullptr;
    CHK_RET(HcclChannelGetRemoteMems(comm, peer.channel, &num, &memories, &tags));
    for (uint32_t i = 0; i < num; ++i) {{
{each}\
    }}
"""

_REMOTE_ONE = """\
        if (std::string("{owner}") == tags[i]) {{
            peer.{owner} = static_cast<char*>(memories[i].addr);
        }}
"""


_BUFFER = """\
    if (size < kCclBytes) {
        return HCCL_E_MEMORY;
    }
"""

_CALL = """\
    if (rankSize != kRanks || param.count < kLeastCount || param.count > kMostCount) {
        return HCCL_E_NOT_SUPPORT;
    }
    param.unit = kUnit;
    param.bytes = param.count * kUnit;
"""


def write_host(
    op: OpParam,
    title: str,
    kernel: str,
    planes: Sequence[JoinedPlane],
    shown: Mapping[str, int],
    fitter: Fitter,
    *,
    has_workers: bool,
) -> str:
    """Return the host code; `shown` are the user's memories that peers reach, with their size as a
    multiple of the call's bytes.
    """
    registered = "".join(
        _REGISTERED.format(
            owner=owner,
            number=number,
            size="param.bytes" if slots == 1 else f"param.bytes * {slots}",
        )
        for number, (owner, slots) in enumerate(shown.items())
    )
    memories = f"    HcclMemHandle memories[{len(shown)}];\n" if shown else ""
    return filled(
        "op.cc",
        op=op.name,
        title=title,
        includes="#include <cstdio>\n#include <string>\n\n" if shown else "",
        predicates="".join(f"{plane.predicate(fitter)}\n" for plane in planes),
        connect=filled("connect", remote_memories=_remote(shown)) if planes else "",
        acquire_takes="const OpParam& param" if planes else "const OpParam&",
        tag=_tag(op.name, shown),
        buffer=_BUFFER,
        call=_CALL,
        workers=_WORKERS if has_workers else "",
        registered=memories + registered,
        connecting="".join(_connecting(plane, shown) for plane in planes),
        kernel=kernel,
        entries=write_entries(op.name).rstrip("\n"),
    )


def _tag(op: str, shown: Mapping[str, int]) -> str:
    name = f"hccl_py.{op}"
    return _TAG.format(name=name) if shown else f'const char* tag = "{name}";'


def _connecting(plane: JoinedPlane, shown: Mapping[str, int]) -> str:
    return _CONNECTING.format(
        joined=plane.function,
        layer=plane.first_layer,
        memories=_MEMORIES.format(count=len(shown)) if shown else "",
        notifies=plane.constant,
        peers=plane.name,
    )


def _remote(shown: Mapping[str, int]) -> str:
    each = "".join(_REMOTE_ONE.format(owner=owner) for owner in shown)
    return _REMOTE.format(each=each) if shown else ""


def shown_to_peers(program: Program) -> dict[str, int]:
    """Return the user's memories that peers reach, each with its size as a multiple of the call's
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

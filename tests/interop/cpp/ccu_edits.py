"""Wrong edits of the projects that `hccl-py new --cpp --engine ccu` writes, each as (op, file, old
text, new text, the class that names it).
"""

from typing import NamedTuple

KERNEL, HOST, HEADER = "op_kernel_ccu/ccu_kernel.cc", "op_host/{op}.cc", "include/custom.h"


class Edit(NamedTuple):
    op: str
    file: str
    old: str
    new: str
    found: frozenset[str]

    @property
    def path(self) -> str:
        return self.file.format(op=self.op)


def edit(op: str, file: str, old: str, new: str, *found: str) -> Edit:
    return Edit(op, file, old, new, frozenset(found))


WAIT_ALL = "    ccu::EventWait(arrived, all);\n"
EXCHANGED = "ccu::NotifyWait(param.channels[peer], kNotify, kAddressBit | kTokenBit);"
DONE = "ccu::NotifyRecord(param.channels[peer], kNotify, kDoneBit);"
WAIT_DONE = "ccu::NotifyWait(param.channels[peer], kNotify, kDoneBit);"
READ = "ccu::Read(param.channels[peer], to, from, bytes, arrived, uint16_t(1U << peer));"
SUM = (
    "ccu::ReadReduce(param.channels[peer], to, from, bytes, param.dataType, param.reduceOp, "
    "arrived);"
)
ADDRESS = "ccu::WriteVariableWithNotify(channel, input, kAddressSlot, kNotify, kAddressBit);"
TOKEN = "ccu::WriteVariableWithNotify(channel, token, kTokenSlot, kNotify, kTokenBit);"
G, S = "all_gather", "reduce_scatter"

EDITS = {
    "no wait for moves": edit(G, KERNEL, WAIT_ALL, "", "UNMATCHED_POST"),
    "half the mask": edit(G, KERNEL, "arrived, all)", "arrived, all & 3)", "UNMATCHED_POST"),
    "one bit for all moves": edit(
        G, KERNEL, READ, READ.replace("1U << peer", "1U"), "NOTIFY_OVERRUN"
    ),
    "a bit that is never set": edit(
        G, KERNEL, "arrived, all)", "arrived, all | 256)", "WAIT_WITHOUT_POST"
    ),
    "no wait for a sum": edit(
        S, KERNEL, f"{SUM}\n        ccu::EventWait(arrived);", SUM, "NOTIFY_OVERRUN"
    ),
    "no wait for the copy": edit(
        S,
        KERNEL,
        "bytes, arrived);\n    ccu::EventWait(arrived);",
        "bytes, arrived, 2);",
        "RACE_WW",
    ),
    "no exchange": edit(G, KERNEL, EXCHANGED, "", "UNDEFINED_VALUE"),
    "only the address is waited for": edit(
        G,
        KERNEL,
        EXCHANGED,
        EXCHANGED.replace("kAddressBit | kTokenBit", "kAddressBit"),
        "UNDEFINED_VALUE",
    ),
    "no address is sent": edit(G, KERNEL, ADDRESS, "", "WAIT_WITHOUT_POST", "DEADLOCK_CYCLE"),
    "no token is sent": edit(G, KERNEL, TOKEN, "", "WAIT_WITHOUT_POST", "DEADLOCK_CYCLE"),
    "one slot for both": edit(
        G, KERNEL, "token, kTokenSlot", "token, kAddressSlot", "UNDEFINED_VALUE"
    ),
    "one bit for two signals": edit(
        G, HEADER, "kDoneBit = 1U << 3", "kDoneBit = 1U << 2", "NOTIFY_OVERRUN"
    ),
    "one bit for both variables": edit(
        G, HEADER, "kTokenBit = 1U << 2", "kTokenBit = 1U << 1", "NOTIFY_OVERRUN"
    ),
    "a notify that is missing": edit(G, KERNEL, DONE, "", "WAIT_WITHOUT_POST"),
    "a notify that is doubled": edit(G, KERNEL, DONE, DONE * 2, "NOTIFY_OVERRUN"),
    "a notify without a wait": edit(G, KERNEL, WAIT_DONE, "", "UNMATCHED_POST"),
    "no barrier at the end": edit(
        G, KERNEL, "    Finish(param);", "    if (param.ranks == 0) {Finish(param);}", "RACE_RW"
    ),
    "done before the moves": edit(
        G,
        KERNEL,
        "    Exchange(param, input, inputToken, peers);",
        "    Exchange(param, input, inputToken, peers);\n    Finish(param);",
        "NOTIFY_OVERRUN",
        "RACE_RW",
    ),
    "a token of its own": edit(G, KERNEL, "peers.token[peer];", "inputToken;", "WRONG_TOKEN"),
    "an address of its own": edit(
        G, KERNEL, "from.addr = peers.address[peer]", "from.addr = input", "WRONG_ADDRESS"
    ),
    "the wrong destination": edit(G, KERNEL, "destinations[peer]", "destinations[0]", "RACE_WW"),
    "the wrong part": edit(
        S, HOST, "uint64_t(param.rank) * param.bytes + begin", "begin", "WRONG_OFFSET"
    ),
    "length in elements": edit(
        G, HOST, "arguments[kBytes] = bytes", "arguments[kBytes] = param.count", "OUTPUT_MISSING"
    ),
    "length in elements, in place": edit(
        "broadcast",
        HOST,
        "arguments[kBytes] = bytes",
        "arguments[kBytes] = param.count",
        "OUTPUT_MISSING",
    ),
    "offset + 4": edit(
        G, HOST, "arguments[kOffset] = offset", "arguments[kOffset] = offset + 4", "OUT_OF_BOUNDS"
    ),
    "length 0": edit(
        G, HOST, "arguments[kBytes] = bytes", "arguments[kBytes] = 0", "INVALID_ARGUMENT"
    ),
    "one argument less": edit(
        G, HOST, "uint32_t(arguments.size())", "uint32_t(arguments.size() - 1)", "INVALID_ARGUMENT"
    ),
    "an argument that is not loaded": edit(
        G, KERNEL, "    ccu::LoadArg(offset, kOffset);\n", "", "INVALID_ARGUMENT"
    ),
    "too many registers": edit(
        G,
        KERNEL,
        "    Peers peers;",
        "    ccu::Array<ccu::Variable> many(500);\n    Peers peers;",
        "RESOURCE_EXCEEDED",
    ),
    "more than a move takes": edit(
        G,
        HOST,
        "left < kMostMoved ? left : kMostMoved",
        "(uint64_t(1) << 28) + left",
        "TRANSFER_TOO_LARGE",
    ),
    "a channel of the other die": edit(
        G,
        HOST,
        "const uint32_t layer = near == param.ranks ? 0 : 1;",
        "const uint32_t layer = 0;",
        "INVALID_ARGUMENT",
    ),
    "another reduction": edit(
        S, KERNEL, "param.reduceOp, arrived", "HCCL_REDUCE_MAX, arrived", "WRONG_REDUCE_OP"
    ),
    "an operation before CCU_ELSE": edit(
        G,
        KERNEL,
        "    Finish(param);",
        "    CCU_IF(bytes == 0) {}\n    bytes = bytes;\n    CCU_ELSE { Finish(param); }",
        "INVALID_ARGUMENT",
    ),
    "a branch that is never taken": edit(
        G, KERNEL, "    Finish(param);", "    CCU_IF(bytes == 0) { Finish(param); }", "RACE_RW"
    ),
    "a loop without end": edit(
        G,
        KERNEL,
        "    Finish(param);",
        "    CCU_WHILE(bytes != 0) { offset += 1; }",
        "CODE_ENDLESS",
    ),
}

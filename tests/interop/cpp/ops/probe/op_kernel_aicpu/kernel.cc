// The primitives, one at a time, on thread t and over channel c to the other rank of the server.
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <string>

#include "hccl/hcomm_diag.h"
#include "hcomm/hcomm_primitives_expt.h"
#include "kernel_kit.h"

namespace {

struct Place {
    ThreadHandle t;
    ThreadHandle other;
    ChannelHandle c;
    char* in;
    char* out;
    char* mine;
    char* theirs;
};

constexpr HcommDataType kFp32 = HCOMM_DATA_TYPE_FP32;

const std::map<std::string, std::function<int(const Place&)>> kCases = {
    {"HcommLocalCopyOnThread", [](const Place& p) -> int { return HcommLocalCopyOnThread(p.t, p.out, p.in, 64); }},
    {"HcommLocalReduceOnThread",
     [](const Place& p) -> int { return HcommLocalReduceOnThread(p.t, p.out, p.in, 16, kFp32, HCOMM_REDUCE_MAX); }},
    {"HcommThreadNotifyRecordOnThread",
     [](const Place& p) -> int { return HcommThreadNotifyRecordOnThread(p.t, p.other, 0); }},
    {"HcommThreadNotifyWaitOnThread", [](const Place& p) -> int { return HcommThreadNotifyWaitOnThread(p.t, 1, 9); }},
    {"HcommThreadNotifyWaitOnThreadWithDefaultTimeout",
     [](const Place& p) -> int { return HcommThreadNotifyWaitOnThreadWithDefaultTimeout(p.t, 1); }},
    {"HcommWriteOnThread", [](const Place& p) -> int { return HcommWriteOnThread(p.t, p.c, p.theirs, p.in, 64); }},
    {"600 MiB", [](const Place& p) -> int { return HcommReadOnThread(p.t, p.c, p.out, p.theirs, 600ULL << 20); }},
    {"HcommWriteNbiOnThread", [](const Place& p) -> int { return HcommWriteNbiOnThread(p.t, p.c, p.theirs, p.in, 64); }},
    {"HcommReadOnThread", [](const Place& p) -> int { return HcommReadOnThread(p.t, p.c, p.out, p.theirs, 64); }},
    {"HcommReadNbiOnThread", [](const Place& p) -> int { return HcommReadNbiOnThread(p.t, p.c, p.out, p.theirs, 64); }},
    {"HcommWriteReduceOnThread",
     [](const Place& p) -> int { return HcommWriteReduceOnThread(p.t, p.c, p.theirs, p.in, 16, kFp32, HCOMM_REDUCE_SUM); }},
    {"HcommReadReduceOnThread",
     [](const Place& p) -> int { return HcommReadReduceOnThread(p.t, p.c, p.out, p.theirs, 16, kFp32, HCOMM_REDUCE_MIN); }},
    {"HcommWriteWithNotifyOnThread",
     [](const Place& p) -> int { return HcommWriteWithNotifyOnThread(p.t, p.c, p.theirs, p.in, 64, 3); }},
    {"HcommWriteWithNotifyNbiOnThread",
     [](const Place& p) -> int { return HcommWriteWithNotifyNbiOnThread(p.t, p.c, p.theirs, p.in, 64, 3); }},
    {"HcommWriteReduceWithNotifyOnThread",
     [](const Place& p) -> int {
         return HcommWriteReduceWithNotifyOnThread(p.t, p.c, p.theirs, p.in, 16, kFp32, HCOMM_REDUCE_SUM, 3);
     }},
    {"HcommBatchTransferOnThread",
     [](const Place& p) -> int {
         HcommBatchTransferDesc all[7] = {};
         all[0].transType = HCOMM_TRANSFER_TYPE_WRITE;
         all[0].transferInfo.write = {64, p.theirs, p.in};
         all[1].transType = HCOMM_TRANSFER_TYPE_READ;
         all[1].transferInfo.read = {64, p.out, p.theirs};
         all[2].transType = HCOMM_TRANSFER_TYPE_WRITE_REDUCE;
         all[2].transferInfo.reduce = {16, p.theirs, p.in, HCOMM_REDUCE_SUM, kFp32};
         all[3].transType = HCOMM_TRANSFER_TYPE_READ_REDUCE;
         all[3].transferInfo.reduce = {16, p.out, p.theirs, HCOMM_REDUCE_SUM, kFp32};
         all[4].transType = HCOMM_TRANSFER_TYPE_NOTIFY_RECORD;
         all[4].transferInfo.notifyRecord = {2};
         all[5].transType = HCOMM_TRANSFER_TYPE_WRITE_WITH_NOTIFY;
         all[5].transferInfo.writeWithNotify = {64, p.theirs, p.in, 1};
         all[6].transType = HCOMM_TRANSFER_TYPE_WRITE_REDUCE_WITH_NOTIFY;
         all[6].transferInfo.writeReduceWithNotify = {16, p.theirs, p.in, HCOMM_REDUCE_SUM, kFp32, 3};
         return HcommBatchTransferOnThread(p.t, p.c, all, 7);
     }},
    {"HcommChannelNotifyRecordOnThread", [](const Place& p) -> int { return HcommChannelNotifyRecordOnThread(p.t, p.c, 2); }},
    {"HcommChannelNotifyWaitOnThread", [](const Place& p) -> int { return HcommChannelNotifyWaitOnThread(p.t, p.c, 2, 9); }},
    {"HcommChannelNotifyWaitOnThreadWithDefaultTimeout",
     [](const Place& p) -> int { return HcommChannelNotifyWaitOnThreadWithDefaultTimeout(p.t, p.c, 2); }},
    {"HcommChannelGetNotifyNum",
     [](const Place& p) -> int {
         uint32_t count = 0;
         return HcommChannelGetNotifyNum(p.c, &count) || count != 4;
     }},
    {"fences",
     [](const Place& p) -> int {
         return HcommFenceOnThread(p.t) || HcommChannelFenceOnThread(p.t, p.c) || HcommChannelDrainOnThread(p.t, p.c);
     }},
    {"brackets",
     [](const Place&) -> int {
         return HcommBatchModeStart("tag") || HcommBatchModeEnd("tag") || HcommAcquireComm("hccl_py") ||
                HcommReleaseComm("hccl_py");
     }},
    {"time-outs, new and old",
     [](const Place&) -> int {
         int32_t (*old)(uint32_t) = HcommSetNotifyWaitTimeOut;
         return HcommSetNotifyWaitTimeOut(1.5F) || HcommSetNotifyWaitTimeOut(1800U) || old(7) ||
                HcommThreadResAcquireTimeOut(1.5F) || HcommThreadResAcquireTimeOut(1800);
     }},
    {"HcommAicpuTsTaskCache",
     [](const Place&) -> int {
         bool isHit = true;
         return HcommAicpuTsTaskCacheLookup("tag", &isHit) || isHit ||
                HcommAicpuTsTaskCacheStart("tag", nullptr, nullptr, 0) || HcommAicpuTsTaskCacheEnd("tag") ||
                HcommAicpuTsTaskCacheClear("tag");
     }},
    {"nothing moved", [](const Place& p) -> int { return HcommLocalCopyOnThread(p.t, nullptr, nullptr, 0); }},
    {"HcommAicpuTsTaskCacheExecute",
     [](const Place&) -> int {
         return HcommAicpuTsTaskCacheExecute("tag", nullptr, nullptr, 0);  // HcommAicpuTsTaskCacheExecute
     }},
    {"HcommThreadJoin",
     [](const Place& p) -> int {
         return HcommThreadJoin(p.t, 9) || HcommRegOpInfo("group", nullptr, 0) ||
                HcommProfilingReportKernelStartTask(p.t, "group") || HcommProfilingReportKernelEndTask(p.t, "group") ||
                HcommProfilingReportDeviceOp("group");
     }},
    {"join of no thread",
     [](const Place&) -> int {
         return HcommThreadJoin(77, 9);  // join of no thread
     }},
    {"HcommAclrtNotifyRecordOnThread",
     [](const Place& p) -> int {
         return HcommAclrtNotifyRecordOnThread(p.t, 1);  // HcommAclrtNotifyRecordOnThread
     }},
    {"HcommAclrtNotifyWaitOnThread",
     [](const Place& p) -> int {
         return HcommAclrtNotifyWaitOnThread(p.t, 1, 9);  // HcommAclrtNotifyWaitOnThread
     }},
    {"HcommWriteNbi",
     [](const Place& p) -> int {
         return HcommWriteNbi(p.c, p.theirs, p.in, 64);  // HcommWriteNbi
     }},
    {"HcommWriteWithNotifyNbi",
     [](const Place& p) -> int {
         return HcommWriteWithNotifyNbi(p.c, p.theirs, p.in, 64, 0);  // HcommWriteWithNotifyNbi
     }},
    {"HcommReadNbi",
     [](const Place& p) -> int {
         return HcommReadNbi(p.c, p.out, p.theirs, 64);  // HcommReadNbi
     }},
    {"HcommChannelNotifyRecord",
     [](const Place& p) -> int {
         return HcommChannelNotifyRecord(p.c, 0);  // HcommChannelNotifyRecord
     }},
    {"HcommChannelNotifyWait",
     [](const Place& p) -> int {
         return HcommChannelNotifyWait(p.c, 0, 9);  // HcommChannelNotifyWait
     }},
    {"HcommChannelFence",
     [](const Place& p) -> int {
         return HcommChannelFence(p.c);  // HcommChannelFence
     }},
    {"unknown thread",
     [](const Place& p) -> int {
         return HcommLocalCopyOnThread(12, p.out, p.in, 64);  // unknown thread
     }},
    {"unknown channel",
     [](const Place& p) -> int {
         return HcommReadOnThread(p.t, 12, p.out, p.theirs, 64);  // unknown channel
     }},
    {"host address",
     [](const Place& p) -> int {
         return HcommLocalCopyOnThread(p.t, const_cast<Place*>(&p), p.in, 64);  // host address
     }},
    {"local address of a peer",
     [](const Place& p) -> int {
         return HcommLocalCopyOnThread(p.t, p.out, p.theirs, 64);  // local address of a peer
     }},
    {"own address over a channel",
     [](const Place& p) -> int {
         return HcommReadOnThread(p.t, p.c, p.out, p.mine, 64);  // own address over a channel
     }},
    {"no such reduction",
     [](const Place& p) -> int {
         return HcommLocalReduceOnThread(p.t, p.out, p.in, 16, kFp32, HcommReduceOp(9));  // no such reduction
     }},
    {"no such data type",
     [](const Place& p) -> int {
         return HcommLocalReduceOnThread(p.t, p.out, p.in, 16, HCOMM_DATA_TYPE_INT128, HCOMM_REDUCE_SUM);  // no such data type
     }},
    {"no such transfer",
     [](const Place& p) -> int {
         HcommBatchTransferDesc one = {};
         one.transType = HCOMM_TRANSFER_TYPE_INVALID;
         return HcommBatchTransferOnThread(p.t, p.c, &one, 1);  // no such transfer
     }},
    {"notify of a channel beyond",
     [](const Place& p) -> int {
         return HcommChannelNotifyRecordOnThread(p.t, p.c, 4);  // notify of a channel beyond
     }},
    {"notify of a thread beyond",
     [](const Place& p) -> int {
         return HcommThreadNotifyWaitOnThread(p.t, 2, 9);  // notify of a thread beyond
     }},
    {"notify of another thread beyond",
     [](const Place& p) -> int {
         return HcommThreadNotifyRecordOnThread(p.t, p.other, 1);  // notify of another thread beyond
     }},
    {"output written by the kernel",
     [](const Place& p) -> int {
         *p.out = 1;  // output written by the kernel
         return 0;
     }},
    {"fork",
     [](const Place& p) -> int {
         fork();
         return HcommLocalCopyOnThread(p.t, p.out, p.in, 64);
     }},
    {"call of no function",
     [](const Place&) -> int {
         int (*volatile nothing)() = nullptr;
         return nothing() + 1;  // call of no function
     }},
    {"illegal instruction",
     [](const Place&) -> int {
         __builtin_trap();  // illegal instruction
     }},
    {"endless tasks",
     [](const Place& p) -> int {
         for (;;) {
             HcommLocalCopyOnThread(p.t, p.out, p.in, 64);  // endless tasks
         }
         return 0;
     }},
    {"kernel returns 3", [](const Place&) -> int { return 3; }},
};

}  // namespace

extern "C" unsigned Probe(OpArgs* args)
{  // kernel returns 3
    uint32_t peer = args->rank ^ 1;
    Place place{args->threads[0], args->threads[1], args->channels[peer], args->in,
                args->out,        args->ccl,        args->peerCcl[peer]};
    const char* name = getenv("CASE");
    auto found = kCases.find(name ? name : "");
    return found == kCases.end() ? 97 : unsigned(found->second(place));
}

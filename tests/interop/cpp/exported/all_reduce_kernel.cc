// The kernel of all_reduce: the tasks of every rank.
// Written by `hccl-py export`: AllReduceMeshSmallCountExecutor, all_reduce on 4 ranks.
#include "custom.h"

namespace {

// Wakes the first `workers` workers, which wait for the main thread.
HcclResult Fork(const Resources& res, uint32_t workers)
{
    for (uint32_t i = 0; i < workers; ++i) {
        CHK_RET(HcommThreadNotifyRecordOnThread(res.threads[0], res.threads[i + 1], 0));
    }
    for (uint32_t i = 0; i < workers; ++i) {
        CHK_RET(HcommThreadNotifyWaitOnThread(res.threads[i + 1], 0, kTimeout));
    }
    return HCCL_SUCCESS;
}

// Makes the main thread wait for the first `workers` workers.
HcclResult Join(const Resources& res, uint32_t workers)
{
    for (uint32_t i = 0; i < workers; ++i) {
        CHK_RET(HcommThreadNotifyRecordOnThread(res.threads[i + 1], res.threads[0], i));
    }
    for (uint32_t i = 0; i < workers; ++i) {
        CHK_RET(HcommThreadNotifyWaitOnThread(res.threads[0], i, kTimeout));
    }
    return HCCL_SUCCESS;
}

// 3 ranks send to rank 0; the receiver adds it to its own.
HcclResult Reduce(const OpParam& param, const Resources& res)
{
    const uint32_t rank = param.rank;
    const ThreadHandle main = res.threads[0];
    if (rank == 0) {
        CHK_RET(HcommLocalCopyOnThread(main, res.ccl + kCclOut, param.input, param.bytes));
        CHK_RET(Fork(res, kThreads - 1));
        for (uint32_t lane = 0; lane < kRanks - 1; ++lane) {
            const ThreadHandle worker = res.threads[(lane + 1) % (kRanks - 1)];
            const Peer& peer = res.peers[lane + 1];
            CHK_RET(HcommChannelNotifyRecordOnThread(worker, peer.channel, kAck));
            CHK_RET(HcommChannelNotifyWaitOnThread(worker, peer.channel, kDataSignal, kTimeout));
        }
        CHK_RET(Join(res, kThreads - 1));
    } else {
        const Peer& peer = res.peers[0];
        CHK_RET(HcommChannelNotifyWaitOnThread(main, peer.channel, kAck, kTimeout));
        CHK_RET(HcommWriteReduceOnThread(main, peer.channel, peer.ccl + kCclOut, param.input, param.count,
                                         param.dataType, param.reduceOp));
        CHK_RET(HcommChannelNotifyRecordOnThread(main, peer.channel, kDataSignal));
    }
    return HCCL_SUCCESS;
}

// Rank 0 sends to 3 others; the receiver reads it.
HcclResult Broadcast(const OpParam& param, const Resources& res)
{
    const uint32_t rank = param.rank;
    const ThreadHandle main = res.threads[0];
    if (rank == 0) {
        CHK_RET(HcommLocalCopyOnThread(main, param.output, res.ccl + kCclOut, param.bytes));
        CHK_RET(Fork(res, kThreads - 1));
        for (uint32_t lane = 0; lane < kRanks - 1; ++lane) {
            const ThreadHandle worker = res.threads[(lane + 1) % (kRanks - 1)];
            const Peer& peer = res.peers[lane + 1];
            CHK_RET(HcommChannelNotifyRecordOnThread(worker, peer.channel, kAck));
            CHK_RET(HcommChannelNotifyWaitOnThread(worker, peer.channel, kDataSignal, kTimeout));
        }
        CHK_RET(Join(res, kThreads - 1));
    } else {
        const Peer& peer = res.peers[0];
        CHK_RET(HcommChannelNotifyWaitOnThread(main, peer.channel, kAck, kTimeout));
        CHK_RET(HcommReadOnThread(main, peer.channel, param.output, peer.ccl + kCclOut, param.bytes));
        CHK_RET(HcommChannelNotifyRecordOnThread(main, peer.channel, kDataSignal));
    }
    return HCCL_SUCCESS;
}

HcclResult Round(const OpParam& param, const Resources& res)
{
    CHK_RET(Reduce(param, res));
    CHK_RET(Broadcast(param, res));
    return HCCL_SUCCESS;
}

// Data that does not fit the HCCL buffer goes through it in rounds.
HcclResult ExecOp(const OpParam& param, const Resources& res)
{
    for (uint64_t done = 0; done < param.count; done += kRoundCount) {
        OpParam round = param;
        round.count = param.count - done < kRoundCount ? param.count - done : kRoundCount;
        round.bytes = round.count * kUnit;
        round.input += done * kUnit;
        round.output += done * kUnit;
        CHK_RET(Round(round, res));
    }
    return HCCL_SUCCESS;
}

}  // namespace

extern "C" unsigned AllReduceKernel(OpParam* param)
{
    const Resources& res = *param->resources;
    CHK_RET(HcommThreadNotifyWaitOnThread(res.threads[0], kHostNotify, kTimeout));
    CHK_RET(ExecOp(*param, res));
    CHK_RET(HcommThreadNotifyRecordOnThread(res.threads[0], param->caller, 0));
    return HCCL_SUCCESS;
}

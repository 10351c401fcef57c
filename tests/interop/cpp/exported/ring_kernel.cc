// The kernel of all_reduce: the tasks of every rank.
// Written by `hccl-py export`: AllReduceRing, all_reduce on 8 ranks.
#include "custom.h"

namespace {

// A range of bytes.
struct Slice {
    uint64_t offset;
    uint64_t size;
};

// Part `index` of a range that is cut into `parts`, and the `count - 1` parts behind it. Parts are rounded up to
// 128 bytes, so that the last ones may be shorter, or empty.
Slice Part(const Slice& whole, uint32_t parts, uint32_t index, uint32_t count = 1)
{
    const uint64_t align = 128;
    const uint64_t each = ((whole.size + parts - 1) / parts + align - 1) / align * align;
    const uint64_t begin = index * each < whole.size ? index * each : whole.size;
    const uint64_t end = (index + count) * each < whole.size ? (index + count) * each : whole.size;
    return Slice{whole.offset + begin, end - begin};
}

// Every rank sends to the next; the receiver reads it and adds it to its own.
HcclResult ReduceScatter(const OpParam& param, const Resources& res)
{
    const uint32_t rank = param.rank;
    const Slice data{0, param.bytes};
    const ThreadHandle main = res.threads[0];
    const Peer& left = res.peers[(rank + kRanks - 1) % kRanks];
    const Peer& right = res.peers[(rank + 1) % kRanks];
    for (uint32_t step = 0; step < kRanks - 1; ++step) {
        CHK_RET(HcommChannelNotifyRecordOnThread(main, left.channel, kAck));
        CHK_RET(HcommChannelNotifyWaitOnThread(main, right.channel, kAck, kTimeout));
        CHK_RET(HcommChannelNotifyRecordOnThread(main, right.channel, kDataSignal));
        CHK_RET(HcommChannelNotifyWaitOnThread(main, left.channel, kDataSignal, kTimeout));
        const Slice chunk = Part(data, kRanks, (rank + kRanks - 2 - step) % kRanks);
        CHK_RET(HcommReadReduceOnThread(main, left.channel, res.ccl + chunk.offset, left.ccl + chunk.offset,
                                        chunk.size / param.unit, param.dataType, param.reduceOp));
    }
    return HCCL_SUCCESS;
}

// Every rank sends to the next; the receiver reads it.
HcclResult AllGather(const OpParam& param, const Resources& res)
{
    const uint32_t rank = param.rank;
    const Slice data{0, param.bytes};
    const ThreadHandle main = res.threads[0];
    const Peer& left = res.peers[(rank + kRanks - 1) % kRanks];
    const Peer& right = res.peers[(rank + 1) % kRanks];
    for (uint32_t step = 0; step < kRanks - 1; ++step) {
        CHK_RET(HcommChannelNotifyRecordOnThread(main, left.channel, kAck));
        CHK_RET(HcommChannelNotifyWaitOnThread(main, right.channel, kAck, kTimeout));
        CHK_RET(HcommChannelNotifyRecordOnThread(main, right.channel, kDataSignal));
        CHK_RET(HcommChannelNotifyWaitOnThread(main, left.channel, kDataSignal, kTimeout));
        const Slice chunk = Part(data, kRanks, (rank + kRanks - 1 - step) % kRanks);
        CHK_RET(HcommReadOnThread(main, left.channel, res.ccl + chunk.offset, left.ccl + chunk.offset, chunk.size));
    }
    return HCCL_SUCCESS;
}

// Ranks wait for one another; nothing is sent.
HcclResult Barrier(const OpParam& param, const Resources& res)
{
    const uint32_t rank = param.rank;
    const ThreadHandle main = res.threads[0];
    const Peer& left = res.peers[(rank + kRanks - 1) % kRanks];
    CHK_RET(HcommChannelNotifyRecordOnThread(main, left.channel, kAck));
    const Peer& right = res.peers[(rank + 1) % kRanks];
    CHK_RET(HcommChannelNotifyWaitOnThread(main, right.channel, kAck, kTimeout));
    CHK_RET(HcommChannelNotifyRecordOnThread(main, right.channel, kDataSignal));
    CHK_RET(HcommChannelNotifyWaitOnThread(main, left.channel, kDataSignal, kTimeout));
    return HCCL_SUCCESS;
}

HcclResult Round(const OpParam& param, const Resources& res)
{
    const ThreadHandle main = res.threads[0];
    CHK_RET(HcommLocalCopyOnThread(main, res.ccl, param.input, param.bytes));
    CHK_RET(ReduceScatter(param, res));
    CHK_RET(AllGather(param, res));
    CHK_RET(Barrier(param, res));
    CHK_RET(HcommLocalCopyOnThread(main, param.output, res.ccl, param.bytes));
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

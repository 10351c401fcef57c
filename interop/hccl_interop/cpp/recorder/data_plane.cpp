// The primitives that kernels put on threads: each becomes a task, or a finding with the reason.

#include "hcomm_primitives.h"
#include "state.hpp"

namespace recorder {

namespace {

constexpr uint32_t kWidths[] = {1, 2, 4, 2, 4, 8, 8, 1, 2, 4, 8, 2, 16, 0, 1, 1, 1, 1};

// Bytes of an element; 0 for a type that cannot be reduced.
uint32_t width_of(int dtype)
{
    return dtype >= 0 && dtype < 12 ? kWidths[dtype] : 0;
}

struct Reduction {
    int dtype = -1;
    int op = -1;
};

int check_reduction(const char* call, Reduction how, uint64_t count)
{
    if (how.op < HCOMM_REDUCE_SUM || how.op > HCOMM_REDUCE_MIN) {
        return refuse("INVALID_ARGUMENT", "%s: there is no reduction %d", call, how.op);
    }
    if (width_of(how.dtype) == 0) {
        return refuse("INVALID_ARGUMENT", "%s: data type %d cannot be reduced", call, how.dtype);
    }
    if (count > (uint64_t(1) << 48)) {
        return refuse("INVALID_ARGUMENT", "%s: a count of %lu elements", call, count);
    }
    return 0;
}

// Writes a transfer as the work requests into which HCCL splits it: `most_moved` bytes over a channel.
void write_parts(Task task, uint64_t size)
{
    uint64_t most = task.target >= 0 && state.options.most_moved > 0 ? state.options.most_moved : size;
    while (size > 0) {
        task.size = size < most ? size : most;
        write_task(task);
        task.src_offset += task.size;
        task.dst_offset += task.size;
        size -= task.size;
    }
}

// The ranks that must own source and destination.
struct Sides {
    uint32_t src_rank;
    uint32_t dst_rank;
};

int move(const char* call, Task task, Sides sides, void* dst, const void* src, uint64_t size, Reduction how)
{
    Place from = place_of(src), to = place_of(dst);
    if (from.part == kNoPart || from.rank != sides.src_rank) {
        return refuse("WRONG_ADDRESS", "%s: the source must lie in rank %u's device memory, and is %s", call,
                      sides.src_rank, words_of(src).c_str());
    }
    if (to.part == kNoPart || to.rank != sides.dst_rank) {
        return refuse("WRONG_ADDRESS", "%s: the destination must lie in rank %u's device memory, and is %s", call,
                      sides.dst_rank, words_of(dst).c_str());
    }
    if (size > (uint64_t(1) << 52)) {
        return refuse("INVALID_ARGUMENT", "%s: a length of %lu bytes", call, size);
    }
    task.src_part = int8_t(from.part);
    task.dst_part = int8_t(to.part);
    task.src_offset = from.offset;
    task.dst_offset = to.offset;
    task.dtype = int8_t(how.dtype);
    task.reduce = int8_t(how.op);
    write_parts(task, size);
    return 0;
}

int move_locally(const char* call, ThreadHandle thread, Kind kind, void* dst, const void* src, uint64_t size,
                 Reduction how = Reduction())
{
    if (thread_of(thread) == nullptr) {
        return no_thread(call, thread);
    }
    if (size == 0) {
        return 0;
    }
    return move(call, task_on(thread, kind), Sides{state.rank, state.rank}, dst, src, size, how);
}

int move_over(const char* call, ThreadHandle thread, ChannelHandle channel, Kind kind, void* dst, const void* src,
              uint64_t size, Reduction how = Reduction())
{
    if (thread_of(thread) == nullptr) {
        return no_thread(call, thread);
    }
    const Channel* found = channel_of(channel);
    if (found == nullptr) {
        return no_channel(call, channel);
    }
    if (size == 0) {
        return 0;
    }
    bool reads = kind == kRead || kind == kReadReduce;
    Sides sides = reads ? Sides{found->peer, state.rank} : Sides{state.rank, found->peer};
    Task task = task_on(thread, kind);
    task.target = int32_t(channel - kChannelHandle);
    return move(call, task, sides, dst, src, size, how);
}

int reduce_over(const char* call, ThreadHandle thread, ChannelHandle channel, Kind kind, void* dst, const void* src,
                uint64_t count, Reduction how)
{
    int wrong = check_reduction(call, how, count);
    return wrong ? wrong : move_over(call, thread, channel, kind, dst, src, count * width_of(how.dtype), how);
}

int notify_over(const char* call, ThreadHandle thread, ChannelHandle channel, Kind kind, uint32_t index)
{
    if (thread_of(thread) == nullptr) {
        return no_thread(call, thread);
    }
    const Channel* found = channel_of(channel);
    if (found == nullptr) {
        return no_channel(call, channel);
    }
    if (index >= found->notifies) {
        return refuse("NOTIFY_INDEX_OUT_OF_RANGE", "%s: notify %u of a channel to rank %u that was acquired with %u",
                      call, index, found->peer, found->notifies);
    }
    Task task = task_on(thread, kind);
    task.target = int32_t(channel - kChannelHandle);
    task.index = int32_t(index);
    write_task(task);
    return 0;
}

int notify_locally(const char* call, ThreadHandle thread, ThreadHandle owner, Kind kind, uint32_t index)
{
    for (ThreadHandle one : {thread, owner}) {
        if (thread_of(one) == nullptr) {
            return no_thread(call, one);
        }
    }
    if (index >= thread_of(owner)->notifies) {
        return refuse("NOTIFY_INDEX_OUT_OF_RANGE", "%s: notify %u of thread %lu that was acquired with %u", call, index,
                      owner - kThreadHandle, thread_of(owner)->notifies);
    }
    Task task = task_on(thread, kind);
    task.target = kind == kLocalPost ? int32_t(owner - kThreadHandle) : -1;
    task.index = int32_t(index);
    write_task(task);
    return 0;
}

int transfer(ThreadHandle thread, ChannelHandle channel, const HcommBatchTransferDesc& one)
{
    const char* call = "HcommBatchTransferOnThread";
    const auto& info = one.transferInfo;
    switch (one.transType) {
        case HCOMM_TRANSFER_TYPE_WRITE:
            return move_over(call, thread, channel, kWrite, info.write.dst, info.write.src, info.write.len);
        case HCOMM_TRANSFER_TYPE_READ:
            return move_over(call, thread, channel, kRead, info.read.dst, info.read.src, info.read.len);
        case HCOMM_TRANSFER_TYPE_WRITE_REDUCE:
            return reduce_over(call, thread, channel, kWriteReduce, info.reduce.dst, info.reduce.src, info.reduce.count,
                               Reduction{info.reduce.dataType, info.reduce.reduceOp});
        case HCOMM_TRANSFER_TYPE_READ_REDUCE:
            return reduce_over(call, thread, channel, kReadReduce, info.reduce.dst, info.reduce.src, info.reduce.count,
                               Reduction{info.reduce.dataType, info.reduce.reduceOp});
        case HCOMM_TRANSFER_TYPE_NOTIFY_RECORD:
            return notify_over(call, thread, channel, kPost, info.notifyRecord.notifyIdx);
        case HCOMM_TRANSFER_TYPE_WRITE_WITH_NOTIFY: {
            const auto& with = info.writeWithNotify;
            int wrong = move_over(call, thread, channel, kWrite, with.dst, with.src, with.len);
            return wrong ? wrong : notify_over(call, thread, channel, kPost, with.notifyIdx);
        }
        case HCOMM_TRANSFER_TYPE_WRITE_REDUCE_WITH_NOTIFY: {
            const auto& with = info.writeReduceWithNotify;
            int wrong = reduce_over(call, thread, channel, kWriteReduce, with.dst, with.src, with.count,
                                    Reduction{with.dataType, with.reduceOp});
            return wrong ? wrong : notify_over(call, thread, channel, kPost, with.notifyIdx);
        }
        default:
            return refuse("INVALID_ARGUMENT", "%s: there is no transfer of type %d", call, one.transType);
    }
}

}  // namespace

}  // namespace recorder

using namespace recorder;

extern "C" {

int32_t HcommLocalCopyOnThread(ThreadHandle thread, void* dst, const void* src, uint64_t len)
{
    return move_locally(__func__, thread, kCopy, dst, src, len);
}

int32_t HcommLocalReduceOnThread(ThreadHandle thread, void* dst, const void* src, uint64_t count,
                                 HcommDataType dataType, HcommReduceOp reduceOp)
{
    Reduction how{dataType, reduceOp};
    int wrong = check_reduction(__func__, how, count);
    return wrong ? wrong : move_locally(__func__, thread, kReduce, dst, src, count * width_of(dataType), how);
}

int32_t HcommThreadNotifyRecordOnThread(ThreadHandle thread, ThreadHandle dstThread, uint32_t dstNotifyIdx)
{
    return notify_locally(__func__, thread, dstThread, kLocalPost, dstNotifyIdx);
}

int32_t HcommThreadNotifyWaitOnThread(ThreadHandle thread, uint32_t notifyIdx, uint32_t)
{
    return notify_locally(__func__, thread, thread, kLocalWait, notifyIdx);
}

int32_t HcommThreadNotifyWaitOnThreadWithDefaultTimeout(ThreadHandle thread, uint32_t notifyIdx)
{
    return notify_locally(__func__, thread, thread, kLocalWait, notifyIdx);
}

int32_t HcommWriteOnThread(ThreadHandle thread, ChannelHandle channel, void* dst, const void* src, uint64_t len)
{
    return move_over(__func__, thread, channel, kWrite, dst, src, len);
}

int32_t HcommWriteNbiOnThread(ThreadHandle thread, ChannelHandle channel, void* dst, const void* src, uint64_t len)
{
    return move_over(__func__, thread, channel, kWrite, dst, src, len);
}

int32_t HcommReadOnThread(ThreadHandle thread, ChannelHandle channel, void* dst, const void* src, uint64_t len)
{
    return move_over(__func__, thread, channel, kRead, dst, src, len);
}

int32_t HcommReadNbiOnThread(ThreadHandle thread, ChannelHandle channel, void* dst, const void* src, uint64_t len)
{
    return move_over(__func__, thread, channel, kRead, dst, src, len);
}

int32_t HcommWriteReduceOnThread(ThreadHandle thread, ChannelHandle channel, void* dst, const void* src,
                                 uint64_t count, HcommDataType dataType, HcommReduceOp reduceOp)
{
    return reduce_over(__func__, thread, channel, kWriteReduce, dst, src, count, Reduction{dataType, reduceOp});
}

int32_t HcommReadReduceOnThread(ThreadHandle thread, ChannelHandle channel, void* dst, const void* src,
                                uint64_t count, HcommDataType dataType, HcommReduceOp reduceOp)
{
    return reduce_over(__func__, thread, channel, kReadReduce, dst, src, count, Reduction{dataType, reduceOp});
}

int32_t HcommWriteWithNotifyOnThread(ThreadHandle thread, ChannelHandle channel, void* dst, const void* src,
                                     uint64_t len, uint32_t remoteNotifyIdx)
{
    int wrong = move_over(__func__, thread, channel, kWrite, dst, src, len);
    return wrong ? wrong : notify_over(__func__, thread, channel, kPost, remoteNotifyIdx);
}

int32_t HcommWriteWithNotifyNbiOnThread(ThreadHandle thread, ChannelHandle channel, void* dst, const void* src,
                                        uint64_t len, uint32_t remoteNotifyIdx)
{
    int wrong = move_over(__func__, thread, channel, kWrite, dst, src, len);
    return wrong ? wrong : notify_over(__func__, thread, channel, kPost, remoteNotifyIdx);
}

int32_t HcommWriteReduceWithNotifyOnThread(ThreadHandle thread, ChannelHandle channel, void* dst, const void* src,
                                           uint64_t count, HcommDataType dataType, HcommReduceOp reduceOp,
                                           uint32_t remoteNotifyIdx)
{
    int wrong = reduce_over(__func__, thread, channel, kWriteReduce, dst, src, count, Reduction{dataType, reduceOp});
    return wrong ? wrong : notify_over(__func__, thread, channel, kPost, remoteNotifyIdx);
}

int32_t HcommBatchTransferOnThread(ThreadHandle thread, ChannelHandle channel,
                                   const HcommBatchTransferDesc* transferDescs, uint32_t transferDescNum)
{
    if (transferDescs == nullptr && transferDescNum > 0) {
        return refuse("INVALID_ARGUMENT", "%s: the list of transfers is null", __func__);
    }
    for (uint32_t i = 0; i < transferDescNum; ++i) {
        int wrong = transfer(thread, channel, transferDescs[i]);
        if (wrong) {
            return wrong;
        }
    }
    return 0;
}

int32_t HcommChannelNotifyRecordOnThread(ThreadHandle thread, ChannelHandle channel, uint32_t remoteNotifyIdx)
{
    return notify_over(__func__, thread, channel, kPost, remoteNotifyIdx);
}

int32_t HcommChannelNotifyWaitOnThread(ThreadHandle thread, ChannelHandle channel, uint32_t localNotifyIdx, uint32_t)
{
    return notify_over(__func__, thread, channel, kWait, localNotifyIdx);
}

int32_t HcommChannelNotifyWaitOnThreadWithDefaultTimeout(ThreadHandle thread, ChannelHandle channel,
                                                         uint32_t localNotifyIdx)
{
    return notify_over(__func__, thread, channel, kWait, localNotifyIdx);
}

HcommResult HcommChannelGetNotifyNum(ChannelHandle channel, uint32_t* notifyNum)
{
    if (channel_of(channel) == nullptr) {
        return no_channel(__func__, channel);
    }
    if (notifyNum == nullptr) {
        return refuse("INVALID_ARGUMENT", "%s: there is nowhere to put the number", __func__);
    }
    *notifyNum = channel_of(channel)->notifies;
    return 0;
}

}  // extern "C"

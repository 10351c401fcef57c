// Every rank stages its input; a thread per peer reads that peer's part for this rank into a slot of
// its own; then the main thread adds the slots in the order of the ranks. Each DEFECT breaks one thing.
#include "kernel_kit.h"

#ifndef DEFECT
#define DEFECT 0
#endif

namespace {

constexpr int kMissingWait = 1;
constexpr int kDoubleRecord = 2;
constexpr int kWrongPeer = 3;
constexpr int kEarlyReuse = 4;
constexpr int kNeverJoined = 5;

enum Notify { kReady = 0, kDone = 1 };

int Fetch(const OpArgs& args, uint32_t peer, uint32_t worker, uint64_t bytes)
{
    ThreadHandle thread = args.threads[worker];
    ChannelHandle channel = args.channels[peer];
    char* slot = args.ccl + (args.size + peer) * bytes;
    char* theirs = args.peerCcl[peer] + args.rank * bytes;
    CHECK(HcommChannelNotifyRecordOnThread(thread, channel, kReady));
    if (DEFECT == kDoubleRecord && args.rank == 3 && peer == 5) {
        CHECK(HcommChannelNotifyRecordOnThread(thread, channel, kReady));  // defect 2
    }
    if (DEFECT == kMissingWait && args.rank == 3 && peer == 5) {
        CHECK(HcommReadOnThread(thread, channel, slot, theirs, bytes));  // defect 1
        CHECK(HcommChannelNotifyWaitOnThread(thread, channel, kReady, kTimeout));
    } else {
        CHECK(HcommChannelNotifyWaitOnThread(thread, channel, kReady, kTimeout));
        if (DEFECT == kWrongPeer && args.rank == 3 && peer == 5) {
            theirs = args.peerCcl[6] + args.rank * bytes;
        }
        CHECK(HcommReadOnThread(thread, channel, slot, theirs, bytes));  // defect 3
    }
    if (DEFECT != kEarlyReuse) {
        CHECK(Meet(args, thread, peer, kDone));
    }
    return 0;
}

}  // namespace

extern "C" unsigned ReduceScatterKernel(OpArgs* block)
{
    const OpArgs& args = *block;
    uint64_t bytes = args.count * args.unit;
    ThreadHandle thread = args.threads[0];
    CHECK(Begin(args));
    CHECK(HcommLocalCopyOnThread(thread, args.ccl, args.in, args.size * bytes));  // defect 4
    for (uint32_t worker = 1; worker < args.size; ++worker) {
        CHECK(Fork(args, worker));
        CHECK(Fetch(args, (args.rank + worker) % args.size, worker, bytes));
    }
    CHECK(HcommLocalCopyOnThread(thread, args.out, args.in + args.rank * bytes, bytes));
    for (uint32_t worker = 1; worker < args.size; ++worker) {
        if (DEFECT == kNeverJoined && args.rank == 3 && worker == 7) {
            uint32_t peer = (args.rank + worker) % args.size;
            char* slot = args.ccl + (args.size + peer) * bytes;
            CHECK(HcommLocalCopyOnThread(args.threads[worker], slot + args.size * bytes, slot, bytes));  // defect 5
            continue;
        }
        CHECK(Join(args, worker));
    }
    for (uint32_t step = 1; step < args.size; ++step) {
        uint32_t peer = (args.rank + step) % args.size;
        CHECK(HcommLocalReduceOnThread(thread, args.out, args.ccl + (args.size + peer) * bytes, args.count,
                                       HcommDataType(args.dtype), HcommReduceOp(args.reduce)));
    }
    CHECK(End(args));
    return 0;
}

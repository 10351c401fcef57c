// Each case of the variable CASE makes one mistake; a comment marks the line that findings name.
#include <cstdlib>
#include <cstring>

#include "kernel_kit.h"

// A macro, so that the line is the caller's.
#define REDUCE(thread, into, from, op) \
    HcommLocalReduceOnThread(thread, into, from, p.a.count, HcommDataType(p.a.dtype), op)

namespace {

bool Is(const char* name)
{
    return strcmp(getenv("CASE"), name) == 0;
}

// One rank, two workers, and the only peer.
struct Place {
    explicit Place(const OpArgs& args)
        : a(args), main(args.threads[0]), peer(1 - args.rank), channel(args.channels[peer]),
          theirs(args.peerCcl[peer]), bytes(args.count * args.unit), got(args.ccl + bytes)
    {
    }
    const OpArgs& a;
    ThreadHandle main;
    uint32_t peer;
    ChannelHandle channel;
    char* theirs;
    uint64_t bytes;
    char* got;
};

// What is wrong with notifies and threads.
int Order(const Place& p)
{
    ThreadHandle w = p.a.threads[1];
    if (Is("WAIT_WITHOUT_POST")) {
        CHECK(HcommChannelNotifyWaitOnThread(p.main, p.channel, 2, kTimeout));  // WAIT_WITHOUT_POST
    }
    if (Is("DEADLOCK_CYCLE")) {
        CHECK(HcommChannelNotifyWaitOnThread(p.main, p.channel, 2, kTimeout));  // DEADLOCK_CYCLE
        CHECK(HcommChannelNotifyRecordOnThread(p.main, p.channel, 2));
    }
    if (Is("UNMATCHED_POST")) {
        CHECK(HcommChannelNotifyRecordOnThread(p.main, p.channel, 2));  // UNMATCHED_POST
    }
    if (Is("NOTIFY_OVERRUN") && p.a.rank == 0) {
        CHECK(HcommChannelNotifyRecordOnThread(p.main, p.channel, 2));
        CHECK(HcommChannelNotifyRecordOnThread(p.main, p.channel, 2));  // NOTIFY_OVERRUN
    } else if (Is("NOTIFY_OVERRUN")) {
        CHECK(HcommChannelNotifyWaitOnThread(p.main, p.channel, 2, kTimeout));
        CHECK(HcommChannelNotifyWaitOnThread(p.main, p.channel, 2, kTimeout));
    }
    if (Is("REDUNDANT_SYNC")) {
        CHECK(HcommChannelNotifyRecordOnThread(p.main, p.channel, 2));
        CHECK(HcommChannelNotifyRecordOnThread(p.main, p.channel, 3));
        CHECK(HcommChannelNotifyWaitOnThread(p.main, p.channel, 3, kTimeout));
        CHECK(HcommChannelNotifyWaitOnThread(p.main, p.channel, 2, kTimeout));  // REDUNDANT_SYNC
    }
    if (Is("STREAM_NOT_STARTED")) {
        CHECK(HcommLocalCopyOnThread(w, p.got, p.a.in, p.bytes));  // STREAM_NOT_STARTED
        CHECK(Join(p.a, 1));
    }
    if (Is("STREAM_NOT_JOINED")) {
        CHECK(Fork(p.a, 1));
        CHECK(HcommLocalCopyOnThread(w, p.got + p.bytes, p.a.in, p.bytes));  // STREAM_NOT_JOINED
    }
    if (Is("CONNECTION_UNORDERED")) {
        CHECK(Fork(p.a, 1));
        CHECK(HcommWriteOnThread(w, p.channel, p.theirs + 4 * p.bytes, p.a.ccl, p.bytes));  // CONNECTION_UNORDERED
        CHECK(HcommWriteOnThread(p.main, p.channel, p.theirs + 5 * p.bytes, p.a.ccl, p.bytes));
        CHECK(Join(p.a, 1));
    }
    return 0;
}

// What is wrong with memory.
int Touch(const Place& p)
{
    const OpArgs& a = p.a;
    ThreadHandle w = a.threads[1];
    if (Is("RACE_WW") || Is("REDUCE_ORDER_NONDET")) {
        CHECK(HcommLocalCopyOnThread(p.main, p.got, a.in, p.bytes));
        CHECK(Fork(a, 1));
        if (Is("RACE_WW")) {
            CHECK(HcommLocalCopyOnThread(w, p.got, a.in, p.bytes));
            CHECK(HcommLocalCopyOnThread(p.main, p.got, a.ccl, p.bytes));  // RACE_WW
        } else {
            auto dtype = HcommDataType(a.dtype);
            CHECK(HcommReadReduceOnThread(w, p.channel, p.got, p.theirs, a.count, dtype, HCOMM_REDUCE_SUM));
            CHECK(HcommReadReduceOnThread(p.main, p.channel, p.got, p.theirs, a.count, dtype, HCOMM_REDUCE_SUM));  // REDUCE_ORDER_NONDET
        }
        CHECK(Join(a, 1));
    }
    if (Is("OUT_OF_BOUNDS")) {
        CHECK(HcommLocalCopyOnThread(p.main, a.ccl + a.cclSize - 4, a.in, p.bytes));  // OUT_OF_BOUNDS
    }
    if (Is("TRANSFER_TOO_LARGE")) {
        CHECK(HcommLocalCopyOnThread(p.main, a.out, a.in, p.bytes));  // TRANSFER_TOO_LARGE
    }
    if (Is("REMOTE_NOT_EXPORTED")) {
        char* input = a.in + (p.theirs - a.ccl);
        CHECK(HcommReadOnThread(p.main, p.channel, p.got, input, p.bytes));  // REMOTE_NOT_EXPORTED
    }
    if (Is("UNSUPPORTED_INLINE_REDUCE")) {
        auto dtype = HcommDataType(a.dtype);
        CHECK(HcommReadReduceOnThread(p.main, p.channel, p.got, p.theirs, a.count, dtype, HCOMM_REDUCE_PROD));  // UNSUPPORTED_INLINE_REDUCE
    }
    if (Is("SELF_OVERLAP")) {
        CHECK(HcommLocalCopyOnThread(p.main, a.ccl + 4, a.ccl, p.bytes));  // SELF_OVERLAP
    }
    if (Is("DTYPE_MISMATCH")) {
        CHECK(HcommLocalReduceOnThread(p.main, a.ccl, a.in, a.count, HCOMM_DATA_TYPE_FP16, HCOMM_REDUCE_SUM));  // DTYPE_MISMATCH
    }
    if (Is("READ_UNDEFINED")) {
        CHECK(HcommLocalCopyOnThread(p.main, a.out, p.got + p.bytes, p.bytes));  // READ_UNDEFINED
    }
    if (Is("REDUCE_INTO_UNDEFINED")) {
        CHECK(REDUCE(p.main, p.got + p.bytes, a.in, HCOMM_REDUCE_SUM));  // REDUCE_INTO_UNDEFINED
    }
    if (Is("UNALIGNED")) {
        CHECK(HcommLocalCopyOnThread(p.main, p.got + 4, a.in, p.bytes));  // UNALIGNED
    }
    if (Is("DEAD_TRANSFER")) {
        CHECK(HcommLocalCopyOnThread(p.main, p.got + p.bytes, a.in, p.bytes));  // DEAD_TRANSFER
    }
    return 0;
}

int Staged(const Place& p)
{
    CHECK(Begin(p.a));
    CHECK(HcommLocalCopyOnThread(p.main, p.a.ccl, p.a.in, p.bytes));
    CHECK(Order(p));
    CHECK(Touch(p));
    return Meet(p.a, p.main, p.peer, 0);
}

// Both ranks have what they read.
int Done(const Place& p)
{
    if (!Is("RACE_RW")) {
        CHECK(Meet(p.a, p.main, p.peer, 1));
    }
    return End(p.a);
}

}  // namespace

extern "C" unsigned ReduceKernel(OpArgs* args)
{
    Place p(*args);
    CHECK(Staged(p));
    if (Is("RDMA_SOURCE_REUSE") || Is("CONNECTION_UNORDERED")) {
        CHECK(HcommWriteOnThread(p.main, p.channel, p.theirs + p.bytes, p.a.ccl, p.bytes));
        CHECK(HcommLocalCopyOnThread(p.main, p.a.ccl, p.a.in, p.bytes));  // RDMA_SOURCE_REUSE
        CHECK(Meet(p.a, p.main, p.peer, 2));
    } else if (!Is("MISSING_CONTRIBUTION")) {
        CHECK(HcommReadOnThread(p.main, p.channel, p.got, p.theirs, p.bytes));
    }
    if (Is("MISSING_CONTRIBUTION")) {
        CHECK(HcommLocalCopyOnThread(p.main, p.a.out, p.a.in, p.bytes));  // MISSING_CONTRIBUTION
        return Done(p);
    }
    if (Is("INPLACE_CLOBBER")) {
        CHECK(Fork(p.a, 1));
        CHECK(HcommLocalCopyOnThread(p.a.threads[1], p.got + p.bytes, p.a.in, p.bytes));
        CHECK(HcommLocalCopyOnThread(p.main, p.a.out, p.got, p.bytes));  // INPLACE_CLOBBER
        CHECK(Join(p.a, 1));
        CHECK(REDUCE(p.main, p.a.out, p.a.ccl, HCOMM_REDUCE_SUM));
        return Done(p);
    }
    if (!Is("OUTPUT_MISSING")) {
        CHECK(HcommLocalCopyOnThread(p.main, p.a.out, p.a.ccl, p.bytes));
        HcommReduceOp op = Is("WRONG_REDUCE_OP") ? HCOMM_REDUCE_MAX : HCOMM_REDUCE_SUM;
        CHECK(REDUCE(p.main, p.a.out, p.got, op));  // WRONG_REDUCE_OP
    }
    if (Is("DOUBLE_CONTRIBUTION")) {
        CHECK(REDUCE(p.main, p.a.out, p.got, HCOMM_REDUCE_SUM));  // DOUBLE_CONTRIBUTION
    }
    return Done(p);
}

extern "C" unsigned GatherKernel(OpArgs* args)
{
    Place p(*args);
    CHECK(Staged(p));
    char* mine = p.a.out + p.a.rank * p.bytes;
    char* others = p.a.out + p.peer * p.bytes;
    const char* from = Is("WRONG_OFFSET") ? p.theirs + 4 : p.theirs;
    CHECK(HcommReadOnThread(p.main, p.channel, Is("WRONG_SOURCE") ? mine : others, from, p.bytes - (from - p.theirs)));  // WRONG
    CHECK(HcommLocalCopyOnThread(p.main, Is("WRONG_SOURCE") ? others : mine, p.a.in, p.bytes));
    return Done(p);
}

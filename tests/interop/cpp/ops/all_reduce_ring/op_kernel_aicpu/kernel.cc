// A ring in the HCCL buffer: every chunk is summed on its way round, then goes round once more.
//
// Every step has a notify of its own, so that none is posted before its last use is over.
#include "kernel_kit.h"

namespace {

struct Chunk {
    uint64_t offset;
    uint64_t count;
};

Chunk ChunkOf(const OpArgs& args, uint32_t number)
{
    uint64_t each = (args.count + args.size - 1) / args.size;
    uint64_t begin = each * number < args.count ? each * number : args.count;
    uint64_t end = begin + each < args.count ? begin + each : args.count;
    return {begin * args.unit, end - begin};
}

int Pass(const OpArgs& args, uint32_t step)
{
    uint32_t n = args.size;
    uint32_t right = (args.rank + 1) % n;
    uint32_t left = (args.rank + n - 1) % n;
    ThreadHandle thread = args.threads[0];
    bool reduces = step < n - 1;
    Chunk chunk = ChunkOf(args, (args.rank + 2 * n - step) % n);
    char* to = args.peerCcl[right] + chunk.offset;
    char* from = args.ccl + chunk.offset;
    if (reduces) {
        CHECK(HcommWriteReduceWithNotifyOnThread(thread, args.channels[right], to, from, chunk.count,
                                                 HcommDataType(args.dtype), HcommReduceOp(args.reduce), 2 + step));
    } else {
        CHECK(HcommWriteWithNotifyOnThread(thread, args.channels[right], to, from, chunk.count * args.unit, 2 + step));
    }
    CHECK(HcommChannelNotifyWaitOnThread(thread, args.channels[left], 2 + step, kTimeout));
    return 0;
}

}  // namespace

extern "C" unsigned AllReduceKernel(OpArgs* block)
{
    const OpArgs& args = *block;
    uint32_t left = (args.rank + args.size - 1) % args.size;
    uint32_t right = (args.rank + 1) % args.size;
    ThreadHandle thread = args.threads[0];
    CHECK(Begin(args));
    CHECK(HcommLocalCopyOnThread(thread, args.ccl, args.in, args.count * args.unit));
    CHECK(HcommChannelNotifyRecordOnThread(thread, args.channels[left], 0));
    CHECK(HcommChannelNotifyWaitOnThread(thread, args.channels[right], 0, kTimeout));
    for (uint32_t step = 0; step < 2 * (args.size - 1); ++step) {
        CHECK(Pass(args, step));
    }
    CHECK(HcommLocalCopyOnThread(thread, args.out, args.ccl, args.count * args.unit));
    CHECK(End(args));
    return 0;
}

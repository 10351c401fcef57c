// Every rank stages its input; then a thread per peer reads that peer's.
#include "kernel_kit.h"

namespace {

int Fetch(const OpArgs& args, uint32_t peer, uint32_t worker, uint64_t bytes)
{
    ThreadHandle thread = args.threads[worker];
    CHECK(Meet(args, thread, peer, 0));
    CHECK(HcommReadOnThread(thread, args.channels[peer], args.out + peer * bytes, args.peerCcl[peer], bytes));
    CHECK(Meet(args, thread, peer, 1));
    return 0;
}

}  // namespace

extern "C" unsigned AllGatherKernel(OpArgs* block)
{
    const OpArgs& args = *block;
    uint64_t bytes = args.count * args.unit;
    CHECK(Begin(args));
    CHECK(HcommLocalCopyOnThread(args.threads[0], args.ccl, args.in, bytes));
    for (uint32_t worker = 1; worker < args.size; ++worker) {
        CHECK(Fork(args, worker));
        CHECK(Fetch(args, (args.rank + worker) % args.size, worker, bytes));
    }
    CHECK(HcommLocalCopyOnThread(args.threads[0], args.out + args.rank * bytes, args.in, bytes));
    for (uint32_t worker = 1; worker < args.size; ++worker) {
        CHECK(Join(args, worker));
    }
    CHECK(End(args));
    return 0;
}

// The root stages its buffer; the others read it one after the other.
#include "kernel_kit.h"

namespace {

int Serve(const OpArgs& args, ThreadHandle thread)
{
    CHECK(HcommLocalCopyOnThread(thread, args.ccl, args.in, args.count * args.unit));
    for (uint32_t peer = 0; peer < args.size; ++peer) {
        if (peer != args.root) {
            CHECK(HcommChannelNotifyRecordOnThread(thread, args.channels[peer], 0));
            CHECK(HcommChannelNotifyWaitOnThread(thread, args.channels[peer], 1, kTimeout));
        }
    }
    return 0;
}

int Fetch(const OpArgs& args, ThreadHandle thread)
{
    ChannelHandle channel = args.channels[args.root];
    CHECK(HcommChannelNotifyWaitOnThread(thread, channel, 0, kTimeout));
    CHECK(HcommReadOnThread(thread, channel, args.in, args.peerCcl[args.root], args.count * args.unit));
    CHECK(HcommChannelNotifyRecordOnThread(thread, channel, 1));
    return 0;
}

}  // namespace

extern "C" unsigned BroadcastKernel(OpArgs* block)
{
    const OpArgs& args = *block;
    CHECK(Begin(args));
    CHECK(args.rank == args.root ? Serve(args, args.threads[0]) : Fetch(args, args.threads[0]));
    CHECK(End(args));
    return 0;
}

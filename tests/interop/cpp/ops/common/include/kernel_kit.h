// Steps that kernels share.
#pragma once

#include "hcomm_primitives.h"
#include "op_args.h"

#define CHECK(call)          \
    do {                     \
        if ((call) != 0) {   \
            return 1;        \
        }                    \
    } while (0)

// The main thread begins behind the caller's stream, and the caller goes on behind it.
inline int Begin(const OpArgs& args)
{
    CHECK(HcommThreadNotifyWaitOnThread(args.threads[0], 0, kTimeout));
    return 0;
}

inline int End(const OpArgs& args)
{
    CHECK(HcommThreadNotifyRecordOnThread(args.threads[0], args.caller, 0));
    return 0;
}

// Thread 1 + k begins behind the main thread; its end is notify 1 + k of the main thread.
inline int Fork(const OpArgs& args, uint32_t worker)
{
    CHECK(HcommThreadNotifyRecordOnThread(args.threads[0], args.threads[worker], 0));
    CHECK(HcommThreadNotifyWaitOnThread(args.threads[worker], 0, kTimeout));
    return 0;
}

inline int Join(const OpArgs& args, uint32_t worker)
{
    CHECK(HcommThreadNotifyRecordOnThread(args.threads[worker], args.threads[0], worker));
    CHECK(HcommThreadNotifyWaitOnThread(args.threads[0], worker, kTimeout));
    return 0;
}

// Both ends post notify `index` and wait for it.
inline int Meet(const OpArgs& args, ThreadHandle thread, uint32_t peer, uint32_t index)
{
    CHECK(HcommChannelNotifyRecordOnThread(thread, args.channels[peer], index));
    CHECK(HcommChannelNotifyWaitOnThread(thread, args.channels[peer], index, kTimeout));
    return 0;
}

// Primitives without a task: fences, brackets around calls, and calls that are not modelled.

#include "hcomm_primitives.h"
#include "state.hpp"

namespace recorder {

namespace {

int unsupported(const char* call, const char* instead)
{
    return refuse("UNSUPPORTED_CALL", "%s is not modelled: %s", call, instead);
}

int check_thread(const char* call, ThreadHandle thread)
{
    return thread_of(thread) ? 0 : no_thread(call, thread);
}

int check_channel(const char* call, ChannelHandle channel)
{
    return channel_of(channel) ? 0 : no_channel(call, channel);
}

}  // namespace

}  // namespace recorder

using namespace recorder;

extern "C" {

// A fence orders later tasks of a channel behind earlier ones; a recorded program has that order anyway.
int32_t HcommFenceOnThread(ThreadHandle thread)
{
    return check_thread(__func__, thread);
}

int32_t HcommChannelFenceOnThread(ThreadHandle thread, ChannelHandle channel)
{
    int wrong = check_thread(__func__, thread);
    return wrong ? wrong : check_channel(__func__, channel);
}

int32_t HcommChannelDrainOnThread(ThreadHandle thread, ChannelHandle channel)
{
    int wrong = check_thread(__func__, thread);
    return wrong ? wrong : check_channel(__func__, channel);
}

int32_t HcommBatchModeStart(const char*)
{
    return 0;
}

int32_t HcommBatchModeEnd(const char*)
{
    return 0;
}

int32_t HcommAcquireComm(const char*)
{
    return 0;
}

int32_t HcommReleaseComm(const char*)
{
    return 0;
}

int32_t HcommSetNotifyWaitTimeOut(float)
{
    return 0;
}

int32_t HcommThreadResAcquireTimeOut(float)
{
    return 0;
}

// The cache never has a tag, so a kernel always orchestrates.
HcommResult HcommAicpuTsTaskCacheLookup(const char*, bool* isHit)
{
    if (isHit == nullptr) {
        return no_room(__func__);
    }
    *isHit = false;
    return 0;
}

HcommResult HcommAicpuTsTaskCacheStart(const char*, void**, uint64_t*, uint64_t)
{
    return 0;
}

HcommResult HcommAicpuTsTaskCacheEnd(const char*)
{
    return 0;
}

HcommResult HcommAicpuTsTaskCacheClear(const char*)
{
    return 0;
}

HcommResult HcommAicpuTsTaskCacheExecute(const char*, void**, uint64_t*, uint64_t)
{
    return unsupported(__func__, "look a tag up first, and orchestrate where there is no hit");
}

int32_t HcommAclrtNotifyRecordOnThread(ThreadHandle, uint64_t)
{
    return unsupported(__func__, "use a notify of a thread");
}

int32_t HcommAclrtNotifyWaitOnThread(ThreadHandle, uint64_t, uint32_t)
{
    return unsupported(__func__, "use a notify of a thread");
}

int32_t HcommWriteNbi(ChannelHandle, void*, const void*, uint64_t)
{
    return unsupported(__func__, "use HcommWriteNbiOnThread");
}

int32_t HcommWriteWithNotifyNbi(ChannelHandle, void*, const void*, uint64_t, uint32_t)
{
    return unsupported(__func__, "use HcommWriteWithNotifyNbiOnThread");
}

int32_t HcommReadNbi(ChannelHandle, void*, const void*, uint64_t)
{
    return unsupported(__func__, "use HcommReadNbiOnThread");
}

int32_t HcommChannelNotifyRecord(ChannelHandle, uint32_t)
{
    return unsupported(__func__, "use HcommChannelNotifyRecordOnThread");
}

int32_t HcommChannelNotifyWait(ChannelHandle, uint32_t, uint32_t)
{
    return unsupported(__func__, "use HcommChannelNotifyWaitOnThread");
}

int32_t HcommChannelFence(ChannelHandle)
{
    return unsupported(__func__, "use HcommChannelFenceOnThread");
}

}  // extern "C"

// Calls of host code and kernels that make no task: answers about a communicator, reports, and calls that are not
// modelled.

#include "hccl/hccl_diag.h"
#include "hccl/hccl_launch.h"
#include "hccl/hccl_res_expt.h"
#include "hccl/hccl_sym_win.h"
#include "hccl/hcomm_diag.h"
#include "hcomm/hcomm_primitives_expt.h"
#include "state.hpp"

namespace recorder {

namespace {

HcclResult not_modelled(const char* call, const char* instead)
{
    refuse("UNSUPPORTED_CALL", "%s is not modelled: %s", call, instead);
    return HCCL_E_NOT_SUPPORT;
}

constexpr const char* kOwnComm = "the recorder makes the communicator and calls the op";
constexpr const char* kRegister = "register memory (HcclCommMemReg) and ask the channel for it";

}  // namespace

}  // namespace recorder

using namespace recorder;

extern "C" {

// Tasks of a kernel run where they are recorded, so a join has nothing to wait for. It orders no later task of another
// thread: that takes a notify, here as in a check of the order of tasks.
int32_t HcommThreadJoin(ThreadHandle thread, uint32_t)
{
    return thread_of(thread) ? 0 : no_thread(__func__, thread);
}

HcclResult HcclCommGetStatus(const char*, HcclCommStatus* status)
{
    *status = HCCL_COMM_STATUS_READY;
    return HCCL_SUCCESS;
}

HcclResult HcclGroupStatusGet(bool* isGroupEnabled)
{
    *isGroupEnabled = false;
    return HCCL_SUCCESS;
}

HcclResult HcclConfigGetInfo(HcclComm, HcclConfigType cfgType, uint32_t infoLen, void* info)
{
    if (info == nullptr || infoLen == 0) {
        return HCCL_E_PARA;
    }
    memset(info, 0, infoLen);  // no setting of HCCL_ALGO
    if (cfgType == HCCL_CONFIG_TYPE_OP_EXPANSION_MODE && infoLen >= sizeof(HcclOpExpansionMode)) {
        *static_cast<HcclOpExpansionMode*>(info) = HcclOpExpansionMode(state.options.expansion);
    }
    return HCCL_SUCCESS;
}

HcclResult HcclCommRegCommStateCallback(const char*, HcclCommStateCallback, void*)
{
    return HCCL_SUCCESS;  // a recorded communicator is not destroyed
}

HcclResult HcommRegOpInfo(const char*, void*, size_t)
{
    return HCCL_SUCCESS;
}

HcclResult HcommRegOpTaskException(const char*, HcommGetOpInfoCallback)
{
    return HCCL_SUCCESS;
}

HcclResult HcommProfilingReportDeviceOp(const char*)
{
    return HCCL_SUCCESS;
}

HcclResult HcommProfilingReportKernelStartTask(uint64_t, const char*)
{
    return HCCL_SUCCESS;
}

HcclResult HcommProfilingReportKernelEndTask(uint64_t, const char*)
{
    return HCCL_SUCCESS;
}

HcclResult HcclReportAivKernel(HcclComm, uint64_t)
{
    return HCCL_SUCCESS;
}

// A shared queue changes no task, so a configuration of channels is a handle alone.
HcclResult HcclChannelConfigCreate(HcclChannelConfig* config)
{
    static char one;
    *config = &one;
    return HCCL_SUCCESS;
}

HcclResult HcclChannelConfigDestroy(HcclChannelConfig)
{
    return HCCL_SUCCESS;
}

HcclResult HcclChannelConfigSetInt(HcclChannelConfig, HcclChannelConfigType, uint32_t)
{
    return HCCL_SUCCESS;
}

HcclResult HcclChannelConfigSetStr(HcclChannelConfig, HcclChannelConfigType, const char*)
{
    return HCCL_SUCCESS;
}

HcclResult HcclChannelAcquireWithConfig(HcclComm comm, CommEngine engine, const HcclChannelDesc* channelDescs,
                                        uint32_t channelNum, HcclChannelConfig, ChannelHandle* channels)
{
    return HcclChannelAcquire(comm, engine, channelDescs, channelNum, channels);
}

HcclResult HcclChannelQuery(HcclComm, CommEngine, const HcclChannelDesc*, uint32_t, ChannelHandle*)
{
    return not_modelled(__func__, "keep the handles of HcclChannelAcquire in a context");
}

HcclResult HcclDedicatedThreadAcquire(HcclComm, HcclDedicatedThreadType, uint32_t, ThreadHandle*)
{
    return not_modelled(__func__, "use HcclThreadAcquire");
}

HcclResult HcclThreadResGetInfo(HcclComm, ThreadHandle, ThreadResType, uint32_t, void**)
{
    return not_modelled(__func__, "threads have no stream that could be handed out");
}

HcclResult HcclGetHcclBufferCleared(HcclComm, void**, uint64_t*)
{
    return not_modelled(__func__, "use HcclGetHcclBuffer, and write before you read");
}

HcclResult HcclGetRemoteIpcHcclBuf(HcclComm, uint64_t, void**, uint64_t*)
{
    return not_modelled(__func__, "use HcclChannelGetHcclBuffer");
}

HcclResult HcclAicpuKernelLaunch(HcclComm, const HcclOpDesc*, const HcclKernelFuncInfo*, ThreadHandle, aclrtStream,
                                 const HcclKernelLaunchCfg*)
{
    return not_modelled(__func__, "use aclrtLaunchKernelWithConfig");
}

HcclResult HcclSymWinGetPeerPointer(HcclCommSymWindow, size_t, uint32_t, void**)
{
    return not_modelled(__func__, kRegister);
}

HcclResult HcclCommSymWinRegister(HcclComm, void*, uint64_t, HcclCommSymWindow*, uint32_t)
{
    return not_modelled(__func__, kRegister);
}

HcclResult HcclCommSymWinDeregister(HcclCommSymWindow)
{
    return not_modelled(__func__, kRegister);
}

// No window can be registered here, so memory lies in none.
HcclResult HcclCommSymWinGet(HcclComm, void*, size_t, HcclCommSymWindow* winHandle, size_t* offset)
{
    if (winHandle == nullptr || offset == nullptr) {
        return HCCL_E_PTR;
    }
    *winHandle = nullptr;
    *offset = 0;
    return HCCL_SUCCESS;
}

int32_t HcclTaskRegister(HcclComm, const char*, Callback)
{
    return not_modelled(__func__, "a kernel gets what it needs in its argument");
}

int32_t HcclTaskUnRegister(HcclComm, const char*)
{
    return not_modelled(__func__, "a kernel gets what it needs in its argument");
}

HcclResult HcclCommAddExchangeInfo(HcclComm, const void*, uint32_t)
{
    return not_modelled(__func__, "ranks are recorded one after the other, and exchange nothing");
}

HcclResult HcclCommGetExchangeInfo(HcclComm, uint32_t, uint32_t, void*, uint32_t*)
{
    return not_modelled(__func__, "ranks are recorded one after the other, and exchange nothing");
}

HcclResult HcclCommResetExchangeInfo(HcclComm)
{
    return not_modelled(__func__, "ranks are recorded one after the other, and exchange nothing");
}

HcclResult HcclGroupStart(void)
{
    return not_modelled(__func__, "a call is recorded alone; --calls makes several");
}

HcclResult HcclGroupEnd(void)
{
    return not_modelled(__func__, "a call is recorded alone; --calls makes several");
}

HcclResult HcclGetRootInfo(HcclRootInfo*)
{
    return not_modelled(__func__, kOwnComm);
}

HcclResult HcclCommInitRootInfo(uint32_t, const HcclRootInfo*, uint32_t, HcclComm*)
{
    return not_modelled(__func__, kOwnComm);
}

HcclResult HcclCommInitRootInfoConfig(uint32_t, const HcclRootInfo*, uint32_t, const HcclCommConfig*, HcclComm*)
{
    return not_modelled(__func__, kOwnComm);
}

HcclResult HcclCommInitClusterInfo(const char*, uint32_t, HcclComm*)
{
    return not_modelled(__func__, kOwnComm);
}

HcclResult HcclCommInitAll(uint32_t, int32_t*, HcclComm*)
{
    return not_modelled(__func__, kOwnComm);
}

HcclResult HcclCommDestroy(HcclComm)
{
    return not_modelled(__func__, kOwnComm);
}

HcclResult HcclBarrier(HcclComm, aclrtStream)
{
    return not_modelled(__func__, "let ranks wait for each other by notifies of channels");
}

}  // extern "C"

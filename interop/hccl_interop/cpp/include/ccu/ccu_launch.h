// Kernels of the CCU for host code: registering runs the kernel's function once, a launch is a task.
#pragma once

#include "../hccl/hccl_res.h"
#include "ccu_types.h"

#ifdef __cplusplus
extern "C" {
#endif

CcuResult HcommCcuKernelRegisterStart(CcuInsHandle ins);
CcuResult HcommCcuKernelRegister(CcuInsHandle ins, uint32_t dieId, const char* name, const void* kernel,
                                 const void** kernelArgs, uint32_t argNum, CcuKernelHandle* handle);
CcuResult HcommCcuKernelRegisterEnd(CcuInsHandle ins);
CcuResult HcommCcuGetTaskArgsNum(CcuKernelHandle kernel, uint32_t* taskArgsNum);
CcuResult HcommCcuKernelLaunch(ThreadHandle thread, CcuKernelHandle kernel, const void* taskArgs, uint32_t argNum);

#ifdef __cplusplus
}
#endif

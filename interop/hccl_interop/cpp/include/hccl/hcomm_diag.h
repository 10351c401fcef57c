// Reports of a kernel for profiling and for errors; the recorder ignores them.
#pragma once

#include <stddef.h>

#include "hccl_types.h"

#ifdef __cplusplus
extern "C" {
#endif

HcclResult HcommRegOpInfo(const char* commId, void* opInfo, size_t size);
typedef void (*HcommGetOpInfoCallback)(const void* opInfo, char* outPut, size_t size);
HcclResult HcommRegOpTaskException(const char* commId, HcommGetOpInfoCallback callback);
HcclResult HcommProfilingReportDeviceOp(const char* groupname);
HcclResult HcommProfilingReportKernelStartTask(uint64_t thread, const char* groupname);
HcclResult HcommProfilingReportKernelEndTask(uint64_t thread, const char* groupname);

#ifdef __cplusplus
}
#endif

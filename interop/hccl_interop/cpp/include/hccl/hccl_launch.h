// The launch of an AICPU kernel by HCCL. Not modelled: kernels are launched by aclrtLaunchKernelWithConfig.
#pragma once

#include <stdint.h>

#include "../acl/acl_rt.h"
#include "../hcomm_res_defs.h"
#include "hccl_types.h"

#ifdef __cplusplus
extern "C" {
#endif

const uint32_t P2P_MAX_ARG_SIZE = 8192U;
const uint32_t HCCL_OP_DESC_OP_NAME_MAX_LEN = 256;
const uint32_t HCCL_OPDESC_MAGIC_WORD = 0x0f0f0f0f;
const uint32_t HCCL_OPDESC_VERSION = 1;
const uint32_t HCCL_KERNEL_SO_NAME_MAX_LEN = 256;
const uint32_t HCCL_KERNEL_FUNC_NAME_MAX_LEN = 256;
const uint32_t HCCL_KERNEL_LAUNCH_CFG_MAGIC_WORD = 0x0f0f0f0f;
const uint32_t HCCL_KERNEL_LAUNCH_CFG_VERSION = 1;

typedef struct {
    ThreadHandle sendRecvThread;
    uint8_t opParams[8192];
} HcclP2pKernelParam;

typedef struct {
    void* buffer;
    uint8_t reserved[8];
    HcclCMDType cmdType;
    HcclDataType dataType;
    uint64_t count;
    uint32_t remoteRank;
    void* unfoldStream;
} HcclOpP2pDesc;

typedef struct {
    CommAbiHeader header;
    uint32_t opDescType;
    char opName[256];
    union {
        uint8_t raws[76];
        HcclOpP2pDesc p2p;
    };
} HcclOpDesc;

typedef struct {
    char kernelSoName[256];
    char kernelFuncName[256];
    void* args;
    uint32_t argSize;
} HcclKernelFuncInfo;

typedef struct {
    CommAbiHeader header;
    uint64_t timeOut;
    uint8_t reserved[104];
} HcclKernelLaunchCfg;

static inline HcclResult HcclOpDescInit(HcclOpDesc* opDesc)
{
    if (opDesc == NULL) {
        return HCCL_E_PTR;
    }
    memset(opDesc, 0xFF, sizeof(HcclOpDesc));
    opDesc->header.version = HCCL_OPDESC_VERSION;
    opDesc->header.magicWord = HCCL_OPDESC_MAGIC_WORD;
    opDesc->header.size = sizeof(HcclOpDesc);
    opDesc->header.reserved = 0;
    return HCCL_SUCCESS;
}

static inline HcclResult HcclKernelLaunchCfgInit(HcclKernelLaunchCfg* kernelLaunchCfg)
{
    if (kernelLaunchCfg == NULL) {
        return HCCL_E_PTR;
    }
    memset(kernelLaunchCfg, 0xFF, sizeof(HcclKernelLaunchCfg));
    kernelLaunchCfg->header.version = HCCL_KERNEL_LAUNCH_CFG_VERSION;
    kernelLaunchCfg->header.magicWord = HCCL_KERNEL_LAUNCH_CFG_MAGIC_WORD;
    kernelLaunchCfg->header.size = sizeof(HcclKernelLaunchCfg);
    kernelLaunchCfg->header.reserved = 0;
    return HCCL_SUCCESS;
}

HcclResult HcclAicpuKernelLaunch(HcclComm comm, const HcclOpDesc* opInfo, const HcclKernelFuncInfo* funcInfo,
                                 ThreadHandle aicpuThreadHandle, aclrtStream userStream,
                                 const HcclKernelLaunchCfg* kernelLaunchCfg);

#ifdef __cplusplus
}
#endif

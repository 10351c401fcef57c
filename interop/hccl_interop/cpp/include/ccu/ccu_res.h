// Resources of the CCU for host code: instances by description, and the right to use memory.
#pragma once

#include "ccu_res_defs.h"
#include "ccu_types.h"

#ifdef __cplusplus
extern "C" {
#endif

CcuResult HcommCcuVariableAlloc(CcuInsHandle ins, uint8_t dieId, uint32_t num, CcuVariableHandle* handle);
CcuResult HcommCcuEventAlloc(CcuInsHandle ins, uint8_t dieId, uint32_t num, CcuEventHandle* handle);
CcuResult HcommCcuVariableGetAddr(CcuVariableHandle handle, uint32_t index, uint64_t* va);
CcuResult HcommCcuEventGetAddr(CcuEventHandle handle, uint32_t index, uint64_t* va);

CcuResult HcommCcuInsResDescCreate(uint32_t dieId, HcommCcuResDescHandle* desc);
CcuResult HcommCcuInsResDescDestroy(HcommCcuResDescHandle desc);
CcuResult HcommCcuInsResDescQueryDieId(HcommCcuResDescHandle desc, uint32_t* dieId);
CcuResult HcommCcuInsResDescSetNum(HcommCcuResDescHandle desc, HcommCcuResType type, uint32_t num);
CcuResult HcommCcuInsResDescQueryNum(HcommCcuResDescHandle desc, HcommCcuResType type, uint32_t* num);
CcuResult HcommCcuInsCreate(const HcommCcuResDescHandle* descs, uint32_t count, CcuInsHandle* ins);
CcuResult HcommCcuInsCreateDefault(const uint32_t* dieIds, uint32_t count, CcuInsHandle* ins);
CcuResult HcommCcuInsDestroy(CcuInsHandle ins);
CcuResult HcommCcuInsQueryResDesc(CcuInsHandle ins, HcommCcuResDescHandle desc);
CcuResult HcommCcuQueryRemainResDesc(HcommCcuResDescHandle desc);
CcuResult HcommCcuKernelQueryResReq(const void* kernel, const void** kernelArgs, uint32_t argNum,
                                    HcommCcuResDescHandle desc);

CcuResult HcommCcuGetMemToken(uint64_t srcVa, uint64_t size, uint64_t* tokenInfo);

#ifdef __cplusplus
}
#endif

// Instances of the CCU that a communicator has.
#pragma once

#include "../ccu/ccu_types.h"
#include "hccl_types.h"

#ifdef __cplusplus
extern "C" {
#endif

HcclResult HcclCommAssignCcuIns(HcclComm comm, CcuInsHandle ins);
HcclResult HcclCommQueryCcuIns(HcclComm comm, CcuInsHandle* ins, uint32_t* num);
HcclResult HcclCommQueryAssignedCcuIns(HcclComm comm, CcuInsHandle* ins, uint32_t* num);

#ifdef __cplusplus
}
#endif

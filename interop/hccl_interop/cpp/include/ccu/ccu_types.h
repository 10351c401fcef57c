// Results, handles and configurations of the CCU's interface.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    CCU_SUCCESS = 0,
    CCU_E_PARA = 1,
    CCU_E_PTR = 2,
    CCU_E_INTERNAL = 4,
    CCU_E_NOT_SUPPORT = 5,
    CCU_E_NOT_FOUND = 6,
    CCU_E_UNAVAIL = 7,
    CCU_E_RUNTIME = 15,
    CCU_E_DRV_START = 4096,
    CCU_E_DRV_INIT_FAILED = 4097,
    CCU_E_DRV_BUSY = 4098,
    CCU_E_DRV_END = 4224,
    CCU_E_RESERVED = 9216
} CcuResult;

typedef enum {
    CCU_CONDITION_EQ = 0,
    CCU_CONDITION_NE = 1,
    CCU_CONDITION_LT = 2,
    CCU_CONDITION_LE = 3,
    CCU_CONDITION_GT = 4,
    CCU_CONDITION_GE = 5
} CcuConditionType;

typedef uint64_t CcuInsHandle;
typedef uint64_t CcuKernelHandle;
typedef uint64_t CcuVariableHandle;
typedef uint64_t CcuAddressHandle;
typedef uint64_t CcuEventHandle;
typedef uint64_t CcuBufferHandle;
typedef uint64_t CcuLocalAddrHandle;
typedef uint64_t CcuRemoteAddrHandle;
typedef uint64_t CcuLoop;
typedef uint64_t CcuLoopGroup;
typedef uint64_t CcuLoopExecutors;
typedef void* CcuKernelArg;

// A loop: its iterations, and the bytes that every address moves on by in each.
typedef struct {
    uint64_t addrOffset;
    uint64_t iterNum;
} CcuLoopConfig;

// Copies of loops: how many more, from which loop on, and their distances.
typedef struct {
    uint32_t cloneNum;
    uint32_t cloneLoopOffset;
    uint32_t addrOffset;
    uint32_t ccuBufferOffset;
    uint32_t eventOffset;
} CcuLoopGroupConfig;

typedef struct {
    uint32_t magic;
    uint32_t version;
    uint32_t size;
    uint32_t reserved;
} CcuCfgHeader;

typedef struct {
    CcuCfgHeader header;
    uint64_t addrOffset;
    uint64_t iterNum;
    uint64_t reserved[4];
} CcuLoopCfg;

typedef struct {
    CcuCfgHeader header;
    uint32_t cloneNum;
    uint32_t cloneLoopOffset;
    uint32_t addrOffset;
    uint32_t ccuBufferOffset;
    uint32_t eventOffset;
    uint32_t varOffset;
    uint32_t reserved[8];
} CcuLoopGroupCfg;

#ifdef __cplusplus
}
#endif

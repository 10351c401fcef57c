// What HCCL uses of CANN's runtime beyond what custom ops do, whose header is included before.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

#define ACL_EVENT_SYNC 0x1U
#define ACL_RT_DEVS_TOPOLOGY_HCCS 0x01ULL
#define ACL_RT_DEVS_TOPOLOGY_SIO 0x08ULL
#define ACL_RT_DEVS_TOPOLOGY_HCCS_SW 0x10ULL
#define ACL_NOTIFY_DEFAULT 0

typedef struct rtExceptionInfo aclrtExceptionInfo;
typedef enum {
    ACL_MODEL_RI_CAPTURE_MODE_GLOBAL = 0,
    ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL,
    ACL_MODEL_RI_CAPTURE_MODE_RELAXED
} aclmdlRICaptureMode;
typedef enum { ACL_RT_DEV_RES_CUBE_CORE = 0, ACL_RT_DEV_RES_VECTOR_CORE } aclrtDevResLimitType;

aclError aclrtStreamGetId(aclrtStream stream, int32_t* id);
aclError aclrtCreateEventExWithFlag(aclrtEvent* event, uint32_t flag);
aclError aclrtDestroyEvent(aclrtEvent event);
aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream);
aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event);
aclError aclrtCreateNotify(aclrtNotify* notify, uint64_t flag);
aclError aclrtRecordNotify(aclrtNotify notify, aclrtStream stream);
aclError aclrtWaitAndResetNotify(aclrtNotify notify, aclrtStream stream, uint32_t timeout);
aclError aclrtGetNotifyId(aclrtNotify notify, uint32_t* id);
aclError aclmdlRICaptureGetInfo(aclrtStream stream, aclmdlRICaptureStatus* status, aclmdlRI* model);
aclError aclmdlRICaptureThreadExchangeMode(aclmdlRICaptureMode* mode);
aclError aclrtGetDeviceInfo(uint32_t device, aclrtDevAttr attr, int64_t* value);
aclError aclrtGetDevicesTopo(uint32_t device, uint32_t other, uint64_t* value);
aclError aclrtGetLogicDevIdByPhyDevId(int32_t physical, int32_t* logical);
aclError aclrtGetResInCurrentThread(aclrtDevResLimitType type, uint32_t* value);
aclError aclrtGetOpTimeOutInterval(uint64_t* interval);
aclError aclrtMemset(void* at, size_t most, int32_t value, size_t count);
aclError aclsysGetVersionNum(char* package, int32_t* version);

#ifdef __cplusplus
}
#endif

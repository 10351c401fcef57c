// Answers of CANN's runtime that HCCL's host code asks for on its way to the CCU, and of the library
// that it looks its platform up in: here that is the program that has loaded it.
#include <dlfcn.h>

#include "acl_rt.h"

extern "C" {

aclError aclsysGetVersionNum(char*, int32_t* version)
{
    *version = CANN_VERSION_NUM;
    return ACL_SUCCESS;
}

aclError aclrtStreamGetId(aclrtStream, int32_t* id)
{
    *id = 0;
    return ACL_SUCCESS;
}

aclError aclmdlRICaptureGetInfo(aclrtStream, aclmdlRICaptureStatus* status, aclmdlRI*)
{
    *status = ACL_MODEL_RI_CAPTURE_STATUS_NONE;
    return ACL_SUCCESS;
}

aclError aclrtGetLogicDevIdByPhyDevId(int32_t physical, int32_t* logical)
{
    *logical = physical;
    return ACL_SUCCESS;
}

int HcclDlclose(void*)
{
    return 0;
}

void* HcclDlsym(void* handle, const char* name)
{
    return dlsym(handle, name);
}

void* HcclDlopen(const char*, int mode)
{
    return dlopen(nullptr, mode);
}

}  // extern "C"

// CANN's runtime as far as a launch needs it: a kernel runs at once, in the process of its rank.

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

#include "acl/acl_rt.h"
#include "state.hpp"

namespace recorder {

namespace {

constexpr aclError kRefused = ACL_ERROR_INVALID_PARAM;
constexpr aclError kKernelFailed = 507018;

struct Arguments {
    std::vector<char> bytes;
};

aclError refused(const char* call, const char* what)
{
    refuse("INVALID_ARGUMENT", "%s: %s", call, what);
    return kRefused;
}

bool is_device(const void* address)
{
    return place_of(address).part != kNoPart;
}

// True for memory of the host and for device memory that the rank allocated: no other has contents.
bool has_contents(const void* address)
{
    Place place = place_of(address);
    return place.part == kNoPart || (place.part == kDev && place.rank == state.rank);
}

unsigned run_kernel(aclrtFuncHandle function, void* arguments)
{
    auto kernel = reinterpret_cast<unsigned (*)(void*)>(function);
    state.in_kernel = true;
    show_device_memory(true);
    unsigned result = kernel(arguments);
    show_device_memory(false);
    state.in_kernel = false;
    return result;
}

}  // namespace

}  // namespace recorder

using namespace recorder;

extern "C" {

// Host code looks for the file that describes its kernels below ASCEND_HOME_PATH: every path there resolves.
char* realpath(const char* path, char* resolved)
{
    static auto real = reinterpret_cast<char* (*)(const char*, char*)>(dlsym(RTLD_NEXT, "realpath"));
    char* found = real(path, resolved);
    const std::string& home = state.options.home;
    if (found != nullptr || path == nullptr || home.empty() || home.compare(0, home.size(), path, home.size()) != 0) {
        return found;
    }
    return resolved != nullptr ? strcpy(resolved, path) : strdup(path);
}

aclError aclInit(const char*)
{
    return ACL_SUCCESS;
}

aclError aclFinalize(void)
{
    return ACL_SUCCESS;
}

aclError aclrtSetDevice(int32_t)
{
    return ACL_SUCCESS;
}

aclError aclrtResetDevice(int32_t)
{
    return ACL_SUCCESS;
}

aclError aclrtGetDevice(int32_t* deviceId)
{
    *deviceId = int32_t(state.options.device_id[state.rank]);
    return ACL_SUCCESS;
}

aclError aclrtGetDeviceCount(uint32_t* count)
{
    *count = 0;
    for (uint32_t server : state.options.server) {
        *count += server == state.options.server[state.rank];
    }
    return ACL_SUCCESS;
}

const char* aclrtGetSocName(void)
{
    return state.options.soc.c_str();
}

aclError aclrtGetLastError(aclrtLastErrLevel)
{
    return ACL_SUCCESS;
}

aclError aclrtCreateStream(aclrtStream* stream)
{
    *stream = reinterpret_cast<aclrtStream>(2);
    return ACL_SUCCESS;
}

aclError aclrtDestroyStream(aclrtStream)
{
    return ACL_SUCCESS;
}

aclError aclrtSynchronizeStream(aclrtStream)
{
    return ACL_SUCCESS;
}

aclError aclrtMalloc(void** devPtr, size_t size, aclrtMemMallocPolicy)
{
    *devPtr = take_device_memory(size);
    return *devPtr ? ACL_SUCCESS : ACL_ERROR_RT_MEMORY_ALLOCATION;
}

aclError aclrtFree(void* devPtr)
{
    return has_contents(devPtr) && is_device(devPtr) ? ACL_SUCCESS : refused(__func__, "this is no allocated memory");
}

aclError aclrtMallocHost(void** hostPtr, size_t size)
{
    *hostPtr = malloc(size);
    return *hostPtr ? ACL_SUCCESS : ACL_ERROR_RT_MEMORY_ALLOCATION;
}

aclError aclrtFreeHost(void* hostPtr)
{
    free(hostPtr);
    return ACL_SUCCESS;
}

// Copies memory that has contents. The buffers of a call have none while recording.
aclError aclrtMemcpy(void* dst, size_t destMax, const void* src, size_t count, aclrtMemcpyKind)
{
    if (count > destMax) {
        return refused(__func__, "the destination is too small");
    }
    if (!has_contents(dst) || !has_contents(src)) {
        refuse("UNSUPPORTED_CALL", "%s between host and the buffers of a call: data is not there while recording",
               __func__);
        return kRefused;
    }
    show_device_memory(true);
    memmove(dst, src, count);
    show_device_memory(state.in_kernel);
    return ACL_SUCCESS;
}

aclError aclrtBinaryLoadFromFile(const char*, aclrtBinaryLoadOptions*, aclrtBinHandle* binHandle)
{
    *binHandle = state.device_library;
    return ACL_SUCCESS;
}

aclError aclrtBinaryUnLoad(aclrtBinHandle)
{
    return ACL_SUCCESS;
}

aclError aclrtBinaryGetFunction(const aclrtBinHandle, const char* kernelName, aclrtFuncHandle* function)
{
    const std::string& other = state.options.kernel;
    const char* name = other.empty() ? kernelName : other.c_str();
    *function = dlsym(state.device_library, name);
    if (*function == nullptr) {
        refuse("INVALID_ARGUMENT", "%s: the kernels have no function %s; it must be extern \"C\"", __func__, name);
        return kRefused;
    }
    return ACL_SUCCESS;
}

aclError aclrtKernelArgsInit(aclrtFuncHandle, aclrtArgsHandle* argsHandle)
{
    *argsHandle = new Arguments;
    return ACL_SUCCESS;
}

// Arguments lie one after the other, each at a multiple of 8.
aclError aclrtKernelArgsAppend(aclrtArgsHandle argsHandle, void* param, size_t paramSize,
                               aclrtParamHandle* paramHandle)
{
    auto& bytes = static_cast<Arguments*>(argsHandle)->bytes;
    size_t begin = (bytes.size() + 7) / 8 * 8;
    bytes.resize(begin + paramSize);
    memcpy(bytes.data() + begin, param, paramSize);
    if (paramHandle != nullptr) {
        *paramHandle = reinterpret_cast<aclrtParamHandle>(begin + 1);
    }
    return ACL_SUCCESS;
}

aclError aclrtKernelArgsFinalize(aclrtArgsHandle)
{
    return ACL_SUCCESS;
}

aclError aclrtLaunchKernelWithConfig(aclrtFuncHandle function, uint32_t, aclrtStream, aclrtLaunchKernelCfg*,
                                     aclrtArgsHandle argsHandle, void*)
{
    if (function == nullptr || argsHandle == nullptr) {
        return refused(__func__, "there is no kernel, or there are no arguments");
    }
    unsigned result = run_kernel(function, static_cast<Arguments*>(argsHandle)->bytes.data());
    if (result != 0) {
        if (!has_findings()) {  // otherwise an earlier finding has the reason
            find_at("CALL_FAILED", stack_at(function), "The AICPU kernel returned %u", result);
        }
        return kKernelFailed;
    }
    return ACL_SUCCESS;
}

}  // extern "C"

// The calls of host code on the CCU: instances, kernels, launches, tokens.

#include <cstring>
#include <exception>

#include "ccu.hpp"
#include "ccu/ccu_launch.h"
#include "ccu/ccu_res.h"
#include "hccl/hccl_ccu_res.h"
#include "hccl/hccl_rank_graph.h"

namespace recorder {

namespace {

constexpr uint32_t kResources = 7;
constexpr uint32_t kUsual[kResources] = {16, 128, 400, 400, 48, 2, 32768};  // of an instance in mode CCU_SCHED
constexpr uint32_t kUsualOfMs[kResources] = {128, 1024, 400, 400, 160, 2, 32768};  // and in mode CCU_MS
constexpr uint32_t kMost[kResources] = {200, 1536, 3072, 3072, 1024, 16, 32768};
constexpr uint32_t kResourceOf[kSortCount] = {2, 3, 4, 1, 0};  // by sort of register
const char* const kNames[kSortCount] = {"variables", "addresses", "events", "buffers", "loops"};

struct Instance {
    uint32_t budget[kDies][kResources];
    uint32_t used[kDies][kSortCount];
    uint32_t kernels[kDies];
    bool is_registering;
};

struct Description {
    uint32_t die;
    uint32_t number[kResources];
};

std::vector<Instance> instances;
std::vector<Description> descriptions;
uint64_t own_instance = 0;  // of the communicator; 0 until it is asked for
uint32_t launches = 0;

Instance* instance_of(const char* call, CcuInsHandle handle)
{
    if (handle == 0 || handle > instances.size()) {
        refuse("UNKNOWN_HANDLE", "%s: 0x%lx is no instance of the CCU", call, handle);
        return nullptr;
    }
    return &instances[handle - 1];
}

Description* description_of(const char* call, HcommCcuResDescHandle handle)
{
    if (handle == 0 || handle > descriptions.size()) {
        refuse("UNKNOWN_HANDLE", "%s: 0x%lx is no description of resources", call, handle);
        return nullptr;
    }
    return &descriptions[handle - 1];
}

CcuKernel* kernel_of(const char* call, CcuKernelHandle handle)
{
    uint64_t number = handle - kKernelHandle - 1;
    if (number >= ccu.kernels.size()) {
        refuse("UNKNOWN_HANDLE", "%s: 0x%lx is no registered kernel", call, handle);
        return nullptr;
    }
    return &ccu.kernels[number];
}

uint64_t usual_instance()
{
    Instance made{};
    for (auto& budget : made.budget) {
        bool is_ms = state.options.expansion == HCCL_OP_EXPANSION_MODE_CCU_MS;
        memcpy(budget, is_ms ? kUsualOfMs : kUsual, sizeof kUsual);
    }
    instances.push_back(made);
    return instances.size();
}

// The line at which a kernel takes the first register of a sort that its instance lacks.
int stack_of(const CcuKernel& kernel, uint32_t sort, uint32_t left)
{
    for (const Taking& taking : kernel.takings) {
        if (taking.sort == sort && taking.count > left) {
            return taking.stack;
        }
    }
    return current_stack();
}

// Takes a kernel's registers from the pool of its instance and die.
CcuResult allot(Instance& instance, const CcuKernel& kernel)
{
    uint32_t die = uint32_t(kernel.die);
    if (instance.kernels[die] >= instance.budget[die][HCOMM_CCU_RES_TYPE_CCU_THREAD]) {
        refuse("RESOURCE_EXCEEDED",
               "HcommCcuKernelRegister: kernel %s is number %u of this round on die %u, whose instance has %u missions",
               kernel.name.c_str(), instance.kernels[die] + 1, die, instance.budget[die][HCOMM_CCU_RES_TYPE_CCU_THREAD]);
        return CCU_E_UNAVAIL;
    }
    for (uint32_t sort = 0; sort < kSortCount; ++sort) {
        uint32_t budget = instance.budget[die][kResourceOf[sort]], used = instance.used[die][sort];
        uint32_t needed = kernel.registers[sort] + (sort == 0 && kernel.has_branches);
        uint32_t left = used < budget ? budget - used : 0;
        if (needed > left) {
            find_at("RESOURCE_EXCEEDED", stack_of(kernel, sort, left),
                    "Kernel %s needs %u %s on die %u, and %u of the instance's %u are left: HCCL refuses to register it "
                    "(CCU_E_UNAVAIL). LocalAddr and RemoteAddr take an address and a variable each, and no register is "
                    "given back inside a kernel",
                    kernel.name.c_str(), needed, kNames[sort], die, left, budget);
            return CCU_E_UNAVAIL;
        }
    }
    return CCU_SUCCESS;
}

CcuResult run_kernel(const CcuKernel& kernel, const void* function, const void** arguments, uint32_t count)
{
    int result = CCU_SUCCESS;
    std::string why;
    try {
        if (count > 0) {
            auto run = reinterpret_cast<CcuResult (*)(CcuKernelArg)>(const_cast<void*>(function));
            result = run(const_cast<void*>(arguments[0]));
        } else {
            result = reinterpret_cast<CcuResult (*)()>(const_cast<void*>(function))();
        }
    } catch (const std::exception& error) {
        result = CCU_E_INTERNAL;
        why = std::string(" after an exception: ") + error.what();
    }
    if (result != CCU_SUCCESS && !has_findings()) {
        find_at("CALL_FAILED", stack_at(function), "Kernel %s returned %d%s", kernel.name.c_str(), result, why.c_str());
    }
    return kernel.is_refused && result == CCU_SUCCESS ? CCU_E_PARA : static_cast<CcuResult>(result);
}

CcuResult check_arguments(const CcuKernel& kernel, uint32_t count)
{
    uint32_t loaded = 0;
    for (bool is_loaded : kernel.arguments) {
        loaded += is_loaded;
    }
    if (loaded == count && loaded == kernel.arguments.size()) {
        return CCU_SUCCESS;
    }
    refuse("INVALID_ARGUMENT",
           "HcommCcuKernelLaunch: %u arguments for kernel %s, which loads %u different ones, the last of number %zu: a "
           "launch passes as many as the kernel loads, numbered from 0 without a gap",
           count, kernel.name.c_str(), loaded, kernel.arguments.size() - !kernel.arguments.empty());
    return CCU_E_INTERNAL;
}

HcclResult give_instance(const char* call, CcuInsHandle* ins, uint32_t* num)
{
    if (ins == nullptr || num == nullptr) {
        return no_room(call);
    }
    if (own_instance == 0) {
        own_instance = usual_instance();
    }
    *ins = own_instance;
    *num = 1;
    return HCCL_SUCCESS;
}

CcuResult ccu_not_modelled(const char* call, const char* why)
{
    return refuse("UNSUPPORTED_CALL", "%s is not modelled: %s", call, why);
}

}  // namespace

}  // namespace recorder

using namespace recorder;

extern "C" {

HcclResult HcclCommAssignCcuIns(HcclComm, CcuInsHandle ins)
{
    if (instance_of(__func__, ins) == nullptr) {
        return HCCL_E_PARA;
    }
    own_instance = ins;
    return HCCL_SUCCESS;
}

HcclResult HcclCommQueryCcuIns(HcclComm, CcuInsHandle* ins, uint32_t* num)
{
    return give_instance(__func__, ins, num);
}

// An instance that host code has not assigned is none.
HcclResult HcclCommQueryAssignedCcuIns(HcclComm, CcuInsHandle* ins, uint32_t* num)
{
    return own_instance == 0 ? HCCL_E_UNAVAIL : give_instance(__func__, ins, num);
}

CcuResult HcommCcuInsResDescCreate(uint32_t dieId, HcommCcuResDescHandle* desc)
{
    if (desc == nullptr) {
        return no_room(__func__);
    }
    if (dieId >= kDies) {
        return refuse("INVALID_ARGUMENT", "%s: die %u; an NPU has dies 0 and 1", __func__, dieId);
    }
    descriptions.push_back({dieId, {}});
    *desc = descriptions.size();
    return CCU_SUCCESS;
}

CcuResult HcommCcuInsResDescDestroy(HcommCcuResDescHandle)
{
    return CCU_SUCCESS;
}

CcuResult HcommCcuInsResDescQueryDieId(HcommCcuResDescHandle desc, uint32_t* dieId)
{
    const Description* found = description_of(__func__, desc);
    if (found == nullptr || dieId == nullptr) {
        return CCU_E_PARA;
    }
    *dieId = found->die;
    return CCU_SUCCESS;
}

CcuResult HcommCcuInsResDescSetNum(HcommCcuResDescHandle desc, HcommCcuResType type, uint32_t num)
{
    Description* found = description_of(__func__, desc);
    if (found == nullptr) {
        return CCU_E_PARA;
    }
    if (type < 0 || uint32_t(type) >= kResources || num > kMost[type]) {
        return refuse("RESOURCE_EXCEEDED", "%s: %u resources of sort %d, of which a die has %u", __func__, num,
                      int(type), type < 0 || uint32_t(type) >= kResources ? 0 : kMost[type]);
    }
    found->number[type] = num;
    return CCU_SUCCESS;
}

CcuResult HcommCcuInsResDescQueryNum(HcommCcuResDescHandle desc, HcommCcuResType type, uint32_t* num)
{
    const Description* found = description_of(__func__, desc);
    if (found == nullptr || num == nullptr || type < 0 || uint32_t(type) >= kResources) {
        return CCU_E_PARA;
    }
    *num = found->number[type];
    return CCU_SUCCESS;
}

CcuResult HcommCcuInsCreate(const HcommCcuResDescHandle* descs, uint32_t count, CcuInsHandle* ins)
{
    if (ins == nullptr || (descs == nullptr && count > 0)) {
        return no_room(__func__);
    }
    Instance made{};
    for (uint32_t i = 0; i < count; ++i) {
        const Description* found = description_of(__func__, descs[i]);
        if (found == nullptr) {
            return CCU_E_PARA;
        }
        memcpy(made.budget[found->die], found->number, sizeof found->number);
    }
    instances.push_back(made);
    *ins = instances.size();
    return CCU_SUCCESS;
}

CcuResult HcommCcuInsCreateDefault(const uint32_t*, uint32_t, CcuInsHandle* ins)
{
    if (ins == nullptr) {
        return no_room(__func__);
    }
    *ins = usual_instance();
    return CCU_SUCCESS;
}

CcuResult HcommCcuInsDestroy(CcuInsHandle ins)
{
    return instance_of(__func__, ins) ? CCU_SUCCESS : CCU_E_PARA;
}

CcuResult HcommCcuInsQueryResDesc(CcuInsHandle ins, HcommCcuResDescHandle desc)
{
    const Instance* instance = instance_of(__func__, ins);
    Description* found = description_of(__func__, desc);
    if (instance == nullptr || found == nullptr) {
        return CCU_E_PARA;
    }
    memcpy(found->number, instance->budget[found->die], sizeof found->number);
    return CCU_SUCCESS;
}

CcuResult HcommCcuQueryRemainResDesc(HcommCcuResDescHandle desc)
{
    Description* found = description_of(__func__, desc);
    if (found == nullptr) {
        return CCU_E_PARA;
    }
    memcpy(found->number, kMost, sizeof kMost);
    return CCU_SUCCESS;
}

// Runs the kernel's function as registering does, and counts.
CcuResult HcommCcuKernelQueryResReq(const void* kernel, const void** kernelArgs, uint32_t argNum,
                                    HcommCcuResDescHandle desc)
{
    Description* found = description_of(__func__, desc);
    if (found == nullptr || kernel == nullptr || argNum > 1 || (argNum == 1 && kernelArgs == nullptr)) {
        return CCU_E_PARA;
    }
    CcuKernel counted;
    counted.name = "to register";  // it gets its name later
    ccu.is_counting = true;
    begin_listing(counted);
    CcuResult result = run_kernel(counted, kernel, kernelArgs, argNum);
    end_listing();
    ccu.is_counting = false;
    for (uint32_t sort = 0; sort < kSortCount; ++sort) {
        found->number[kResourceOf[sort]] = counted.registers[sort] + (sort == 0 && counted.has_branches);
    }
    found->number[HCOMM_CCU_RES_TYPE_CCU_THREAD] = 1;
    found->number[HCOMM_CCU_RES_TYPE_INSTRUCTION] = counted.lines;
    return result;
}

CcuResult HcommCcuVariableAlloc(CcuInsHandle, uint8_t, uint32_t, CcuVariableHandle*)
{
    return ccu_not_modelled(__func__, "take variables in the kernel");
}

CcuResult HcommCcuEventAlloc(CcuInsHandle, uint8_t, uint32_t, CcuEventHandle*)
{
    return ccu_not_modelled(__func__, "take events in the kernel");
}

CcuResult HcommCcuVariableGetAddr(CcuVariableHandle, uint32_t, uint64_t*)
{
    return ccu_not_modelled(__func__, "take variables in the kernel");
}

CcuResult HcommCcuEventGetAddr(CcuEventHandle, uint32_t, uint64_t*)
{
    return ccu_not_modelled(__func__, "take events in the kernel");
}

// A token is a number of the process, not of a buffer.
CcuResult HcommCcuGetMemToken(uint64_t srcVa, uint64_t, uint64_t* tokenInfo)
{
    if (tokenInfo == nullptr) {
        return no_room(__func__);
    }
    const void* address = reinterpret_cast<const void*>(srcVa);
    Place place = place_of(address);
    if (place.part == kNoPart || place.rank != state.rank) {
        return refuse("WRONG_ADDRESS", "%s: the memory is %s", __func__, words_of(address).c_str());
    }
    *tokenInfo = 0x7e00000000000000ULL | place.rank;
    return CCU_SUCCESS;
}

CcuResult HcommCcuKernelRegisterStart(CcuInsHandle ins)
{
    Instance* instance = instance_of(__func__, ins);
    if (instance == nullptr) {
        return CCU_E_PARA;
    }
    memset(instance->used, 0, sizeof instance->used);
    memset(instance->kernels, 0, sizeof instance->kernels);
    instance->is_registering = true;
    return CCU_SUCCESS;
}

CcuResult HcommCcuKernelRegisterEnd(CcuInsHandle ins)
{
    Instance* instance = instance_of(__func__, ins);
    if (instance == nullptr) {
        return CCU_E_PARA;
    }
    instance->is_registering = false;
    return CCU_SUCCESS;
}

CcuResult HcommCcuKernelRegister(CcuInsHandle ins, uint32_t dieId, const char* name, const void* kernel,
                                 const void** kernelArgs, uint32_t argNum, CcuKernelHandle* handle)
{
    Instance* instance = instance_of(__func__, ins);
    if (instance == nullptr) {
        return CCU_E_PARA;
    }
    if (!instance->is_registering) {
        return refuse("INVALID_ARGUMENT",
                      "%s: not between HcommCcuKernelRegisterStart and HcommCcuKernelRegisterEnd", __func__);
    }
    if (ccu.current != nullptr) {
        return refuse("INVALID_ARGUMENT", "%s inside the function of kernel %s", __func__, ccu.current->name.c_str());
    }
    if (kernel == nullptr || handle == nullptr || argNum > 1 || (argNum == 1 && kernelArgs == nullptr)) {
        return refuse("INVALID_ARGUMENT",
                      "%s: a kernel has a function, a place for its handle and at most one argument; here are %u", __func__,
                      argNum);
    }
    ccu.kernels.emplace_back();
    CcuKernel& mine = ccu.kernels.back();
    mine.name = name ? name : "";
    for (char& letter : mine.name) {
        letter = static_cast<unsigned char>(letter) < ' ' ? ' ' : letter;
    }
    write_line("K\t%d\t%s", stack_at(kernel), mine.name.c_str());
    begin_listing(mine);
    CcuResult result = run_kernel(mine, kernel, kernelArgs, argNum);
    end_listing();
    mine.die = mine.die >= 0 ? mine.die : int(dieId < kDies ? dieId : 0);
    result = result == CCU_SUCCESS ? allot(*instance, mine) : result;
    uint32_t die = uint32_t(mine.die);
    write_line("Z\t%u\t%u\t%u\t%u\t%u", die, instance->kernels[die], instance->used[die][sort_number('b')],
               mine.registers[sort_number('e')], mine.registers[sort_number('b')]);
    ++instance->kernels[die];
    for (uint32_t sort = 0; sort < kSortCount; ++sort) {
        instance->used[die][sort] += mine.registers[sort] + (sort == 0 && mine.has_branches);
    }
    *handle = kKernelHandle + ccu.kernels.size();
    return result;
}

CcuResult HcommCcuGetTaskArgsNum(CcuKernelHandle kernel, uint32_t* taskArgsNum)
{
    const CcuKernel* found = kernel_of(__func__, kernel);
    if (found == nullptr || taskArgsNum == nullptr) {
        return CCU_E_PARA;
    }
    *taskArgsNum = uint32_t(found->arguments.size());
    return CCU_SUCCESS;
}

CcuResult HcommCcuKernelLaunch(ThreadHandle thread, CcuKernelHandle kernel, const void* taskArgs, uint32_t argNum)
{
    if (thread_of(thread) == nullptr) {
        return no_thread(__func__, thread);
    }
    const CcuKernel* launched = kernel_of(__func__, kernel);
    CcuResult found = launched == nullptr ? CCU_E_PARA : check_arguments(*launched, argNum);
    if (found != CCU_SUCCESS) {
        return found;
    }
    if (taskArgs == nullptr && argNum > 0) {
        return refuse("INVALID_ARGUMENT", "%s: the arguments are null", __func__);
    }
    Task task = task_on(thread, kLaunch);
    task.target = int32_t(launches);
    task.index = int32_t(launched - ccu.kernels.data());
    write_task(task);
    std::string text;
    char one[24];
    for (uint32_t i = 0; i < argNum; ++i) {
        snprintf(one, sizeof one, "\t%lx", static_cast<const uint64_t*>(taskArgs)[i]);
        text += one;
    }
    write_line("L\t%u%s", launches++, text.c_str());
    return CCU_SUCCESS;
}

}  // extern "C"

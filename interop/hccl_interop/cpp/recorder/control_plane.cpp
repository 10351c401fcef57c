// The calls of host code on a communicator: threads, channels, contexts, registered memory.

#include <cstring>

#include "hccl/hccl_comm.h"
#include "hccl/hccl_diag.h"
#include "hccl/hccl_res.h"
#include "hccl/hccl_res_expt.h"
#include "state.hpp"

namespace recorder {

namespace {

constexpr uint32_t kMostThreads = 4096;
constexpr uint32_t kMostNotifies = 8192;

char communicator_name[] = "hccl_py";

HcclResult take_threads(const char* call, CommEngine engine, uint32_t count, const uint32_t* notifies,
                        ThreadHandle* threads)
{
    if (engine == COMM_ENGINE_AIV) {
        return refuse("UNSUPPORTED_CALL", "%s: threads of the AIV engine are not modelled", call);
    }
    if (count > 0 && threads == nullptr) {
        return no_room(call);
    }
    if (state.threads.size() + count > kMostThreads) {
        return refuse("INVALID_ARGUMENT", "%s: %u threads; a rank has at most %u", call, count, kMostThreads);
    }
    for (uint32_t i = 0; i < count; ++i) {
        if (notifies[i] > kMostNotifies) {
            return refuse("INVALID_ARGUMENT", "%s: %u notifies of a thread", call, notifies[i]);
        }
        state.engine = engine;
        threads[i] = kThreadHandle + state.threads.size();
        state.threads.push_back({notifies[i], current_stack()});
    }
    return HCCL_SUCCESS;
}

std::string key_of(CommEngine engine, const char* tag)
{
    return std::to_string(int(engine)) + ":" + (tag ? tag : "");
}

Context* context_of(const std::string& key)
{
    for (Context& context : state.contexts) {
        if (context.key == key) {
            return &context;
        }
    }
    return nullptr;
}

bool is_on_device(CommEngine engine)
{
    return engine != COMM_ENGINE_CPU && engine != COMM_ENGINE_CPU_TS && engine != COMM_ENGINE_CCU;
}

// The memory that a channel's peer has registered; all ranks are assumed to register the same.
CommMem memory_of_peer(const Channel& channel, const Memory& mine)
{
    CommMem theirs = mine.where;
    Place place = place_of(mine.where.addr);
    theirs.addr = static_cast<char*>(address_of(channel.peer, place.part)) + place.offset;
    return theirs;
}

HcclResult acquire(const char* call, CommEngine engine, const HcclChannelDesc& desc, ChannelHandle* handle)
{
    if (desc.header.magicWord != HCCL_CHANNEL_MAGIC_WORD) {
        return refuse("INVALID_ARGUMENT", "%s: the description was not made with HcclChannelDescInit", call);
    }
    if (desc.remoteRank >= state.options.ranks || desc.remoteRank == state.rank) {
        return refuse("INVALID_ARGUMENT", "%s: a channel of rank %u to rank %u, of %u ranks", call, state.rank,
                      desc.remoteRank, state.options.ranks);
    }
    if (desc.notifyNum > kMostNotifies) {
        return refuse("INVALID_ARGUMENT", "%s: %u notifies of a channel", call, desc.notifyNum);
    }
    Channel channel{desc.remoteRank, 0, 0, desc.notifyNum, {}, true};
    if (!find_link(desc.localEndpoint, desc.remoteRank, channel.network, channel.die)) {
        return refuse("INVALID_ARGUMENT", "%s: no link of this layer leads from rank %u to rank %u", call,
                      state.rank, desc.remoteRank);
    }
    unsigned shown = engine == COMM_ENGINE_CCU ? (1U << kParts) - 1 : 1U << kCcl;  // a token permits all memory
    for (uint32_t i = 0; desc.memHandles != nullptr && i < desc.memHandleNum; ++i) {
        uint64_t number = reinterpret_cast<uint64_t>(desc.memHandles[i]) - 1;
        if (number >= state.memories.size()) {
            return refuse("UNKNOWN_HANDLE", "%s: memory %u of the channel was never registered", call, i);
        }
        channel.memories.push_back(uint32_t(number));
        shown |= 1U << place_of(state.memories[number].where.addr).part;
    }
    *handle = kChannelHandle + state.channels.size();
    state.channels.push_back(channel);
    write_line("C\t%u\t%u\t%u\t%u\t%u\t%d", desc.remoteRank, state.options.network_layer[channel.network],
               channel.network, desc.notifyNum, shown, current_stack());
    return HCCL_SUCCESS;
}

}  // namespace

}  // namespace recorder

using namespace recorder;

extern "C" {

HcclResult HcclGetCommName(HcclComm, char* commName)
{
    if (commName == nullptr) {
        return no_room(__func__);
    }
    strcpy(commName, communicator_name);
    return HCCL_SUCCESS;
}

HcclResult HcclGetRankSize(HcclComm, uint32_t* rankSize)
{
    if (rankSize == nullptr) {
        return no_room(__func__);
    }
    *rankSize = state.options.ranks;
    return HCCL_SUCCESS;
}

HcclResult HcclGetRankId(HcclComm, uint32_t* rank)
{
    if (rank == nullptr) {
        return no_room(__func__);
    }
    *rank = state.rank;
    return HCCL_SUCCESS;
}

const char* HcclGetErrorString(HcclResult code)
{
    return code == HCCL_SUCCESS ? "no error" : "error";
}

HcclResult HcclGetHcclBuffer(HcclComm, void** buffer, uint64_t* size)
{
    if (buffer == nullptr || size == nullptr) {
        return no_room(__func__);
    }
    *buffer = address_of(state.rank, kCcl);
    *size = state.options.ccl_bytes;
    return HCCL_SUCCESS;
}

HcclResult HcclThreadAcquire(HcclComm, CommEngine engine, uint32_t threadNum, uint32_t notifyNumPerThread,
                             ThreadHandle* threads)
{
    std::vector<uint32_t> notifies(threadNum < kMostThreads ? threadNum : 0, notifyNumPerThread);
    return take_threads(__func__, engine, threadNum, notifies.data(), threads);
}

HcclResult HcclThreadAcquireWithConfig(HcclComm, CommEngine engine, uint32_t threadNum, ThreadType,
                                       const ThreadConfig* config, ThreadHandle* threads)
{
    if (config == nullptr) {
        return refuse("INVALID_ARGUMENT", "%s: there is no configuration", __func__);
    }
    std::vector<uint32_t> notifies;
    for (uint32_t i = 0; i < threadNum && i < kMostThreads; ++i) {
        if (config[i].header.magicWord != HCOMM_THREAD_CONFIG_MAGIC_WORD) {
            return refuse("INVALID_ARGUMENT", "%s: configuration %u was not made with ThreadConfigInit",
                          __func__, i);
        }
        notifies.push_back(config[i].notifyNumPerThread);
    }
    return take_threads(__func__, engine, threadNum, notifies.data(), threads);
}

// The caller's stream is always thread 0.
HcclResult HcclThreadAcquireWithStream(HcclComm, CommEngine engine, aclrtStream, uint32_t notifyNum, ThreadHandle* thread)
{
    if (thread == nullptr) {
        return no_room(__func__);
    }
    if (state.threads[0].notifies < notifyNum) {
        state.threads[0] = {notifyNum, current_stack()};
    }
    state.engine = engine;
    *thread = kThreadHandle;
    return HCCL_SUCCESS;
}

HcclResult HcclThreadExportToCommEngine(HcclComm, uint32_t threadNum, const ThreadHandle* threads, CommEngine,
                                        ThreadHandle* exportedThreads)
{
    if (threadNum > 0 && (threads == nullptr || exportedThreads == nullptr)) {
        return no_room(__func__);
    }
    for (uint32_t i = 0; i < threadNum; ++i) {
        if (thread_of(threads[i]) == nullptr) {
            return no_thread(__func__, threads[i]);
        }
        exportedThreads[i] = threads[i];
    }
    return HCCL_SUCCESS;
}

HcclResult HcclEngineCtxCreate(HcclComm, const char* ctxTag, CommEngine engine, uint64_t size, void** ctx)
{
    if (ctx == nullptr) {
        return no_room(__func__);
    }
    if (context_of(key_of(engine, ctxTag)) != nullptr) {
        return refuse("INVALID_ARGUMENT", "%s: there is a context %s already", __func__, ctxTag);
    }
    void* address = is_on_device(engine) ? take_device_memory(size) : calloc(1, size);
    if (address == nullptr) {
        return refuse("INVALID_ARGUMENT", "%s: a context of %lu bytes", __func__, size);
    }
    state.contexts.push_back({key_of(engine, ctxTag), address, size});
    *ctx = address;
    return HCCL_SUCCESS;
}

// A missing context is no error: it tells an op that this is its first call.
HcclResult HcclEngineCtxGet(HcclComm, const char* ctxTag, CommEngine engine, void** ctx, uint64_t* size)
{
    const Context* found = context_of(key_of(engine, ctxTag));
    if (found == nullptr) {
        return HCCL_E_NOT_FOUND;
    }
    if (ctx == nullptr || size == nullptr) {
        return no_room(__func__);
    }
    *ctx = found->address;
    *size = found->size;
    return HCCL_SUCCESS;
}

HcclResult HcclEngineCtxCopy(HcclComm, CommEngine engine, const char* ctxTag, const void* srcCtx, uint64_t size,
                             uint64_t dstCtxOffset)
{
    const Context* found = context_of(key_of(engine, ctxTag));
    if (found == nullptr) {
        return refuse("UNKNOWN_HANDLE", "%s: there is no context %s of this engine", __func__, ctxTag);
    }
    const Context& context = *found;
    if (srcCtx == nullptr || dstCtxOffset > context.size || size > context.size - dstCtxOffset) {
        return refuse("INVALID_ARGUMENT", "%s: %lu bytes at %lu do not fit context %s of %lu bytes", __func__,
                      size, dstCtxOffset, ctxTag, context.size);
    }
    show_device_memory(true);
    memcpy(static_cast<char*>(context.address) + dstCtxOffset, srcCtx, size);
    show_device_memory(state.in_kernel);
    return HCCL_SUCCESS;
}

HcclResult HcclEngineCtxDestroy(HcclComm, const char* ctxTag, CommEngine engine)
{
    Context* found = context_of(key_of(engine, ctxTag));
    if (found == nullptr) {
        return refuse("UNKNOWN_HANDLE", "%s: there is no context %s of this engine", __func__, ctxTag);
    }
    found->key.clear();
    return HCCL_SUCCESS;
}

HcclResult HcclCommMemReg(HcclComm, const char* memTag, const CommMem* mem, HcclMemHandle* memHandle)
{
    if (mem == nullptr || memHandle == nullptr) {
        return no_room(__func__);
    }
    Place place = place_of(mem->addr);
    if (place.part == kNoPart || place.rank != state.rank) {
        return refuse("WRONG_ADDRESS", "%s: memory %s is %s", __func__, memTag, words_of(mem->addr).c_str());
    }
    state.memories.push_back({memTag ? memTag : "", *mem});
    *memHandle = reinterpret_cast<HcclMemHandle>(state.memories.size());
    return HCCL_SUCCESS;
}

HcclResult HcclDevMemAcquire(HcclComm, const char* memTag, uint64_t* size, void** addr, bool* newCreated)
{
    if (size == nullptr || addr == nullptr) {
        return no_room(__func__);
    }
    std::string key = std::string("memory:") + (memTag ? memTag : "");
    Context* memory = context_of(key);
    bool is_new = memory == nullptr;
    if (is_new) {
        void* address = take_device_memory(*size);
        if (address == nullptr) {
            return refuse("INVALID_ARGUMENT", "%s: memory of %lu bytes", __func__, *size);
        }
        state.contexts.push_back({key, address, *size});
        memory = &state.contexts.back();
    }
    *addr = memory->address;
    *size = memory->size;
    if (newCreated != nullptr) {
        *newCreated = is_new;
    }
    return HCCL_SUCCESS;
}

HcclResult HcclChannelAcquire(HcclComm, CommEngine engine, const HcclChannelDesc* channelDescs, uint32_t channelNum,
                              ChannelHandle* channels)
{
    if (engine == COMM_ENGINE_AIV) {
        return refuse("UNSUPPORTED_CALL", "%s: channels of the AIV engine are not modelled", __func__);
    }
    if (channelNum > 0 && (channelDescs == nullptr || channels == nullptr)) {
        return no_room(__func__);
    }
    for (uint32_t i = 0; i < channelNum; ++i) {
        HcclResult result = acquire(__func__, engine, channelDescs[i], &channels[i]);
        if (result != HCCL_SUCCESS) {
            return result;
        }
    }
    return HCCL_SUCCESS;
}

HcclResult HcclChannelDestroy(HcclComm, const ChannelHandle* channels, uint32_t channelNum)
{
    for (uint32_t i = 0; i < channelNum; ++i) {
        Channel* found = channel_of(channels[i]);
        if (found == nullptr) {
            return no_channel(__func__, channels[i]);
        }
        found->is_open = false;
    }
    return HCCL_SUCCESS;
}

HcclResult HcclChannelGetHcclBuffer(HcclComm, ChannelHandle channel, void** buffer, uint64_t* size)
{
    const Channel* found = channel_of(channel);
    if (found == nullptr) {
        return no_channel(__func__, channel);
    }
    if (buffer == nullptr || size == nullptr) {
        return no_room(__func__);
    }
    *buffer = address_of(found->peer, kCcl);
    *size = state.options.ccl_bytes;
    return HCCL_SUCCESS;
}

HcclResult HcclChannelGetRemoteMems(HcclComm, ChannelHandle channel, uint32_t* memNum, CommMem** remoteMems,
                                    char*** memTags)
{
    const Channel* found = channel_of(channel);
    if (found == nullptr) {
        return no_channel(__func__, channel);
    }
    if (memNum == nullptr || remoteMems == nullptr || memTags == nullptr) {
        return no_room(__func__);
    }
    // Both lists live as long as the process: the API has no call that frees them.
    auto* memories = new std::vector<CommMem>;
    auto* tags = new std::vector<char*>;
    for (uint32_t number : found->memories) {
        memories->push_back(memory_of_peer(*found, state.memories[number]));
        tags->push_back(strdup(state.memories[number].tag.c_str()));
    }
    *memNum = uint32_t(memories->size());
    *remoteMems = memories->data();
    *memTags = tags->data();
    return HCCL_SUCCESS;
}

// Reports of ops for profiling are ignored.
HcclResult HcclDfxRegOpInfoByCommId(char*, void*)
{
    return HCCL_SUCCESS;
}

HcclResult HcclProfilingReportOp(HcclComm, uint64_t)
{
    return HCCL_SUCCESS;
}

HcclResult HcclReportAicpuKernel(HcclComm, uint64_t, char*)
{
    return HCCL_SUCCESS;
}

uint64_t HcommGetProfilingSysCycleTime(void)
{
    return 0;
}

}  // extern "C"

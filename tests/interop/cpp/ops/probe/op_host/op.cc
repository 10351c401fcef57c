// One call of the API at a time: the one that the variable CASE names, in host code or in the kernel.
// A case returns 0 where the call did what it should.
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>

#include <unistd.h>

#include "hccl/hccl.h"
#include "hccl/hccl_diag.h"
#include "host_kit.h"

namespace {

constexpr HcclComm kComm = nullptr;

int Expect(bool isRight)
{
    return isRight ? 0 : 99;
}

int Channels(const OpArgs& args, uint32_t peer, uint32_t notifies, uint32_t magic, ChannelHandle* channel)
{
    HcclChannelDesc desc;
    HCHECK(HcclChannelDescInit(&desc, 1));
    desc.header.magicWord = magic;
    desc.remoteRank = peer;
    desc.notifyNum = notifies;
    (void)args;
    return HcclChannelAcquire(kComm, COMM_ENGINE_AICPU_TS, &desc, 1, channel);  // one-sided
}

const std::map<std::string, std::function<int(OpArgs&)>> kCases = {
    {"HcclGetRankId", [](OpArgs& a) -> int { return Expect(a.rank < a.size); }},
    {"HcclGetRankSize", [](OpArgs& a) -> int { return Expect(a.size == 4); }},
    {"HcclGetCommName",
     [](OpArgs&) -> int {
         char name[COMM_NAME_MAX_LENGTH] = "";
         return HcclGetCommName(kComm, name) || Expect(strlen(name) > 0);
     }},
    {"HcclGetErrorString", [](OpArgs&) -> int { return Expect(HcclGetErrorString(HCCL_SUCCESS) != nullptr); }},
    {"HcclGetHcclBuffer",
     [](OpArgs& a) -> int {
         void* buffer = nullptr;
         uint64_t size = 0;
         return HcclGetHcclBuffer(kComm, &buffer, &size) || Expect(buffer == a.ccl && size == 400ULL << 20);
     }},
    {"HcclThreadAcquire",
     [](OpArgs&) -> int {
         ThreadHandle threads[2] = {0, 0};
         return HcclThreadAcquire(kComm, COMM_ENGINE_AICPU_TS, 2, 1, threads) || Expect(threads[0] != threads[1]);
     }},
    {"HcclThreadAcquire of AIV",
     [](OpArgs&) -> int {
         ThreadHandle thread = 0;
         return HcclThreadAcquire(kComm, COMM_ENGINE_AIV, 1, 1, &thread);  // HcclThreadAcquire of AIV
     }},
    {"HcclThreadAcquireWithConfig",
     [](OpArgs&) -> int {
         ThreadConfig config[1];
         ThreadHandle thread = 0;
         HCHECK(HcclResult(ThreadConfigInit(config, 1)));
         config[0].notifyNumPerThread = 3;
         return HcclThreadAcquireWithConfig(kComm, COMM_ENGINE_AICPU_TS, 1, THREAD_TYPE_TS, config, &thread) ||
                Expect(thread != 0);
     }},
    {"HcclThreadAcquireWithConfig uninitialised",
     [](OpArgs&) -> int {
         ThreadConfig config[1] = {};
         ThreadHandle thread = 0;
         auto acquire = HcclThreadAcquireWithConfig;
         return acquire(kComm, COMM_ENGINE_CPU_TS, 1, THREAD_TYPE_TS, config, &thread);  // HcclThreadAcquireWithConfig uninitialised
     }},
    {"HcclThreadAcquireWithStream",
     [](OpArgs& a) -> int {
         ThreadHandle thread = 0;
         return HcclThreadAcquireWithStream(kComm, COMM_ENGINE_CPU_TS, nullptr, 1, &thread) ||
                Expect(thread == a.caller);
     }},
    {"HcclThreadExportToCommEngine",
     [](OpArgs& a) -> int {
         ThreadHandle exported = 0;
         return HcclThreadExportToCommEngine(kComm, 1, a.threads, COMM_ENGINE_CPU_TS, &exported) ||
                Expect(exported != 0);
     }},
    {"HcclThreadExportToCommEngine of no thread",
     [](OpArgs&) -> int {
         ThreadHandle thread = 7, exported = 0;
         return HcclThreadExportToCommEngine(kComm, 1, &thread, COMM_ENGINE_CPU_TS, &exported);  // HcclThreadExportToCommEngine of no thread
     }},
    {"HcclEngineCtx",
     [](OpArgs&) -> int {
         void* made = nullptr;
         void* found = nullptr;
         uint64_t size = 0;
         int value = 7;
         HCHECK(HcclEngineCtxCreate(kComm, "mine", COMM_ENGINE_AICPU_TS, 64, &made));
         HCHECK(HcclEngineCtxCopy(kComm, COMM_ENGINE_AICPU_TS, "mine", &value, sizeof value, 60));
         HCHECK(HcclEngineCtxGet(kComm, "mine", COMM_ENGINE_AICPU_TS, &found, &size));
         HCHECK(HcclEngineCtxDestroy(kComm, "mine", COMM_ENGINE_AICPU_TS));
         return Expect(made == found && size == 64 &&
                       HcclEngineCtxGet(kComm, "mine", COMM_ENGINE_AICPU_TS, &found, &size) == HCCL_E_NOT_FOUND);
     }},
    {"HcclEngineCtxCopy beyond",
     [](OpArgs&) -> int {
         void* made = nullptr;
         HCHECK(HcclEngineCtxCreate(kComm, "mine", COMM_ENGINE_AICPU_TS, 64, &made));
         return HcclEngineCtxCopy(kComm, COMM_ENGINE_AICPU_TS, "mine", "12345678", 8, 60);  // HcclEngineCtxCopy beyond
     }},
    {"HcclEngineCtxDestroy of none",
     [](OpArgs&) -> int {
         return HcclEngineCtxDestroy(kComm, "none", COMM_ENGINE_CPU);  // HcclEngineCtxDestroy of none
     }},
    {"HcclDevMemAcquire",
     [](OpArgs&) -> int {
         void* first = nullptr;
         void* again = nullptr;
         uint64_t size = 4096;
         bool isNew = false;
         HCHECK(HcclDevMemAcquire(kComm, "scratch", &size, &first, &isNew));
         if (!isNew) {
             return 98;
         }
         HCHECK(HcclDevMemAcquire(kComm, "scratch", &size, &again, &isNew));
         return Expect(first == again && !isNew);
     }},
    {"HcclCommMemReg",
     [](OpArgs& a) -> int {
         CommMem memory{COMM_MEM_TYPE_DEVICE, a.in, 64};
         HcclMemHandle handle = nullptr;
         HCHECK(HcclCommMemReg(kComm, "input", &memory, &handle));
         HcclChannelDesc desc;
         uint32_t peer = a.rank ^ 1;
         HCHECK(Describe(kComm, a.rank, peer, 2, desc));
         desc.memHandles = &handle;
         desc.memHandleNum = 1;
         ChannelHandle channel = 0;
         HCHECK(HcclChannelAcquire(kComm, COMM_ENGINE_AICPU_TS, &desc, 1, &channel));
         uint32_t count = 0;
         CommMem* theirs = nullptr;
         char** tags = nullptr;
         HCHECK(HcclChannelGetRemoteMems(kComm, channel, &count, &theirs, &tags));
         return Expect(count == 1 && theirs[0].size == 64 && strcmp(tags[0], "input") == 0 && theirs[0].addr != a.in);
     }},
    {"HcclCommMemReg of host memory",
     [](OpArgs& a) -> int {
         CommMem memory{COMM_MEM_TYPE_DEVICE, &a, 64};
         HcclMemHandle handle = nullptr;
         return HcclCommMemReg(kComm, "input", &memory, &handle);  // HcclCommMemReg of host memory
     }},
    {"HcclChannelAcquire by one side",
     [](OpArgs& a) -> int {
         ChannelHandle channel = 0;
         return a.rank == 0 ? Channels(a, 1, 2, HCCL_CHANNEL_MAGIC_WORD, &channel) : 0;
     }},
    {"HcclChannelAcquire to itself",
     [](OpArgs& a) -> int {
         ChannelHandle channel = 0;
         return Channels(a, a.rank, 2, HCCL_CHANNEL_MAGIC_WORD, &channel);
     }},
    {"HcclChannelAcquire uninitialised",
     [](OpArgs& a) -> int {
         ChannelHandle channel = 0;
         return Channels(a, a.rank ^ 1, 2, 0, &channel);
     }},
    {"HcclChannelDestroy",
     [](OpArgs& a) -> int { return HcclChannelDestroy(kComm, &a.channels[a.rank ^ 1], 1); }},
    {"HcclChannelDestroy twice",
     [](OpArgs& a) -> int {
         HCHECK(HcclChannelDestroy(kComm, &a.channels[a.rank ^ 1], 1));
         return HcclChannelDestroy(kComm, &a.channels[a.rank ^ 1], 1);  // HcclChannelDestroy twice
     }},
    {"HcclChannelGetHcclBuffer of no channel",
     [](OpArgs&) -> int {
         void* buffer = nullptr;
         uint64_t size = 0;
         return HcclChannelGetHcclBuffer(kComm, 5, &buffer, &size);  // HcclChannelGetHcclBuffer of no channel
     }},
    {"HcclChannelGetRemoteMems",
     [](OpArgs& a) -> int {
         uint32_t count = 9;
         CommMem* theirs = nullptr;
         char** tags = nullptr;
         return HcclChannelGetRemoteMems(kComm, a.channels[a.rank ^ 1], &count, &theirs, &tags) || Expect(count == 0);
     }},
    {"HcclRankGraphGetLayers",
     [](OpArgs&) -> int {
         uint32_t* layers = nullptr;
         uint32_t count = 0;
         return HcclRankGraphGetLayers(kComm, &layers, &count) || Expect(count == 2 && layers[1] == 1);
     }},
    {"HcclRankGraphGetRanksByLayer",
     [](OpArgs& a) -> int {
         uint32_t* ranks = nullptr;
         uint32_t count = 0;
         return HcclRankGraphGetRanksByLayer(kComm, 0, &ranks, &count) || Expect(count == 2 && ranks[0] == a.rank / 2 * 2);
     }},
    {"HcclRankGraphGetRankSizeByLayer",
     [](OpArgs&) -> int {
         uint32_t count = 0;
         return HcclRankGraphGetRankSizeByLayer(kComm, 1, &count) || Expect(count == 4);
     }},
    {"HcclRankGraphGetTopoTypeByLayer",
     [](OpArgs&) -> int {
         CommTopo inside = COMM_TOPO_RESERVED, between = COMM_TOPO_RESERVED;
         HCHECK(HcclRankGraphGetTopoTypeByLayer(kComm, 0, &inside));
         HCHECK(HcclRankGraphGetTopoTypeByLayer(kComm, 1, &between));
         return Expect(inside == COMM_TOPO_CUSTOM && between == COMM_TOPO_CLOS);
     }},
    {"HcclRankGraphGetInstSizeListByLayer",
     [](OpArgs&) -> int {
         uint32_t* sizes = nullptr;
         uint32_t count = 0;
         return HcclRankGraphGetInstSizeListByLayer(kComm, 0, &sizes, &count) || Expect(count == 2 && sizes[1] == 2);
     }},
    {"HcclRankGraphGetLinks",
     [](OpArgs&) -> int {
         CommLink* links = nullptr;
         uint32_t near = 0, far = 0;
         HCHECK(HcclRankGraphGetLinks(kComm, 0, 0, 1, &links, &near));
         HCHECK(HcclRankGraphGetLinks(kComm, 0, 0, 2, &links, &far));
         return Expect(near == 1 && far == 0);
     }},
    {"HcclRankGraphGetRankSizeByLayer of no layer",
     [](OpArgs&) -> int {
         uint32_t count = 0;
         return HcclRankGraphGetRankSizeByLayer(kComm, 2, &count);  // HcclRankGraphGetRankSizeByLayer of no layer
     }},
    {"reports",
     [](OpArgs&) -> int {
         char tag[] = "tag";
         HcclDfxOpInfo info;
         HCHECK(HcclDfxRegOpInfoByCommId(tag, &info));
         HCHECK(HcclProfilingReportOp(kComm, HcommGetProfilingSysCycleTime()));
         return HcclReportAicpuKernel(kComm, 0, tag);
     }},
    {"acl",
     [](OpArgs&) -> int {
         int32_t device = -1;
         uint32_t count = 0;
         void* memory = nullptr;
         void* host = nullptr;
         aclrtStream stream = nullptr;
         HCHECK(aclInit(nullptr) || aclrtSetDevice(0) || aclrtGetDevice(&device) || aclrtGetDeviceCount(&count));
         HCHECK(aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST) || aclrtMallocHost(&host, 64));
         memset(host, 7, 64);
         HCHECK(aclrtMemcpy(memory, 64, host, 64, ACL_MEMCPY_HOST_TO_DEVICE));
         memset(host, 0, 64);
         HCHECK(aclrtMemcpy(host, 64, memory, 64, ACL_MEMCPY_DEVICE_TO_HOST));
         int seven = static_cast<char*>(host)[63];
         HCHECK(aclrtFree(memory) || aclrtFreeHost(host) || aclrtGetLastError(ACL_RT_THREAD_LEVEL));
         HCHECK(aclrtCreateStream(&stream) || aclrtSynchronizeStream(stream) || aclrtDestroyStream(stream));
         HCHECK(aclrtResetDevice(0) || aclFinalize());
         return Expect(device >= 0 && count == 2 && seven == 7 && strstr(aclrtGetSocName(), "Ascend950"));
     }},
    {"the kernels' description",
     [](OpArgs&) -> int {
         std::string path = std::string(getenv("ASCEND_HOME_PATH")) + "/opp/kernels.json";
         char* found = realpath(path.c_str(), nullptr);
         aclrtBinHandle binary = nullptr;
         HCHECK(found == nullptr || path != found || realpath("/no/such/file", nullptr) != nullptr);
         return aclrtBinaryLoadFromFile(found, nullptr, &binary) || aclrtBinaryUnLoad(binary);
     }},
    {"HcclRankGraphGetTopoInstsByLayer",
     [](OpArgs& a) -> int {
         uint32_t* list = nullptr;
         uint32_t num = 0;
         CommTopo topo = COMM_TOPO_RESERVED;
         HCHECK(HcclRankGraphGetTopoInstsByLayer(kComm, 0, &list, &num));
         HCHECK(Expect(num == 1 && list[0] == 0));
         HCHECK(HcclRankGraphGetTopoType(kComm, 0, 0, &topo));
         HCHECK(Expect(topo == COMM_TOPO_1DMESH));
         HCHECK(HcclRankGraphGetRanksByTopoInst(kComm, 0, 0, &list, &num));
         HCHECK(Expect(num == 2 && list[a.rank % 2] == a.rank));
         return Expect(HcclRankGraphGetTopoType(kComm, 0, 1, &topo) == HCCL_E_NOT_FOUND);
     }},
    {"HcclRankGraphGetEndpointDesc",
     [](OpArgs& a) -> int {
         uint32_t num = 0;
         uint32_t bandwidth = 0;
         EndpointDesc end;
         HCHECK(HcclRankGraphGetEndpointNum(kComm, 1, 0, &num));
         HCHECK(Expect(num == 1));
         HCHECK(HcclRankGraphGetEndpointDesc(kComm, 1, 0, &num, &end));
         HCHECK(Expect(end.loc.device.superDevId == a.rank));
         HCHECK(HcclRankGraphGetEndpointInfo(kComm, a.rank, &end, ENDPOINT_ATTR_BW_COEFF, 4, &bandwidth));
         return Expect(bandwidth == 4);
     }},
    {"HcclConfigGetInfo",
     [](OpArgs&) -> int {
         HcclConfigTypeOpExpansionMode mode = HCCL_OP_EXPANSION_MODE_INVALID;
         HcclHeterogMode heterog = HCCL_HETEROG_MODE_INVALID;
         HcclCommStatus status = HCCL_COMM_STATUS_INVALID;
         bool isGroup = true;
         HCHECK(HcclConfigGetInfo(kComm, HCCL_CONFIG_TYPE_OP_EXPANSION_MODE, sizeof(mode), &mode));
         HCHECK(HcclGetHeterogMode(kComm, &heterog));
         HCHECK(HcclCommGetStatus("group", &status));
         HCHECK(HcclGroupStatusGet(&isGroup));
         return Expect(mode == HCCL_OP_EXPANSION_MODE_AI_CPU && heterog == HCCL_HETEROG_MODE_HOMOGENEOUS &&
                       status == HCCL_COMM_STATUS_READY && !isGroup);
     }},
    {"HcclChannelAcquireWithConfig",
     [](OpArgs& a) -> int {
         HcclChannelConfig config = nullptr;
         HcclChannelDesc desc;
         ChannelHandle channel = 0;
         CommLink* links = nullptr;
         uint32_t num = 0;
         HCHECK(HcclRankGraphGetLinks(kComm, 0, a.rank, a.rank ^ 1, &links, &num));
         HCHECK(HcclChannelDescInit(&desc, 1));
         desc.remoteRank = a.rank ^ 1;
         desc.channelProtocol = links[0].linkAttr.linkProtocol;
         desc.localEndpoint = links[0].srcEndpointDesc;
         desc.remoteEndpoint = links[0].dstEndpointDesc;
         desc.notifyNum = 1;
         HCHECK(HcclChannelConfigCreate(&config));
         HCHECK(HcclChannelConfigSetInt(config, HCCL_CHANNEL_CONFIG_TYPE_IS_SHARED_QUEUE, 1));
         HCHECK(HcclChannelAcquireWithConfig(kComm, COMM_ENGINE_AICPU_TS, &desc, 1, config, &channel));
         HCHECK(HcclChannelConfigDestroy(config));
         return Expect(channel != 0);
     }},
    {"HcclGroupStart",
     [](OpArgs&) -> int {
         return HcclGroupStart();  // HcclGroupStart
     }},
    {"HcclCommSymWinGet",
     [](OpArgs& a) -> int {
         HcclCommSymWindow window = a.in;
         size_t offset = 1;
         HCHECK(HcclCommSymWinGet(kComm, a.in, 8, &window, &offset));
         return Expect(window == nullptr && offset == 0);
     }},
    {"aclrtMemcpy of a buffer",
     [](OpArgs& a) -> int {
         char room[8];
         return aclrtMemcpy(room, 8, a.in, 8, ACL_MEMCPY_DEVICE_TO_HOST);  // aclrtMemcpy of a buffer
     }},
    {"aclrtBinaryGetFunction of no kernel",
     [](OpArgs&) -> int {
         aclrtFuncHandle function = nullptr;
         return aclrtBinaryGetFunction(nullptr, "Nobody", &function);  // aclrtBinaryGetFunction of no kernel
     }},
    {"securec",
     [](OpArgs&) -> int {
         char text[8] = "";
         HCHECK(memset_s(text, 8, 0, 8) || strcpy_s(text, 8, "abc") || strcat_s(text, 8, "def") ||
                strncpy_s(text, 8, "xyz", 2) || memcpy_s(text, 8, "ab", 2) || memmove_s(text + 1, 7, text, 2));
         return Expect(sprintf_s(text, 8, "%d", 123) == 3 && snprintf_s(text, 8, 7, "%d", 12345678) == -1 &&
                       strcpy_s(text, 3, "abc") != EOK);
     }},
    {"null pointer",
     [](OpArgs&) -> int {
         return *static_cast<volatile int*>(nullptr);  // null pointer
     }},
    {"copy from nowhere",
     [](OpArgs&) -> int {
         int four = 4;
         memcpy(reinterpret_cast<void*>(uintptr_t(four)), &four, sizeof four);  // copy from nowhere
         four = 5;
         return four;
     }},
    {"terminate",
     [](OpArgs&) -> int {
         std::terminate();  // terminate
     }},
    {"sleep without alarm",
     [](OpArgs&) -> int {
         alarm(0);
         for (;;) {
             pause();
         }
         return 0;
     }},
    {"endless loop",
     [](OpArgs&) -> int {
         for (volatile unsigned k = 0;; ++k) {
         }  // endless loop
         return 0;
     }},
    {"sleep",
     [](OpArgs&) -> int {
         for (;;) {
             timespec long_enough{1000, 0};
             nanosleep(&long_enough, nullptr);
         }
         return 0;
     }},
    {"input read by the host",
     [](OpArgs& a) -> int {
         return int(*a.in);  // input read by the host
     }},
    {"context read by the host",
     [](OpArgs&) -> int {
         void* made = nullptr;
         HCHECK(HcclEngineCtxCreate(kComm, "mine", COMM_ENGINE_AICPU_TS, 64, &made));
         return *static_cast<int*>(made);  // context read by the host
     }},
    {"exception", [](OpArgs&) -> int { throw std::runtime_error("no more"); }},
    {"exit",
     [](OpArgs&) -> int {
         _Exit(0);
         return 0;
     }},
    {"thread",
     [](OpArgs& a) -> int {
         std::thread([&] {
             HcommThreadNotifyRecordOnThread(a.caller, a.threads[0], 0);  // thread
         }).join();
         return 0;
     }},
    {"endless memory",
     [](OpArgs&) -> int {
         for (;;) {
             new char[1 << 30];  // endless memory
         }
         return 0;
     }},
    {"fork while loading", [](OpArgs&) -> int { return 0; }},
    {"op returns 5", [](OpArgs&) -> int { return 5; }},
    {"prints",
     [](OpArgs& a) -> int {
         printf("hello from rank %u\n", a.rank);
         return 0;
     }},
};

// What the op does while it is loaded.
struct AtOnce {
    AtOnce()
    {
        const char* name = getenv("CASE");
        if (name && strcmp(name, "exit while loading") == 0) {
            _exit(0);
        }
        if (name && strcmp(name, "fork while loading") == 0 && fork() == 0) {
            sleep(20);
            _exit(0);
        }
    }
} at_once;

}  // namespace

extern "C" HcclResult HcclAllGather(void* sendBuf, void* recvBuf, uint64_t sendCount, HcclDataType dataType,
                                    HcclComm comm, aclrtStream stream)
{
    OpArgs args{};
    HCHECK(Resources(comm, stream, args, 1, 4, [](uint32_t) { return true; }));
    args.in = static_cast<char*>(sendBuf);
    args.out = static_cast<char*>(recvBuf);
    args.count = sendCount;
    args.unit = UnitOf(dataType);
    const char* name = getenv("CASE");
    auto found = kCases.find(name ? name : "");
    if (found != kCases.end()) {
        return static_cast<HcclResult>(found->second(args));
    }
    aclrtFuncHandle function = nullptr;
    aclrtArgsHandle block = nullptr;
    aclrtParamHandle param = nullptr;
    HCHECK(aclrtBinaryGetFunction(nullptr, "Probe", &function));
    HCHECK(aclrtKernelArgsInit(function, &block) || aclrtKernelArgsAppend(block, &args, sizeof args, &param));
    HCHECK(aclrtKernelArgsFinalize(block));
    HCHECK(aclrtLaunchKernelWithConfig(function, 1, stream, nullptr, block, nullptr));
    return HCCL_SUCCESS;
}

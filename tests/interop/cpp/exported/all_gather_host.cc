// Host code of all_gather: acquires threads and channels once, and launches the kernel.
// Written by `hccl-py export`: AllGatherMeshGraphExecutor, all_gather on 4 ranks.
#include <cstdio>
#include <string>

#include "custom.h"
#include "hccl/hccl_comm.h"
#include "hccl/hccl_rank_graph.h"
#include "hccl/hccl_res_expt.h"

namespace {

// The host's record of the resources.
struct Kept {
    Resources* resources;  // in the context of the AICPU
    ThreadHandle main;     // the main thread, for the host to post to
};

// True if a rank has a channel to another one, on the plane level0.
bool PeersLevel0AreJoined(uint32_t rank, uint32_t peer)
{
    return peer != rank && peer / kDevices == rank / kDevices;
}

// True if a rank has a channel to another one, on the plane level1.
bool PeersLevel1AreJoined(uint32_t rank, uint32_t peer)
{
    return peer != rank && peer % kDevices == rank % kDevices;
}

// Describes the link to a peer, of the lowest layer that has one, from `firstLayer` on.
HcclResult Describe(HcclComm comm, uint32_t rank, uint32_t peer, uint32_t firstLayer, HcclChannelDesc& desc)
{
    uint32_t* layers = nullptr;
    uint32_t layerNum = 0;
    CHK_RET(HcclRankGraphGetLayers(comm, &layers, &layerNum));
    for (uint32_t i = 0; i < layerNum; ++i) {
        CommLink* links = nullptr;
        uint32_t linkNum = 0;
        CHK_RET(HcclRankGraphGetLinks(comm, layers[i], rank, peer, &links, &linkNum));
        if (linkNum == 0 || layers[i] < firstLayer) {
            continue;
        }
        CHK_RET(HcclChannelDescInit(&desc, 1));
        desc.remoteRank = peer;
        desc.channelProtocol = links[0].linkAttr.linkProtocol;
        desc.localEndpoint = links[0].srcEndpointDesc;
        desc.remoteEndpoint = links[0].dstEndpointDesc;
        return HCCL_SUCCESS;
    }
    return HCCL_E_NOT_FOUND;
}

HcclResult Connect(HcclComm comm, HcclChannelDesc& desc, uint32_t notifyNum, Peer& peer)
{
    desc.notifyNum = notifyNum;
    CHK_RET(HcclChannelAcquire(comm, COMM_ENGINE_AICPU_TS, &desc, 1, &peer.channel));
    void* buffer = nullptr;
    uint64_t size = 0;
    CHK_RET(HcclChannelGetHcclBuffer(comm, peer.channel, &buffer, &size));
    peer.ccl = static_cast<char*>(buffer);
    uint32_t num = 0;
    CommMem* memories = nullptr;
    char** tags = nullptr;
    CHK_RET(HcclChannelGetRemoteMems(comm, peer.channel, &num, &memories, &tags));
    for (uint32_t i = 0; i < num; ++i) {
        if (std::string("output") == tags[i]) {
            peer.output = static_cast<char*>(memories[i].addr);
        }
    }
    return HCCL_SUCCESS;
}

HcclResult Acquire(HcclComm comm, const OpParam& param, Resources& res)
{
    void* buffer = nullptr;
    uint64_t size = 0;
    CHK_RET(HcclGetHcclBuffer(comm, &buffer, &size));
    if (size < kCclBytes) {
        return HCCL_E_MEMORY;
    }
    res.ccl = static_cast<char*>(buffer);
    CHK_RET(HcclThreadAcquire(comm, COMM_ENGINE_AICPU_TS, 1, kMainNotifies + 1, &res.threads[0]));
    HcclMemHandle memories[1];
    const CommMem output{COMM_MEM_TYPE_DEVICE, param.output, param.bytes * 4};
    CHK_RET(HcclCommMemReg(comm, "output", &output, &memories[0]));
    for (uint32_t peer = 0; peer < kRanks; ++peer) {
        if (PeersLevel0AreJoined(param.rank, peer)) {
            HcclChannelDesc desc;
            CHK_RET(Describe(comm, param.rank, peer, 0, desc));
            desc.memHandles = memories;
            desc.memHandleNum = 1;
            CHK_RET(Connect(comm, desc, kPeersLevel0Notifies, res.peersLevel0[peer]));
        }
    }
    for (uint32_t peer = 0; peer < kRanks; ++peer) {
        if (PeersLevel1AreJoined(param.rank, peer)) {
            HcclChannelDesc desc;
            CHK_RET(Describe(comm, param.rank, peer, 1, desc));
            desc.memHandles = memories;
            desc.memHandleNum = 1;
            CHK_RET(Connect(comm, desc, kPeersLevel1Notifies, res.peersLevel1[peer]));
        }
    }
    return HCCL_SUCCESS;
}

// Finds the resources of an earlier call, or acquires them.
HcclResult Prepare(HcclComm comm, const OpParam& param, Kept*& kept)
{
    char tag[HCCL_RES_TAG_MAX_LEN];  // peers know the addresses of the call's memory
    (void)snprintf(tag, sizeof(tag), "hccl_py.all_gather.%p.%p.%llu", static_cast<void*>(param.input),
                   static_cast<void*>(param.output), static_cast<unsigned long long>(param.bytes));
    void* found = nullptr;
    uint64_t size = 0;
    if (HcclEngineCtxGet(comm, tag, COMM_ENGINE_CPU_TS, &found, &size) == HCCL_SUCCESS) {
        kept = static_cast<Kept*>(found);
        return HCCL_SUCCESS;
    }
    Resources res{};
    CHK_RET(Acquire(comm, param, res));
    void* onDevice = nullptr;
    CHK_RET(HcclEngineCtxCreate(comm, tag, COMM_ENGINE_AICPU_TS, sizeof(res), &onDevice));
    CHK_RET(HcclEngineCtxCopy(comm, COMM_ENGINE_AICPU_TS, tag, &res, sizeof(res), 0));
    CHK_RET(HcclEngineCtxCreate(comm, tag, COMM_ENGINE_CPU_TS, sizeof(Kept), &found));
    kept = static_cast<Kept*>(found);
    kept->resources = static_cast<Resources*>(onDevice);
    return HcclThreadExportToCommEngine(comm, 1, &res.threads[0], COMM_ENGINE_CPU_TS, &kept->main);
}

HcclResult Launch(OpParam& param, aclrtStream stream)
{
    aclrtBinHandle binary = nullptr;
    aclrtFuncHandle kernel = nullptr;
    aclrtArgsHandle args = nullptr;
    aclrtParamHandle handle = nullptr;
    CHK_RET(aclrtBinaryLoadFromFile("AllGatherKernel.json", nullptr, &binary));
    CHK_RET(aclrtBinaryGetFunction(binary, "AllGatherKernel", &kernel));
    CHK_RET(aclrtKernelArgsInit(kernel, &args));
    CHK_RET(aclrtKernelArgsAppend(args, &param, sizeof(param), &handle));
    CHK_RET(aclrtKernelArgsFinalize(args));
    CHK_RET(aclrtLaunchKernelWithConfig(kernel, 1, stream, nullptr, args, nullptr));
    return HCCL_SUCCESS;
}

// The kernel runs between two handshakes with the caller's stream.
HcclResult Run(HcclComm comm, aclrtStream stream, OpParam& param)
{
    uint32_t rankSize = 0;
    CHK_RET(HcclGetRankId(comm, &param.rank));
    CHK_RET(HcclGetRankSize(comm, &rankSize));
    if (rankSize != kRanks || param.count < kLeastCount || param.count > kMostCount) {
        return HCCL_E_NOT_SUPPORT;
    }
    param.unit = kUnit;
    param.bytes = param.stride = param.count * kUnit;
    Kept* kept = nullptr;
    CHK_RET(Prepare(comm, param, kept));
    param.resources = kept->resources;
    ThreadHandle caller = 0;
    CHK_RET(HcclThreadAcquireWithStream(comm, COMM_ENGINE_CPU_TS, stream, 1, &caller));
    CHK_RET(HcclThreadExportToCommEngine(comm, 1, &caller, COMM_ENGINE_AICPU_TS, &param.caller));
    CHK_RET(HcommThreadNotifyRecordOnThread(caller, kept->main, kHostNotify));
    CHK_RET(Launch(param, stream));
    CHK_RET(HcommThreadNotifyWaitOnThread(caller, 0, kTimeout));
    return HCCL_SUCCESS;
}

}  // namespace

extern "C" HcclResult HcclAllGather(void* sendBuf, void* recvBuf, uint64_t sendCount, HcclDataType dataType,
                                    HcclComm comm, aclrtStream stream)
{
    if (dataType != kDataType) {
        return HCCL_E_NOT_SUPPORT;
    }
    OpParam param{};
    param.dataType = static_cast<HcommDataType>(kDataType);
    param.count = sendCount;
    param.input = static_cast<char*>(sendBuf);
    param.output = static_cast<char*>(recvBuf);
    return Run(comm, stream, param);
}

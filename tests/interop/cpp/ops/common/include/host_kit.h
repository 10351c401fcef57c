// Resources and launch, for all ops.
#pragma once

#include "hccl/hccl_comm.h"
#include "hccl/hccl_rank_graph.h"
#include "hccl/hccl_res_expt.h"
#include "hcomm_primitives.h"
#include "op_args.h"

#define HCHECK(call)                   \
    do {                               \
        if ((call) != 0) {             \
            return HCCL_E_INTERNAL;    \
        }                              \
    } while (0)

// The link of the lowest layer that joins two ranks.
inline HcclResult Describe(HcclComm comm, uint32_t rank, uint32_t peer, uint32_t notifies, HcclChannelDesc& desc)
{
    HCHECK(HcclChannelDescInit(&desc, 1));
    uint32_t* layers = nullptr;
    uint32_t layerNum = 0;
    HCHECK(HcclRankGraphGetLayers(comm, &layers, &layerNum));
    for (uint32_t i = 0; i < layerNum; ++i) {
        CommLink* links = nullptr;
        uint32_t linkNum = 0;
        HCHECK(HcclRankGraphGetLinks(comm, layers[i], rank, peer, &links, &linkNum));
        if (linkNum > 0) {
            desc.remoteRank = peer;
            desc.channelProtocol = links[0].linkAttr.linkProtocol;
            desc.localEndpoint = links[0].srcEndpointDesc;
            desc.remoteEndpoint = links[0].dstEndpointDesc;
            desc.notifyNum = notifies;
            return HCCL_SUCCESS;
        }
    }
    return HCCL_E_NOT_FOUND;
}

// A main thread, workers, and channels with so many notifies to some peers, asked for once and kept in a context.
template <typename IsPeer>
HcclResult Acquire(HcclComm comm, aclrtStream stream, OpArgs& args, uint32_t workers, uint32_t notifies, IsPeer isPeer)
{
    HCHECK(HcclGetRankId(comm, &args.rank));
    HCHECK(HcclGetRankSize(comm, &args.size));
    void* buffer = nullptr;
    HCHECK(HcclGetHcclBuffer(comm, &buffer, &args.cclSize));
    args.ccl = static_cast<char*>(buffer);
    HCHECK(HcclThreadAcquireWithStream(comm, COMM_ENGINE_CPU_TS, stream, 1, &args.caller));
    HCHECK(HcclThreadAcquire(comm, COMM_ENGINE_AICPU_TS, 1, 1 + workers, &args.threads[0]));
    HCHECK(HcclThreadAcquire(comm, COMM_ENGINE_AICPU_TS, workers, 1, &args.threads[1]));
    ThreadHandle exported[1];
    HCHECK(HcclThreadExportToCommEngine(comm, 1, &args.caller, COMM_ENGINE_AICPU_TS, exported));
    for (uint32_t peer = 0; peer < args.size; ++peer) {
        if (peer == args.rank || !isPeer(peer)) {
            continue;
        }
        HcclChannelDesc desc;
        HCHECK(Describe(comm, args.rank, peer, notifies, desc));
        HCHECK(HcclChannelAcquire(comm, COMM_ENGINE_AICPU_TS, &desc, 1, &args.channels[peer]));
        uint64_t size = 0;
        HCHECK(HcclChannelGetHcclBuffer(comm, args.channels[peer], &buffer, &size));
        args.peerCcl[peer] = static_cast<char*>(buffer);
    }
    return HCCL_SUCCESS;
}

template <typename IsPeer>
HcclResult Resources(HcclComm comm, aclrtStream stream, OpArgs& args, uint32_t workers, uint32_t notifies, IsPeer isPeer)
{
    const char* tag = "resources";
    void* kept = nullptr;
    uint64_t size = 0;
    if (HcclEngineCtxGet(comm, tag, COMM_ENGINE_CPU_TS, &kept, &size) == HCCL_SUCCESS) {
        args = *static_cast<OpArgs*>(kept);
        return HCCL_SUCCESS;
    }
    HCHECK(Acquire(comm, stream, args, workers, notifies, isPeer));
    HCHECK(HcclEngineCtxCreate(comm, tag, COMM_ENGINE_CPU_TS, sizeof(OpArgs), &kept));
    HCHECK(HcclEngineCtxCopy(comm, COMM_ENGINE_CPU_TS, tag, &args, sizeof(OpArgs), 0));
    return HCCL_SUCCESS;
}

inline uint64_t UnitOf(HcclDataType dtype)
{
    static const uint64_t units[] = {1, 2, 4, 2, 4, 8, 8, 1, 2, 4, 8, 2};
    return units[dtype];
}

// The kernel, between the two handshakes with the caller's stream.
inline HcclResult Launch(const char* kernel, aclrtStream stream, OpArgs& args)
{
    HCHECK(HcommThreadNotifyRecordOnThread(args.caller, args.threads[0], 0));
    aclrtBinHandle binary = nullptr;
    aclrtFuncHandle function = nullptr;
    aclrtArgsHandle block = nullptr;
    aclrtParamHandle param = nullptr;
    HCHECK(aclrtBinaryLoadFromFile("libkernels.json", nullptr, &binary));
    HCHECK(aclrtBinaryGetFunction(binary, kernel, &function));
    HCHECK(aclrtKernelArgsInit(function, &block));
    HCHECK(aclrtKernelArgsAppend(block, &args, sizeof(args), &param));
    HCHECK(aclrtKernelArgsFinalize(block));
    HCHECK(aclrtLaunchKernelWithConfig(function, 1, stream, nullptr, block, nullptr));
    HCHECK(HcommThreadNotifyWaitOnThread(args.caller, 0, kTimeout));
    return HCCL_SUCCESS;
}

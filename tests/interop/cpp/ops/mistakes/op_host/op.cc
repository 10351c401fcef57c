// An all_reduce and an all_gather of two ranks, right but for the mistake that the variable CASE names.
#include <cstdlib>
#include <cstring>

#include "host_kit.h"

static HcclResult Run(const char* kernel, void* in, void* out, uint64_t count, HcclDataType dtype, HcclReduceOp op,
                      HcclComm comm, aclrtStream stream)
{
    const char* wanted = getenv("CASE");
    uint32_t rank = 0, workers = 2, notifies = 4;
    HCHECK(HcclGetRankId(comm, &rank));
    workers = strcmp(wanted, "RESOURCE_EXCEEDED") == 0 ? kMostRanks - 1 : workers;
    notifies = rank == 0 && strcmp(wanted, "RESOURCE_MISMATCH") == 0 ? 5 : notifies;
    OpArgs args{};
    HCHECK(Resources(comm, stream, args, workers, notifies, [](uint32_t) { return true; }));
    if (workers > 2) {
        ThreadHandle more[kMostRanks];
        HCHECK(HcclThreadAcquire(comm, COMM_ENGINE_AICPU_TS, kMostRanks, 1, more));
    }
    args.in = static_cast<char*>(in);
    args.out = static_cast<char*>(out);
    args.count = count;
    args.unit = UnitOf(dtype);
    args.dtype = dtype;
    args.reduce = op;
    return Launch(kernel, stream, args);
}

extern "C" HcclResult HcclAllReduce(void* sendBuf, void* recvBuf, uint64_t count, HcclDataType dataType,
                                    HcclReduceOp op, HcclComm comm, aclrtStream stream)
{
    return Run("ReduceKernel", sendBuf, recvBuf, count, dataType, op, comm, stream);
}

extern "C" HcclResult HcclAllGather(void* sendBuf, void* recvBuf, uint64_t sendCount, HcclDataType dataType,
                                    HcclComm comm, aclrtStream stream)
{
    return Run("GatherKernel", sendBuf, recvBuf, sendCount, dataType, HCCL_REDUCE_SUM, comm, stream);
}

#include "host_kit.h"

extern "C" HcclResult HcclReduceScatter(void* sendBuf, void* recvBuf, uint64_t recvCount, HcclDataType dataType,
                                        HcclReduceOp op, HcclComm comm, aclrtStream stream)
{
    uint32_t size = 0;
    HCHECK(HcclGetRankSize(comm, &size));
    OpArgs args{};
    HCHECK(Resources(comm, stream, args, size - 1, 2, [](uint32_t) { return true; }));
    args.in = static_cast<char*>(sendBuf);
    args.out = static_cast<char*>(recvBuf);
    args.count = recvCount;
    args.unit = UnitOf(dataType);
    args.dtype = dataType;
    args.reduce = op;
    return Launch("ReduceScatterKernel", stream, args);
}

#include "host_kit.h"

extern "C" HcclResult HcclAllGather(void* sendBuf, void* recvBuf, uint64_t sendCount, HcclDataType dataType,
                                    HcclComm comm, aclrtStream stream)
{
    uint32_t size = 0;
    HCHECK(HcclGetRankSize(comm, &size));
    OpArgs args{};
    HCHECK(Resources(comm, stream, args, size - 1, 2, [](uint32_t) { return true; }));
    args.in = static_cast<char*>(sendBuf);
    args.out = static_cast<char*>(recvBuf);
    args.count = sendCount;
    args.unit = UnitOf(dataType);
    return Launch("AllGatherKernel", stream, args);
}

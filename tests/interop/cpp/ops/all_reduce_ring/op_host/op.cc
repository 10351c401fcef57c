#include "host_kit.h"

extern "C" HcclResult HcclAllReduce(void* sendBuf, void* recvBuf, uint64_t count, HcclDataType dataType,
                                    HcclReduceOp op, HcclComm comm, aclrtStream stream)
{
    uint32_t rank = 0;
    uint32_t size = 0;
    HCHECK(HcclGetRankId(comm, &rank));
    HCHECK(HcclGetRankSize(comm, &size));
    OpArgs args{};
    auto isNeighbour = [=](uint32_t peer) { return peer == (rank + 1) % size || (peer + 1) % size == rank; };
    HCHECK(Resources(comm, stream, args, 0, 2 * size, isNeighbour));
    args.in = static_cast<char*>(sendBuf);
    args.out = static_cast<char*>(recvBuf);
    args.count = count;
    args.unit = UnitOf(dataType);
    args.dtype = dataType;
    args.reduce = op;
    return Launch("AllReduceKernel", stream, args);
}

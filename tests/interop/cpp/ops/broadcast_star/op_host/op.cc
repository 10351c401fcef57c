#include "host_kit.h"

extern "C" HcclResult HcclBroadcast(void* buf, uint64_t count, HcclDataType dataType, uint32_t root, HcclComm comm,
                                    aclrtStream stream)
{
    uint32_t rank = 0;
    HCHECK(HcclGetRankId(comm, &rank));
    OpArgs args{};
    HCHECK(Resources(comm, stream, args, 0, 2, [=](uint32_t peer) { return rank == root || peer == root; }));
    args.in = static_cast<char*>(buf);
    args.count = count;
    args.unit = UnitOf(dataType);
    args.root = root;
    return Launch("BroadcastKernel", stream, args);
}

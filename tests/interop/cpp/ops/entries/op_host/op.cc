// The entries of all ops: each looks at what it is called with, of 6 elements, and returns 0 where that is right.
#include "hccl/hccl.h"

namespace {

uint32_t RankOf(HcclComm comm)
{
    uint32_t rank = 0;
    (void)HcclGetRankId(comm, &rank);
    return rank;
}

HcclResult Expect(bool isRight)
{
    return isRight ? HCCL_SUCCESS : HCCL_E_PARA;
}

constexpr HcclDataType kType = HCCL_DATA_TYPE_FP16;

}  // namespace

extern "C" {

HcclResult HcclAllReduce(void* in, void* out, uint64_t count, HcclDataType type, HcclReduceOp op, HcclComm, aclrtStream stream)
{
    return Expect(in != out && count == 6 && type == kType && op == HCCL_REDUCE_SUM && stream != nullptr);
}

HcclResult HcclReduceScatter(void* in, void* out, uint64_t count, HcclDataType type, HcclReduceOp op, HcclComm, aclrtStream)
{
    return Expect(in != out && count == 6 && type == kType && op == HCCL_REDUCE_SUM);
}

HcclResult HcclReduce(void* in, void* out, uint64_t count, HcclDataType type, HcclReduceOp op, uint32_t root, HcclComm, aclrtStream)
{
    return Expect(in != out && count == 6 && type == kType && op == HCCL_REDUCE_SUM && root == 1);
}

HcclResult HcclAllGather(void* in, void* out, uint64_t count, HcclDataType type, HcclComm, aclrtStream)
{
    return Expect(in != out && count == 6 && type == kType);
}

HcclResult HcclBroadcast(void* buffer, uint64_t count, HcclDataType type, uint32_t root, HcclComm, aclrtStream)
{
    return Expect(buffer != nullptr && count == 6 && type == kType && root == 1);
}

HcclResult HcclScatter(void* in, void* out, uint64_t count, HcclDataType type, uint32_t root, HcclComm, aclrtStream)
{
    return Expect(in != out && count == 6 && type == kType && root == 1);
}

HcclResult HcclAlltoAll(const void* in, uint64_t sent, HcclDataType sentType, const void* out, uint64_t received,
                        HcclDataType receivedType, HcclComm, aclrtStream)
{
    return Expect(in != out && sent == 6 && received == 6 && sentType == kType && receivedType == kType);
}

HcclResult HcclSend(void* buffer, uint64_t count, HcclDataType type, uint32_t peer, HcclComm comm, aclrtStream)
{
    return Expect(buffer != nullptr && count == 6 && type == kType && RankOf(comm) == 0 && peer == 1);
}

HcclResult HcclRecv(void* buffer, uint64_t count, HcclDataType type, uint32_t peer, HcclComm comm, aclrtStream)
{
    return Expect(buffer != nullptr && count == 6 && type == kType && RankOf(comm) == 1 && peer == 0);
}

}  // extern "C"

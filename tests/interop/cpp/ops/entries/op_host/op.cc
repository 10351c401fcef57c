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
constexpr uint64_t kWanted[2][2] = {{6, 12}, {12, 18}};  // elements from a rank to a rank

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

// Rank 0 has 6 elements, rank 1 twice as many.
HcclResult HcclAllGatherV(void* in, uint64_t sent, void* out, const void* counts, const void* begins, HcclDataType type,
                          HcclComm comm, aclrtStream)
{
    auto* received = static_cast<const uint64_t*>(counts);
    auto* from = static_cast<const uint64_t*>(begins);
    return Expect(in != out && type == kType && sent == received[RankOf(comm)] && received[0] == 6 && received[1] == 12 &&
                  from[0] == 0 && from[1] == 6);
}

HcclResult HcclReduceScatterV(void* in, const void* counts, const void* begins, void* out, uint64_t received,
                              HcclDataType type, HcclReduceOp op, HcclComm comm, aclrtStream)
{
    auto* sent = static_cast<const uint64_t*>(counts);
    auto* from = static_cast<const uint64_t*>(begins);
    return Expect(in != out && type == kType && op == HCCL_REDUCE_SUM && received == sent[RankOf(comm)] && sent[0] == 6 &&
                  sent[1] == 12 && from[0] == 0 && from[1] == 6);
}

HcclResult HcclAlltoAllV(const void* in, const void* sends, const void* sendBegins, HcclDataType sentType, const void* out,
                         const void* receives, const void* receiveBegins, HcclDataType receivedType, HcclComm comm,
                         aclrtStream)
{
    auto* sent = static_cast<const uint64_t*>(sends);
    auto* received = static_cast<const uint64_t*>(receives);
    auto* from = static_cast<const uint64_t*>(sendBegins);
    auto* to = static_cast<const uint64_t*>(receiveBegins);
    const uint32_t rank = RankOf(comm);
    return Expect(in != out && sentType == kType && receivedType == kType && sent[0] == kWanted[rank][0] &&
                  sent[1] == kWanted[rank][1] && received[0] == kWanted[0][rank] && received[1] == kWanted[1][rank] &&
                  from[0] == 0 && from[1] == sent[0] && to[0] == 0 && to[1] == received[0]);
}

HcclResult HcclAlltoAllVC(const void* in, const void* matrix, HcclDataType sentType, const void* out,
                          HcclDataType receivedType, HcclComm, aclrtStream)
{
    auto* sent = static_cast<const uint64_t*>(matrix);
    return Expect(in != out && sentType == kType && receivedType == kType && sent[0] == kWanted[0][0] &&
                  sent[1] == kWanted[0][1] && sent[2] == kWanted[1][0] && sent[3] == kWanted[1][1]);
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

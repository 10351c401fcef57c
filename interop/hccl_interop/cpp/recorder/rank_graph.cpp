// The links between ranks: layer 0 joins the ranks of a server, layer 1 all ranks.

#include <cstring>

#include "hccl/hccl_rank_graph.h"
#include "state.hpp"

namespace recorder {

namespace {

bool has_servers()
{
    const auto& server = state.options.server;
    for (uint32_t one : server) {
        if (one != server[0]) {
            return true;
        }
    }
    return false;
}

uint32_t layers()
{
    return has_servers() ? 2 : 1;
}

HcclResult no_layer(const char* call, uint32_t layer)
{
    return static_cast<HcclResult>(
        refuse("INVALID_ARGUMENT", "%s: there is no layer %u, of %u", call, layer, layers()));
}

HcclResult nowhere(const char* call)
{
    return static_cast<HcclResult>(refuse("INVALID_ARGUMENT", "%s: there is nowhere to put the answer", call));
}

std::vector<uint32_t> ranks_of(uint32_t layer)
{
    const auto& server = state.options.server;
    std::vector<uint32_t> found;
    for (uint32_t rank = 0; rank < state.options.ranks; ++rank) {
        if (layer == 1 || server[rank] == server[state.rank]) {
            found.push_back(rank);
        }
    }
    return found;
}

// Gives a list to the caller. The communicator owns it, and it lives as long as the process.
HcclResult answer(std::vector<uint32_t> values, uint32_t** list, uint32_t* count)
{
    auto* kept = new std::vector<uint32_t>(std::move(values));
    *list = kept->data();
    *count = uint32_t(kept->size());
    return HCCL_SUCCESS;
}

void set_endpoint(EndpointDesc& end, uint32_t layer, uint32_t rank)
{
    end.protocol = static_cast<CommProtocol>(state.options.protocol[layer]);
    end.commAddr.type = COMM_ADDR_TYPE_ID;
    end.commAddr.id = layer << 24 | rank;
    end.loc.locType = ENDPOINT_LOC_TYPE_DEVICE;
    end.loc.device.devPhyId = state.options.device_id[rank];
    end.loc.device.superDevId = rank;
    end.loc.device.serverIdx = state.options.server[rank];
    end.loc.device.superPodIdx = 0;
}

}  // namespace

}  // namespace recorder

using namespace recorder;

extern "C" {

HcclResult HcclRankGraphGetLayers(HcclComm, uint32_t** netLayers, uint32_t* netLayerNum)
{
    if (netLayers == nullptr || netLayerNum == nullptr) {
        return nowhere(__func__);
    }
    std::vector<uint32_t> found = {0, 1};
    found.resize(layers());
    return answer(found, netLayers, netLayerNum);
}

HcclResult HcclRankGraphGetRanksByLayer(HcclComm, uint32_t netLayer, uint32_t** ranks, uint32_t* rankNum)
{
    if (ranks == nullptr || rankNum == nullptr) {
        return nowhere(__func__);
    }
    return netLayer < layers() ? answer(ranks_of(netLayer), ranks, rankNum) : no_layer(__func__, netLayer);
}

HcclResult HcclRankGraphGetRankSizeByLayer(HcclComm, uint32_t netLayer, uint32_t* rankNum)
{
    if (rankNum == nullptr) {
        return nowhere(__func__);
    }
    if (netLayer >= layers()) {
        return no_layer(__func__, netLayer);
    }
    *rankNum = uint32_t(ranks_of(netLayer).size());
    return HCCL_SUCCESS;
}

HcclResult HcclRankGraphGetTopoTypeByLayer(HcclComm, uint32_t netLayer, CommTopo* topoType)
{
    if (topoType == nullptr) {
        return nowhere(__func__);
    }
    if (netLayer >= layers()) {
        return no_layer(__func__, netLayer);
    }
    *topoType = netLayer == 0 ? COMM_TOPO_CUSTOM : COMM_TOPO_CLOS;  // its one instance is a mesh
    return HCCL_SUCCESS;
}

HcclResult HcclRankGraphGetInstSizeListByLayer(HcclComm, uint32_t netLayer, uint32_t** instSizeList,
                                               uint32_t* listSize)
{
    if (instSizeList == nullptr || listSize == nullptr) {
        return nowhere(__func__);
    }
    if (netLayer >= layers()) {
        return no_layer(__func__, netLayer);
    }
    if (netLayer == 1) {
        return answer({state.options.ranks}, instSizeList, listSize);
    }
    std::vector<uint32_t> sizes;  // servers are numbered from 0
    for (uint32_t server : state.options.server) {
        sizes.resize(server < sizes.size() ? sizes.size() : server + 1);
        ++sizes[server];
    }
    std::vector<uint32_t> found;
    for (uint32_t size : sizes) {
        if (size > 0) {
            found.push_back(size);
        }
    }
    return answer(found, instSizeList, listSize);
}

HcclResult HcclRankGraphGetLinks(HcclComm, uint32_t netLayer, uint32_t srcRank, uint32_t dstRank, CommLink** links,
                                 uint32_t* linkNum)
{
    if (links == nullptr || linkNum == nullptr) {
        return nowhere(__func__);
    }
    *links = nullptr;
    *linkNum = 0;
    const Options& options = state.options;
    if (netLayer >= layers() || srcRank == dstRank || srcRank >= options.ranks || dstRank >= options.ranks) {
        return HCCL_SUCCESS;
    }
    if (netLayer == 0 && options.server[srcRank] != options.server[dstRank]) {
        return HCCL_SUCCESS;
    }
    auto* link = new CommLink;
    CommLinkInit(link, 1);
    link->linkAttr.linkProtocol = static_cast<CommProtocol>(options.protocol[netLayer]);
    set_endpoint(link->srcEndpointDesc, netLayer, srcRank);
    set_endpoint(link->dstEndpointDesc, netLayer, dstRank);
    *links = link;
    *linkNum = 1;
    return HCCL_SUCCESS;
}

// A layer is one topology with all of its ranks, and a rank has one endpoint on a layer.
HcclResult HcclRankGraphGetTopoInstsByLayer(HcclComm, uint32_t netLayer, uint32_t** topoInsts, uint32_t* topoInstNum)
{
    if (topoInsts == nullptr || topoInstNum == nullptr) {
        return nowhere(__func__);
    }
    return netLayer < layers() ? answer({0}, topoInsts, topoInstNum) : no_layer(__func__, netLayer);
}

HcclResult HcclRankGraphGetTopoType(HcclComm comm, uint32_t netLayer, uint32_t topoInstId, CommTopo* topoType)
{
    HcclResult found = topoInstId == 0 ? HcclRankGraphGetTopoTypeByLayer(comm, netLayer, topoType) : HCCL_E_NOT_FOUND;
    if (found == HCCL_SUCCESS && netLayer == 0) {
        *topoType = COMM_TOPO_1DMESH;
    }
    return found;
}

HcclResult HcclRankGraphGetRanksByTopoInst(HcclComm comm, uint32_t netLayer, uint32_t topoInstId, uint32_t** ranks,
                                           uint32_t* rankNum)
{
    return topoInstId == 0 ? HcclRankGraphGetRanksByLayer(comm, netLayer, ranks, rankNum) : HCCL_E_NOT_FOUND;
}

HcclResult HcclRankGraphGetEndpointNum(HcclComm, uint32_t layer, uint32_t topoInstId, uint32_t* num)
{
    if (num == nullptr) {
        return nowhere(__func__);
    }
    if (layer >= layers()) {
        return no_layer(__func__, layer);
    }
    *num = topoInstId == 0 ? 1 : 0;
    return HCCL_SUCCESS;
}

HcclResult HcclRankGraphGetEndpointDesc(HcclComm, uint32_t layer, uint32_t topoInstId, uint32_t* descNum,
                                        EndpointDesc* endpointDesc)
{
    if (descNum == nullptr || endpointDesc == nullptr || *descNum == 0) {
        return nowhere(__func__);
    }
    if (layer >= layers()) {
        return no_layer(__func__, layer);
    }
    *descNum = topoInstId == 0 ? 1 : 0;
    if (topoInstId == 0) {
        (void)EndpointDescInit(endpointDesc, 1);
        set_endpoint(*endpointDesc, layer, state.rank);
    }
    return HCCL_SUCCESS;
}

// A layer has a die of its own, and the port to the Clos network is as wide as four links of the mesh.
HcclResult HcclRankGraphGetEndpointInfo(HcclComm, uint32_t, const EndpointDesc* endpointDesc,
                                        EndpointAttr endpointAttr, uint32_t infoLen, void* info)
{
    if (endpointDesc == nullptr || info == nullptr || infoLen != sizeof(uint32_t)) {
        return nowhere(__func__);
    }
    uint32_t layer = endpointDesc->commAddr.id >> 24;
    uint32_t found = endpointAttr == ENDPOINT_ATTR_BW_COEFF ? (layer == 1 ? 4 : 1) : layer;
    if (endpointAttr != ENDPOINT_ATTR_BW_COEFF && endpointAttr != ENDPOINT_ATTR_DIE_ID) {
        return static_cast<HcclResult>(refuse("UNSUPPORTED_CALL", "%s: attribute %d is not modelled", __func__,
                                              static_cast<int>(endpointAttr)));
    }
    memcpy(info, &found, sizeof found);
    return HCCL_SUCCESS;
}

HcclResult HcclGetHeterogMode(HcclComm, HcclHeterogMode* mode)
{
    if (mode == nullptr) {
        return nowhere(__func__);
    }
    *mode = HCCL_HETEROG_MODE_HOMOGENEOUS;
    return HCCL_SUCCESS;
}

}  // extern "C"

// The links between ranks: layer 0 joins the ranks of a server, layer 1 all ranks. A layer has one network or several,
// HCCL's topologies: an instance of a topology is the group of ranks that a network joins (networks.py).

#include <cstring>

#include "hccl/hccl_rank_graph.h"
#include "state.hpp"

namespace recorder {

namespace {

enum Dies { kDie0, kDie1, kRegular, kIrregular };

constexpr uint32_t kPortByte = 5, kSharedPort = 127;  // as HCCL reads the port in an address, channel.cc:27
constexpr uint32_t kDieBit = 1U << 23;  // of the number of an endpoint: network, die and rank

uint32_t layers()
{
    return state.options.network_layer.back() + 1;
}

uint32_t group_of(uint32_t network, uint32_t rank)
{
    return state.options.network_group[network * state.options.ranks + rank];
}

std::vector<uint32_t> members_of(uint32_t network)
{
    std::vector<uint32_t> found;
    for (uint32_t rank = 0; rank < state.options.ranks; ++rank) {
        if (group_of(network, rank) == group_of(network, state.rank)) {
            found.push_back(rank);
        }
    }
    return found;
}

// The networks of a layer that join this rank with others, or else the layer's first one.
std::vector<uint32_t> networks_of(uint32_t layer)
{
    std::vector<uint32_t> found, joining;
    for (uint32_t network = 0; network < state.options.network_layer.size(); ++network) {
        if (state.options.network_layer[network] == layer) {
            found.push_back(network);
        }
    }
    for (uint32_t network : found) {
        if (members_of(network).size() > 1) {
            joining.push_back(network);
        }
    }
    return joining.empty() ? std::vector<uint32_t>{found[0]} : joining;
}

// An instance of a layer's topologies is named by its place in the list; false for one that there is not.
bool find_network(uint32_t layer, uint32_t instance, uint32_t& network)
{
    std::vector<uint32_t> found = layer < layers() ? networks_of(layer) : std::vector<uint32_t>{};
    if (instance >= found.size()) {
        return false;
    }
    network = found[instance];
    return true;
}

// The die of the link between two devices, at either end. By kRegular links between two halves of the devices are those
// of die 1, so that of an odd number of links the dies have nearly the same number; by kIrregular die 1 has one.
int die_of(uint32_t network, uint32_t rank, uint32_t peer)
{
    uint32_t dies = state.options.network_dies[network], half = 1;
    uint32_t apart = state.options.device_id[rank] ^ state.options.device_id[peer];
    while (dies == kRegular && 2 * half < members_of(network).size()) {
        half *= 2;
    }
    return dies == kRegular ? (apart & half) != 0 : dies == kIrregular ? apart == 1 : int(dies);
}

bool joins(uint32_t network, uint32_t rank, uint32_t peer)
{
    return rank != peer && group_of(network, rank) == group_of(network, peer);
}

// Refuses a layer that there is not, and an answer that has no place.
HcclResult check(const char* call, uint32_t layer, std::initializer_list<const void*> places)
{
    for (const void* place : places) {
        if (place == nullptr) {
            return no_room(call);
        }
    }
    return layer < layers() ? HCCL_SUCCESS
                            : refuse("INVALID_ARGUMENT", "%s: there is no layer %u, of %u", call, layer, layers());
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

void set_endpoint(EndpointDesc& end, uint32_t network, int die, uint32_t rank)
{
    end.protocol = static_cast<CommProtocol>(state.options.network_protocol[network]);
    memset(&end.commAddr, 0, sizeof end.commAddr);
    end.commAddr.type = COMM_ADDR_TYPE_ID;
    end.commAddr.id = network << 24 | (die ? kDieBit : 0) | rank;
    end.commAddr.eid[kPortByte] = state.options.network_clos[network] ? kSharedPort : 0;
    end.loc.locType = ENDPOINT_LOC_TYPE_DEVICE;
    end.loc.device.devPhyId = state.options.device_id[rank];
    end.loc.device.superDevId = rank;
    end.loc.device.serverIdx = state.options.server[rank];
    end.loc.device.superPodIdx = 0;
}

}  // namespace

bool find_link(const EndpointDesc& local, uint32_t peer, uint32_t& network, int& die)
{
    bool is_named = local.commAddr.type == COMM_ADDR_TYPE_ID;
    uint32_t first = is_named ? local.commAddr.id >> 24 : 0, number = uint32_t(state.options.network_layer.size());
    uint32_t last = is_named && first < number ? first + 1 : number;
    for (network = first; network < last; ++network) {
        if (joins(network, state.rank, peer)) {
            die = die_of(network, state.rank, peer);
            return true;
        }
    }
    return false;
}

}  // namespace recorder

using namespace recorder;

extern "C" {

HcclResult HcclRankGraphGetLayers(HcclComm, uint32_t** netLayers, uint32_t* netLayerNum)
{
    if (netLayers == nullptr || netLayerNum == nullptr) {
        return no_room(__func__);
    }
    std::vector<uint32_t> found = {0, 1};
    found.resize(layers());
    return answer(found, netLayers, netLayerNum);
}

HcclResult HcclRankGraphGetRanksByLayer(HcclComm, uint32_t netLayer, uint32_t** ranks, uint32_t* rankNum)
{
    HcclResult checked = check(__func__, netLayer, {ranks, rankNum});
    return checked == HCCL_SUCCESS ? answer(ranks_of(netLayer), ranks, rankNum) : checked;
}

HcclResult HcclRankGraphGetRankSizeByLayer(HcclComm, uint32_t netLayer, uint32_t* rankNum)
{
    HcclResult checked = check(__func__, netLayer, {rankNum});
    if (checked != HCCL_SUCCESS) {
        return checked;
    }
    *rankNum = uint32_t(ranks_of(netLayer).size());
    return HCCL_SUCCESS;
}

HcclResult HcclRankGraphGetTopoTypeByLayer(HcclComm, uint32_t netLayer, CommTopo* topoType)
{
    HcclResult checked = check(__func__, netLayer, {topoType});
    if (checked != HCCL_SUCCESS) {
        return checked;
    }
    *topoType = netLayer == 0 ? COMM_TOPO_CUSTOM : COMM_TOPO_CLOS;  // its instances say of what type they are
    return HCCL_SUCCESS;
}

HcclResult HcclRankGraphGetInstSizeListByLayer(HcclComm, uint32_t netLayer, uint32_t** instSizeList,
                                               uint32_t* listSize)
{
    HcclResult checked = check(__func__, netLayer, {instSizeList, listSize});
    if (checked != HCCL_SUCCESS) {
        return checked;
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
        return no_room(__func__);
    }
    *links = nullptr;
    *linkNum = 0;
    const Options& options = state.options;
    if (netLayer >= layers() || srcRank == dstRank || srcRank >= options.ranks || dstRank >= options.ranks) {
        return HCCL_SUCCESS;
    }
    std::vector<uint32_t> joining;
    for (uint32_t network = 0; network < options.network_layer.size(); ++network) {
        if (options.network_layer[network] == netLayer && joins(network, srcRank, dstRank)) {
            joining.push_back(network);
        }
    }
    if (joining.empty()) {
        return HCCL_SUCCESS;
    }
    auto* found = new CommLink[joining.size()];
    CommLinkInit(found, uint32_t(joining.size()));
    for (uint32_t network : joining) {
        CommLink& link = found[(*linkNum)++];
        link.linkAttr.linkProtocol = static_cast<CommProtocol>(options.network_protocol[network]);
        set_endpoint(link.srcEndpointDesc, network, die_of(network, srcRank, dstRank), srcRank);
        set_endpoint(link.dstEndpointDesc, network, die_of(network, srcRank, dstRank), dstRank);
    }
    *links = found;
    return HCCL_SUCCESS;
}

HcclResult HcclRankGraphGetTopoInstsByLayer(HcclComm, uint32_t netLayer, uint32_t** topoInsts, uint32_t* topoInstNum)
{
    HcclResult checked = check(__func__, netLayer, {topoInsts, topoInstNum});
    if (checked != HCCL_SUCCESS) {
        return checked;
    }
    std::vector<uint32_t> found;
    for (uint32_t instance = 0, network = 0; find_network(netLayer, instance, network); ++instance) {
        found.push_back(instance);
    }
    return answer(found, topoInsts, topoInstNum);
}

HcclResult HcclRankGraphGetTopoType(HcclComm, uint32_t netLayer, uint32_t topoInstId, CommTopo* topoType)
{
    uint32_t network = 0;
    HcclResult checked = check(__func__, netLayer, {topoType});
    if (checked != HCCL_SUCCESS) {
        return checked;
    }
    if (!find_network(netLayer, topoInstId, network)) {
        return HCCL_E_NOT_FOUND;
    }
    *topoType = state.options.network_clos[network] ? COMM_TOPO_CLOS : COMM_TOPO_1DMESH;
    return HCCL_SUCCESS;
}

HcclResult HcclRankGraphGetRanksByTopoInst(HcclComm, uint32_t netLayer, uint32_t topoInstId, uint32_t** ranks,
                                           uint32_t* rankNum)
{
    uint32_t network = 0;
    HcclResult checked = check(__func__, netLayer, {ranks, rankNum});
    if (checked != HCCL_SUCCESS) {
        return checked;
    }
    return find_network(netLayer, topoInstId, network) ? answer(members_of(network), ranks, rankNum)
                                                       : HCCL_E_NOT_FOUND;
}

// A rank has an endpoint for each of a network's dies.
HcclResult HcclRankGraphGetEndpointNum(HcclComm, uint32_t layer, uint32_t topoInstId, uint32_t* num)
{
    uint32_t network = 0;
    HcclResult checked = check(__func__, layer, {num});
    if (checked != HCCL_SUCCESS) {
        return checked;
    }
    *num = find_network(layer, topoInstId, network) ? 1 + (state.options.network_dies[network] >= kRegular) : 0;
    return HCCL_SUCCESS;
}

HcclResult HcclRankGraphGetEndpointDesc(HcclComm comm, uint32_t layer, uint32_t topoInstId, uint32_t* descNum,
                                        EndpointDesc* endpointDesc)
{
    uint32_t number = 0, network = 0;
    if (descNum == nullptr || endpointDesc == nullptr || *descNum == 0) {
        return no_room(__func__);
    }
    HcclResult found = HcclRankGraphGetEndpointNum(comm, layer, topoInstId, &number);
    if (found != HCCL_SUCCESS) {
        return found;
    }
    *descNum = *descNum < number ? *descNum : number;
    (void)EndpointDescInit(endpointDesc, *descNum);
    (void)find_network(layer, topoInstId, network);
    for (uint32_t i = 0; i < *descNum; ++i) {
        set_endpoint(endpointDesc[i], network, number > 1 ? int(i) : state.options.network_dies[network] == kDie1,
                     state.rank);
    }
    return HCCL_SUCCESS;
}

HcclResult HcclRankGraphGetEndpointInfo(HcclComm, uint32_t, const EndpointDesc* endpointDesc,
                                        EndpointAttr endpointAttr, uint32_t infoLen, void* info)
{
    if (endpointDesc == nullptr || info == nullptr || infoLen != sizeof(uint32_t)) {
        return no_room(__func__);
    }
    uint32_t number = endpointDesc->commAddr.id, network = number >> 24;
    if (network >= state.options.network_layer.size()) {
        return refuse("INVALID_ARGUMENT", "%s: 0x%x is no endpoint of a link", __func__, number);
    }
    if (endpointAttr != ENDPOINT_ATTR_BW_COEFF && endpointAttr != ENDPOINT_ATTR_DIE_ID) {
        return refuse("UNSUPPORTED_CALL", "%s: attribute %d is not modelled", __func__,
                      static_cast<int>(endpointAttr));
    }
    uint32_t found = endpointAttr == ENDPOINT_ATTR_BW_COEFF ? state.options.network_width[network]
                                                            : (number & kDieBit) != 0;
    memcpy(info, &found, sizeof found);
    return HCCL_SUCCESS;
}

HcclResult HcclGetHeterogMode(HcclComm, HcclHeterogMode* mode)
{
    if (mode == nullptr) {
        return no_room(__func__);
    }
    *mode = HCCL_HETEROG_MODE_HOMOGENEOUS;
    return HCCL_SUCCESS;
}

}  // extern "C"

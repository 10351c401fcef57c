// The links between ranks by layer: 0 inside a server, 1 between servers.
#pragma once

#include <arpa/inet.h>

#include "../securec.h"
#include "hccl_comm.h"
#include "hccl_res.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    COMM_TOPO_RESERVED = -1,
    COMM_TOPO_CLOS = 0,
    COMM_TOPO_1DMESH = 1,
    COMM_TOPO_910_93 = 2,
    COMM_TOPO_310P = 3,
    COMM_TOPO_A2AXSERVER = 4,
    COMM_TOPO_CUSTOM = 5
} CommTopo;

const uint32_t COMM_LINK_MAGIC_WORD = 0x0f0e0f0f;
const uint32_t COMM_LINK_VERSION = 1;

typedef struct {
    CommAbiHeader header;
    EndpointDesc srcEndpointDesc;
    EndpointDesc dstEndpointDesc;
    union {
        uint8_t raws[128];
        struct {
            CommProtocol linkProtocol;
            uint8_t hop;
        };
    } linkAttr;
} CommLink;

static inline HcclResult CommLinkInit(CommLink* commLink, uint32_t linkNum)
{
    if (commLink == NULL && linkNum > 0) {
        return HCCL_E_PTR;
    }
    for (uint32_t i = 0; i < linkNum; ++i) {
        CommLink* one = &commLink[i];
        memset(one, 0xFF, sizeof(CommLink));
        one->header.version = COMM_LINK_VERSION;
        one->header.magicWord = COMM_LINK_MAGIC_WORD;
        one->header.size = sizeof(CommLink);
        one->header.reserved = 0;
        (void)EndpointDescInit(&one->srcEndpointDesc, 1);
        (void)EndpointDescInit(&one->dstEndpointDesc, 1);
        one->linkAttr.linkProtocol = COMM_PROTOCOL_RESERVED;
        one->linkAttr.hop = 1;
    }
    return HCCL_SUCCESS;
}

HcclResult HcclRankGraphGetLayers(HcclComm comm, uint32_t** netLayers, uint32_t* netLayerNum);
HcclResult HcclRankGraphGetRanksByLayer(HcclComm comm, uint32_t netLayer, uint32_t** ranks, uint32_t* rankNum);
HcclResult HcclRankGraphGetRankSizeByLayer(HcclComm comm, uint32_t netLayer, uint32_t* rankNum);
HcclResult HcclRankGraphGetTopoTypeByLayer(HcclComm comm, uint32_t netLayer, CommTopo* topoType);
HcclResult HcclRankGraphGetInstSizeListByLayer(HcclComm comm, uint32_t netLayer, uint32_t** instSizeList,
                                               uint32_t* listSize);
HcclResult HcclRankGraphGetLinks(HcclComm comm, uint32_t netLayer, uint32_t srcRank, uint32_t dstRank,
                                 CommLink** links, uint32_t* linkNum);

typedef enum {
    ENDPOINT_ATTR_INVALID = -1,
    ENDPOINT_ATTR_BW_COEFF = 0,
    ENDPOINT_ATTR_DIE_ID = 1,
    ENDPOINT_ATTR_LOCATION = 2
} EndpointAttr;

typedef uint32_t EndpointAttrBwCoeff;
typedef uint32_t EndpointAttrDieId;
typedef uint32_t EndpointAttrLocation;

typedef enum {
    HCCL_HETEROG_MODE_INVALID = -1,
    HCCL_HETEROG_MODE_HOMOGENEOUS = 0,
    HCCL_HETEROG_MODE_MIX_A2_A3 = 1
} HcclHeterogMode;

// A layer has instances of topologies; here one, with all ranks of the layer.
HcclResult HcclRankGraphGetTopoInstsByLayer(HcclComm comm, uint32_t netLayer, uint32_t** topoInsts,
                                            uint32_t* topoInstNum);
HcclResult HcclRankGraphGetTopoType(HcclComm comm, uint32_t netLayer, uint32_t topoInstId, CommTopo* topoType);
HcclResult HcclRankGraphGetRanksByTopoInst(HcclComm comm, uint32_t netLayer, uint32_t topoInstId, uint32_t** ranks,
                                           uint32_t* rankNum);
HcclResult HcclRankGraphGetEndpointNum(HcclComm comm, uint32_t layer, uint32_t topoInstId, uint32_t* num);
HcclResult HcclRankGraphGetEndpointDesc(HcclComm comm, uint32_t layer, uint32_t topoInstId, uint32_t* descNum,
                                        EndpointDesc* endpointDesc);
HcclResult HcclRankGraphGetEndpointInfo(HcclComm comm, uint32_t rankId, const EndpointDesc* endpointDesc,
                                        EndpointAttr endpointAttr, uint32_t infoLen, void* info);
HcclResult HcclGetHeterogMode(HcclComm comm, HcclHeterogMode* mode);

#ifdef __cplusplus
}
#endif

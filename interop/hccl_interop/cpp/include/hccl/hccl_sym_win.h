// Symmetric memory: a window of all ranks, and the memory of a peer in it. Not modelled.
#pragma once

#include "hccl_types.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

HcclResult HcclSymWinGetPeerPointer(HcclCommSymWindow winHandle, size_t offset, uint32_t peerRank, void** ptr);

#ifdef __cplusplus
}
#endif

// The argument of the kernels of all ops here, filled in by their host code.
#pragma once

#include <cstdint>

#include "hccl/hccl_res.h"

constexpr uint32_t kMostRanks = 1024;
constexpr uint32_t kTimeout = 1800;

struct OpArgs {
    uint32_t rank;
    uint32_t size;
    uint64_t count;
    uint32_t dtype;
    uint32_t reduce;
    uint32_t root;
    uint64_t unit;
    char* in;
    char* out;
    char* ccl;
    uint64_t cclSize;
    ThreadHandle caller;                  // the caller's stream
    ThreadHandle threads[kMostRanks];     // 0 is the main one
    ChannelHandle channels[kMostRanks];   // by peer
    char* peerCcl[kMostRanks];
};

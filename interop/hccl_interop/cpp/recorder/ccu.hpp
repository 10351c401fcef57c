// The state of CCU kernels: what the host part and the listing of a kernel share.
#pragma once

#include <string>
#include <vector>

#include "ccu/ccu_kernel_side.hpp"
#include "ccu/ccu_res_defs.h"
#include "state.hpp"

namespace recorder {

constexpr uint64_t kKernelHandle = 0x7300000000000000ULL;
constexpr uint32_t kDies = 2;
constexpr uint32_t kSlots = 4;     // variables of a channel
constexpr uint32_t kMostLines = 32768;  // instructions that a die holds
constexpr uint32_t kReserved = 4;  // notifies of a channel, however few were asked for

// Sorts of registers, in the order in which handles number them from 1.
constexpr char kSorts[] = "vaebl";
constexpr uint32_t kSortCount = 5;
constexpr uint64_t kSlotSort = 6;

inline uint32_t sort_number(char letter)
{
    return uint32_t(strchr(kSorts, letter) - kSorts);
}

// A register that a kernel took: how many of its sort it has from then on, and where.
struct Taking {
    uint32_t sort;
    uint32_t count;
    int stack;
};

struct CcuKernel {
    std::string name;
    int die = -1;  // that of its channels
    uint32_t registers[kSortCount] = {};
    std::vector<bool> arguments;  // by number: whether the kernel loads it
    std::vector<Taking> takings;
    uint32_t lines = 0;
    bool has_branches = false;
    bool is_refused = false;
};

struct Ccu {
    std::vector<CcuKernel> kernels;
    std::vector<std::string> tags;
    CcuKernel* current = nullptr;  // the kernel that is being listed
    int loop_depth = 0;
    bool has_open_if = false;
    bool is_counting = false;  // a kernel that is listed for the number of its registers alone
    int finished_dos = 0;
};

extern Ccu ccu;

// ccu_listing.cpp
void begin_listing(CcuKernel& kernel);
void end_listing();

}  // namespace recorder

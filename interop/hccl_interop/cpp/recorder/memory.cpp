// Device memory: addresses without a mapping, so that code which dereferences one faults.
//
// Every rank has four spans of equal length: input, output, HCCL buffer, and allocated memory.
// All processes use the same addresses, so an address identifies its rank. Allocated memory is
// mapped, because kernels may keep structures in it; while host code runs it is protected.

#include <sys/mman.h>

#include "state.hpp"

namespace recorder {

namespace {

constexpr uint64_t kFirst = 0x100000000000ULL;
constexpr uint64_t kEnd = 0x500000000000ULL;
constexpr uint64_t kPage = 1ULL << 16;
constexpr uint64_t kMostMapped = 1ULL << 28;  // larger pieces hold data, never structures

const char* const kWords[kParts] = {"the input", "the output", "the HCCL buffer", "allocated memory"};

struct Piece {
    char* address;
    uint64_t size;
};

uint64_t span = 0;
uint64_t taken = 0;
std::vector<Piece> pieces;

}  // namespace

void lay_out_memory()
{
    const Options& options = state.options;
    uint64_t largest = options.ccl_bytes;
    for (uint64_t bytes : {options.in_bytes, options.out_bytes}) {
        largest = bytes > largest ? bytes : largest;
    }
    span = 1ULL << 32;  // the least span, for allocated memory
    while (span < 2 * largest && span < kEnd) {
        span *= 2;
    }
    if (span > (kEnd - kFirst) / kParts / options.ranks) {
        fprintf(stderr, "too much memory: %u ranks with buffers of %lu bytes\n", options.ranks, largest);
        _exit(65);
    }
}

void write_layout()
{
    write_line("M\t%lu\t%lu", kFirst, span);
}

void* address_of(uint32_t rank, int part)
{
    return reinterpret_cast<void*>(kFirst + (uint64_t(rank) * kParts + part) * span);
}

Place place_of(const void* address)
{
    uint64_t number = reinterpret_cast<uint64_t>(address);
    Place found;
    if (number < kFirst || number >= kFirst + uint64_t(state.options.ranks) * kParts * span) {
        return found;
    }
    uint64_t piece = (number - kFirst) / span;
    found.rank = uint32_t(piece / kParts);
    found.part = int(piece % kParts);
    found.offset = (number - kFirst) % span;
    return found;
}

void* take_device_memory(uint64_t size)
{
    uint64_t rounded = (size + kPage - 1) / kPage * kPage;
    if (size == 0 || rounded > span - taken) {
        return nullptr;
    }
    char* address = static_cast<char*>(address_of(state.rank, kDev)) + taken;
    if (rounded <= kMostMapped) {
        int rights = state.in_kernel ? PROT_READ | PROT_WRITE : PROT_NONE;
        void* got = mmap(address, rounded, rights, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
        if (got == MAP_FAILED) {
            return nullptr;
        }
        pieces.push_back({address, rounded});
    }
    taken += rounded;
    return address;
}

uint64_t device_bytes()
{
    return taken;
}

void show_device_memory(bool visible)
{
    for (const Piece& piece : pieces) {
        mprotect(piece.address, piece.size, visible ? PROT_READ | PROT_WRITE : PROT_NONE);
    }
}

std::string words_of(const void* address)
{
    char text[160];
    Place place = place_of(address);
    if (place.part == kNoPart) {
        snprintf(text, sizeof text, "%p, which is no device memory", address);
    } else {
        snprintf(text, sizeof text, "byte %lu of %s of rank %u", place.offset, kWords[place.part], place.rank);
    }
    return text;
}

}  // namespace recorder

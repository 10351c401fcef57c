// The call stack of a task: the author's frames, innermost first, each stack written once.
//
// The author's code is compiled with frame pointers, so a stack is a chain of them. A crash may be in
// a library without frame pointers; its stack alone is unwound.

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <pthread.h>
#include <unistd.h>

#include "state.hpp"

namespace recorder {

namespace {

constexpr int kMostFrames = 24;

struct Library {
    uintptr_t base = 0;
    uintptr_t low = ~uintptr_t(0);
    uintptr_t high = 0;
};

Library libraries[2];  // host, device

// The number of every stack by its hash: a table with open addressing, at most half full.
struct Numbered {
    uint64_t hash;
    int number;  // -1: an empty place
};
std::vector<Numbered> numbers(1024, Numbered{0, -1});
int stacks = 0;

Numbered& place_in(std::vector<Numbered>& table, uint64_t hash)
{
    size_t at = hash % table.size();
    while (table[at].number >= 0 && table[at].hash != hash) {
        at = (at + 1) % table.size();
    }
    return table[at];
}

void grow()
{
    std::vector<Numbered> larger(2 * numbers.size(), Numbered{0, -1});
    for (const Numbered& one : numbers) {
        if (one.number >= 0) {
            place_in(larger, one.hash) = one;
        }
    }
    numbers.swap(larger);
}

void find_library(void* handle, Library& found)
{
    link_map* map = nullptr;
    dlinfo(handle, RTLD_DI_LINKMAP, &map);
    found.base = map->l_addr;
    dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void* data) {
            Library* library = static_cast<Library*>(data);
            if (info->dlpi_addr != library->base) {
                return 0;
            }
            for (int i = 0; i < info->dlpi_phnum; ++i) {
                const auto& part = info->dlpi_phdr[i];
                if (part.p_type == PT_LOAD && (part.p_flags & PF_X)) {
                    uintptr_t begin = info->dlpi_addr + part.p_vaddr;
                    uintptr_t end = begin + part.p_memsz;
                    library->low = begin < library->low ? begin : library->low;
                    library->high = end > library->high ? end : library->high;
                }
            }
            return 1;
        },
        &found);
}

// The library of an address: 0 for host code, 1 for kernels, -1 for any other.
int owner_of(uintptr_t address)
{
    for (int i = 0; i < 2; ++i) {
        if (address >= libraries[i].low && address < libraries[i].high) {
            return i;
        }
    }
    return -1;
}

int number_of(const uintptr_t* calls, int count)
{
    uint64_t hash = 1469598103934665603ULL;
    for (int i = 0; i < count; ++i) {
        hash = (hash ^ calls[i]) * 1099511628211ULL;
    }
    int known = place_in(numbers, hash).number;
    if (known >= 0) {
        return known;
    }
    if (2 * size_t(stacks) >= numbers.size()) {
        grow();
    }
    place_in(numbers, hash) = {hash, stacks};
    std::string text;
    for (int i = 0; i < count; ++i) {
        char frame[40];
        int owner = owner_of(calls[i]);
        snprintf(frame, sizeof frame, "%s%c:%lx", i ? "," : "", "hd"[owner],
                 calls[i] - 1 - libraries[owner].base);  // the call's address, one before the return address
        text += frame;
    }
    write_line("S\t%d\t%s", stacks, text.c_str());
    return stacks++;
}

struct Bounds {
    uintptr_t low = 0;
    uintptr_t high = 0;
};

Bounds stack_bounds()
{
    Bounds found;
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        void* begin = nullptr;
        size_t size = 0;
        pthread_attr_getstack(&attributes, &begin, &size);
        pthread_attr_destroy(&attributes);
        found.low = reinterpret_cast<uintptr_t>(begin);
        found.high = found.low + size;
    }
    return found;
}

}  // namespace

void find_libraries()
{
    find_library(state.host_library, libraries[0]);
    find_library(state.device_library, libraries[1]);
    void* first[1];
    backtrace(first, 1);  // loads the unwinder now, not in a signal handler
}

namespace {

// Adds the active frames of the author's functions to `calls`, innermost first; returns their count.
int walk(uintptr_t* calls, int count, void* innermost)
{
    static thread_local Bounds bounds = stack_bounds();
    auto frame = static_cast<uintptr_t*>(innermost);
    while (count < kMostFrames) {
        uintptr_t here = reinterpret_cast<uintptr_t>(frame);
        if (here < bounds.low || here + 2 * sizeof(uintptr_t) > bounds.high || here % sizeof(uintptr_t)) {
            break;
        }
        if (owner_of(frame[1]) >= 0) {
            calls[count++] = frame[1];
        }
        auto next = reinterpret_cast<uintptr_t*>(frame[0]);
        if (next <= frame) {
            break;
        }
        frame = next;
    }
    return count;
}

}  // namespace

int current_stack()
{
    uintptr_t calls[kMostFrames];
    int count = walk(calls, 0, __builtin_frame_address(0));
    if (pthread_equal(pthread_self(), state.thread)) {
        return number_of(calls, count);
    }
    // The rank's own thread may be inside the recorder now, so the process must end.
    find_at("UNSUPPORTED_CALL", number_of(calls, count),
            "%s makes this call from a thread that it has started: a rank's calls come from one thread, in an order "
            "that does not depend on timing", state.in_kernel ? "kernel code" : "host code");
    write_line("END\t-1");
    close_output();
    _exit(1);
}

int stack_at(const void* function)
{
    uintptr_t calls[kMostFrames] = {reinterpret_cast<uintptr_t>(function) + 1};
    return number_of(calls, walk(calls, 1, __builtin_frame_address(0)));
}

int crashed_stack(const Interrupted& at)
{
    void* frames[64];
    uintptr_t calls[kMostFrames];
    int found = backtrace(frames, 64), count = 0;
    for (int i = 0; i < found && count < kMostFrames; ++i) {
        uintptr_t address = reinterpret_cast<uintptr_t>(frames[i]);
        if (owner_of(address) < 0) {
            continue;
        }
        // The crashed frame has its instruction's address, the others return addresses.
        calls[count++] = address == at.instruction ? address + 1 : address;
    }
    if (count == 0 && at.caller != 0) {  // a call of a null pointer cannot be unwound
        count = owner_of(at.caller) >= 0;
        calls[0] = at.caller;
        count = walk(calls, count, at.frame);
    }
    return number_of(calls, count);
}

}  // namespace recorder

// The state of a rank's process, and the functions of the recorder's parts.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <string>
#include <vector>

#include "hccl/hccl_rank_graph.h"

namespace recorder {

// The call to record, from a file that run.py writes: one `key value` to a line.
struct Options {
    std::string host;      // the shared object of the host code
    std::string device;    // that of the kernels
    std::string entry;     // the op's function in the host code
    std::string receiver;  // send_recv: the function of the receiving side
    std::string kernel;    // the kernel to run; "" for the one that the host code names
    std::string op;
    std::string out;  // the folder of the recording
    std::string home;  // the value of ASCEND_HOME_PATH
    std::string soc;
    uint64_t count = 0;
    uint64_t in_bytes = 0;
    uint64_t out_bytes = 0;
    uint64_t ccl_bytes = 0;
    uint32_t ranks = 0;
    uint32_t dtype = 0;
    uint32_t reduce = 0;
    uint32_t root = 0;
    uint32_t expansion = 0;  // an HcclOpExpansionMode
    uint32_t calls = 1;
    uint32_t jobs = 1;
    uint32_t cpu_seconds = 10;
    uint32_t wall_seconds = 60;
    uint64_t memory_bytes = 0;
    uint64_t most_tasks = 0;
    uint64_t most_moved = 0;  // bytes of one work request over a channel; 0 for no limit
    std::vector<uint32_t> server;  // by rank
    std::vector<uint32_t> device_id;
    // Ops whose amounts differ by rank, in elements: a number for each rank, or for each pair of ranks.
    std::vector<uint64_t> sends;
    std::vector<uint64_t> send_displs;
    std::vector<uint64_t> receives;
    std::vector<uint64_t> receive_displs;
    // Networks: each joins the ranks that are in one group of it.
    std::vector<uint32_t> network_layer;
    std::vector<uint32_t> network_clos;  // 0: a mesh
    std::vector<uint32_t> network_dies;  // a Dies
    std::vector<uint32_t> network_width;  // of a port, in links of the mesh
    std::vector<uint32_t> network_protocol;
    std::vector<uint32_t> network_group;  // by network and rank
};

// Buffers of a rank, in the order of their addresses.
enum Part { kIn = 0, kOut = 1, kCcl = 2, kDev = 3, kParts = 4, kNoPart = -1 };

// An address as part of a rank's memory; part is kNoPart for an address outside of device memory.
struct Place {
    int part = kNoPart;
    uint32_t rank = 0;
    uint64_t offset = 0;
};

struct Thread {
    uint32_t notifies;
    int stack;
};

struct Channel {
    uint32_t peer;
    uint32_t network;
    int die;
    uint32_t notifies;
    std::vector<uint32_t> memories;  // numbers of the registered memories that the peer may access
    bool is_open;
};

struct Memory {
    std::string tag;
    CommMem where;
};

struct Context {
    std::string key;  // by engine and tag; empty where it was destroyed
    void* address;
    uint64_t size;
};

struct State {
    Options options;
    uint32_t rank = 0;
    uint32_t call = 0;
    bool in_kernel = false;
    int engine = COMM_ENGINE_RESERVED;  // the last one that threads were acquired for
    pthread_t thread{};  // the thread that calls the op
    std::vector<Thread> threads;
    std::vector<Channel> channels;
    std::vector<Memory> memories;
    std::vector<Context> contexts;
    void* host_library = nullptr;
    void* device_library = nullptr;
};

extern State state;

constexpr uint64_t kThreadHandle = 0x7100000000000000ULL;
constexpr uint64_t kChannelHandle = 0x7200000000000000ULL;

inline Thread* thread_of(ThreadHandle handle)
{
    uint64_t index = handle - kThreadHandle;
    return index < state.threads.size() ? &state.threads[index] : nullptr;
}

inline Channel* channel_of(ChannelHandle handle)
{
    uint64_t index = handle - kChannelHandle;
    return index < state.channels.size() && state.channels[index].is_open ? &state.channels[index] : nullptr;
}

// rank_graph.cpp
// The network and the die of the link that an endpoint's address names; false where no link leads to the peer.
bool find_link(const EndpointDesc& local, uint32_t peer, uint32_t& network, int& die);

// memory.cpp
void lay_out_memory();
void write_layout();
void* address_of(uint32_t rank, int part);
Place place_of(const void* address);
void* take_device_memory(uint64_t size);
uint64_t device_bytes();
void show_device_memory(bool visible);
std::string words_of(const void* address);

// stacks.cpp
// Registers of interrupted code; zeros where they are unknown.
struct Interrupted {
    uintptr_t instruction = 0;
    uintptr_t caller = 0;  // the return address of a call of a null pointer
    void* frame = nullptr;
};
void find_libraries();
int current_stack();
int crashed_stack(const Interrupted& at);
int stack_at(const void* function);  // a function, and the active frames as its callers

// output.cpp
enum Kind : uint8_t { kCopy, kReduce, kRead, kReadReduce, kWrite, kWriteReduce, kPost, kWait, kLocalPost, kLocalWait, kLaunch };

// One task in the file of its rank; traces.py has the same layout.
struct Task {
    uint8_t kind;
    int8_t dtype;
    int8_t reduce;
    int8_t src_part;
    int8_t dst_part;
    uint8_t pad[3];
    int32_t thread;
    int32_t target;  // the channel, or the thread of a local post; -1 for none
    int32_t index;
    int32_t stack;
    int32_t call;
    uint32_t pad2;
    uint64_t src_offset;
    uint64_t dst_offset;
    uint64_t size;
};
static_assert(sizeof(Task) == 56, "traces.py reads 56 bytes a task");

Task task_on(ThreadHandle thread, Kind kind);
bool has_findings();
void open_output(const std::string& name);
void close_output();
void forget_output();  // in a process forked by the author's code, which is not recorded
void write_task(const Task& task);
void write_line(const char* format, ...) __attribute__((format(printf, 1, 2)));
// What a refused call returns: HCCL_E_PARA, or its like among the results of that sort of calls.
struct Refusal {
    template <typename Result>
    operator Result() const
    {
        return static_cast<Result>(HCCL_E_PARA);
    }
};

// Writes a finding with the stack of the call.
Refusal refuse(const char* finding, const char* format, ...) __attribute__((format(printf, 2, 3)));
Refusal no_room(const char* call);
Refusal no_thread(const char* call, ThreadHandle thread);
Refusal no_channel(const char* call, ChannelHandle channel);
void find_at(const char* finding, int stack, const char* format, ...) __attribute__((format(printf, 3, 4)));

// run.cpp
int run_all();

}  // namespace recorder

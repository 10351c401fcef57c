// A process per rank: its limits, the call of the op, and the handling of signals.

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstring>
#include <ctime>
#include <exception>
#include <string>

#include "acl/acl_rt.h"
#include "hccl/hccl.h"
#include "state.hpp"

namespace recorder {

State state;

namespace {

constexpr int kFailed = 1;    // the op returned an error
constexpr int kCrashed = 3;   // a signal
constexpr int kEndless = 67;  // a limit of time, tasks or files
constexpr unsigned kHandlerSeconds = 5;
constexpr uint64_t kMostWritten = 1ULL << 29;  // bytes of a file

char what_was_thrown[200] = "";

void thrown()
{
    if (!std::current_exception()) {  // std::terminate without an exception, such as a std::thread that is not joined
        abort();
    }
    try {
        std::rethrow_exception(std::current_exception());
    } catch (const std::exception& error) {
        snprintf(what_was_thrown, sizeof what_was_thrown, "%s", error.what());
    } catch (...) {
        snprintf(what_was_thrown, sizeof what_was_thrown, "no std::exception");
    }
    abort();
}

const char* speaker()
{
    return state.in_kernel ? "kernel code" : "host code";
}

Interrupted interrupted(const void* context)
{
    const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
    Interrupted found;
#if defined(__x86_64__)
    found.instruction = uintptr_t(machine.gregs[REG_RIP]);
    found.frame = reinterpret_cast<void*>(machine.gregs[REG_RBP]);
    if (found.instruction == 0) {
        found.caller = *reinterpret_cast<const uintptr_t*>(machine.gregs[REG_RSP]);
    }
#elif defined(__aarch64__)
    found.instruction = uintptr_t(machine.pc);
    found.frame = reinterpret_cast<void*>(machine.regs[29]);
    found.caller = found.instruction == 0 ? uintptr_t(machine.regs[30]) : 0;
#endif
    return found;
}

void report_touch(const void* address, int stack)
{
    const char* why = state.in_kernel ? "a kernel only puts tasks on threads; data moves when they run"
                                      : "device memory is no memory of the host: use HcclEngineCtxCopy or aclrtMemcpy";
    find_at("DEVICE_MEMORY_TOUCHED", stack, "%s reads or writes %s itself: %s", speaker(),
            words_of(address).c_str(), why);
}

void on_signal(int number, siginfo_t* info, void* context)
{
    signal(SIGALRM, SIG_DFL);  // with a broken heap the code below may never end
    alarm(kHandlerSeconds);
    int status = kCrashed, stack = crashed_stack(interrupted(context));
    bool is_fault = number == SIGSEGV || number == SIGBUS;
    if (number == SIGXCPU) {
        find_at("CODE_ENDLESS", stack, "The rank does not end: %u s of CPU were not enough",
                state.options.cpu_seconds);
        status = kEndless;
    } else if (number == SIGALRM) {
        find_at("CODE_ENDLESS", stack, "The rank does not end: it waited for %u s", state.options.wall_seconds);
        status = kEndless;
    } else if (number == SIGXFSZ) {
        find_at("CODE_ENDLESS", stack, "The rank does not end: it has printed %lu MB, or written them to a file",
                kMostWritten >> 20);
        status = kEndless;
    } else if (is_fault && place_of(info->si_addr).part != kNoPart) {
        report_touch(info->si_addr, stack);
    } else if (number == SIGABRT && what_was_thrown[0]) {
        find_at("CODE_CRASHED", stack, "%s throws an uncaught exception: %s", speaker(),
                what_was_thrown);
    } else if (is_fault) {
        find_at("CODE_CRASHED", stack, "%s ends in signal %d (%s) at address %p", speaker(), number,
                strsignal(number), info->si_addr);
    } else {
        find_at("CODE_CRASHED", stack, "%s ends in signal %d (%s)", speaker(), number, strsignal(number));
    }
    write_line("END\t-1");
    close_output();
    _exit(status);
}

void catch_signals()
{
    static char stack[1 << 17];
    stack_t other{};
    other.ss_sp = stack;
    other.ss_size = sizeof stack;
    sigaltstack(&other, nullptr);
    struct sigaction action {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND;
    for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGILL, SIGXCPU, SIGALRM, SIGXFSZ, SIGSYS, SIGTRAP}) {
        sigaction(number, &action, nullptr);
    }
    std::set_terminate(thrown);
}

void limit(int what, uint64_t soft, uint64_t hard)
{
    rlimit both{};
    getrlimit(__rlimit_resource(what), &both);
    both.rlim_max = both.rlim_max < hard ? both.rlim_max : hard;  // a lower limit of the user stays
    both.rlim_cur = both.rlim_max < soft ? both.rlim_max : soft;
    setrlimit(__rlimit_resource(what), &both);
}

void set_limits()
{
    const Options& options = state.options;
    limit(RLIMIT_CPU, options.cpu_seconds, options.cpu_seconds + 2);
    limit(RLIMIT_AS, options.memory_bytes, options.memory_bytes);
    limit(RLIMIT_CORE, 0, 0);
    limit(RLIMIT_FSIZE, kMostWritten, kMostWritten);
    alarm(options.wall_seconds);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

// Redirects the output of the author's code to a file of its rank.
void redirect(const std::string& name)
{
    int file = open((state.options.out + "/" + name + ".out").c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    dup2(nothing, STDIN_FILENO);
}

template <typename Function>
Function entry(const std::string& name)
{
    return reinterpret_cast<Function>(dlsym(state.host_library, name.c_str()));
}

int call_pair(HcclComm comm, aclrtStream stream, void* in, void* out)
{
    const Options& o = state.options;
    using Side = HcclResult (*)(void*, uint64_t, HcclDataType, uint32_t, HcclComm, aclrtStream);
    auto dtype = HcclDataType(o.dtype);
    if (state.rank % 2 == 0 && state.rank + 1 < o.ranks) {
        return entry<Side>(o.entry)(in, o.count, dtype, state.rank + 1, comm, stream);
    }
    return state.rank % 2 ? entry<Side>(o.receiver)(out, o.count, dtype, state.rank - 1, comm, stream) : 0;
}

// The amounts of this rank: the same list for all, or a row of a table.
const uint64_t* amounts(const std::vector<uint64_t>& of_all)
{
    uint32_t ranks = state.options.ranks;
    return of_all.data() + (of_all.size() > ranks ? uint64_t(state.rank) * ranks : 0);
}

// Calls an op whose amounts differ by rank.
int call_varying(HcclComm comm, aclrtStream stream, void* in, void* out)
{
    const Options& o = state.options;
    auto dtype = HcclDataType(o.dtype);
    const uint64_t *sends = amounts(o.sends), *receives = amounts(o.receives);
    const uint64_t *from = amounts(o.send_displs), *to = amounts(o.receive_displs);
    if (o.op == "all_gather_v") {
        return entry<decltype(&HcclAllGatherV)>(o.entry)(in, receives[state.rank], out, receives, to, dtype, comm, stream);
    }
    if (o.op == "reduce_scatter_v") {
        return entry<decltype(&HcclReduceScatterV)>(o.entry)(in, sends, from, out, sends[state.rank], dtype,
                                                             HcclReduceOp(o.reduce), comm, stream);
    }
    if (o.op == "all_to_all_vc") {
        return entry<decltype(&HcclAlltoAllVC)>(o.entry)(in, o.sends.data(), dtype, out, dtype, comm, stream);
    }
    return entry<decltype(&HcclAlltoAllV)>(o.entry)(in, sends, from, dtype, out, receives, to, dtype, comm, stream);
}

// Calls the op with the signature that HCCL gives it.
int call_op()
{
    const Options& o = state.options;
    auto comm = reinterpret_cast<HcclComm>(0xC0);
    auto stream = reinterpret_cast<aclrtStream>(1);
    void* in = address_of(state.rank, kIn);
    void* out = address_of(state.rank, kOut);
    auto dtype = HcclDataType(o.dtype);
    auto reduce = HcclReduceOp(o.reduce);
    const std::string& op = o.op;
    if (op == "all_reduce" || op == "reduce_scatter") {
        using Op = HcclResult (*)(void*, void*, uint64_t, HcclDataType, HcclReduceOp, HcclComm, aclrtStream);
        return entry<Op>(o.entry)(in, out, o.count, dtype, reduce, comm, stream);
    }
    if (op == "reduce") {
        using Op = HcclResult (*)(void*, void*, uint64_t, HcclDataType, HcclReduceOp, uint32_t, HcclComm, aclrtStream);
        return entry<Op>(o.entry)(in, out, o.count, dtype, reduce, o.root, comm, stream);
    }
    if (op == "all_gather") {
        using Op = HcclResult (*)(void*, void*, uint64_t, HcclDataType, HcclComm, aclrtStream);
        return entry<Op>(o.entry)(in, out, o.count, dtype, comm, stream);
    }
    if (op == "broadcast") {  // one buffer: the root's is its input, that of the others their output
        using Op = HcclResult (*)(void*, uint64_t, HcclDataType, uint32_t, HcclComm, aclrtStream);
        return entry<Op>(o.entry)(state.rank == o.root ? in : out, o.count, dtype, o.root, comm, stream);
    }
    if (op == "scatter") {
        using Op = HcclResult (*)(void*, void*, uint64_t, HcclDataType, uint32_t, HcclComm, aclrtStream);
        return entry<Op>(o.entry)(in, out, o.count, dtype, o.root, comm, stream);
    }
    if (op == "all_to_all") {
        using Op = HcclResult (*)(const void*, uint64_t, HcclDataType, const void*, uint64_t, HcclDataType, HcclComm,
                                  aclrtStream);
        return entry<Op>(o.entry)(in, o.count, dtype, out, o.count, dtype, comm, stream);
    }
    return op == "send_recv" ? call_pair(comm, stream, in, out) : call_varying(comm, stream, in, out);
}

int record_rank()
{
    std::string name = "rank" + std::to_string(state.rank);
    redirect(name);
    open_output(name);
    write_layout();
    catch_signals();
    set_limits();
    pthread_atfork(nullptr, nullptr, forget_output);
    state.thread = pthread_self();
    state.threads.push_back({0, -1});  // the caller's stream
    int result = 0;
    for (uint32_t call = 0; call < state.options.calls && result == 0; ++call) {
        state.call = call;
        result = call_op();
    }
    if (result != 0 && !has_findings()) {
        find_at("CALL_FAILED", stack_at(entry<void*>(state.options.entry)), "%s returned %d", state.options.entry.c_str(),
                result);
    }
    for (const Thread& thread : state.threads) {
        write_line("N\t%u\t%d", thread.notifies, thread.stack);
    }
    write_line("G\t%d", state.engine);
    write_line("D\t%lu", device_bytes());
    write_line("END\t%d", result);
    close_output();
    fflush(nullptr);
    return result ? kFailed : 0;
}

void* load(const std::string& path, int errors)
{
    void* handle = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (handle == nullptr) {
        dprintf(errors, "%s\n", dlerror());
        _exit(68);
    }
    return handle;
}

// Loads host code and kernels. Code that runs meanwhile, constructors, has limits and an output file, too.
void load_libraries()
{
    const Options& options = state.options;
    int errors = dup(STDERR_FILENO);
    redirect("load");
    open_output("load");
    catch_signals();
    limit(RLIMIT_CPU, options.cpu_seconds, RLIM_INFINITY);
    limit(RLIMIT_AS, options.memory_bytes, RLIM_INFINITY);
    limit(RLIMIT_FSIZE, kMostWritten, RLIM_INFINITY);
    alarm(options.wall_seconds);
    state.host_library = load(options.host, errors);
    state.device_library = load(options.device, errors);
    for (int what : {RLIMIT_CPU, RLIMIT_AS, RLIMIT_FSIZE}) {
        limit(what, RLIM_INFINITY, RLIM_INFINITY);
    }
    alarm(0);
    write_line("END\t0");
    close_output();
    fflush(nullptr);  // or every rank prints it again
    dup2(errors, STDERR_FILENO);
    close(errors);
    find_libraries();
}

struct Deadline {
    pid_t process;
    time_t when;
};
using Deadlines = std::vector<Deadline>;

// Waits until a rank has ended, and kills ranks that have passed their deadline; false where none is left.
bool wait_for_rank(Deadlines& running, const sigset_t& ends, int& status)
{
    for (;;) {
        pid_t ended = waitpid(-1, &status, WNOHANG);
        if (ended != 0) {
            for (size_t i = 0; i < running.size(); ++i) {
                if (running[i].process == ended) {
                    running[i] = running.back();
                    running.pop_back();
                }
            }
            return ended > 0;
        }
        for (const Deadline& rank : running) {
            if (time(nullptr) > rank.when) {
                kill(rank.process, SIGKILL);
            }
        }
        timespec second{1, 0};
        sigtimedwait(&ends, nullptr, &second);
    }
}

}  // namespace

// Records all ranks, some at a time, until one does not end; returns the exit status.
int run_all()
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("ASCEND_HOME_PATH", state.options.home.c_str(), 1);
    lay_out_memory();
    load_libraries();
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGCHLD);
    sigprocmask(SIG_BLOCK, &ends, nullptr);
    Deadlines running;
    uint32_t next = 0;
    bool goes_on = true;
    while (!running.empty() || (goes_on && next < state.options.ranks)) {
        if (goes_on && next < state.options.ranks && running.size() < state.options.jobs) {
            state.rank = next++;
            pid_t child = fork();
            if (child == 0) {
                sigprocmask(SIG_UNBLOCK, &ends, nullptr);
                _exit(record_rank());
            }
            if (child < 0) {
                perror("fork");
                return 69;
            }
            running.push_back({child, time(nullptr) + state.options.wall_seconds + 2});
            continue;
        }
        int status = 0;
        if (!wait_for_rank(running, ends, status)) {
            break;
        }
        goes_on = goes_on && !(WIFEXITED(status) && WEXITSTATUS(status) == kEndless) && !WIFSIGNALED(status);
    }
    return 0;
}

}  // namespace recorder

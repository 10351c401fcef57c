// The listing of a CCU kernel: a line for every operation, with the author's stack.

#include <cstring>
#include <stdexcept>

#include "ccu.hpp"

namespace recorder {

Ccu ccu;

namespace {

void write_listed(const char* operation, const uint64_t* operands, uint32_t count)
{
    if (ccu.is_counting) {
        return;
    }
    std::string text;
    char one[24];
    for (uint32_t i = 0; i < count; ++i) {
        snprintf(one, sizeof one, "\t%lx", operands[i]);
        text += one;
    }
    write_line("I\t%s\t%d%s", operation, current_stack(), text.c_str());
}

void close_if()
{
    if (ccu.has_open_if) {
        ccu.has_open_if = false;
        write_listed("end_if", nullptr, 0);
    }
}

CcuResult wrong(const char* finding, const char* text)
{
    refuse(finding, "%s", text);
    if (ccu.current != nullptr) {
        ccu.current->is_refused = true;
    }
    return CCU_E_PARA;
}

bool is_one_of(const char* word, std::initializer_list<const char*> words)
{
    for (const char* one : words) {
        if (strcmp(word, one) == 0) {
            return true;
        }
    }
    return false;
}

// The place of the channel among an operation's operands; -1 where it has none.
int channel_operand(const char* operation)
{
    if (is_one_of(operation, {"record_notify", "wait_notify", "write_slot"})) {
        return 0;
    }
    return is_one_of(operation, {"read", "read_reduce", "write", "write_reduce"}) ? 3 : -1;
}

CcuResult check_channel_use(const char* operation, std::vector<uint64_t>& operands, int place)
{
    uint64_t handle = operands[place];
    const Channel* channel = channel_of(handle);
    char text[300];
    if (channel == nullptr) {
        snprintf(text, sizeof text, "%s: 0x%lx is no channel that this rank acquired", operation, handle);
        return wrong("UNKNOWN_HANDLE", text);
    }
    int& die = ccu.current->die;
    if (die >= 0 && die != channel->die) {
        snprintf(text, sizeof text,
                 "%s: the channel to rank %u is one of die %d, and kernel %s has used channels of die %d: a kernel "
                 "runs on one die and uses the ports of that die alone",
                 operation, channel->peer, channel->die, ccu.current->name.c_str(), die);
        return wrong("INVALID_ARGUMENT", text);
    }
    die = channel->die;
    uint32_t most = channel->notifies > kReserved ? channel->notifies : kReserved;
    if (place == 0 && operands[1] >= most) {
        snprintf(text, sizeof text, "%s: notify %lu of a channel to rank %u that has %u", operation, operands[1],
                 channel->peer, most);
        return wrong("NOTIFY_INDEX_OUT_OF_RANGE", text);
    }
    operands[place] = handle - kChannelHandle;
    return CCU_SUCCESS;
}

CcuResult check_mask(const char* operation, const std::vector<uint64_t>& operands)
{
    bool has_channel = channel_operand(operation) == 0;
    bool is_signal = has_channel || strncmp(operation, "record_", 7) == 0 || strncmp(operation, "wait_", 5) == 0;
    bool is_move = !is_signal && operands.size() >= 7 && strcmp(operation, "group") != 0;
    if ((is_signal || is_move) && operands[has_channel ? 2 : 1] == 0) {
        char text[100];
        snprintf(text, sizeof text, "%s: the mask is 0, so that no bit is set or waited for", operation);
        return wrong("INVALID_ARGUMENT", text);
    }
    return CCU_SUCCESS;
}

CcuResult check_reduction(const char* operation, const std::vector<uint64_t>& operands)
{
    if (!is_one_of(operation, {"reduce", "read_reduce", "write_reduce", "reduce_buffers"})) {
        return CCU_SUCCESS;
    }
    uint64_t dtype = operands[4], op = operands[5];
    bool is_type = dtype == HCCL_DATA_TYPE_UINT8 || dtype == HCCL_DATA_TYPE_INT16 || dtype == HCCL_DATA_TYPE_INT32
                   || dtype == HCCL_DATA_TYPE_FP16 || dtype == HCCL_DATA_TYPE_FP32 || dtype == HCCL_DATA_TYPE_BFP16;
    char text[200];
    if (!is_type || (op != HCCL_REDUCE_SUM && op != HCCL_REDUCE_MAX && op != HCCL_REDUCE_MIN)) {
        snprintf(text, sizeof text,
                 "%s: data type %lu with reduction %lu; the CCU reduces uint8, int16, int32, fp16, fp32 and bf16 by sum, "
                 "max and min",
                 operation, dtype, op);
        return wrong("INVALID_ARGUMENT", text);
    }
    if (strcmp(operation, "reduce_buffers") == 0 && operands[3] != dtype) {
        return wrong("UNSUPPORTED_CALL", "LocalReduce of buffers into another data type is not modelled");
    }
    size_t buffers = operands.size() - 6;
    if (strcmp(operation, "reduce_buffers") == 0 && (buffers < 2 || buffers > 8)) {
        snprintf(text, sizeof text, "%s: %zu buffers; the CCU reduces 2 to 8 at once", operation, buffers);
        return wrong("INVALID_ARGUMENT", text);
    }
    return CCU_SUCCESS;
}

CcuResult check_place(const char* operation, const std::vector<uint64_t>& operands)
{
    if (++ccu.current->lines > kMostLines) {
        wrong("RESOURCE_EXCEEDED", "The kernel has more than 32768 instructions, which is what a die holds: loops of "
                                          "C++ list their body every time, CCU_WHILE and LoopGroup list it once");
        throw std::runtime_error("the kernel is too long");  // a loop without end would go on
    }
    if (is_one_of(operation, {"load", "store"})) {
        return wrong("UNSUPPORTED_CALL", "Load and Store of variables are not modelled: their values are data of the call");
    }
    if (ccu.loop_depth > 0
        && is_one_of(operation, {"record_event", "record_tag", "if", "while", "do", "group", "loop", "argument"})) {
        char text[160];
        snprintf(text, sizeof text, "%s inside the body of a Loop, which holds moves and waits alone", operation);
        return wrong("INVALID_ARGUMENT", text);
    }
    if (strcmp(operation, "argument") == 0 && operands[1] >= 4096) {
        return wrong("INVALID_ARGUMENT", "LoadArg: an argument of number 4096 or more");
    }
    if (strcmp(operation, "write_slot") == 0 && operands[4] >= kSlots) {
        return wrong("INVALID_ARGUMENT", "WriteVariableWithNotify: a channel has variables 0 to 3");
    }
    return CCU_SUCCESS;
}

CcuResult check(const char* operation, std::vector<uint64_t>& operands)
{
    CcuResult found = check_place(operation, operands);
    int place = channel_operand(operation);
    if (found == CCU_SUCCESS && place >= 0) {
        found = check_channel_use(operation, operands, place);
    }
    if (found == CCU_SUCCESS) {
        found = check_mask(operation, operands);
    }
    return found == CCU_SUCCESS ? check_reduction(operation, operands) : found;
}

void keep(const char* operation, const std::vector<uint64_t>& operands)
{
    CcuKernel& kernel = *ccu.current;
    if (strcmp(operation, "argument") == 0) {
        if (operands[1] >= kernel.arguments.size()) {
            kernel.arguments.resize(operands[1] + 1);
        }
        kernel.arguments[operands[1]] = true;
    }
    kernel.has_branches = kernel.has_branches || is_one_of(operation, {"if", "while", "do"});
    ccu.loop_depth += strcmp(operation, "loop") == 0;
    ccu.loop_depth -= strcmp(operation, "end_loop") == 0;
}

}  // namespace

void begin_listing(CcuKernel& kernel)
{
    ccu.current = &kernel;
    ccu.loop_depth = ccu.finished_dos = 0;
    ccu.has_open_if = false;
}

void end_listing()
{
    close_if();
    ccu.current = nullptr;
}

}  // namespace recorder

using namespace recorder;

extern "C" {

uint64_t CcuListRegisters(char letter, uint32_t count)
{
    if (ccu.current == nullptr) {
        refuse("INVALID_ARGUMENT", "A register of the CCU outside of a kernel: they exist while HcommCcuKernelRegister "
                                   "runs the kernel's function");
        return 0;
    }
    uint32_t sort = sort_number(letter);
    uint32_t& taken = ccu.current->registers[sort];
    uint64_t first = taken;
    taken += count;
    ccu.current->takings.push_back({sort, taken, current_stack()});
    return uint64_t(sort + 1) << 48 | first;
}

uint64_t CcuListSlot(ChannelHandle channel, uint32_t index)
{
    if (ccu.current == nullptr || channel_of(channel) == nullptr || index >= kSlots) {
        char text[160];
        snprintf(text, sizeof text, "GetResByChannel: variable %u of channel 0x%lx; a kernel has the variables 0 to 3 of "
                                    "channels that its rank acquired", index, channel);
        wrong("UNKNOWN_HANDLE", text);
        return 0;
    }
    return kSlotSort << 48 | (channel - kChannelHandle) << 8 | index;
}

uint64_t CcuListTag(const char* tag)
{
    std::string name = tag ? tag : "";
    for (size_t i = 0; i < ccu.tags.size(); ++i) {
        if (ccu.tags[i] == name) {
            return i;
        }
    }
    ccu.tags.push_back(name);
    return ccu.tags.size() - 1;
}

CcuResult CcuListLine(const char* operation, const uint64_t* operands, uint32_t count)
{
    if (ccu.current == nullptr) {
        refuse("INVALID_ARGUMENT", "%s outside of a kernel's function", operation);
        return CCU_E_PTR;
    }
    std::vector<uint64_t> taken(operands, operands + count);
    CcuResult found = check(operation, taken);
    if (found != CCU_SUCCESS) {
        return found;
    }
    close_if();
    keep(operation, taken);
    write_listed(operation, taken.data(), count);
    return CCU_SUCCESS;
}

// A branch stays open after its body, for CCU_ELSE; the next operation closes it.
void CcuListIfEnds(void)
{
    close_if();
    ccu.has_open_if = ccu.current != nullptr;
}

int CcuListElseBegins(void)
{
    if (!ccu.has_open_if) {
        wrong("INVALID_ARGUMENT", "CCU_ELSE follows no CCU_IF: any operation between the two closes the branch, and the "
                                  "body of CCU_ELSE is lost");
        return 0;
    }
    ccu.has_open_if = false;
    write_listed("else", nullptr, 0);
    return 1;
}

void CcuListDoEnds(void)
{
    close_if();
    ++ccu.finished_dos;
}

int CcuListIsEndOfDo(void)
{
    if (ccu.finished_dos == 0) {
        return 0;
    }
    --ccu.finished_dos;
    return 1;
}

}  // extern "C"

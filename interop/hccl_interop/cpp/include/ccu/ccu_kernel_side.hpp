// A kernel of the CCU: registers, moves, waits and branches.
//
// A kernel's function runs once, on the host, when it is registered. Nothing is computed meanwhile:
// every operation here is one line of the kernel's listing, which the recorder keeps. Registers are
// numbers; their values are known only when the kernels of all ranks run together.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "../hccl/hccl_res.h"
#include "../hccl/hccl_types.h"
#include "ccu_types.h"

// The recorder's part: recorder/ccu_listing.cpp.
extern "C" {
uint64_t CcuListRegisters(char sort, uint32_t count);
uint64_t CcuListSlot(ChannelHandle channel, uint32_t index);
uint64_t CcuListTag(const char* tag);
CcuResult CcuListLine(const char* operation, const uint64_t* operands, uint32_t count);
void CcuListIfEnds(void);
int CcuListElseBegins(void);
void CcuListDoEnds(void);
int CcuListIsEndOfDo(void);
}

namespace AscendC {
namespace ccu {
namespace detail {

struct Unnumbered {};

inline CcuResult list(const char* operation, std::initializer_list<uint64_t> operands)
{
    return CcuListLine(operation, operands.begin(), uint32_t(operands.size()));
}

class CcuException : public std::exception {
public:
    CcuException(CcuResult result, const char* text) : result_(result), text_(text) {}
    const char* what() const noexcept override { return text_; }
    CcuResult Result() const { return result_; }

private:
    CcuResult result_;
    const char* text_;
};

// An unevaluated `left sign right`; one of the classes below takes it in an assignment.
struct Binary {
    char sign;
    uint64_t left;
    uint64_t right;
    bool is_number;  // right is a number, not a register
};

inline void assign(uint64_t to, const Binary& value)
{
    list(value.is_number ? "add_number" : "add",
         {to, value.left, value.right, uint64_t(static_cast<unsigned char>(value.sign))});
}

}  // namespace detail

struct CondExpr {
    uint64_t left;
    uint64_t right;
    CcuConditionType how;
    bool is_number;
};

// A general register of 64 bits. Copies name the same register; assigning a register lists an
// instruction, and assigning a temporary one gives another name.
class Variable final {
public:
    Variable() : handle(CcuListRegisters('v', 1)) {}
    explicit Variable(detail::Unnumbered) {}
    Variable(const Variable& other) : handle(other.handle) {}
    Variable(Variable&& other) noexcept : handle(other.handle) {}

    void operator=(const Variable& other) const { detail::list("copy_register", {handle, other.handle}); }
    void operator=(Variable&& other) { handle = other.handle; }
    void operator=(uint64_t number) const { detail::list("set", {handle, number}); }
    void operator=(const detail::Binary& value) const { detail::assign(handle, value); }

#define CCU_LISTED(sign)                                            \
    detail::Binary operator sign(const Variable& other) const       \
    {                                                               \
        return {(#sign)[0], handle, other.handle, false};           \
    }                                                               \
    void operator sign##=(const Variable& other) const { *this = *this sign other; }
    CCU_LISTED(+)
    CCU_LISTED(-)
    CCU_LISTED(*)
    CCU_LISTED(&)
    CCU_LISTED(|)
    CCU_LISTED(^)
    CCU_LISTED(<<)
    CCU_LISTED(>>)
#undef CCU_LISTED
    detail::Binary operator~() const { return {'~', handle, 0, true}; }

#define CCU_LISTED(sign)                                                                                          \
    detail::Binary operator sign(uint16_t number) const { return {(#sign)[0], handle, number, true}; }            \
    void operator sign##=(uint16_t number) const { *this = *this sign number; }
    CCU_LISTED(+)
    CCU_LISTED(-)
    CCU_LISTED(*)
#undef CCU_LISTED

#define CCU_COMPARED(sign, how)                                                                   \
    CondExpr operator sign(uint64_t number) const { return {handle, number, how, true}; }         \
    CondExpr operator sign(const Variable& other) const { return {handle, other.handle, how, false}; }
    CCU_COMPARED(==, CCU_CONDITION_EQ)
    CCU_COMPARED(!=, CCU_CONDITION_NE)
    CCU_COMPARED(<, CCU_CONDITION_LT)
    CCU_COMPARED(<=, CCU_CONDITION_LE)
    CCU_COMPARED(>, CCU_CONDITION_GT)
    CCU_COMPARED(>=, CCU_CONDITION_GE)
#undef CCU_COMPARED

    CcuVariableHandle handle = 0;
};

// A register for an address. Its value cannot go back to a Variable.
class Address final {
public:
    Address() : handle(CcuListRegisters('a', 1)) {}
    explicit Address(detail::Unnumbered) {}
    Address(const Address& other) : handle(other.handle) {}
    Address(Address&& other) noexcept : handle(other.handle) {}

    void operator=(const Address& other) const { detail::list("copy_register", {handle, other.handle}); }
    void operator=(Address&& other) { handle = other.handle; }
    void operator=(const Variable& other) const { detail::list("copy_register", {handle, other.handle}); }
    void operator=(uint64_t number) const { detail::list("set", {handle, number}); }

    struct Sum {
        detail::Binary value;
    };
    void operator=(const Sum& sum) const { detail::assign(handle, sum.value); }
    Sum operator+(const Address& other) const { return {{'+', handle, other.handle, false}}; }
    Sum operator+(const Variable& other) const { return {{'+', handle, other.handle, false}}; }
    Sum operator+(uint16_t number) const { return {{'+', handle, number, true}}; }
    void operator+=(const Address& other) const { *this = *this + other; }
    void operator+=(const Variable& other) const { *this = *this + other; }

    CcuAddressHandle handle = 0;
};

inline Address::Sum operator+(const Variable& left, const Address& right)
{
    return right + left;
}

// Sixteen bits that moves set and waits clear.
class Event final {
public:
    Event() : handle(CcuListRegisters('e', 1)) {}
    explicit Event(detail::Unnumbered) {}
    Event(const Event& other) : handle(other.handle) {}
    Event(Event&& other) noexcept : handle(other.handle) {}
    void operator=(Event&& other) { handle = other.handle; }
    CcuEventHandle handle = 0;
};

// 4 096 bytes of memory in the CCU.
class CcuBuffer final {
public:
    CcuBuffer() : handle(CcuListRegisters('b', 1)) {}
    explicit CcuBuffer(detail::Unnumbered) {}
    CcuBuffer(const CcuBuffer& other) : handle(other.handle) {}
    CcuBuffer(CcuBuffer&& other) noexcept : handle(other.handle) {}
    void operator=(CcuBuffer&& other) { handle = other.handle; }
    CcuBufferHandle handle = 0;
};

namespace detail {

// Memory: an address, and the token that permits its use.
template <int Side>
class Memory final {
public:
    Memory() {}
    Memory(const Memory& other) : addr(other.addr), token(other.token) {}
    Memory(Memory&& other) noexcept : addr(other.addr), token(other.token) {}
    void operator=(const Memory& other)
    {
        addr = other.addr;
        token = other.token;
    }
    void operator=(Memory&& other)
    {
        addr.handle = other.addr.handle;
        token.handle = other.token.handle;
    }
    Address addr;
    Variable token;
};

template <typename T>
struct Sort;
template <>
struct Sort<Variable> {
    static constexpr char letter = 'v';
};
template <>
struct Sort<Event> {
    static constexpr char letter = 'e';
};
template <>
struct Sort<CcuBuffer> {
    static constexpr char letter = 'b';
};

}  // namespace detail

using LocalAddr = detail::Memory<0>;
using RemoteAddr = detail::Memory<1>;

// Registers next to each other.
template <typename T>
class Array final {
public:
    explicit Array(uint32_t count)
    {
        uint64_t first = count > 0 ? CcuListRegisters(detail::Sort<T>::letter, count) : 0;
        items_.reserve(count);
        for (uint32_t i = 0; i < count; ++i) {
            items_.emplace_back(detail::Unnumbered());
            items_.back().handle = first + i;
        }
    }
    Array(const Array&) = delete;
    Array& operator=(const Array&) = delete;
    Array(Array&&) noexcept = default;
    Array& operator=(Array&& other) noexcept
    {
        items_.swap(other.items_);
        return *this;
    }
    T& operator[](uint32_t i) { return items_[i]; }
    const T& operator[](uint32_t i) const { return items_[i]; }
    T* data() { return items_.data(); }
    const T* data() const { return items_.data(); }
    uint32_t size() const { return uint32_t(items_.size()); }

private:
    std::vector<T> items_;
};

// A variable that the peer of a channel writes.
template <typename T>
T GetResByChannel(ChannelHandle channel, uint32_t index);

template <>
inline Variable GetResByChannel<Variable>(ChannelHandle channel, uint32_t index)
{
    Variable found{detail::Unnumbered()};
    found.handle = CcuListSlot(channel, index);
    return found;
}

inline CcuResult LoadArg(Variable to, uint32_t index)
{
    return detail::list("argument", {to.handle, index});
}

inline CcuResult Load(uint64_t, Variable to)
{
    return detail::list("load", {to.handle});
}

inline CcuResult Load(uint64_t, Array<Variable>& to, uint32_t)
{
    return detail::list("load", {to[0].handle});
}

inline CcuResult Load(Variable, Variable to)
{
    return detail::list("load", {to.handle});
}

inline CcuResult Load(Variable, Array<Variable>& to, uint32_t)
{
    return detail::list("load", {to[0].handle});
}

inline CcuResult Store(uint64_t, Variable from)
{
    return detail::list("store", {from.handle});
}

inline CcuResult Store(uint64_t, Array<Variable>& from, uint32_t)
{
    return detail::list("store", {from[0].handle});
}

inline CcuResult Store(Variable, Variable from)
{
    return detail::list("store", {from.handle});
}

inline CcuResult Store(Variable, Array<Variable>& from, uint32_t)
{
    return detail::list("store", {from[0].handle});
}

// Signals: inside a kernel, between kernels of a die, and over channels.
inline CcuResult EventRecord(Event event, uint16_t mask = 1)
{
    return detail::list("record_event", {event.handle, mask});
}

inline CcuResult EventWait(Event event, uint16_t mask = 1)
{
    return detail::list("wait_event", {event.handle, mask});
}

inline CcuResult EventRecord(const char* tag, uint16_t mask = 1)
{
    return detail::list("record_tag", {CcuListTag(tag), mask});
}

inline CcuResult EventWait(const char* tag, uint16_t mask = 1)
{
    return detail::list("wait_tag", {CcuListTag(tag), mask});
}

inline CcuResult NotifyRecord(ChannelHandle channel, uint32_t notify, uint16_t mask = 1)
{
    return detail::list("record_notify", {channel, notify, mask});
}

inline CcuResult NotifyWait(ChannelHandle channel, uint32_t notify, uint16_t mask = 1)
{
    return detail::list("wait_notify", {channel, notify, mask});
}

inline CcuResult WriteVariableWithNotify(ChannelHandle channel, Variable value, uint32_t slot, uint32_t notify,
                                         uint16_t mask = 1)
{
    return detail::list("write_slot", {channel, notify, mask, value.handle, slot});
}

// Moves. Their operands: event, mask, length, channel, data type, reduction, and then for each side
// address and token, or buffer and 0; the destination first.
namespace detail {

constexpr uint64_t kNone = 255;

struct Done {
    uint64_t event;
    uint64_t mask;
};

inline Done done(const Event& event, uint16_t mask)
{
    return {event.handle, mask};
}

struct Place {
    template <int Side>
    Place(const Memory<Side>& memory) : at(memory.addr.handle), token(memory.token.handle)
    {}
    Place(const CcuBuffer& buffer) : at(buffer.handle), token(0) {}
    uint64_t at;
    uint64_t token;
};

inline CcuResult move(const char* what, uint64_t channel, Place to, Place from, const Variable& length, Done done,
                      uint64_t dtype = kNone, uint64_t op = kNone)
{
    return list(what, {done.event, done.mask, length.handle, channel, dtype, op, to.at, to.token, from.at, from.token});
}

}  // namespace detail

inline CcuResult LocalCopy(LocalAddr to, LocalAddr from, Variable length, Event event, uint16_t mask = 1)
{
    return detail::move("copy", 0, to, from, length, detail::done(event, mask));
}

inline CcuResult LocalCopy(CcuBuffer to, LocalAddr from, Variable length, Event event, uint16_t mask = 1)
{
    return detail::move("copy", 0, to, from, length, detail::done(event, mask));
}

inline CcuResult LocalCopy(LocalAddr to, CcuBuffer from, Variable length, Event event, uint16_t mask = 1)
{
    return detail::move("copy", 0, to, from, length, detail::done(event, mask));
}

inline CcuResult LocalReduce(LocalAddr to, LocalAddr from, Variable length, HcclDataType dtype, HcclReduceOp op,
                             Event event, uint16_t mask = 1)
{
    return detail::move("reduce", 0, to, from, length, detail::done(event, mask), uint64_t(dtype), uint64_t(op));
}

inline CcuResult LocalReduce(CcuBuffer* buffers, uint32_t count, HcclDataType dtype, HcclDataType outDtype,
                             HcclReduceOp op, Variable length, Event event, uint16_t mask = 1)
{
    if (buffers == nullptr || count == 0) {
        return CCU_E_PARA;
    }
    std::vector<uint64_t> operands{event.handle, mask, length.handle, uint64_t(outDtype), uint64_t(dtype), uint64_t(op)};
    for (uint32_t i = 0; i < count; ++i) {
        operands.push_back(buffers[i].handle);
    }
    return CcuListLine("reduce_buffers", operands.data(), uint32_t(operands.size()));
}

inline CcuResult Read(ChannelHandle channel, LocalAddr to, RemoteAddr from, Variable length, Event event,
                      uint16_t mask = 1)
{
    return detail::move("read", channel, to, from, length, detail::done(event, mask));
}

inline CcuResult Read(ChannelHandle channel, CcuBuffer to, RemoteAddr from, Variable length, Event event,
                      uint16_t mask = 1)
{
    return detail::move("read", channel, to, from, length, detail::done(event, mask));
}

inline CcuResult ReadReduce(ChannelHandle channel, LocalAddr to, RemoteAddr from, Variable length, HcclDataType dtype,
                            HcclReduceOp op, Event event, uint16_t mask = 1)
{
    return detail::move("read_reduce", channel, to, from, length, detail::done(event, mask), uint64_t(dtype),
                        uint64_t(op));
}

inline CcuResult Write(ChannelHandle channel, RemoteAddr to, LocalAddr from, Variable length, Event event,
                       uint16_t mask = 1)
{
    return detail::move("write", channel, to, from, length, detail::done(event, mask));
}

inline CcuResult Write(ChannelHandle channel, RemoteAddr to, CcuBuffer from, Variable length, Event event,
                       uint16_t mask = 1)
{
    return detail::move("write", channel, to, from, length, detail::done(event, mask));
}

inline CcuResult WriteReduce(ChannelHandle channel, RemoteAddr to, LocalAddr from, Variable length, HcclDataType dtype,
                             HcclReduceOp op, Event event, uint16_t mask = 1)
{
    return detail::move("write_reduce", channel, to, from, length, detail::done(event, mask), uint64_t(dtype),
                        uint64_t(op));
}

// A body that is listed where it is called, or once in a Loop.
class Func {
public:
    template <typename Body>
    explicit Func(Body body) : Func(body, &Body::operator())
    {}
    Func(const Func&) = delete;
    Func& operator=(const Func&) = delete;
    uint32_t NumIn() const { return count_; }
    void RunBody(Variable* formal) const { body_(formal); }

private:
    template <typename Body, typename Owner, typename Result, typename... Formal>
    Func(Body body, Result (Owner::*)(Formal...) const)
        : count_(sizeof...(Formal)),
          body_([body](Variable* formal) { call(body, formal, std::make_index_sequence<sizeof...(Formal)>()); })
    {}
    template <typename Body, size_t... Number>
    static void call(const Body& body, Variable* formal, std::index_sequence<Number...>)
    {
        (void)formal;
        body(formal[Number]...);
    }
    uint32_t count_;
    std::function<void(Variable*)> body_;
};

template <Func& function, typename... Actual>
CcuResult CallFunc(Actual... actual)
{
    if (sizeof...(Actual) != function.NumIn()) {
        return CCU_E_PARA;
    }
    std::vector<Variable> formal(function.NumIn());
    std::vector<Variable> given{actual...};
    for (size_t i = 0; i < formal.size(); ++i) {
        formal[i] = static_cast<const Variable&>(given[i]);
    }
    function.RunBody(formal.data());
    return CCU_SUCCESS;
}

using LoopConfig = ::CcuLoopConfig;
using LoopGroupConfig = ::CcuLoopGroupConfig;
using LoopCfg = ::CcuLoopCfg;
using LoopGroupCfg = ::CcuLoopGroupCfg;

// A body that a LoopGroup repeats. How often: from a packed variable (0), from numbers (1), or from
// two variables (2).
class Loop {
public:
    Loop(Variable& config, const Func& body) : how_{list(body), 0, config.handle, 0} {}
    Loop(const CcuLoopConfig& config, const Func& body) : how_{list(body), 1, config.iterNum, config.addrOffset} {}
    Loop(const CcuLoopCfg& config, const Func& body) : how_{list(body), 1, config.iterNum, config.addrOffset} {}
    Loop(Variable& iterations, Variable& offset, const Func& body)
        : how_{list(body), 2, iterations.handle, offset.handle}
    {}

private:
    friend class LoopGroup;
    static uint64_t list(const Func& body)
    {
        if (body.NumIn() != 0) {
            throw detail::CcuException(CCU_E_PARA, "the body of a Loop takes no arguments");
        }
        uint64_t number = CcuListRegisters('l', 1);
        detail::list("loop", {number});
        body.RunBody(nullptr);
        detail::list("end_loop", {number});
        return number;
    }
    std::vector<uint64_t> how_;
};

// Runs loops side by side, with copies of them, until all have ended.
class LoopGroup {
public:
    LoopGroup(Variable& parallel, Variable& offsets, uint32_t most, const std::vector<Loop>& loops)
    {
        list({0, parallel.handle, offsets.handle, 0, 0, 0, most}, loops);
    }
    LoopGroup(Variable& parallel, Variable& offsets, Variable&, uint32_t most, const std::vector<Loop>& loops)
    {
        list({0, parallel.handle, offsets.handle, 0, 0, 0, most}, loops);
    }
    LoopGroup(const CcuLoopGroupConfig& config, uint32_t most, const std::vector<Loop>& loops)
    {
        list({1, config.cloneNum, config.cloneLoopOffset, config.addrOffset, config.ccuBufferOffset,
              config.eventOffset, most},
             loops);
    }
    LoopGroup(const CcuLoopGroupCfg& config, uint32_t most, const std::vector<Loop>& loops)
    {
        list({1, config.cloneNum, config.cloneLoopOffset, config.addrOffset, config.ccuBufferOffset,
              config.eventOffset, most},
             loops);
    }

private:
    static void list(std::vector<uint64_t> operands, const std::vector<Loop>& loops)
    {
        for (const Loop& loop : loops) {
            operands.insert(operands.end(), loop.how_.begin(), loop.how_.end());
        }
        CcuListLine("group", operands.data(), uint32_t(operands.size()));
    }
};

// Branches of the kernel: each body runs once here, between two lines of the listing.
namespace detail {

class Once {
public:
    bool Enters() { return !entered_ && (entered_ = true); }

protected:
    bool entered_ = false;
};

inline void begin(const char* what, const CondExpr& condition)
{
    list(what, {condition.left, condition.right, uint64_t(condition.how), condition.is_number});
}

class If : public Once {
public:
    explicit If(const CondExpr& condition) { begin("if", condition); }
    ~If() { CcuListIfEnds(); }
};

class Else : public Once {
public:
    Else() : follows_(CcuListElseBegins()) { entered_ = !follows_; }
    ~Else()
    {
        if (follows_) {
            list("end_if", {});
        }
    }

private:
    bool follows_;
};

class While : public Once {
public:
    explicit While(const CondExpr& condition) : ends_do_(CcuListIsEndOfDo())
    {
        begin(ends_do_ ? "end_do" : "while", condition);
        entered_ = ends_do_;
    }
    ~While()
    {
        if (!ends_do_) {
            list("end_while", {});
        }
    }

private:
    bool ends_do_;
};

class Do : public Once {
public:
    Do() { list("do", {}); }
    ~Do() { CcuListDoEnds(); }
};

}  // namespace detail
}  // namespace ccu
}  // namespace AscendC

#define CCU_JOINED_NAME(first, second) first##second
#define CCU_NAME(first, second) CCU_JOINED_NAME(first, second)
#define CCU_BODY(branch, name) for (::AscendC::ccu::detail::branch; name.Enters();)
#define CCU_IF(condition) CCU_IF_NAMED(condition, CCU_NAME(ccu_if_, __COUNTER__))
#define CCU_IF_NAMED(condition, name) CCU_BODY(If name(condition), name)
#define CCU_WHILE(condition) CCU_WHILE_NAMED(condition, CCU_NAME(ccu_while_, __COUNTER__))
#define CCU_WHILE_NAMED(condition, name) CCU_BODY(While name(condition), name)
#define CCU_ELSE CCU_ELSE_NAMED(CCU_NAME(ccu_else_, __COUNTER__))
#define CCU_ELSE_NAMED(name) CCU_BODY(Else name, name)
#define CCU_DO CCU_DO_NAMED(CCU_NAME(ccu_do_, __COUNTER__))
#define CCU_DO_NAMED(name) CCU_BODY(Do name, name)

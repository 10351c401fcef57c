// Reduces that several streams and processes may do into one place: each element is exchanged for
// what was read plus what is added, until nobody came between.
#include <algorithm>
#include <thread>
#include <type_traits>

#include "halves.hpp"
#include "knobs.hpp"
#include "memory.hpp"
#include "streams.hpp"

enum Kind { SUM = 10, MAX = 11, MIN = 12 };

template <class T>
struct Exact {  // integers wrap
  using Bits = std::make_unsigned_t<T>;
  static Bits combined(int kind, Bits a, Bits b) {
    const T x = static_cast<T>(a), y = static_cast<T>(b);
    if (kind == SUM) return static_cast<Bits>(a + b);
    return static_cast<Bits>(kind == MAX ? std::max(x, y) : std::min(x, y));
  }
};

// A NaN goes through, as in numpy.
static float combined_floats(int kind, float x, float y) {
  if (kind == SUM) return x + y;
  if (x != x || y != y) return x + y;
  return kind == MAX ? std::max(x, y) : std::min(x, y);
}

struct Single {
  using Bits = uint32_t;
  static Bits combined(int kind, Bits a, Bits b) {
    return bits_as<Bits>(combined_floats(kind, bits_as<float>(a), bits_as<float>(b)));
  }
};

template <class Half>
struct Rounded {
  using Bits = uint16_t;
  static Bits combined(int kind, Bits a, Bits b) {
    return Half::rounded(combined_floats(kind, Half{a}.widened(), Half{b}.widened())).bits;
  }
};

template <class Number>
static void reduce(void* to, const void* from, size_t bytes, int kind) {
  using Bits = typename Number::Bits;
  static_assert(sizeof(std::atomic<Bits>) == sizeof(Bits));
  auto* targets = static_cast<std::atomic<Bits>*>(to);
  auto* values = static_cast<const std::atomic<Bits>*>(from);
  for (size_t i = 0; i < bytes / sizeof(Bits); i++) {
    const Bits value = values[i].load(std::memory_order_relaxed);
    Bits old = targets[i].load(std::memory_order_relaxed);
    if (knobs().atomic) {
      while (!targets[i].compare_exchange_weak(old, Number::combined(kind, old, value))) {
      }
    } else {
      std::this_thread::yield();
      targets[i] = Number::combined(kind, old, value);
    }
  }
}

struct Reducer {
  int type;  // aclDataType
  size_t bytes;
  void (*run)(void*, const void*, size_t, int);
};

// Unsigned numbers have codes, and no reduce on these devices; the other types have not even that.
static bool is_unsigned(int type) { return type == 4 || type == 7 || type == 8; }

static const Reducer REDUCERS[] = {
    {0, 4, reduce<Single>},         {1, 2, reduce<Rounded<Float16>>},
    {2, 1, reduce<Exact<int8_t>>},  {3, 4, reduce<Exact<int32_t>>},
    {6, 2, reduce<Exact<int16_t>>}, {27, 2, reduce<Rounded<BFloat16>>},
};

API aclError aclrtReduceAsync(void* to, const void* from, uint64_t bytes, int kind, int type,
                              void* handle, void* reserve) {
  std::shared_ptr<Stream> stream;
  BlockRef target, source;
  TRY(stream_of(__func__, handle, &stream));
  if (reserve) REFUSE(INVALID_PARAM, "reserve must be null");
  if (kind != SUM && kind != MAX && kind != MIN) REFUSE(PARAM_INVALID, "kind %d", kind);
  const auto reducer = std::find_if(std::begin(REDUCERS), std::end(REDUCERS),
                                    [=](auto& one) { return one.type == type; });
  if (reducer == std::end(REDUCERS)) {
    REFUSE(is_unsigned(type) ? NOT_SUPPORTED : INVALID_PARAM, "data type %d", type);
  }
  if (!bytes || bytes % reducer->bytes) REFUSE(PARAM_INVALID, "%lu bytes", bytes);
  if (bytes > knobs().most_bytes) REFUSE(PARAM_INVALID, "%lu bytes are too many at once", bytes);
  TRY(operand(__func__, to, bytes, stream->device, &target));
  TRY(operand(__func__, from, bytes, stream->device, &source));
  for (const BlockRef& block : {target, source}) {
    if (!block || block->device == HOST) REFUSE(PARAM_INVALID, "not memory of a device");
    if (knobs().reduce == "local" && block->device != stream->device) {
      REFUSE(PARAM_INVALID, "memory of device %d on a stream of device %d", block->device,
             stream->device);
    }
  }
  return enqueue(stream, [=, run = reducer->run]() -> aclError {
    (void)target, (void)source;
    run(to, from, bytes, kind);
    return OK;
  });
}

// The operators that are computed: of two operands, element by element; of one; and a few that move
// elements.
#include <functional>
#include <memory>
#include <type_traits>

#include "front_end.hpp"
#include "memory.hpp"
#include "numbers.hpp"
#include "streams.hpp"

// An input as a task reads it. What lies in the host's memory is kept: its buffer may be gone by
// then.
struct Input {
  const Tensor tensor;
  BlockRef block;
  std::string kept;
  const void* outside;

  const void* at() const { return block ? outside : kept.data(); }
};

using InputRef = std::shared_ptr<Input>;

// What a task runs: inputs and the place for the output.
using Work = std::function<void(const std::vector<InputRef>&, void*)>;

template <class V>
static V computed(char operation, V a, V b) {
  switch (operation) {
    case '+':
      return static_cast<V>(a + b);
    case '-':
      return static_cast<V>(a - b);
    case '*':
      return static_cast<V>(a * b);
    case '/':
      return std::is_integral_v<V> ? V() : static_cast<V>(a / b);
    case '>':
      return a != a || a > b ? a : b;  // a NaN goes through
    default:
      return a != a || a < b ? a : b;
  }
}

// One operand may be a single value.
static Work elementwise(char operation, const Tensor& result) {
  Work work;
  with_number(result.type, [&, n = result.elements()](auto number) {
    using Number = decltype(number);
    using Stored = typename Number::Stored;
    if (operation == '/' && std::is_integral_v<typename Number::Value>) return;
    work = [=](const std::vector<InputRef>& inputs, void* output) {
      auto* to = static_cast<Stored*>(output);
      auto* a = static_cast<const Stored*>(inputs[0]->at());
      auto* b = static_cast<const Stored*>(inputs[1]->at());
      const size_t a_step = inputs[0]->tensor.elements() != 1,
                   b_step = inputs[1]->tensor.elements() != 1;
      for (size_t i = 0; i < n; i++) {
        to[i] = Number::written(
            computed(operation, Number::read(a[i * a_step]), Number::read(b[i * b_step])));
      }
    };
  });
  return work;
}

// Every element is the value, or that of the last input.
static Work filled(const Tensor& result, int value, bool by_input) {
  Work work;
  with_number(result.type, [&, n = result.elements()](auto number) {
    using Number = decltype(number);
    using Stored = typename Number::Stored;
    work = [=](const std::vector<InputRef>& inputs, void* output) {
      const Stored own = Number::written(static_cast<typename Number::Value>(value));
      const Stored what = by_input ? *static_cast<const Stored*>(inputs.back()->at()) : own;
      for (size_t i = 0; i < n; i++) static_cast<Stored*>(output)[i] = what;
    };
  });
  return work;
}

static Work cast(const Tensor& from, const Tensor& result) {
  Work work;
  with_number(from.type, [&, n = result.elements()](auto source) {
    with_number(result.type, [&](auto target) {
      using Source = decltype(source);
      using Target = decltype(target);
      work = [=](const std::vector<InputRef>& inputs, void* output) {
        auto* values = static_cast<const typename Source::Stored*>(inputs[0]->at());
        auto* to = static_cast<typename Target::Stored*>(output);
        for (size_t i = 0; i < n; i++) {
          to[i] = Target::written(static_cast<typename Target::Value>(Source::read(values[i])));
        }
      };
    });
  });
  return work;
}

static std::vector<int64_t> integers(const Input& input) {
  std::vector<int64_t> all;
  for (size_t i = 0; i < input.tensor.elements(); i++) {
    all.push_back(input.tensor.type == 9 ? static_cast<const int64_t*>(input.at())[i]
                                         : static_cast<const int32_t*>(input.at())[i]);
  }
  return all;
}

using Sizes = std::vector<int64_t>;

// The place of the i-th element of a tensor of these sizes, whose dimensions lie so far apart.
static size_t place_of(size_t i, const Sizes& sizes, const Sizes& strides) {
  size_t place = 0;
  for (size_t d = sizes.size(); d-- > 0; i /= sizes[d]) place += i % sizes[d] * strides[d];
  return place;
}

static Sizes contiguous(const Sizes& sizes) {
  Sizes strides(sizes.size(), 1);
  for (size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * sizes[d];
  return strides;
}

// Of Transpose the second input says which dimension of the first comes where; of Slice, where to
// begin.
static Work picked(const Tensor& result, bool transposes) {
  Work work;
  with_number(result.type, [&, sizes = result.sizes, n = result.elements()](auto number) {
    using Stored = typename decltype(number)::Stored;
    work = [=](const std::vector<InputRef>& inputs, void* output) {
      const Sizes apart = contiguous(inputs[0]->tensor.sizes), chosen = integers(*inputs[1]);
      Sizes strides = apart;
      size_t first = 0;
      for (size_t d = 0; d < sizes.size(); d++) {
        if (transposes) strides[d] = apart[chosen[d]];
        if (!transposes) first += chosen[d] * apart[d];
      }
      const auto* from = static_cast<const Stored*>(inputs[0]->at()) + first;
      for (size_t i = 0; i < n; i++)
        static_cast<Stored*>(output)[i] = from[place_of(i, sizes, strides)];
    };
  });
  return work;
}

// Sizes, strides and first element of the source (inputs 5 to 7 of ViewCopy, 1 to 3 of AsStrided),
// and for ViewCopy those of the target (1 to 3); the source itself is input 4 or 0.
static Work strided(const Tensor& result, bool into_view) {
  Work work;
  with_number(result.type, [&](auto number) {
    using Stored = typename decltype(number)::Stored;
    work = [=](const std::vector<InputRef>& inputs, void* output) {
      const size_t source = into_view ? 4 : 0;
      const Sizes sizes = integers(*inputs[source + 1]), strides = integers(*inputs[source + 2]);
      const auto* from =
          static_cast<const Stored*>(inputs[source]->at()) + integers(*inputs[source + 3])[0];
      auto* to = static_cast<Stored*>(output) + (into_view ? integers(*inputs[3])[0] : 0);
      const Sizes target_strides = into_view ? integers(*inputs[2]) : Sizes();
      size_t n = 1;
      for (const int64_t size : sizes) n *= size;
      for (size_t i = 0; i < n; i++) {
        to[into_view ? place_of(i, sizes, target_strides) : i] = from[place_of(i, sizes, strides)];
      }
    };
  });
  return work;
}

static bool fits(const Tensor& tensor, const Tensor& result) {
  const size_t elements = tensor.elements();
  return tensor.type == result.type && (elements == 1 || elements == result.elements());
}

// Empty where there is no such operator, or not of these tensors.
static Work work_of(const std::string& name, const std::vector<Operand>& inputs,
                    const Tensor& result) {
  static const struct {
    const char* name;
    char operation;
  } OPERATIONS[] = {{"Add", '+'}, {"AddV2", '+'},   {"Sub", '-'},     {"Mul", '*'},
                    {"Div", '/'}, {"RealDiv", '/'}, {"Maximum", '>'}, {"Minimum", '<'}};
  for (const auto& one : OPERATIONS) {
    if (name != one.name || inputs.size() != 2) continue;
    if (!fits(*inputs[0].tensor, result) || !fits(*inputs[1].tensor, result)) return {};
    return elementwise(one.operation, result);
  }
  if (name == "ZerosLike") return filled(result, 0, false);
  if (name == "OnesLike") return filled(result, 1, false);
  if (name == "Fill" && inputs.size() == 2 && fits(*inputs[1].tensor, result))
    return filled(result, 0, true);
  if (name == "Cast" && inputs.size() == 1) return cast(*inputs[0].tensor, result);
  if (name == "Transpose" && inputs.size() == 2) return picked(result, true);
  if (name == "Slice" && inputs.size() == 3) return picked(result, false);
  if (name == "ViewCopy" && inputs.size() == 8) return strided(result, true);
  if (name == "AsStrided" && inputs.size() == 4) return strided(result, false);
  return {};
}

static aclError input(const char* function, const Operand& given, int device, InputRef* input) {
  const Buffer& buffer = *given.buffer;
  *input = std::make_shared<Input>(Input{*given.tensor, nullptr, "", buffer.at});
  TRY(operand(function, buffer.at, buffer.bytes, device, &(*input)->block));
  if (!(*input)->block) (*input)->kept.assign(static_cast<const char*>(buffer.at), buffer.bytes);
  return OK;
}

aclError run_operator(const char* function, const std::string& name,
                      const std::vector<Operand>& inputs, const std::vector<Operand>& outputs,
                      void* handle) {
  std::shared_ptr<Stream> stream;
  TRY(stream_of(function, handle, &stream));
  const Work work = outputs.size() == 1 ? work_of(name, inputs, *outputs[0].tensor) : Work();
  if (!work)
    return refuse(NOT_SUPPORTED, function, "no operator %s of these tensors", name.c_str());
  std::vector<InputRef> held(inputs.size());
  for (size_t i = 0; i < inputs.size(); i++)
    TRY(input(function, inputs[i], stream->device, &held[i]));
  const Buffer& output = *outputs[0].buffer;
  BlockRef block;
  TRY(operand(function, output.at, output.bytes, stream->device, &block));
  return enqueue(stream, [=, to = output.at]() -> aclError {
    (void)block;  // held until the task has run
    work(held, to);
    return OK;
  });
}

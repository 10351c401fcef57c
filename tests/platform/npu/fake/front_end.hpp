// What torch_npu asks for and the platform does not: descriptions of tensors, single operators.
#pragma once

#include <string>
#include <vector>

#include "acl.hpp"

struct Tensor {
  int type;  // aclDataType
  int format;
  std::vector<int64_t> sizes;
  bool on_host;

  size_t elements() const;
};

struct Buffer {
  void* at;
  size_t bytes;
};

struct Operand {
  const Tensor* tensor;
  const Buffer* buffer;
};

// Runs `name` on a stream; refused where it is not among the few that are there.
aclError run_operator(const char* function, const std::string& name,
                      const std::vector<Operand>& inputs, const std::vector<Operand>& outputs,
                      void* stream);

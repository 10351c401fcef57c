// The callback that is told of failed tasks.
#pragma once

#include <cstdint>

#include "acl.hpp"

struct Exception {
  uint32_t task;
  int32_t stream;
  uint32_t thread;
  int device;
  aclError code;
};

void tell_exception(const Exception& exception);

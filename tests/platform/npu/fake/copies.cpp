// Copies and fills.
#include <cstring>

#include "devices.hpp"
#include "faults.hpp"
#include "knobs.hpp"
#include "memory.hpp"
#include "streams.hpp"

static bool is_host(const BlockRef& block) { return !block || block->device == HOST; }

static aclError check_kind(const char* function, int kind, const BlockRef& to,
                           const BlockRef& from) {
  const bool foreign = (to && to->imported) || (from && from->imported);
  if (foreign && kind != DEVICE_TO_DEVICE) {
    return refuse(NOT_SUPPORTED, function,
                  "imported memory is copied from device to device only, and by name");
  }
  if (kind == BY_ADDRESS) return OK;
  if (kind < HOST_TO_HOST || kind > BY_ADDRESS)
    return refuse(PARAM_INVALID, function, "kind %d", kind);
  const bool to_host = kind == HOST_TO_HOST || kind == DEVICE_TO_HOST;
  const bool from_host = kind == HOST_TO_HOST || kind == HOST_TO_DEVICE;
  if (to_host != is_host(to))
    return refuse(PARAM_INVALID, function, "dst is not where kind %d says", kind);
  if (from_host != is_host(from))
    return refuse(PARAM_INVALID, function, "src is not where kind %d says", kind);
  return OK;
}

static aclError check_size(const char* function, size_t room, size_t bytes) {
  if (bytes > room) return refuse(PARAM_INVALID, function, "%zu bytes into %zu", bytes, room);
  if (bytes > knobs().most_bytes)
    return refuse(PARAM_INVALID, function, "%zu bytes are too many at once", bytes);
  return OK;
}

API aclError aclrtMemcpy(void* to, size_t room, const void* from, size_t bytes, int) {
  int device;
  BlockRef target, source;
  TRY(here(__func__, &device));
  TRY(check_size(__func__, room, bytes));
  TRY(operand(__func__, to, bytes, device, &target));
  TRY(operand(__func__, from, bytes, device, &source));
  if ((target && target->imported) || (source && source->imported)) {
    REFUSE(DRIVER_ERROR, "imported memory is not copied synchronously");
  }
  if (copy_fails(device)) REFUSE(DMA_ERROR, "the copy that FAKEACL_FAULT names");
  std::memmove(to, from, bytes);
  return OK;
}

API aclError aclrtMemcpyAsync(void* to, size_t room, const void* from, size_t bytes, int kind,
                              void* handle) {
  std::shared_ptr<Stream> stream;
  BlockRef target, source;
  TRY(stream_of(__func__, handle, &stream));
  TRY(check_size(__func__, room, bytes));
  TRY(operand(__func__, to, bytes, stream->device, &target));
  TRY(operand(__func__, from, bytes, stream->device, &source));
  TRY(check_kind(__func__, kind, target, source));
  if (!target && !source) REFUSE(NOT_SUPPORTED, "no copies from host to host");
  TRY(enqueue(stream, [=, fails = copy_fails(stream->device)]() -> aclError {
    (void)target, (void)source;  // held until the task has run
    if (fails) return DMA_ERROR;
    std::memmove(to, from, bytes);
    return OK;
  }));
  if (target && source) return OK;
  return stream->synchronize(
      -1);  // host memory that is not pinned: the call comes back when all is copied
}

static aclError check_fill(const char* function, void* to, size_t room, size_t bytes, int device,
                           BlockRef* target) {
  TRY(check_size(function, room, bytes));
  return operand(function, to, bytes, device, target);
}

API aclError aclrtMemset(void* to, size_t room, int32_t value, size_t bytes) {
  int device;
  BlockRef target;
  TRY(here(__func__, &device));
  TRY(check_fill(__func__, to, room, bytes, device, &target));
  std::memset(to, value, bytes);
  return OK;
}

API aclError aclrtMemsetAsync(void* to, size_t room, int32_t value, size_t bytes, void* handle) {
  std::shared_ptr<Stream> stream;
  BlockRef target;
  TRY(stream_of(__func__, handle, &stream));
  TRY(check_fill(__func__, to, room, bytes, stream->device, &target));
  return enqueue(stream, [=]() -> aclError {
    (void)target;  // held until the task has run
    std::memset(to, value, bytes);
    return OK;
  });
}

#include "exceptions.hpp"

#include <atomic>

using Callback = void (*)(Exception*);
static std::atomic<Callback> callback{nullptr};

void tell_exception(const Exception& exception) {
  Exception copy = exception;
  if (const Callback tell = callback) tell(&copy);
}

API aclError aclrtSetExceptionInfoCallback(Callback function) {
  callback = function;
  return OK;
}

static constexpr uint32_t NOTHING = 0xffffffff;

API uint32_t aclrtGetTaskIdFromExceptionInfo(const Exception* info) {
  return info ? info->task : NOTHING;
}
API uint32_t aclrtGetStreamIdFromExceptionInfo(const Exception* info) {
  return info ? info->stream : NOTHING;
}
API uint32_t aclrtGetThreadIdFromExceptionInfo(const Exception* info) {
  return info ? info->thread : NOTHING;
}
API uint32_t aclrtGetDeviceIdFromExceptionInfo(const Exception* info) {
  return info ? info->device : NOTHING;
}
API uint32_t aclrtGetErrorCodeFromExceptionInfo(const Exception* info) {
  return info ? info->code : NOTHING;
}

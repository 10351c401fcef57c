// What CANN's public documentation says of the runtime: codes, flags, and the form of a call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#define API extern "C" __attribute__((visibility("default")))

using aclError = int;

enum Code : aclError {
  OK = 0,
  INVALID_PARAM = 100000,  // said before the runtime looks: null pointers, reserved arguments
  UNINITIALIZED = 100001,
  REPEATED_INIT = 100002,
  REPEATED_FINALIZE = 100037,
  PARAM_INVALID = 107000,
  INVALID_DEVICE = 107001,
  CONTEXT_NULL = 107002,
  STREAM_CONTEXT = 107003,
  INVALID_HANDLE = 107017,
  TASK_TIMEOUT = 107020,
  STREAM_ABORT = 107023,
  STREAM_CAPTURED = 107027,
  NOT_SUPPORTED = 207000,
  OUT_OF_MEMORY = 207001,
  NO_NOTIFY = 207009,
  LOST_HEARTBEAT = 507010,
  DMA_ERROR = 507013,
  STREAM_SYNC_TIMEOUT = 507046,
  EVENT_SYNC_TIMEOUT = 507047,
  DRIVER_ERROR = 507899,
};

enum CopyKind { HOST_TO_HOST, HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE, BY_ADDRESS };

constexpr uint64_t MEMORY_EXPORT_UNVALIDATED = 1;
constexpr uint64_t MEMORY_IMPORT_PEER_ACCESS = 1;
constexpr uint64_t NOTIFY_EXPORT_UNVALIDATED = 2;
constexpr uint64_t NOTIFY_IMPORT_PEER_ACCESS = 2;
constexpr uint32_t EVENT_SYNC = 0x01;
constexpr uint32_t EVENT_IPC = 0x40;
constexpr size_t KEY_BYTES = 65;

// Keeps the message for aclGetRecentErrMsg and gives the code back.
aclError refuse(aclError code, const char* function, const char* format, ...)
    __attribute__((format(printf, 3, 4)));

// For the functions of the API themselves.
#define REFUSE(code, ...) return refuse(code, __func__, __VA_ARGS__)
#define TRY(call) \
  if (const aclError failed_ = (call)) return failed_

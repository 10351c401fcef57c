#include "devices.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdio>

#include "counts.hpp"
#include "faults.hpp"
#include "knobs.hpp"
#include "streams.hpp"

static thread_local int current = -1;
static thread_local std::string message;
static std::atomic<bool> initialized{false};
static std::atomic<int> users[MOST_DEVICES];
static std::atomic<bool> reach[MOST_DEVICES][MOST_DEVICES];
static char contexts[MOST_DEVICES];  // a context is the address of its device's place

aclError refuse(aclError code, const char* function, const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  message = std::string(function) + ": " + text;
  if (knobs().verbose)
    std::fprintf(stderr, "fakeacl[%d] %s -> %d\n", getpid(), message.c_str(), code);
  return code;
}

int physical_of(int64_t device) {
  const std::vector<int>& seen = knobs().visible;
  const bool is_seen = device >= 0 && device < static_cast<int64_t>(seen.size());
  return is_seen ? seen[device] : -1;
}

static int logical_of(int physical) {
  const std::vector<int>& seen = knobs().visible;
  return static_cast<int>(std::find(seen.begin(), seen.end(), physical) - seen.begin());
}

int current_device() { return current; }

aclError here(const char* function, int* device) {
  if (current < 0) return refuse(CONTEXT_NULL, function, "this thread has set no device");
  if (is_lost(current)) return refuse(LOST_HEARTBEAT, function, "device %d is lost", current);
  *device = current;
  return OK;
}

bool reaches(int device, int peer) { return device == peer || reach[device][peer]; }

aclError enable_peer(const char* function, int device, int peer) {
  if (device == peer) return OK;
  if (!knobs().peers)
    return refuse(NOT_SUPPORTED, function, "device %d cannot reach %d", device, peer);
  reach[device][peer] = true;
  return OK;
}

int32_t bare_tgid() { return getpid() + (1 << 22); }  // 2^22 is the most pids that Linux has

API aclError aclInit(const char*) {
  report_at_exit();
  if (initialized.exchange(true)) REFUSE(REPEATED_INIT, "called before");
  return OK;
}

API aclError aclFinalize() {
  if (!initialized.exchange(false)) REFUSE(REPEATED_FINALIZE, "nothing to finalize");
  return OK;
}

API aclError aclrtSetDevice(int32_t logical) {
  const int device = physical_of(logical);
  if (!initialized) REFUSE(UNINITIALIZED, "aclInit comes first");
  if (device < 0) REFUSE(INVALID_DEVICE, "no device %d", logical);
  if (is_lost(device)) REFUSE(LOST_HEARTBEAT, "device %d is lost", device);
  if (current != device) users[device]++;
  current = device;
  return OK;
}

API aclError aclrtGetDevice(int32_t* device) {
  if (current < 0) REFUSE(CONTEXT_NULL, "this thread has set no device");
  *device = logical_of(current);
  return OK;
}

static aclError reset(const char* function, int32_t logical, bool force) {
  const int device = physical_of(logical);
  if (device < 0) return refuse(INVALID_DEVICE, function, "no device %d", logical);
  if (force || users[device] <= 1) {
    users[device] = 0;
    destroy_streams_of(device);
  } else {
    users[device]--;
  }
  if (current == device) current = -1;
  return OK;
}

API aclError aclrtResetDevice(int32_t device) { return reset(__func__, device, false); }
API aclError aclrtResetDeviceForce(int32_t device) { return reset(__func__, device, true); }

API aclError aclrtGetDeviceCount(uint32_t* count) {
  *count = static_cast<uint32_t>(knobs().visible.size());
  return OK;
}

API const char* aclrtGetSocName() { return knobs().soc.c_str(); }

// Each message is told once.
API const char* aclGetRecentErrMsg() {
  static thread_local std::string told;
  told.swap(message);
  message.clear();
  return told.empty() ? nullptr : told.c_str();
}

API aclError aclrtGetVersion(int32_t* major, int32_t* minor, int32_t* patch) {
  std::sscanf(knobs().version.c_str(), "%d.%d.%d", major, minor, patch);
  return OK;
}

API aclError aclrtDeviceCanAccessPeer(int32_t* can, int32_t device, int32_t peer) {
  if (physical_of(device) < 0 || physical_of(peer) < 0) {
    REFUSE(INVALID_DEVICE, "no devices %d, %d", device, peer);
  }
  *can = device != peer && knobs().peers;
  return OK;
}

API aclError aclrtGetPhyDevIdByLogicDevId(int32_t device, int32_t* physical) {
  if (!physical || physical_of(device) < 0) REFUSE(INVALID_DEVICE, "no device %d", device);
  *physical = physical_of(device);
  return OK;
}

API aclError aclrtDeviceEnablePeerAccess(int32_t logical, uint32_t flags) {
  int device;
  TRY(here(__func__, &device));
  if (flags) REFUSE(PARAM_INVALID, "flags must be 0");
  const int peer = physical_of(logical);
  if (peer < 0 || peer == device) REFUSE(INVALID_DEVICE, "no peer %d", logical);
  if (reach[device][peer] && !knobs().reenable)
    REFUSE(DRIVER_ERROR, "access to %d is enabled (FAKEACL_REENABLE)", logical);
  return enable_peer(__func__, device, peer);
}

API aclError aclrtDeviceDisablePeerAccess(int32_t logical) {
  int device;
  TRY(here(__func__, &device));
  const int peer = physical_of(logical);
  if (peer < 0 || peer == device) REFUSE(INVALID_DEVICE, "no peer %d", logical);
  reach[device][peer] = false;
  return OK;
}

API aclError aclrtDeviceGetBareTgid(int32_t* pid) {
  if (!pid) REFUSE(INVALID_PARAM, "null");
  *pid = bare_tgid();
  return OK;
}

API aclError aclrtGetCurrentContext(void** context) {
  if (current < 0) REFUSE(CONTEXT_NULL, "this thread has set no device");
  *context = contexts + current;
  return OK;
}

API aclError aclrtSetCurrentContext(void* context) {
  const char* at = static_cast<char*>(context);
  if (at < contexts || at >= contexts + MOST_DEVICES) REFUSE(PARAM_INVALID, "no context");
  current = static_cast<int>(at - contexts);
  return OK;
}

// Physical memory that every process maps by itself, and its shareable handles.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <map>
#include <mutex>
#include <new>
#include <string>

#include "devices.hpp"
#include "handles.hpp"
#include "knobs.hpp"
#include "memory.hpp"

static constexpr size_t HEADER = 4096;
static constexpr int ON_DEVICE = 1, HBM_HUGE = 4, HBM_NORMAL = 5, READ_WRITE = 3;

struct Location {
  uint32_t id;
  int32_t type;
};
struct PhysicalProp {
  int32_t handle_type, allocation_type, attribute;
  Location location;
  uint64_t reserve;
};
struct AccessDesc {
  int32_t flags;
  Location location;
  uint8_t reserve[12];
};

struct Physical {
  BlockRef block;  // holds the file; tasks never see this mapping of it
  bool exported;
};
struct Range {
  size_t size;
  BlockRef mapped;
  bool is_kept;  // nothing else can lie there: not mapped so far
};

static Handles<Physical>& physicals = *new Handles<Physical>(0x530000000000);
static std::mutex virtual_memory_mutex;
static std::map<char*, Range>& ranges = *new std::map<char*, Range>;

API aclError aclrtMallocPhysical(void** handle, size_t bytes, const PhysicalProp* wanted,
                                 uint64_t flags) {
  int device;
  TRY(here(__func__, &device));
  if (!handle || !wanted || flags || !bytes || bytes % HUGE_PAGE)
    REFUSE(PARAM_INVALID, "null, flags, or %zu bytes", bytes);
  if (wanted->handle_type || wanted->allocation_type || wanted->location.type != ON_DEVICE ||
      (wanted->attribute != HBM_HUGE && wanted->attribute != HBM_NORMAL))
    REFUSE(PARAM_INVALID, "not pinned memory of a device");
  if (physical_of(wanted->location.id) != device)
    REFUSE(PARAM_INVALID, "memory of device %u", wanted->location.id);
  try {
    const auto block = std::make_shared<Block>(bytes, device);
    *handle = physicals.add(std::make_shared<Physical>(Physical{block, false}));
  } catch (const std::bad_alloc&) {
    REFUSE(OUT_OF_MEMORY, "the host has no %zu bytes left", bytes);
  }
  return OK;
}

API aclError aclrtFreePhysical(void* handle) {
  const auto physical = physicals.take(handle);
  if (!physical) REFUSE(PARAM_INVALID, "no physical memory %p", handle);
  if (physical->exported) physical->block->header().nonce = 0;
  return OK;
}

API aclError aclrtReserveMemAddress(void** address, size_t bytes, size_t alignment, void* expected,
                                    uint64_t flags) {
  if (!address || !bytes || bytes % HUGE_PAGE || alignment || expected || flags > 1)
    REFUSE(PARAM_INVALID, "null, reserved arguments, or %zu bytes", bytes);
  void* at = mmap(nullptr, bytes + HUGE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) REFUSE(OUT_OF_MEMORY, "no place for %zu bytes", bytes);
  char* first = static_cast<char*>(at);
  char* base = first + (-reinterpret_cast<uintptr_t>(first) & (HUGE_PAGE - 1));
  if (base > first) munmap(first, base - first);
  munmap(base + bytes, first + HUGE_PAGE - base);
  std::lock_guard<std::mutex> lock(virtual_memory_mutex);
  ranges[base] = {bytes, nullptr, true};
  *address = base;
  return OK;
}

API aclError aclrtReleaseMemAddress(void* address) {
  std::lock_guard<std::mutex> lock(virtual_memory_mutex);
  const auto at = ranges.find(static_cast<char*>(address));
  if (at == ranges.end()) REFUSE(PARAM_INVALID, "%p is not reserved", address);
  if (at->second.mapped) REFUSE(PARAM_INVALID, "%p is mapped", address);
  if (at->second.is_kept) munmap(address, at->second.size);
  ranges.erase(at);
  return OK;
}

API aclError aclrtMapMem(void* address, size_t bytes, size_t offset, void* handle,
                         uint64_t flags) {
  const auto physical = physicals.find(handle);
  if (!physical || offset || flags || bytes != physical->block->size)
    REFUSE(PARAM_INVALID, "no such memory, reserved arguments, or %zu bytes", bytes);
  std::lock_guard<std::mutex> lock(virtual_memory_mutex);
  const auto at = ranges.find(static_cast<char*>(address));
  if (at == ranges.end() || at->second.size != bytes || at->second.mapped)
    REFUSE(PARAM_INVALID, "%p is not reserved for %zu bytes", address, bytes);
  try {
    at->second.mapped = std::make_shared<Block>(*physical->block, at->first);
  } catch (const std::bad_alloc&) {
    REFUSE(OUT_OF_MEMORY, "no place for %zu bytes", bytes);
  }
  at->second.is_kept = false;
  return OK;
}

// Only what a device may access is memory to its tasks.
API aclError aclrtMemSetAccess(void* address, size_t bytes, AccessDesc* access, size_t count) {
  int device;
  TRY(here(__func__, &device));
  std::lock_guard<std::mutex> lock(virtual_memory_mutex);
  const auto at = ranges.find(static_cast<char*>(address));
  if (at == ranges.end() || !at->second.mapped || at->second.size != bytes)
    REFUSE(PARAM_INVALID, "%p is not mapped", address);
  if (!access || count != 1 || access->flags != READ_WRITE ||
      access->location.type != ON_DEVICE || physical_of(access->location.id) != device)
    REFUSE(PARAM_INVALID, "not reading and writing by this device");
  add_block(at->second.mapped);
  return OK;
}

API aclError aclrtUnmapMem(void* address) {
  std::lock_guard<std::mutex> lock(virtual_memory_mutex);
  const auto at = ranges.find(static_cast<char*>(address));
  if (at == ranges.end() || !at->second.mapped) REFUSE(PARAM_INVALID, "%p is not mapped", address);
  remove_block(at->second.mapped);
  at->second.mapped = nullptr;
  return OK;
}

API aclError aclrtMemExportToShareableHandle(void* handle, int type, uint64_t flags,
                                             uint64_t* shareable) {
  if (knobs().ipc == "none") REFUSE(NOT_SUPPORTED, "no handles on this machine (FAKEACL_IPC)");
  const auto physical = physicals.find(handle);
  if (!physical || type || !shareable || flags != MEMORY_EXPORT_UNVALIDATED)
    REFUSE(PARAM_INVALID, "no physical memory, or flags %lu", flags);
  if (physical->exported) REFUSE(PARAM_INVALID, "exported before");
  physical->exported = true;
  Export& header = physical->block->header();
  header.size = physical->block->size;
  header.device = physical->block->device;
  header.nonce = 1;
  *shareable = static_cast<uint64_t>(getpid()) << 32 | static_cast<uint32_t>(physical->block->file);
  return OK;
}

API aclError aclrtMemImportFromShareableHandle(uint64_t shareable, int32_t logical, void** handle) {
  int device;
  TRY(here(__func__, &device));
  if (!handle || physical_of(logical) != device) REFUSE(PARAM_INVALID, "device %d", logical);
  const std::string path = "/proc/" + std::to_string(shareable >> 32) + "/fd/" +
                           std::to_string(shareable & 0xffffffff);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct stat status;
  char header[offsetof(Export, importers)];
  if (file < 0) REFUSE(DRIVER_ERROR, "the exporter has gone, or has freed the memory");
  const bool is_read = !fstat(file, &status) && status.st_size > static_cast<off_t>(HEADER) &&
                       pread(file, header, sizeof header, status.st_size - HEADER) ==
                           static_cast<ssize_t>(sizeof header);
  const auto* found = reinterpret_cast<const Export*>(header);
  if (!is_read || found->nonce != 1 || found->size != status.st_size - HEADER) {
    close(file);
    REFUSE(DRIVER_ERROR, "not exported, or freed");
  }
  try {
    const auto block = std::make_shared<Block>(file, found->size, found->device);
    *handle = physicals.add(std::make_shared<Physical>(Physical{block, false}));
  } catch (const std::bad_alloc&) {
    REFUSE(OUT_OF_MEMORY, "no place");
  }
  return OK;
}

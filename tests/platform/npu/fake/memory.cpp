#include "memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <new>

#include "counts.hpp"
#include "devices.hpp"
#include "knobs.hpp"

static constexpr size_t PAGE = 4096;
static constexpr size_t POISONED =
    8 << 20;  // fresh memory holds anything: here NaNs, at most so many

static std::mutex memory_mutex;
static std::map<const char*, BlockRef>& blocks = *new std::map<const char*, BlockRef>;

static size_t rounded(size_t bytes) {
  const size_t page = bytes >= HUGE_PAGE ? HUGE_PAGE : PAGE;
  return (bytes + page - 1) / page * page;
}

Block::Block(size_t bytes, int device)
    : size(rounded(bytes)),
      device(device),
      imported(false),
      file(memfd_create("fakeacl", MFD_CLOEXEC)) {
  if (file < 0) throw std::bad_alloc();
  if (ftruncate(file, size + PAGE)) {
    close(file);
    throw std::bad_alloc();
  }
  map();
  if (device != HOST) std::memset(base, 0xff, std::min(size, POISONED));
}

Block::Block(int file, size_t size, int device)
    : size(size), device(device), imported(true), file(file) {
  map();
}

Block::Block(const Block& other, char* at)
    : base(at),
      size(other.size),
      device(other.device),
      imported(other.imported),
      file(fcntl(other.file, F_DUPFD_CLOEXEC, 0)) {
  if (file < 0) throw std::bad_alloc();
  if (mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED) {
    close(file);
    throw std::bad_alloc();
  }
}

// Reserves enough to find an address that is a multiple of a huge page, and gives the rest back.
void Block::map() {
  void* reserved = mmap(nullptr, size + HUGE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (reserved != MAP_FAILED) {
    char* first = static_cast<char*>(reserved);
    base = first + (-reinterpret_cast<uintptr_t>(first) & (HUGE_PAGE - 1));
    if (mmap(base, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED) {
      if (base > first) munmap(first, base - first);
      munmap(base + size, first + HUGE_PAGE - base);
      return;
    }
    munmap(reserved, size + HUGE_PAGE);
  }
  close(file);
  throw std::bad_alloc();
}

Block::~Block() {
  munmap(base, size);
  if (header_) munmap(header_, PAGE);
  close(file);
}

Export& Block::header() {
  std::lock_guard<std::mutex> lock(memory_mutex);
  if (!header_) {
    void* at = mmap(nullptr, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, size);
    if (at == MAP_FAILED) throw std::bad_alloc();
    header_ = static_cast<Export*>(at);
  }
  return *header_;
}

static_assert(sizeof(Export) <= PAGE);

BlockRef block_of(const void* address) {
  const char* at = static_cast<const char*>(address);
  std::lock_guard<std::mutex> lock(memory_mutex);
  auto next = blocks.upper_bound(at);
  if (next == blocks.begin()) return nullptr;
  const BlockRef& block = std::prev(next)->second;
  return at < block->base + block->size ? block : nullptr;
}

void add_block(const BlockRef& block) {
  std::lock_guard<std::mutex> lock(memory_mutex);
  blocks[block->base] = block;
}

bool remove_block(const BlockRef& block) {
  std::lock_guard<std::mutex> lock(memory_mutex);
  return blocks.erase(block->base) > 0;
}

int live_blocks(bool imported) {
  std::lock_guard<std::mutex> lock(memory_mutex);
  int found = 0;
  for (const auto& item : blocks) {
    found += item.second->device != HOST && item.second->imported == imported;
  }
  return found;
}

static size_t allocated(int device) {
  std::lock_guard<std::mutex> lock(memory_mutex);
  size_t bytes = 0;
  for (const auto& item : blocks) {
    if (item.second->device == device && !item.second->imported) bytes += item.second->size;
  }
  return bytes;
}

aclError operand(const char* function, const void* address, size_t bytes, int device,
                 BlockRef* block) {
  if (!address) return refuse(INVALID_PARAM, function, "a null address");
  const BlockRef found = block_of(address);
  if (!found) return OK;
  if (bytes > found->size - (static_cast<const char*>(address) - found->base)) {
    return refuse(PARAM_INVALID, function, "%zu bytes do not end in the block they begin in",
                  bytes);
  }
  if (found->device != HOST && !reaches(device, found->device)) {
    return refuse(DRIVER_ERROR, function, "device %d has no peer access to %d", device,
                  found->device);
  }
  *block = found;
  return OK;
}

static aclError allocate(const char* function, void** address, size_t bytes, int device) {
  if (!address || !bytes)
    return refuse(PARAM_INVALID, function, "a null pointer, or nothing to allocate");
  const size_t size = rounded(bytes);
  if (device != HOST && (size > knobs().memory || allocated(device) > knobs().memory - size)) {
    return refuse(OUT_OF_MEMORY, function, "no %zu bytes left on device %d", bytes, device);
  }
  try {
    const auto block = std::make_shared<Block>(bytes, device);
    add_block(block);
    *address = block->base;
    return OK;
  } catch (const std::bad_alloc&) {
    return refuse(OUT_OF_MEMORY, function, "the host has no %zu bytes left", bytes);
  }
}

API aclError aclrtMalloc(void** address, size_t bytes, int) {
  int device;
  TRY(here(__func__, &device));
  return allocate(__func__, address, bytes, device);
}

API aclError aclrtMallocAlign32(void** address, size_t bytes, int policy) {
  return aclrtMalloc(address, bytes, policy);
}

API aclError aclrtMallocWithCfg(void** address, size_t bytes, int policy, void*) {
  return aclrtMalloc(address, bytes, policy);
}

API aclError aclrtMallocHost(void** address, size_t bytes) {
  return allocate(__func__, address, bytes, HOST);
}

static aclError release(const char* function, void* address, bool host) {
  const BlockRef block = block_of(address);
  if (!block || block->imported || address != block->base || (block->device == HOST) != host) {
    return refuse(PARAM_INVALID, function, "%p is no start of memory to free", address);
  }
  remove_block(block);
  if (!host && block->header().nonce.exchange(0)) {
    complain(Complaint::EARLY_FREE, "memory freed while exported");
  } else if (block.use_count() > 1) {
    complain(Complaint::EARLY_FREE, "memory freed while tasks use it");
  }
  int device;
  return host ? OK : here(function, &device);
}

API aclError aclrtFree(void* address) { return release(__func__, address, false); }
API aclError aclrtFreeHost(void* address) { return release(__func__, address, true); }

API aclError aclrtGetMemInfo(int, size_t* free, size_t* total) {
  int device;
  TRY(here(__func__, &device));
  *total = knobs().memory;
  *free = *total - allocated(device);
  return OK;
}

struct PointerAttributes {
  uint32_t device;
  int32_t where;  // 0 host, 1 device, 2 not registered
  uint32_t page_bytes;
  uint32_t reserved[4];
};

API aclError aclrtPointerGetAttributes(const void* address, PointerAttributes* attributes) {
  if (!address || !attributes) REFUSE(INVALID_PARAM, "null");
  const BlockRef block = block_of(address);
  *attributes = {};
  attributes->where = !block ? 2 : block->device == HOST ? 0 : 1;
  if (attributes->where != 1) return OK;
  attributes->device = block->device;
  attributes->page_bytes = block->size >= HUGE_PAGE ? HUGE_PAGE : PAGE;
  return OK;
}

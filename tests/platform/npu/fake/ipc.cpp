// Memory of other processes: keys, lists of processes, and imported blocks.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <string>

#include "counts.hpp"
#include "devices.hpp"
#include "knobs.hpp"
#include "memory.hpp"

static std::mutex ipc_mutex;
static std::map<std::string, BlockRef>& exported = *new std::map<std::string, BlockRef>;
static std::multimap<std::string, BlockRef>& imported = *new std::multimap<std::string, BlockRef>;

aclError list_pids(const char* function, PidList& list, const int32_t* pids, size_t count) {
  if (!pids || !count) return refuse(PARAM_INVALID, function, "no processes");
  if (knobs().ipc != "list")
    return refuse(DRIVER_ERROR, function, "lists of processes fail here (FAKEACL_IPC)");
  for (size_t i = 0; i < count; i++) {
    const uint32_t place = list.count++;
    if (place >= MOST_PIDS)
      return refuse(DRIVER_ERROR, function, "more than %d processes", MOST_PIDS);
    list.pids[place] = pids[i];
  }
  return OK;
}

aclError admit(const char* function, const PidList& list) {
  if (knobs().ipc != "list") {
    if (list.unvalidated) return OK;
    return refuse(DRIVER_ERROR, function,
                  "exported with validation, which fails here (FAKEACL_IPC)");
  }
  for (uint32_t i = 0; i < list.count && i < MOST_PIDS; i++) {
    if (list.pids[i] == bare_tgid()) return OK;
  }
  return refuse(DRIVER_ERROR, function, "process %d is not on the exporter's list", bare_tgid());
}

void write_key(char* key, std::initializer_list<std::string> words) {
  std::string text;
  for (const std::string& word : words) text += word + " ";
  text.resize(KEY_BYTES - 1, '.');  // as long as CANN's, so that a key cut short is none
  std::memcpy(key, text.c_str(), KEY_BYTES);
}

bool is_whole_key(const char* key) { return strnlen(key, KEY_BYTES) == KEY_BYTES - 1; }

API aclError aclrtIpcMemGetExportKey(void* address, size_t bytes, char* key, size_t length,
                                     uint64_t flags) {
  int device;
  TRY(here(__func__, &device));
  if (knobs().ipc == "none") REFUSE(NOT_SUPPORTED, "no keys on this machine (FAKEACL_IPC)");
  const BlockRef block = block_of(address);
  if (!block || block->device == HOST || block->imported)
    REFUSE(PARAM_INVALID, "no memory of a device");
  if (block->device != device) REFUSE(PARAM_INVALID, "memory of device %d", block->device);
  if (address != block->base) REFUSE(PARAM_INVALID, "not the start of an allocation");
  if (!bytes || bytes > block->size) REFUSE(PARAM_INVALID, "%zu bytes of %zu", bytes, block->size);
  if (!key || length != KEY_BYTES) REFUSE(PARAM_INVALID, "a key has %zu bytes", KEY_BYTES);
  if (flags & ~MEMORY_EXPORT_UNVALIDATED) REFUSE(PARAM_INVALID, "flags %lu", flags);

  Export& header = block->header();
  uint64_t nonce = header.nonce;
  if (!nonce) {
    if (getrandom(&nonce, sizeof nonce, 0) != sizeof nonce)
      REFUSE(DRIVER_ERROR, "no random numbers");
    nonce |= 1;
    header.size = block->size;
    header.device = block->device;
    header.pids.count = 0;
    header.pids.unvalidated = flags & MEMORY_EXPORT_UNVALIDATED;
    header.nonce = nonce;
  }
  write_key(key, {"memory", std::to_string(getpid()), std::to_string(block->file),
                  std::to_string(block->size), std::to_string(nonce)});
  std::lock_guard<std::mutex> lock(ipc_mutex);
  exported[key] = block;
  return OK;
}

API aclError aclrtIpcMemSetImportPid(const char* key, int32_t* pids, size_t count) {
  if (!key) REFUSE(INVALID_PARAM, "null");
  std::lock_guard<std::mutex> lock(ipc_mutex);
  const auto at = exported.find(key);
  if (at == exported.end()) REFUSE(PARAM_INVALID, "not a key of this process");
  return list_pids(__func__, at->second->header().pids, pids, count);
}

// The other process's file, as a block; null where it has gone, or has closed the key.
static BlockRef opened(int pid, int file, size_t size, uint64_t nonce) {
  const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(file);
  const int own = open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct stat status;
  if (own < 0) return nullptr;
  if (fstat(own, &status) || status.st_size != static_cast<off_t>(size + 4096)) {
    close(own);
    return nullptr;
  }
  void* at = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, own, size);
  if (at == MAP_FAILED) {
    close(own);
    return nullptr;
  }
  const Export* header = static_cast<Export*>(at);
  const bool is_it = header->nonce == nonce && header->size == size;
  const int device = header->device;
  munmap(at, 4096);
  if (is_it) return std::make_shared<Block>(own, size, device);
  close(own);
  return nullptr;
}

API aclError aclrtIpcMemImportByKey(void** address, const char* key, uint64_t flags) {
  int device, pid, file;
  size_t size;
  uint64_t nonce;
  TRY(here(__func__, &device));
  if (!address || !key) REFUSE(INVALID_PARAM, "null");
  if (flags & ~MEMORY_IMPORT_PEER_ACCESS) REFUSE(PARAM_INVALID, "flags %lu", flags);
  if (!is_whole_key(key) ||
      std::sscanf(key, "memory %d %d %zu %lu", &pid, &file, &size, &nonce) != 4)
    REFUSE(PARAM_INVALID, "not a key");
  if (knobs().ipc == "handles")
    REFUSE(DRIVER_ERROR, "memory is opened by shareable handles here (FAKEACL_IPC)");
  if (flags && !knobs().import_flags) REFUSE(PARAM_INVALID, "flags are reserved");
  BlockRef block;
  try {
    block = opened(pid, file, size, nonce);
  } catch (const std::bad_alloc&) {
    REFUSE(OUT_OF_MEMORY, "no place for %zu bytes", size);
  }
  if (!block)
    REFUSE(DRIVER_ERROR, "the exporter has gone, has freed the memory, or has closed the key");
  TRY(admit(__func__, block->header().pids));
  if (flags & MEMORY_IMPORT_PEER_ACCESS) TRY(enable_peer(__func__, device, block->device));
  block->header().importers++;
  add_block(block);
  std::lock_guard<std::mutex> lock(ipc_mutex);
  imported.emplace(key, block);
  *address = block->base;
  return OK;
}

API aclError aclrtIpcMemClose(const char* key) {
  if (!key) REFUSE(INVALID_PARAM, "null");
  {
    std::lock_guard<std::mutex> lock(ipc_mutex);
    if (const auto at = imported.find(key); at != imported.end()) {
      const BlockRef block = at->second;
      imported.erase(at);
      remove_block(block);
      block->header().importers--;
      if (block.use_count() > 1) {
        complain(Complaint::EARLY_CLOSE, "a key closed while tasks use its memory");
      }
    } else if (const auto own = exported.find(key); own != exported.end()) {
      Export& header = own->second->header();
      if (header.importers > 0)
        complain(Complaint::EARLY_CLOSE, "a key closed before its importers closed it");
      header.nonce = 0;
      exported.erase(own);
    } else {
      REFUSE(PARAM_INVALID, "not a key of this process");
    }
  }
  int device;
  return here(__func__, &device);
}

// Blocks of memory: a device's are files in memory (memfd), which other processes map through
// /proc/<pid>/fd. They have no name, so nothing stays behind whatever ends the process.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <initializer_list>
#include <memory>

#include "acl.hpp"

constexpr int HOST = -1;
constexpr int MOST_PIDS = 64;
constexpr size_t HUGE_PAGE = 2 << 20;

// Which processes may import a key.
struct PidList {
  std::atomic<uint32_t> unvalidated;
  std::atomic<uint32_t> count;
  std::atomic<int32_t> pids[MOST_PIDS];
};

aclError list_pids(const char* function, PidList& list, const int32_t* pids, size_t count);
// Whether this process may import: the mode (FAKEACL_IPC) says what counts.
aclError admit(const char* function, const PidList& list);

// Write a key of KEY_BYTES made of words; say whether a key has its whole length.
void write_key(char* key, std::initializer_list<std::string> words);
bool is_whole_key(const char* key);

// Behind the bytes of an exported block, in its file.
struct Export {
  std::atomic<uint64_t> nonce;  // 0: closed
  uint64_t size;
  int32_t device;
  std::atomic<int32_t> importers;
  PidList pids;
};

// A file mapped at an aligned address. Tasks hold it: memory that is freed too early stays
// readable.
class Block {
 public:
  // Both throw std::bad_alloc.
  Block(size_t size, int device);            // a new one
  Block(int file, size_t size, int device);  // another process's: takes the file over
  Block(const Block& other, char* at);       // the same memory, at a reserved address
  ~Block();
  Block(const Block&) = delete;

  char* base;
  const size_t size;
  const int device;
  const bool imported;
  int file;

  Export& header();  // maps it at the first call

 private:
  void map();
  std::atomic<Export*> header_{nullptr};
};

using BlockRef = std::shared_ptr<Block>;

// The live block that holds an address.
BlockRef block_of(const void* address);
void add_block(const BlockRef& block);
bool remove_block(const BlockRef& block);

// An operand of a task on a device: bytes that lie in one block, which that device reaches. `block`
// is null for host memory that the runtime did not allocate.
aclError operand(const char* function, const void* address, size_t bytes, int device,
                 BlockRef* block);

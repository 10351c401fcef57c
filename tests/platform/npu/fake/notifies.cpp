// Notifies: one bit each, in memory that all processes of the machine share. A record sets the bit
// and wakes the wait; the wait clears it, and may come first. A record on a set bit is lost.
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>

#include "counts.hpp"
#include "devices.hpp"
#include "faults.hpp"
#include "handles.hpp"
#include "knobs.hpp"
#include "memory.hpp"
#include "streams.hpp"

constexpr int MOST_NOTIFIES = 8192;

struct Slot {
  std::atomic<uint32_t> bit;
  std::atomic<uint32_t> generation;         // counts the notifies that have had this place
  std::atomic<int32_t> holders[MOST_PIDS];  // a process for every handle; the creator's is first
  PidList pids;
};

struct Bank {
  Slot slots[MOST_DEVICES][MOST_NOTIFIES];
};

struct Notify {
  Slot* slot;
  int device;
  uint32_t id;
  bool imported;
};

static Handles<Notify>& notifies = *new Handles<Notify>(0x520000000000);

static Bank* mapped(int file) {
  void* at = mmap(nullptr, sizeof(Bank), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return at == MAP_FAILED ? nullptr : static_cast<Bank*>(at);
}

static int bank_file() {
  static const int file = [] {
    const std::string& machine = knobs().machine;
    const int opened = machine.empty() ? memfd_create("fakeacl-notifies", MFD_CLOEXEC)
                                       : open(machine.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (opened < 0 || ftruncate(opened, sizeof(Bank))) {
      std::perror("fakeacl: the file of FAKEACL_MACHINE");
      std::abort();
    }
    return opened;
  }();
  return file;
}

static Bank& bank() {
  static Bank* const own = mapped(bank_file());
  return *own;
}

static bool hold(Slot& slot) {
  for (auto& holder : slot.holders) {
    int32_t nobody = 0;
    if (holder.compare_exchange_strong(nobody, getpid())) return true;
  }
  return false;
}

static bool is_held(const Slot& slot) {
  for (const auto& holder : slot.holders) {
    if (holder) return true;
  }
  return false;
}

static void let_go(Slot& slot, bool imported) {
  for (int i = imported ? 1 : 0; i < MOST_PIDS; i++) {
    int32_t own = getpid();
    if (slot.holders[i].compare_exchange_strong(own, 0)) return;
  }
}

// A place of a device, taken by writing the creator into it.
static Slot* take_slot(int device) {
  for (int i = 0; i < knobs().notifies; i++) {
    Slot& slot = bank().slots[device][i];
    int32_t nobody = 0;
    if (is_held(slot) || !slot.holders[0].compare_exchange_strong(nobody, getpid())) continue;
    slot.generation++;
    slot.bit = 0;
    slot.pids.count = 0;
    slot.pids.unvalidated = 0;
    return &slot;
  }
  return nullptr;
}

// What killed processes held is free again.
static void clear_away(int device) {
  for (int i = 0; i < knobs().notifies; i++) {
    for (auto& holder : bank().slots[device][i].holders) {
      int32_t pid = holder;
      if (pid && kill(pid, 0) && errno == ESRCH) holder.compare_exchange_strong(pid, 0);
    }
  }
}

int live_notifies(bool imported) {
  int found = 0;
  for (const auto& item : notifies.items()) found += item.second->imported == imported;
  return found;
}

static aclError find(const char* function, void* handle, std::shared_ptr<Notify>* notify) {
  if (!handle) return refuse(INVALID_PARAM, function, "a null notify");
  *notify = notifies.find(handle);
  if (!*notify) return refuse(INVALID_HANDLE, function, "no notify %p", handle);
  return OK;
}

API aclError aclrtCreateNotify(void** notify, uint64_t flag) {
  int device;
  TRY(here(__func__, &device));
  if (!notify || flag > 1) REFUSE(PARAM_INVALID, "null, or flag %lu", flag);
  Slot* slot = take_slot(device);
  if (!slot) {
    clear_away(device);
    slot = take_slot(device);
  }
  if (!slot) REFUSE(NO_NOTIFY, "all %d notifies of device %d are taken", knobs().notifies, device);
  const auto id = static_cast<uint32_t>(slot - bank().slots[device]);
  *notify = notifies.add(std::make_shared<Notify>(Notify{slot, device, id, false}));
  return OK;
}

API aclError aclrtDestroyNotify(void* handle) {
  std::shared_ptr<Notify> notify;
  TRY(find(__func__, handle, &notify));
  if (!notifies.take(handle)) REFUSE(INVALID_HANDLE, "no notify %p", handle);
  if (!notify->imported && notify->slot->bit) {
    complain(Complaint::LEFT_POST, "notify " + std::to_string(notify->id) + " of device " +
                                       std::to_string(notify->device) +
                                       " destroyed with a post that nobody waited for");
  }
  let_go(*notify->slot, notify->imported);
  int device;
  return here(__func__, &device);
}

API aclError aclrtGetNotifyId(void* handle, uint32_t* id) {
  std::shared_ptr<Notify> notify;
  TRY(find(__func__, handle, &notify));
  if (!id) REFUSE(INVALID_PARAM, "null");
  *id = notify->id;
  return OK;
}

static void futex(std::atomic<uint32_t>& bit, int operation, uint32_t value,
                  const timespec* limit) {
  syscall(SYS_futex, &bit, operation, value, limit, nullptr, 0);
}

static void record(const Notify& notify, const Stream& stream) {
  if (notify.slot->bit.exchange(1)) {
    complain(Complaint::LOST_POST, "notify " + std::to_string(notify.id) + " of device " +
                                       std::to_string(notify.device) + " was set already: device " +
                                       std::to_string(stream.device) + ", stream " +
                                       std::to_string(stream.id));
  }
  futex(notify.slot->bit, FUTEX_WAKE, 1, nullptr);
}

static aclError wait(const Notify& notify, const Stream& stream, uint32_t seconds) {
  using clock = std::chrono::steady_clock;
  const auto end = clock::now() + std::chrono::seconds(seconds);
  const timespec slice{0, 50'000'000};  // how late a stream notices that it is given up
  for (;;) {
    uint32_t set = 1;
    if (notify.slot->bit.compare_exchange_strong(set, 0)) return OK;
    if (const aclError code = stream.given_up()) return code;
    if (seconds && clock::now() >= end) return TASK_TIMEOUT;
    futex(notify.slot->bit, FUTEX_WAIT, 0, &slice);
  }
}

API aclError aclrtRecordNotify(void* handle, void* stream_handle) {
  std::shared_ptr<Notify> notify;
  std::shared_ptr<Stream> stream;
  TRY(find(__func__, handle, &notify));
  TRY(stream_of(__func__, stream_handle, &stream));
  if (!notify->imported && notify->device != stream->device) {
    REFUSE(PARAM_INVALID, "a notify of device %d, not imported here", notify->device);
  }
  if (!reaches(stream->device, notify->device)) {
    REFUSE(DRIVER_ERROR, "device %d has no peer access to %d", stream->device, notify->device);
  }
  const bool silent = record_is_silent(stream->device);
  return enqueue(stream, [notify, silent, own = stream.get()]() -> aclError {
    if (!silent) record(*notify, *own);
    return OK;
  });
}

API aclError aclrtWaitAndResetNotify(void* handle, void* stream_handle, uint32_t seconds) {
  std::shared_ptr<Notify> notify;
  std::shared_ptr<Stream> stream;
  TRY(find(__func__, handle, &notify));
  TRY(stream_of(__func__, stream_handle, &stream));
  if (notify->imported) REFUSE(PARAM_INVALID, "imported: only its creator waits for a notify");
  if (notify->device != stream->device)
    REFUSE(PARAM_INVALID, "a notify of device %d", notify->device);
  return enqueue(stream,
                 [notify, own = stream.get(), seconds] { return wait(*notify, *own, seconds); });
}

API aclError aclrtNotifyGetExportKey(void* handle, char* key, size_t length, uint64_t flags) {
  std::shared_ptr<Notify> notify;
  TRY(find(__func__, handle, &notify));
  if (knobs().ipc == "none") REFUSE(NOT_SUPPORTED, "no keys on this machine (FAKEACL_IPC)");
  if (notify->imported) REFUSE(PARAM_INVALID, "imported");
  if (!key || length < KEY_BYTES) REFUSE(PARAM_INVALID, "a key has %zu bytes", KEY_BYTES);
  if (flags & ~NOTIFY_EXPORT_UNVALIDATED) REFUSE(PARAM_INVALID, "flags %lu", flags);
  notify->slot->pids.unvalidated = flags != 0;
  write_key(key, {"notify", std::to_string(getpid()), std::to_string(bank_file()),
                  std::to_string(notify->device), std::to_string(notify->id),
                  std::to_string(notify->slot->generation)});
  return OK;
}

API aclError aclrtNotifySetImportPid(void* handle, int32_t* pids, size_t count) {
  std::shared_ptr<Notify> notify;
  TRY(find(__func__, handle, &notify));
  return list_pids(__func__, notify->slot->pids, pids, count);
}

// The bank of another process: the same file as ours where FAKEACL_MACHINE names one.
static Bank* bank_of(int pid, int file) {
  static std::mutex mutex;
  static auto& known = *new std::map<std::pair<int, int>, Bank*>;
  std::lock_guard<std::mutex> lock(mutex);
  Bank*& found = known[{pid, file}];
  if (!found) {
    const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(file);
    const int opened = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (opened < 0) return nullptr;
    found = mapped(opened);
    close(opened);
  }
  return found;
}

API aclError aclrtNotifyImportByKey(void** handle, const char* key, uint64_t flags) {
  int device, pid, file, owner;
  uint32_t id, generation;
  TRY(here(__func__, &device));
  if (!handle || !key) REFUSE(INVALID_PARAM, "null");
  if (flags & ~NOTIFY_IMPORT_PEER_ACCESS) REFUSE(PARAM_INVALID, "flags %lu", flags);
  if (flags && !knobs().import_flags) REFUSE(PARAM_INVALID, "flags are reserved");
  if (!is_whole_key(key) ||
      std::sscanf(key, "notify %d %d %d %u %u", &pid, &file, &owner, &id, &generation) != 5) {
    REFUSE(PARAM_INVALID, "not a key");
  }
  if (owner < 0 || owner >= MOST_DEVICES || id >= MOST_NOTIFIES) REFUSE(PARAM_INVALID, "not a key");
  Bank* const bank = bank_of(pid, file);
  if (!bank) REFUSE(DRIVER_ERROR, "the exporter has gone");
  Slot& slot = bank->slots[owner][id];
  if (!slot.holders[0] || slot.generation != generation)
    REFUSE(DRIVER_ERROR, "the notify is destroyed");
  TRY(admit(__func__, slot.pids));
  if (flags & NOTIFY_IMPORT_PEER_ACCESS) TRY(enable_peer(__func__, device, owner));
  if (!hold(slot)) REFUSE(DRIVER_ERROR, "more than %d processes hold the notify", MOST_PIDS);
  *handle = notifies.add(std::make_shared<Notify>(Notify{&slot, owner, id, true}));
  return OK;
}

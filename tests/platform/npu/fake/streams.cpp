#include "streams.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "counts.hpp"
#include "devices.hpp"
#include "exceptions.hpp"
#include "faults.hpp"
#include "handles.hpp"
#include "knobs.hpp"

using std::chrono::microseconds;
using std::chrono::milliseconds;

static Handles<Stream>& streams = *new Handles<Stream>(0x510000000000);
static std::mutex defaults_mutex;
static std::map<int, std::shared_ptr<Stream>>& defaults =
    *new std::map<int, std::shared_ptr<Stream>>;
static std::atomic<int32_t> next_id{0};
static thread_local uint32_t last_task = 0;

static uint32_t this_thread() { return static_cast<uint32_t>(syscall(SYS_gettid)); }

Stream::Stream(int device, int32_t id) : device(device), id(id), thread_([this] { loop(); }) {}

Stream::~Stream() { stop(true); }

uint32_t Stream::enqueue(std::function<aclError()> work) {
  std::lock_guard<std::mutex> lock(mutex_);
  tasks_.push_back({next_, this_thread(), std::move(work)});
  changed_.notify_all();
  return next_++;
}

void Stream::loop() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    if (tasks_.empty() || at_once_) return;
    const Task task = std::move(tasks_.front());
    tasks_.pop_front();
    if (!error_) {
      changed_.wait_for(lock, microseconds(delay_us(task.id)), [this] { return at_once_.load(); });
      lock.unlock();
      run(task);
      lock.lock();
    }
    done_++;
    changed_.notify_all();
  }
}

void Stream::run(const Task& task) {
  aclError code = given_up();
  if (!code) code = task.work();
  if (!code) return;
  if (!at_once_) tell_exception({task.id, id, task.thread, device, code});
  error_ = code;
}

aclError Stream::given_up() const {
  if (at_once_) return STREAM_ABORT;
  return is_lost(device) ? LOST_HEARTBEAT : OK;
}

aclError Stream::synchronize(int limit) {
  std::unique_lock<std::mutex> lock(mutex_);
  const uint32_t end = next_;
  const auto ended = [&] { return error_ || static_cast<int32_t>(done_ - end) >= 0; };
  if (limit < 0) {
    changed_.wait(lock, ended);
  } else if (!changed_.wait_for(lock, milliseconds(limit), ended)) {
    return STREAM_SYNC_TIMEOUT;
  }
  return error_;
}

bool Stream::is_idle() {
  std::lock_guard<std::mutex> lock(mutex_);
  return error_ || done_ == next_;
}

void Stream::stop(bool at_once) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    if (at_once) at_once_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  tasks_.clear();  // they may hold events, which hold their stream
}

// A pure function of the seed, the stream and the task: the same in every run. Half of all tasks
// start at once.
uint32_t Stream::delay_us(uint32_t task) const {
  if (!knobs().delay_us) return 0;
  uint64_t x = knobs().seed * 0x9e3779b97f4a7c15 + (static_cast<uint64_t>(device) << 48) +
               (static_cast<uint64_t>(id) << 32) + task;
  for (const uint64_t factor : {0xbf58476d1ce4e5b9, 0x94d049bb133111eb}) {
    x = (x ^ (x >> 30)) * factor;
  }
  x ^= x >> 31;
  return x & 1 ? static_cast<uint32_t>((x >> 1) % (knobs().delay_us + 1)) : 0;
}

static std::shared_ptr<Stream> default_stream(int device) {
  std::lock_guard<std::mutex> lock(defaults_mutex);
  auto& stream = defaults[device];
  if (!stream) stream = std::make_shared<Stream>(device, next_id++);
  return stream;
}

// `anywhere`: also one of another device than the thread's, which some calls take.
static aclError find(const char* function, void* handle, std::shared_ptr<Stream>* stream,
                     bool anywhere = false) {
  int device;
  TRY(here(function, &device));
  *stream = handle ? streams.find(handle) : default_stream(device);
  if (!*stream) return refuse(INVALID_HANDLE, function, "no stream %p", handle);
  if ((*stream)->device != device && !anywhere) {
    return refuse(STREAM_CONTEXT, function, "a stream of device %d, and device %d is set",
                  (*stream)->device, device);
  }
  return OK;
}

aclError stream_of(const char* function, void* handle, std::shared_ptr<Stream>* stream) {
  TRY(find(function, handle, stream));
  if ((*stream)->captured)
    return refuse(NOT_SUPPORTED, function, "captured tasks are kept nowhere");
  return OK;
}

aclError enqueue(const std::shared_ptr<Stream>& stream, std::function<aclError()> work) {
  if (loses_device(stream->device)) {
    work = [device = stream->device]() -> aclError {
      lose(device);
      return LOST_HEARTBEAT;
    };
  }
  last_task = stream->enqueue(std::move(work));
  return OK;
}

int live_streams() { return static_cast<int>(streams.items().size()); }

void destroy_streams_of(int device) {
  for (auto& [handle, stream] : streams.items()) {
    if (stream->device == device && streams.take(handle)) stream->stop(true);
  }
  std::lock_guard<std::mutex> lock(defaults_mutex);
  if (defaults[device]) defaults[device]->stop(true);
  defaults.erase(device);
}

aclError synchronize_device(int device, int milliseconds) {
  aclError first = OK;
  for (auto& [handle, stream] : streams.items()) {
    const aclError code = stream->device == device ? stream->synchronize(milliseconds) : OK;
    if (!first) first = code;
  }
  const aclError code = default_stream(device)->synchronize(milliseconds);
  return first ? first : code;
}

API aclError aclrtCreateStreamWithConfig(void** stream, uint32_t, uint32_t) {
  int device;
  TRY(here(__func__, &device));
  if (!stream) REFUSE(INVALID_PARAM, "null");
  *stream = streams.add(std::make_shared<Stream>(device, next_id++));
  return OK;
}

API aclError aclrtCreateStream(void** stream) { return aclrtCreateStreamWithConfig(stream, 0, 0); }

static aclError destroy(const char* function, void* handle, bool at_once) {
  if (!handle) return refuse(INVALID_PARAM, function, "a null stream");
  std::shared_ptr<Stream> stream;
  const aclError code = find(function, handle, &stream);
  if (code && code != LOST_HEARTBEAT) return code;
  stream = streams.take(handle);  // also where the device is lost: what is destroyed is gone
  if (stream) stream->stop(at_once);
  return code;
}

API aclError aclrtDestroyStream(void* stream) { return destroy(__func__, stream, false); }
API aclError aclrtDestroyStreamForce(void* stream) { return destroy(__func__, stream, true); }

static aclError synchronize(const char* function, void* handle, int milliseconds) {
  std::shared_ptr<Stream> stream;
  TRY(find(function, handle, &stream, true));
  if (stream->captured)
    return refuse(STREAM_CAPTURED, function, "stream %d is captured", stream->id);
  if (const aclError code = stream->synchronize(milliseconds)) {
    return refuse(code, function, "a task of stream %d failed, or did not end in time", stream->id);
  }
  return OK;
}

API aclError aclrtSynchronizeStream(void* stream) { return synchronize(__func__, stream, -1); }

API aclError aclrtSynchronizeStreamWithTimeout(void* stream, int32_t milliseconds) {
  if (milliseconds < -1 || milliseconds == 0)
    REFUSE(PARAM_INVALID, "a time-out of %d ms", milliseconds);
  return synchronize(__func__, stream, milliseconds);
}

static aclError synchronize_current(const char* function, int milliseconds) {
  int device;
  TRY(here(function, &device));
  if (const aclError code = synchronize_device(device, milliseconds)) {
    return refuse(code, function, "a task of device %d failed, or did not end in time", device);
  }
  return OK;
}

API aclError aclrtSynchronizeDevice() { return synchronize_current(__func__, -1); }

API aclError aclrtSynchronizeDeviceWithTimeout(int32_t milliseconds) {
  return synchronize_current(__func__, milliseconds);
}

API aclError aclrtStreamQuery(void* handle, uint32_t* status) {
  std::shared_ptr<Stream> stream;
  TRY(find(__func__, handle, &stream));
  *status = stream->is_idle() ? 0 : 1;
  if (stream->error()) REFUSE(stream->error(), "a task of stream %d failed", stream->id);
  return OK;
}

API aclError aclrtStreamGetId(void* handle, int32_t* id) {
  std::shared_ptr<Stream> stream;
  TRY(find(__func__, handle, &stream));
  *id = stream->id;
  return OK;
}

API aclError aclrtGetThreadLastTaskId(uint32_t* task) {
  if (!task) REFUSE(INVALID_PARAM, "null");
  *task = last_task;
  return OK;
}

static aclError capture(const char* function, void* handle, bool on) {
  std::shared_ptr<Stream> stream;
  TRY(find(function, handle, &stream));
  stream->captured = on;
  return OK;
}

API aclError aclmdlRICaptureBegin(void* stream, int) { return capture(__func__, stream, true); }

API aclError aclmdlRICaptureEnd(void* stream, void** model) {
  *model = nullptr;
  return capture(__func__, stream, false);
}

API aclError aclmdlRICaptureGetInfo(void* handle, int* status, void** model) {
  std::shared_ptr<Stream> stream;
  TRY(find(__func__, handle, &stream));
  *status = stream->captured ? 1 : 0;
  if (model) *model = nullptr;
  return OK;
}

// The pause before a task: for tests, which look at the numbers instead of a clock.
API int64_t fakeacl_delay_us(void* handle, uint32_t task) {
  const auto stream = streams.find(handle);
  return stream ? stream->delay_us(task) : -1;
}

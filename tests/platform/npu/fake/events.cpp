// Events: they catch how far a stream has come. Plain ones stay on their device; those with the
// flag for other processes (ACL_EVENT_IPC) also cross the devices of one process.
#include <chrono>
#include <condition_variable>

#include "counts.hpp"
#include "devices.hpp"
#include "handles.hpp"
#include "streams.hpp"

using Clock = std::chrono::steady_clock;

struct Event {
  int device;
  uint32_t flag;
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t recorded = 0, done = 0;  // numbers of records
  std::shared_ptr<Stream> stream;   // of the last record
  Clock::time_point at;
};

using EventRef = std::shared_ptr<Event>;

static Handles<Event>& events = *new Handles<Event>(0x530000000000);

int live_events() { return static_cast<int>(events.items().size()); }

static aclError find(const char* function, void* handle, EventRef* event) {
  if (!handle) return refuse(INVALID_PARAM, function, "a null event");
  *event = events.find(handle);
  if (!*event) return refuse(INVALID_HANDLE, function, "no event %p", handle);
  return OK;
}

API aclError aclrtCreateEventExWithFlag(void** handle, uint32_t flag) {
  int device;
  TRY(here(__func__, &device));
  if (!handle) REFUSE(INVALID_PARAM, "null");
  const auto event = std::make_shared<Event>();
  event->device = device;
  event->flag = flag;
  *handle = events.add(event);
  return OK;
}

API aclError aclrtCreateEventWithFlag(void** event, uint32_t flag) {
  return aclrtCreateEventExWithFlag(event, flag);
}
API aclError aclrtCreateEvent(void** event) { return aclrtCreateEventExWithFlag(event, 0xf); }

API aclError aclrtDestroyEvent(void* handle) {
  EventRef event;
  TRY(find(__func__, handle, &event));
  events.take(handle);
  return OK;
}

API aclError aclrtRecordEvent(void* handle, void* stream_handle) {
  EventRef event;
  std::shared_ptr<Stream> stream;
  TRY(find(__func__, handle, &event));
  TRY(stream_of(__func__, stream_handle, &stream));
  if (event->device != stream->device)
    REFUSE(STREAM_CONTEXT, "an event of device %d", event->device);
  uint64_t number;
  {
    std::lock_guard<std::mutex> lock(event->mutex);
    number = ++event->recorded;
    event->stream = stream;
  }
  return enqueue(stream, [event, number]() -> aclError {
    std::lock_guard<std::mutex> lock(event->mutex);
    event->at = Clock::now();
    if (event->done < number) event->done = number;
    event->changed.notify_all();
    return OK;
  });
}

// Waits for a record. Behind a task that failed it never comes: then with that task's code.
static aclError wait_for(Event& event, uint64_t number, const Stream* waiting,
                         Clock::time_point end) {
  std::unique_lock<std::mutex> lock(event.mutex);
  while (event.done < number) {
    if (event.stream->error()) return event.stream->error();
    if (waiting && waiting->given_up()) return waiting->given_up();
    if (Clock::now() >= end) return EVENT_SYNC_TIMEOUT;
    event.changed.wait_for(lock, std::chrono::milliseconds(10));
  }
  return OK;
}

API aclError aclrtStreamWaitEvent(void* stream_handle, void* handle) {
  EventRef event;
  std::shared_ptr<Stream> stream;
  TRY(find(__func__, handle, &event));
  TRY(stream_of(__func__, stream_handle, &stream));
  if (event->device != stream->device && !(event->flag & EVENT_IPC)) {
    REFUSE(STREAM_CONTEXT, "an event of device %d", event->device);
  }
  if (!(event->flag & (EVENT_SYNC | EVENT_IPC))) REFUSE(PARAM_INVALID, "not an event to wait for");
  uint64_t number;
  {
    std::lock_guard<std::mutex> lock(event->mutex);
    number = event->recorded;
  }
  return enqueue(stream, [event, number, own = stream.get()] {
    return wait_for(*event, number, own, Clock::time_point::max());
  });
}

static aclError synchronize(const char* function, void* handle, Clock::time_point end) {
  EventRef event;
  TRY(find(function, handle, &event));
  uint64_t number;
  {
    std::lock_guard<std::mutex> lock(event->mutex);
    number = event->recorded;
  }
  if (const aclError code = wait_for(*event, number, nullptr, end)) {
    return refuse(code, function, "the tasks before the event failed, or did not end in time");
  }
  return OK;
}

API aclError aclrtSynchronizeEvent(void* event) {
  return synchronize(__func__, event, Clock::time_point::max());
}

API aclError aclrtSynchronizeEventWithTimeout(void* event, int32_t milliseconds) {
  if (milliseconds < 0) return aclrtSynchronizeEvent(event);
  return synchronize(__func__, event, Clock::now() + std::chrono::milliseconds(milliseconds));
}

static aclError is_done(const char* function, void* handle, bool* done) {
  EventRef event;
  TRY(find(function, handle, &event));
  std::lock_guard<std::mutex> lock(event->mutex);
  *done = event->done >= event->recorded;
  return OK;
}

API aclError aclrtQueryEventStatus(void* event, int* status) {
  bool done;
  TRY(is_done(__func__, event, &done));
  *status = done ? 1 : 0;
  return OK;
}

API aclError aclrtQueryEvent(void* event, int* status) {
  bool done;
  TRY(is_done(__func__, event, &done));
  *status = done ? 0 : 1;
  return OK;
}

API aclError aclrtQueryEventWaitStatus(void* event, int* status) {
  return aclrtQueryEvent(event, status);
}

API aclError aclrtResetEvent(void* handle, void*) {
  EventRef event;
  return find(__func__, handle, &event);
}

API aclError aclrtEventElapsedTime(float* milliseconds, void* from, void* to) {
  EventRef first, last;
  TRY(find(__func__, from, &first));
  TRY(find(__func__, to, &last));
  *milliseconds = std::chrono::duration<float, std::milli>(last->at - first->at).count();
  return OK;
}

// Streams: a thread each, which does its tasks one after the other.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "acl.hpp"

class Stream {
 public:
  Stream(int device, int32_t id);
  ~Stream();

  const int device;
  const int32_t id;

  // Puts a task behind the others. Where one has failed, no later one runs.
  uint32_t enqueue(std::function<aclError()> work);

  // Waits for the end of all tasks (milliseconds; negative: for ever) and gives the code of the
  // failed one.
  aclError synchronize(int milliseconds);
  bool is_idle();
  aclError error() const { return error_; }

  // Ends the thread: behind the tasks, or in the middle of one.
  void stop(bool at_once);
  // Tasks that wait look at this: the code to fail with once the stream is given up or its device
  // lost.
  aclError given_up() const;

  uint32_t delay_us(uint32_t task) const;

  std::atomic<bool> captured{false};

 private:
  struct Task {
    uint32_t id;
    uint32_t thread;
    std::function<aclError()> work;
  };

  void loop();
  void run(const Task& task);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  uint32_t next_ = 0, done_ = 0;
  std::atomic<bool> stopping_{false}, at_once_{false};
  std::atomic<aclError> error_{OK};
  std::thread thread_;
};

// The stream behind a handle (null: the default stream of the thread's device), which must be
// alive, of the thread's device, and not captured.
aclError stream_of(const char* function, void* handle, std::shared_ptr<Stream>* stream);

// Enqueues, and remembers the task for aclrtGetThreadLastTaskId.
aclError enqueue(const std::shared_ptr<Stream>& stream, std::function<aclError()> work);

void destroy_streams_of(int device);
aclError synchronize_device(int device, int milliseconds);

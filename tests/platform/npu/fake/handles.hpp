// Handles that stand for objects. No value is ever given out twice, so a handle that is dead, or of
// another kind, is found out instead of crashing.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

template <class T>
class Handles {
 public:
  explicit Handles(uintptr_t first) : next_(first) {}

  void* add(std::shared_ptr<T> object) {
    std::lock_guard<std::mutex> lock(mutex_);
    void* handle = reinterpret_cast<void*>(next_ += 16);
    objects_[handle] = std::move(object);
    return handle;
  }

  std::shared_ptr<T> find(void* handle) const {
    std::lock_guard<std::mutex> lock(mutex_);
    auto at = objects_.find(handle);
    return at == objects_.end() ? nullptr : at->second;
  }

  std::shared_ptr<T> take(void* handle) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto at = objects_.find(handle);
    if (at == objects_.end()) return nullptr;
    std::shared_ptr<T> object = std::move(at->second);
    objects_.erase(at);
    return object;
  }

  std::map<void*, std::shared_ptr<T>> items() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return objects_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<void*, std::shared_ptr<T>> objects_;
  uintptr_t next_;
};

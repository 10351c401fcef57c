// The functions that CANN has not: counts for tests, and the report at the end of a process.
//
//   int fakeacl_live(const char* kind)    "streams", "notifies", "imported_notifies", "memory",
//                                         "imported_memory" or "events"
//   int fakeacl_lost_posts()              records on a bit that was set: one of the two is lost
//   int fakeacl_complaints(char* text, size_t bytes)
//                                         how many of all kinds; the text has a line for each
//   void fakeacl_report()                 for a process that ends by _exit, which writes no report
#include "counts.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include "acl.hpp"
#include "knobs.hpp"

struct Kept {
  Complaint kind;
  std::string text;
};

static std::mutex counts_mutex;
static std::vector<Kept>& kept = *new std::vector<Kept>;
static const char* const KINDS[] = {"streams", "notifies",        "imported_notifies",
                                    "memory",  "imported_memory", "events"};

void complain(Complaint kind, const std::string& what) {
  std::lock_guard<std::mutex> lock(counts_mutex);
  kept.push_back({kind, what});
}

static int number_of(Complaint kind) {
  std::lock_guard<std::mutex> lock(counts_mutex);
  int found = 0;
  for (const Kept& one : kept) found += one.kind == kind;
  return found;
}

API int fakeacl_live(const char* kind) {
  if (!std::strcmp(kind, "streams")) return live_streams();
  if (!std::strcmp(kind, "notifies")) return live_notifies(false);
  if (!std::strcmp(kind, "imported_notifies")) return live_notifies(true);
  if (!std::strcmp(kind, "memory")) return live_blocks(false);
  if (!std::strcmp(kind, "imported_memory")) return live_blocks(true);
  if (!std::strcmp(kind, "events")) return live_events();
  return -1;
}

API int fakeacl_lost_posts() { return number_of(Complaint::LOST_POST); }

API int fakeacl_complaints(char* text, size_t bytes) {
  std::lock_guard<std::mutex> lock(counts_mutex);
  std::string all;
  for (const Kept& one : kept) all += one.text + "\n";
  if (bytes) {
    std::strncpy(text, all.c_str(), bytes - 1);
    text[bytes - 1] = 0;
  }
  return static_cast<int>(kept.size());
}

static std::string report_line() {
  std::string line = "{\"pid\": " + std::to_string(getpid());
  for (const char* kind : KINDS) {
    line += std::string(", \"") + kind + "\": " + std::to_string(fakeacl_live(kind));
  }
  line += ", \"lost_posts\": " + std::to_string(fakeacl_lost_posts()) + ", \"complaints\": [";
  std::lock_guard<std::mutex> lock(counts_mutex);
  for (const Kept& one : kept) {  // our own words: nothing in them needs escaping
    line += (&one == &kept.front() ? "\"" : ", \"") + one.text + "\"";
  }
  return line + "]}\n";
}

API void fakeacl_report() {
  static std::once_flag once;
  std::call_once(once, [] {
    const int file = open(knobs().report.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    const std::string line = report_line();
    if (file < 0 || write(file, line.data(), line.size()) < 0) std::perror("FAKEACL_REPORT");
    if (file >= 0) close(file);
  });
}

void report_at_exit() {
  static std::once_flag once;
  if (!knobs().report.empty()) std::call_once(once, [] { std::atexit(fakeacl_report); });
}

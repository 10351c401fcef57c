#include "faults.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <sstream>
#include <string>

#include "devices.hpp"
#include "knobs.hpp"

struct Fault {
  int device;
  std::string kind;
  long after;
  std::atomic<long> seen{0};
};

static std::deque<Fault>& faults() {
  static std::deque<Fault>& all = *[] {
    auto* found = new std::deque<Fault>;
    std::istringstream list(knobs().fault);
    for (std::string one; std::getline(list, one, ',');) {
      int device;
      char kind[16];
      long after;
      if (std::sscanf(one.c_str(), "device=%d:kind=%15[a-z]:after=%ld", &device, kind, &after) ==
          3) {
        Fault& fault = found->emplace_back();
        fault.device = device, fault.kind = kind, fault.after = after;
      } else {
        std::fprintf(stderr, "FAKEACL_FAULT: not understood: %s\n", one.c_str());
        std::abort();
      }
    }
    return found;
  }();
  return all;
}

static bool is_next(int device, const char* kind) {
  bool it_is = false;
  for (Fault& fault : faults()) {
    if (fault.device == device && fault.kind == kind) it_is |= fault.seen++ == fault.after;
  }
  return it_is;
}

static std::atomic<bool> lost[MOST_DEVICES];

void lose(int device) { lost[device] = true; }
bool is_lost(int device) { return lost[device]; }

bool loses_device(int device) { return is_next(device, "lost"); }
bool copy_fails(int device) { return is_next(device, "copy"); }
bool record_is_silent(int device) { return is_next(device, "silent"); }

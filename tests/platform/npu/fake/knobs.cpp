#include "knobs.hpp"

#include <algorithm>
#include <cstdlib>
#include <sstream>

static std::string text(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value && *value ? value : otherwise;
}

static long long number(const char* name, long long otherwise) {
  return std::stoll(text(name, std::to_string(otherwise).c_str()));
}

static std::vector<int> visible(int devices) {
  std::vector<int> found;
  std::istringstream numbers(text("FAKEACL_VISIBLE", ""));
  for (std::string each; std::getline(numbers, each, ',');) found.push_back(std::stoi(each));
  if (found.empty()) {
    for (int device = 0; device < devices; device++) found.push_back(device);
  }
  return found;
}

static Knobs read() {
  Knobs k;
  k.devices = static_cast<int>(std::clamp(number("FAKEACL_DEVICES", 8), 0LL, 16LL));
  k.soc = text("FAKEACL_SOC", "Ascend910B1");
  k.version = text("FAKEACL_VERSION", "1.16.0");
  k.machine = text("FAKEACL_MACHINE", "");
  k.ipc = text("FAKEACL_IPC", "free");
  k.reduce = text("FAKEACL_REDUCE", "anywhere");
  k.fault = text("FAKEACL_FAULT", "");
  k.report = text("FAKEACL_REPORT", "");
  k.memory = number("FAKEACL_MEMORY", 8LL << 30);
  k.most_bytes = number("FAKEACL_MOST_BYTES", 4LL << 30);
  k.notifies = static_cast<int>(std::clamp(number("FAKEACL_NOTIFIES", 8192), 0LL, 8192LL));
  k.peers = number("FAKEACL_P2P", 1) != 0;
  k.import_flags = number("FAKEACL_IMPORT_FLAGS", 1) != 0;
  k.reenable = number("FAKEACL_REENABLE", 1) != 0;
  k.visible = visible(k.devices);
  k.atomic = number("FAKEACL_ATOMIC", 1) != 0;
  k.verbose = number("FAKEACL_VERBOSE", 0) != 0;
  k.seed = number("FAKEACL_SEED", 0);
  k.delay_us = static_cast<uint32_t>(number("FAKEACL_DELAY_US", 0));
  return k;
}

const Knobs& knobs() {
  static const Knobs& all = *new Knobs(read());  // never destroyed: streams may outlive main
  return all;
}

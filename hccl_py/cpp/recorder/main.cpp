// The recorder: loads an op's host code and kernels, runs them once per rank, and writes down what
// they put on their threads. It exports HCCL's programming API, which both libraries call.

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>

#include "state.hpp"

namespace recorder {

namespace {

void read_list(const std::string& text, std::vector<uint32_t>& found)
{
    std::istringstream numbers(text);
    uint32_t number = 0;
    while (numbers >> number) {
        found.push_back(number);
    }
}

// Sets one option; false for one that does not exist.
bool set_option(const std::string& key, const std::string& value)
{
    Options& o = state.options;
    const std::map<std::string, std::string*> texts = {
        {"host", &o.host},     {"device", &o.device}, {"entry", &o.entry}, {"receiver", &o.receiver},
        {"kernel", &o.kernel}, {"op", &o.op},         {"out", &o.out},     {"home", &o.home},
        {"soc", &o.soc},
    };
    const std::map<std::string, uint64_t*> sizes = {
        {"count", &o.count},         {"in_bytes", &o.in_bytes},         {"out_bytes", &o.out_bytes},
        {"ccl_bytes", &o.ccl_bytes}, {"memory_bytes", &o.memory_bytes}, {"most_tasks", &o.most_tasks},
    };
    const std::map<std::string, uint32_t*> numbers = {
        {"ranks", &o.ranks}, {"dtype", &o.dtype}, {"reduce", &o.reduce},           {"root", &o.root},
        {"calls", &o.calls}, {"jobs", &o.jobs},   {"cpu_seconds", &o.cpu_seconds}, {"wall_seconds", &o.wall_seconds},
    };
    const std::map<std::string, std::vector<uint32_t>*> lists = {
        {"server", &o.server}, {"device_id", &o.device_id}, {"protocol", &o.protocol},
    };
    if (texts.count(key)) {
        *texts.at(key) = value;
    } else if (sizes.count(key)) {
        *sizes.at(key) = strtoull(value.c_str(), nullptr, 10);
    } else if (numbers.count(key)) {
        *numbers.at(key) = uint32_t(strtoul(value.c_str(), nullptr, 10));
    } else if (lists.count(key)) {
        read_list(value, *lists.at(key));
    } else {
        return false;
    }
    return true;
}

}  // namespace

}  // namespace recorder

int main(int argc, char** argv)
{
    std::ifstream file(argc == 2 ? argv[1] : "");
    std::string line;
    while (std::getline(file, line)) {
        size_t blank = line.find(' ');
        if (!recorder::set_option(line.substr(0, blank), blank == std::string::npos ? "" : line.substr(blank + 1))) {
            std::cerr << "unknown option: " << line << "\n";
            return 64;
        }
    }
    if (recorder::state.options.ranks == 0) {
        std::cerr << "usage: recorder FILE, with the options of hccl_py/cpp/run.py\n";
        return 64;
    }
    return recorder::run_all();
}

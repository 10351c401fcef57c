// The recorder: loads an op's host code and kernels, runs them once per rank, and writes the tasks
// that they put on threads to files. It exports HCCL's programming API, which both libraries call.
//
// It is compiled on the user's machine, so its parts avoid headers that compile slowly, like iostream.

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "state.hpp"

namespace recorder {

namespace {

struct TextOption {
    const char* key;
    std::string Options::*value;
};
struct SizeOption {
    const char* key;
    uint64_t Options::*value;
};
struct NumberOption {
    const char* key;
    uint32_t Options::*value;
};
struct AmountOption {
    const char* key;
    std::vector<uint64_t> Options::*value;
};
struct ListOption {
    const char* key;
    std::vector<uint32_t> Options::*value;
};

const TextOption kTexts[] = {
    {"host", &Options::host},     {"device", &Options::device}, {"entry", &Options::entry},
    {"receiver", &Options::receiver}, {"kernel", &Options::kernel}, {"op", &Options::op},
    {"out", &Options::out},       {"home", &Options::home},     {"soc", &Options::soc},
};
const SizeOption kSizes[] = {
    {"count", &Options::count},         {"in_bytes", &Options::in_bytes},
    {"out_bytes", &Options::out_bytes}, {"ccl_bytes", &Options::ccl_bytes},
    {"memory_bytes", &Options::memory_bytes}, {"most_tasks", &Options::most_tasks},
    {"most_moved", &Options::most_moved},
};
const NumberOption kNumbers[] = {
    {"ranks", &Options::ranks}, {"dtype", &Options::dtype}, {"reduce", &Options::reduce},
    {"root", &Options::root},   {"expansion", &Options::expansion}, {"calls", &Options::calls}, {"jobs", &Options::jobs},
    {"cpu_seconds", &Options::cpu_seconds}, {"wall_seconds", &Options::wall_seconds},
};
const ListOption kLists[] = {
    {"server", &Options::server}, {"device_id", &Options::device_id}, {"network_layer", &Options::network_layer},
    {"network_clos", &Options::network_clos}, {"network_dies", &Options::network_dies},
    {"network_width", &Options::network_width}, {"network_protocol", &Options::network_protocol},
    {"network_group", &Options::network_group},
};

const AmountOption kAmounts[] = {
    {"sends", &Options::sends}, {"send_displs", &Options::send_displs},
    {"receives", &Options::receives}, {"receive_displs", &Options::receive_displs},
};

template <typename Number>
void read_list(const char* text, std::vector<Number>& found)
{
    char* end = nullptr;
    for (unsigned long number = strtoul(text, &end, 10); end != text; number = strtoul(text, &end, 10)) {
        found.push_back(Number(number));
        text = end;
    }
}

// Sets one option; false for an unknown key.
bool set_option(const char* key, const char* value)
{
    Options& options = state.options;
    for (const TextOption& option : kTexts) {
        if (strcmp(option.key, key) == 0) {
            options.*option.value = value;
            return true;
        }
    }
    for (const SizeOption& option : kSizes) {
        if (strcmp(option.key, key) == 0) {
            options.*option.value = strtoull(value, nullptr, 10);
            return true;
        }
    }
    for (const NumberOption& option : kNumbers) {
        if (strcmp(option.key, key) == 0) {
            options.*option.value = uint32_t(strtoul(value, nullptr, 10));
            return true;
        }
    }
    for (const AmountOption& option : kAmounts) {
        if (strcmp(option.key, key) == 0) {
            read_list(value, options.*option.value);
            return true;
        }
    }
    for (const ListOption& option : kLists) {
        if (strcmp(option.key, key) == 0) {
            read_list(value, options.*option.value);
            return true;
        }
    }
    return false;
}

// Reads one `key value` to a line; false where a key is unknown.
bool read_options(FILE* file)
{
    char* line = nullptr;
    size_t room = 0;
    bool is_known = true;
    while (is_known && getline(&line, &room, file) >= 0) {
        line[strcspn(line, "\n")] = 0;
        char* blank = line + strcspn(line, " ");
        const char* value = *blank ? blank + 1 : "";
        *blank = 0;
        is_known = set_option(line, value);
        if (!is_known) {
            fprintf(stderr, "unknown option: %s\n", line);
        }
    }
    free(line);
    return is_known;
}

}  // namespace

}  // namespace recorder

int main(int argc, char** argv)
{
    FILE* file = argc == 2 ? fopen(argv[1], "re") : nullptr;
    if (file != nullptr && !recorder::read_options(file)) {
        return 64;
    }
    if (recorder::state.options.ranks == 0) {
        fprintf(stderr, "usage: recorder FILE, with the options of interop/hccl_interop/cpp/run.py\n");
        return 64;
    }
    fclose(file);
    return recorder::run_all();
}

// The files of a rank: its tasks as records in one, everything else as lines in the other.

#include <stdio_ext.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "state.hpp"

namespace recorder {

namespace {

constexpr int kMostFindings = 50;

FILE* lines = nullptr;
FILE* records = nullptr;
uint64_t written = 0;
int findings = 0;

// Replaces line ends and other control characters: a finding is one line.
void flatten(char* text)
{
    for (; *text; ++text) {
        if (static_cast<unsigned char>(*text) < ' ') {
            *text = ' ';
        }
    }
}

void write_finding(const char* finding, int stack, const char* format, va_list values)
{
    char text[1024];
    vsnprintf(text, sizeof text, format, values);
    flatten(text);
    if (++findings <= kMostFindings) {
        write_line("E\t%s\t%d\t%u\t%s", finding, stack, state.call, text);
    }
}

}  // namespace

Task task_on(ThreadHandle thread, Kind kind)
{
    Task task{};
    task.kind = kind;
    task.thread = int32_t(thread - kThreadHandle);
    task.target = -1;
    task.index = -1;
    task.dtype = task.reduce = task.src_part = task.dst_part = -1;
    task.call = int32_t(state.call);
    task.stack = current_stack();
    return task;
}

bool has_findings()
{
    return findings > 0;
}

void open_output(const std::string& name)
{
    std::string path = state.options.out + "/" + name;
    lines = fopen((path + ".txt").c_str(), "we");
    records = fopen((path + ".tasks").c_str(), "we");
    if (lines == nullptr || records == nullptr) {
        perror(path.c_str());
        _exit(66);
    }
    static char room[1 << 18];
    setvbuf(records, room, _IOFBF, sizeof room);
}

void close_output()
{
    if (lines == nullptr) {
        return;
    }
    bool is_whole = fclose(records) == 0;
    is_whole = fclose(lines) == 0 && is_whole;
    if (!is_whole) {
        _exit(66);
    }
}

void forget_output()
{
    for (FILE** file : {&lines, &records}) {
        __fpurge(*file);
        *file = nullptr;
    }
}

void write_task(const Task& task)
{
    if (records == nullptr) {
        return;
    }
    if (++written > state.options.most_tasks) {
        find_at("CODE_ENDLESS", task.stack, "The rank enqueues more than %lu tasks", state.options.most_tasks);
        write_line("END\t-1");
        close_output();
        _exit(67);
    }
    fwrite(&task, sizeof task, 1, records);
}

void write_line(const char* format, ...)
{
    if (lines == nullptr) {
        return;
    }
    va_list values;
    va_start(values, format);
    vfprintf(lines, format, values);
    va_end(values);
    fputc('\n', lines);
}

Refusal refuse(const char* finding, const char* format, ...)
{
    va_list values;
    va_start(values, format);
    write_finding(finding, current_stack(), format, values);
    va_end(values);
    return {};
}

Refusal no_room(const char* call)
{
    return refuse("INVALID_ARGUMENT", "%s: there is nowhere to put the answer", call);
}

Refusal no_thread(const char* call, ThreadHandle thread)
{
    return refuse("UNKNOWN_HANDLE", "%s: 0x%lx is no thread that this rank acquired", call, thread);
}

Refusal no_channel(const char* call, ChannelHandle channel)
{
    return refuse("UNKNOWN_HANDLE", "%s: 0x%lx is no channel that this rank acquired", call, channel);
}

void find_at(const char* finding, int stack, const char* format, ...)
{
    va_list values;
    va_start(values, format);
    write_finding(finding, stack, format, values);
    va_end(values);
}

}  // namespace recorder

// Devices, the one a thread has set, and who reaches whom.
#pragma once

#include "acl.hpp"

constexpr int MOST_DEVICES = 16;

// The number on the board of a device that the process sees, or -1. Elsewhere in this library
// devices have their numbers on the board.
int physical_of(int64_t device);

// The thread's device, or -1.
int current_device();

// The thread's device; refused where none is set, or where it is lost.
aclError here(const char* function, int* device);

// Whether tasks of one device reach memory and notifies of the other.
bool reaches(int device, int peer);
aclError enable_peer(const char* function, int device, int peer);

// Processes are named to each other by this, which is not what getpid says.
int32_t bare_tgid();

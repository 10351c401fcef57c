// Faults on demand (FAKEACL_FAULT).
#pragma once

// Counts a task of the device, and may lose the device.
void count_task(int device);
bool is_lost(int device);
// Count a copy or a record, and say whether this is the one.
bool copy_fails(int device);
bool record_is_silent(int device);

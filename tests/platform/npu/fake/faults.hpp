// Faults on demand (FAKEACL_FAULT). Tasks are counted when they are enqueued, so that a program that
// one thread issues meets a fault in the same task in every run.
#pragma once

// Each counts one more task of the device, and says whether it is the one.
bool loses_device(int device);
bool copy_fails(int device);
bool record_is_silent(int device);

// What that one task does when it runs.
void lose(int device);
bool is_lost(int device);

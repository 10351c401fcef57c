// Primitives that hcomm calls experimental.
#pragma once

#include "../hcomm_primitives.h"

#ifdef __cplusplus
extern "C" {
#endif

// Returns once the tasks of a thread are over.
int32_t HcommThreadJoin(ThreadHandle thread, uint32_t timeout);

#ifdef __cplusplus
}
#endif

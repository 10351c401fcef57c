// HCCL's copies of the CCU's headers, for older hcomm, give way to those that kernels are recorded with.
#pragma once
#include "ccu/ccu_types.h"

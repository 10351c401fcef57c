// ccu_utils.hpp: all classes and calls of a kernel are in ccu_kernel_side.hpp.
#pragma once

#include "ccu_kernel_side.hpp"

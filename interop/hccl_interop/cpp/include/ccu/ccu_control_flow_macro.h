// ccu_control_flow_macro.h: all classes and calls of a kernel are in ccu_kernel_side.hpp.
#pragma once

#include "ccu_kernel_side.hpp"

// As ccu_types_dl.h.
#pragma once
#include "ccu/ccu_res_defs.h"

#pragma once
#include "../hcomm_res_defs.h"

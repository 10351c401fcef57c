#pragma once
#include "error_codes/rt_error_codes.h"

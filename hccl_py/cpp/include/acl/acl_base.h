#pragma once
#include "acl_rt.h"

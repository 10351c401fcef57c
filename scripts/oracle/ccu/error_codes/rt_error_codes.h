#pragma once
static const int32_t ACL_ERROR_RT_FEATURE_NOT_SUPPORT = 207000;

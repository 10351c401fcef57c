#pragma once
#define REPORT_PREDEFINED_ERR_MSG(...)

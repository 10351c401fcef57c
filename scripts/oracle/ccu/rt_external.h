#pragma once
typedef int32_t rtError_t;
#define RT_ERROR_NONE 0
extern "C" rtError_t rtStreamAddToModel(void* stream, void* model);

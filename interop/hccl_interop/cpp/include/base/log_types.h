// Levels, masks and modules of CANN's log, as far as code of HCCL names them.
#pragma once

#define DLOG_DEBUG 0
#define DLOG_INFO 1
#define DLOG_WARN 2
#define DLOG_ERROR 3
#define DLOG_NULL 4
#define DEBUG_LOG_MASK 0x00010000U
#define SECURITY_LOG_MASK 0x00100000U
#define RUN_LOG_MASK 0x01000000U
#define STDOUT_LOG_MASK 0x10000000U

enum { DLOG_TYPE_DEBUG = 0, DLOG_TYPE_RUN = 1 };
enum { HCCL = 3 };

/* usage: what this process has used of the machine. */
#ifndef STK_CLI_USAGE_H
#define STK_CLI_USAGE_H

#include <stdint.h>

/* CPU time of all threads, user and system, in seconds. */
double usage_cpu_seconds(void);

/* The most memory that was resident at once, in bytes, or -1. */
int64_t usage_peak_bytes(void);

#endif /* STK_CLI_USAGE_H */

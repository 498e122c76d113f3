#include "usage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

double usage_cpu_seconds(void)
{
    struct rusage u;
    if (getrusage(RUSAGE_SELF, &u)) return 0;
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

int64_t usage_peak_bytes(void)
{
    FILE *f = fopen("/proc/self/status", "re");
    char line[256];
    int64_t kib = -1;
    while (f && kib < 0 && fgets(line, sizeof(line), f))
        if (!strncmp(line, "VmHWM:", 6)) kib = strtoll(line + 6, NULL, 10);
    if (f) fclose(f);
    return kib < 0 ? -1 : kib * 1024;
}

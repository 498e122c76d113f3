/*
 * report: what a bench has measured, printed for people or as JSON.
 */
#ifndef STK_CLI_REPORT_H
#define STK_CLI_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <stoker/run.h>

#include "job.h"

typedef struct report {
    const char *dir;
    const job *job;
    int64_t images, batches;
    int64_t classes;       /* -1: not known, or no labels */
    double seconds;        /* from the start of the run to its end */
    double cpu_seconds;    /* of all threads, user and system, in that time */
    double first_batch_ms; /* -1: there was none */
    int64_t peak_bytes;    /* of resident memory; -1: not known */
    stk_stats *stats;
    stk_failure *failures; /* the first ten */
    size_t num_failures;
    stk_diag diag; /* why the run failed; err is STK_OK when it did not */
    bool interrupted;
} report;

/* Prints nothing about a run that failed before its first batch. */
void report_print(const report *r, FILE *to);
void report_json(const report *r, FILE *to);

/* Figures that both forms show. */
double report_seconds(int64_t ns);
double report_per_image(double value, const report *r);    /* 0 where there are no images */
double report_rate(const report *r);                       /* images a second */
uint64_t report_sum(const stk_stats *s, bool substituted); /* failures, or those replaced */

/* The path of what failed, for a line that shows its text too; "" where that names it. */
const char *report_key(const stk_failure *f);

#endif /* STK_CLI_REPORT_H */

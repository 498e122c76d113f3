/* Histograms of durations, as stk_stats has them. */
#ifndef STK_GRAPH_TIMES_H
#define STK_GRAPH_TIMES_H

#include <stoker/stats.h>

/* Counts `num` durations of that length. */
void times_add(stk_times *t, int64_t ns, uint64_t num);

#endif /* STK_GRAPH_TIMES_H */

/* The module for FFmpeg, loaded when first needed. */
#ifndef STK_OPS_AV_H
#define STK_OPS_AV_H

#include "av/table.h"

/* NULL, with *diag, where there is none.  Says the same for the life of the process once it was
 * found; looks again if it was not. */
const stk_av_table *stk_av_get(stk_diag *diag);

#endif /* STK_OPS_AV_H */

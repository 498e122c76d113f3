/*
 * Isolated ops: decoding in a helper process, so that a decoder that crashes or hangs over a file
 * costs that sample and no more.
 *
 *     bytes ──► shared memory ──► stoker-decoder: the op ──► shared memory ──► array
 *
 * Each thread that runs the stage has a helper of its own, made when first needed and ended with
 * the run.  It ends when the program does, in whatever way.  It is no sandbox: it has the rights of
 * the program, except that it gets no descriptors of it but stderr.
 */
#ifndef STK_ISOLATE_H
#define STK_ISOLATE_H

#include <stoker/ops.h>

STK_BEGIN

typedef struct stk_isolate_opts {
    double timeout; /* seconds that the decoding of one sample may take; 0: 60 */
} stk_isolate_opts;

/* Takes `op`: decode_image, decode_video, decode_audio or decode_wav.  NULL, as `op` is: *diag says
 * why already.  The stage has the name, the results and the errors of `op`.  A helper that dies, or
 * that takes too long, fails the sample that it was at with STK_ECORRUPT; the next one gets
 * another. NULL with STK_EUNSUPPORTED: another op, or the program stoker-decoder is not there. */
STK_API stk_op *stk_op_isolate(stk_op *op, const stk_isolate_opts *opts, stk_diag *diag);

STK_END

#endif /* STK_ISOLATE_H */

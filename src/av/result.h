/*
 * av_result: what a decoded picture becomes, by the filters of its decoder: one picture of an
 * array.
 */
#ifndef STK_AV_RESULT_H
#define STK_AV_RESULT_H

#include "av/decoder.h"

typedef struct av_result {
    stk_spec spec;
    size_t bytes;
    const AVFrame *frame; /* that is scaled, or copied */
    bool scaled;
    stk_frames *filtered; /* where `frame` is */
} av_result;

/* *out is all zero; `frame` is borrowed until av_result_fini, which is called also after a failure.
 * STK_EINVAL: the filters made something else than one picture. */
STK_NODISCARD stk_err av_result_init(av_result *out, stk_decoder *decoder, AVFrame *frame,
                                     stk_av_call *call);
void av_result_fini(av_result *result);

/* To `dst`, as av_scale_into wants it if the result is `scaled`; what is copied may go anywhere. */
STK_NODISCARD stk_err av_result_write(const av_result *result, stk_decoder *decoder, uint8_t *dst,
                                      stk_av_call *call);

#endif /* STK_AV_RESULT_H */

/*
 * av_ending: whether a file has the end that its bytes tell of: a size in its header (AIFF, AU,
 * FLV, Matroska and WebM), or a mark behind the last packet (APNG, GIF, Ogg).
 *
 * Threads: one at a time.
 */
#ifndef STK_AV_ENDING_H
#define STK_AV_ENDING_H

#include "av/input.h"

/* Of an input that was read to its end.  `format`: FFmpeg's name.  `io`: where a mark is looked
 * for, and which stands where it stood afterwards; of inputs that cannot go back, and of other
 * formats, nothing is missing. */
bool av_ending_is_missing(const char *format, const av_input *in, AVIOContext *io);

#endif /* STK_AV_ENDING_H */

/* What a file is that is no picture: an array, sound, an archive. */
#ifndef STK_CLI_DATA_H
#define STK_CLI_DATA_H

#include <stoker/npy.h>
#include <stoker/wav.h>

#include "json.h"

typedef enum data_kind {
    DATA_NONE = 0,
    DATA_NPY,
    DATA_WAV,
    DATA_TAR,
    DATA_ZIP,
    DATA_MEDIA, /* neither these nor a picture: FFmpeg may know; see media.h */
} data_kind;

typedef struct data_facts {
    data_kind kind;
    uint64_t bytes;
    stk_npy npy;
    stk_wav_info wav;
    int64_t members, member_bytes; /* regular files of an archive, and what they hold, unpacked */
} data_facts;

/* By content.  DATA_NONE: a picture, or nothing, or it cannot be opened.  Otherwise, a failure says
 * what is broken, and the facts are those before it. */
stk_err data_look(const char *path, data_facts *out, stk_diag *diag);

/* "npy float32 (2, 3), C order": cut to `size`. */
void data_text(const data_facts *d, char *dst, size_t size);

/* The same as pieces of an object, with "format". */
void data_json(const data_facts *d, json *j);

#endif /* STK_CLI_DATA_H */

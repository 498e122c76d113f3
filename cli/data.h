/* What a file is that is no picture: an array, sound, an archive, a table of columns. */
#ifndef STK_CLI_DATA_H
#define STK_CLI_DATA_H

#include <stoker/npy.h>
#include <stoker/stream.h>
#include <stoker/wav.h>

#include "columns.h"
#include "json.h"

typedef enum data_kind {
    DATA_NONE = 0,
    DATA_NPY,
    DATA_WAV,
    DATA_TAR,
    DATA_ZIP,
    DATA_PACKED, /* by gzip or zstd, and no tar archive inside */
    DATA_ARROW,  /* an IPC file, or a stream of the same messages */
    DATA_PARQUET,
    DATA_MEDIA, /* neither these nor a picture: FFmpeg may know; see media.h */
} data_kind;

typedef struct data_facts {
    data_kind kind;
    uint64_t bytes;
    stk_npy npy;
    stk_wav_info wav;
    int64_t members, member_bytes; /* regular files of an archive, and what they hold, unpacked */
    stk_packing packing;           /* of a tar archive, or of DATA_PACKED */
    int64_t unpacked;              /* bytes of DATA_PACKED */
    column_facts columns;          /* of DATA_ARROW and DATA_PARQUET */
} data_facts;

/* By content.  DATA_NONE: a picture, or nothing, or it cannot be opened.  Otherwise, a failure says
 * what is broken, and the facts are those before it. */
stk_err data_look(const char *path, data_facts *out, stk_diag *diag);
void data_fini(data_facts *d);

/* "npy float32 (2, 3), C order": cut to `size`. */
void data_text(const data_facts *d, char *dst, size_t size);

/* The same as pieces of an object, with "format". */
void data_json(const data_facts *d, json *j);

#endif /* STK_CLI_DATA_H */

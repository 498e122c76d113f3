/* What the files of stk_zip share. */
#ifndef STK_CODEC_ZIP_H
#define STK_CODEC_ZIP_H

#include <stoker/zip.h>

#define STK_ZIP_LOCAL_SIZE 30 /* of a local header without its name */
/* Two bits at least stand for 258 bytes at most (RFC 1951, section 3.2.5). */
#define STK_ZIP_MOST_RATIO 1032

struct stk_zip {
    stk_zip_input in;
    uint64_t max_ratio;
    uint8_t *directory; /* where the names are */
    stk_zip_entry *entries;
    uint64_t *ends; /* of each entry: where the next one, or the directory, begins */
    size_t n;
};

/* "zip: NAME: what"; gives `err`. */
stk_err stk_zip_fail(const stk_zip_entry *e, stk_err err, stk_diag *diag, const char *what);

/* As stk_zip_unpack, of an entry that was checked: its sizes, method and CRC-32 are all it needs,
 * and its name for messages. */
STK_NODISCARD stk_err stk_zip_entry_unpack(const stk_zip_entry *e, const void *data, void *dst,
                                           stk_diag *diag);

#endif /* STK_CODEC_ZIP_H */

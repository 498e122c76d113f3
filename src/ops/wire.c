#include "ops/wire.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include <stoker/clip.h>

#include "base/failpoint.h"

#define MOST_ADDRESS ((uint64_t)INT64_MAX - STK_WIRE_ALIGN) /* of a file */

uint64_t stk_wire_sizes(void)
{
    return sizeof(stk_wire_request) | sizeof(stk_wire_reply) << 16 |
           (uint64_t)sizeof(stk_video_opts) << 32 | (uint64_t)sizeof(stk_audio_opts) << 48;
}

stk_err stk_wire_offset(const stk_wire_request *r, size_t n, uint64_t *out)
{
    uint64_t at = 0;
    for (size_t i = 0; i < n; i++) {
        if (r->sizes[i] == STK_WIRE_NO_BYTES) continue;
        if (r->sizes[i] > MOST_ADDRESS - at) return STK_ELIMIT;
        at += r->sizes[i];
        at = (at + STK_WIRE_ALIGN - 1) / STK_WIRE_ALIGN * STK_WIRE_ALIGN;
        if (at > MOST_ADDRESS) return STK_ELIMIT;
    }
    *out = at;
    return STK_OK;
}

/* What an op that decodes may say of a sample. */
static bool is_failure(stk_err err)
{
    switch (err) {
    case STK_ENOMEM:
    case STK_EINVAL:
    case STK_EIO:
    case STK_ECORRUPT:
    case STK_ETIMEOUT:
    case STK_ENOTFOUND:
    case STK_EUNSUPPORTED:
    case STK_ELIMIT: return true;
    default: return false;
    }
}

static stk_err check_array(const stk_wire_array *a, const stk_spec *known, uint64_t memory,
                           stk_diag *diag)
{
    size_t bytes;
    if (stk_spec_bytes(&a->spec, &bytes))
        return stk_diag_set(diag, STK_EINVAL, "an array of no shape");
    if (known->dtype != STK_DTYPE_NONE && !stk_spec_equal(&a->spec, known))
        return stk_diag_set(diag, STK_EINVAL, "an array of another shape than the op makes");
    if (a->offset > memory || bytes > memory - a->offset)
        return stk_diag_set(diag, STK_EINVAL, "an array of %zu bytes where there are %" PRIu64,
                            bytes, memory);
    return STK_OK;
}

stk_err stk_wire_check(stk_wire_reply *r, size_t size, uint64_t number,
                       const stk_wire_expected *expected, uint64_t memory, stk_diag *diag)
{
    if (size != sizeof(*r)) return stk_diag_set(diag, STK_EINVAL, "%zu bytes", size);
    if (r->number != number) return stk_diag_set(diag, STK_EINVAL, "an answer to another request");
    r->diag.text[sizeof(r->diag.text) - 1] = '\0';
    if (r->diag.part < 0 || r->diag.part >= STK_MAX_PARTS)
        return stk_diag_set(diag, STK_EINVAL, "part %d", r->diag.part);
    if (r->diag.err && !is_failure(r->diag.err))
        return stk_diag_set(diag, STK_EINVAL, "error %d", (int)r->diag.err);
    if (r->diag.err) return STK_OK;
    if (r->num_parts != expected->num_parts)
        return stk_diag_set(diag, STK_EINVAL, "%" PRIu64 " arrays", r->num_parts);
    for (size_t i = 0; i < expected->num_parts; i++) {
        if (!expected->taken[i]) continue;
        const stk_err err = check_array(&r->arrays[i], &expected->known[i], memory, diag);
        if (err) return err;
    }
    return STK_OK;
}

stk_err stk_wire_put(int memory, uint64_t offset, const void *src, size_t size, stk_diag *diag)
{
    for (size_t done = 0; done < size;) {
        const ssize_t n = stk_failpoint("wire.put") ? -1
                                                    : pwrite(memory, (const uint8_t *)src + done,
                                                             size - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == ENOSPC) errno = ENOMEM;
        if (n <= 0)
            return stk_diag_errno(diag, n < 0 ? errno : EIO, "no shared memory for %zu bytes",
                                  size);
        done += (size_t)n;
    }
    return STK_OK;
}

stk_err stk_wire_get(int memory, uint64_t offset, void *dst, size_t size, stk_diag *diag)
{
    for (size_t done = 0; done < size;) {
        const ssize_t n = stk_failpoint("wire.get") ? -1
                                                    : pread(memory, (uint8_t *)dst + done,
                                                            size - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return stk_diag_errno(diag, errno, "shared memory cannot be read");
        if (n == 0) return stk_diag_set(diag, STK_EIO, "shared memory ends before %zu bytes", size);
        done += (size_t)n;
    }
    return STK_OK;
}

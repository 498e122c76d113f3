#include <stoker/isolate.h>

#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "ops/helper.h"
#include "ops/parts.h"
#include "ops/recipe.h"
#include "ops/wire.h"

#define SECOND INT64_C(1000000000)
#define DEFAULT_TIMEOUT 60.0
#define MAX_TIMEOUT 1e6
#define START_NS (60 * SECOND) /* for loading FFmpeg from a slow disk */
#define DEATH_NS (10 * SECOND) /* from the end of the connection to that of the process */
#define LEAVE_NS SECOND        /* for an idle helper to end */
#define KEPT_BYTES (64 << 20)  /* of shared memory, between two samples */

typedef struct isolated {
    stk_op *inner;
    stk_buffer *hello;
    double timeout;
    char path[]; /* of the helper's program */
} isolated;

/* Of one thread. */
typedef struct seat {
    stk_helper *helper; /* NULL: none yet, or none any more */
    uint64_t number;    /* of requests to it */
    stk_wire_reply reply;
} seat;

/* What failed, in words; ends the helper. */
static stk_err give_up(seat *s, stk_err err, double timeout, stk_diag *diag)
{
    char text[64];
    stk_fate fate;
    stk_helper_end(&s->helper, err == STK_EEND ? DEATH_NS : 0, &fate);
    stk_fate_print(&fate, text, sizeof(text));
    if (err == STK_ECANCELLED) return stk_diag_set(diag, err, "the run was cancelled");
    if (err == STK_ETIMEOUT)
        return stk_diag_set(diag, STK_ECORRUPT,
                            "decoding took longer than %g s, and its process was ended: leave the "
                            "file out, or give it more time (isolate_timeout)",
                            timeout);
    if (fate.signal == SIGKILL)
        return stk_diag_set(diag, STK_ECORRUPT,
                            "the decoder's process died of SIGKILL: somebody killed it, or the "
                            "system for lack of memory; if it happens again leave the file out");
    return stk_diag_set(diag, STK_ECORRUPT,
                        "the decoder's process %s: the file has hit a fault of the decoder; leave "
                        "it out, or update what decodes it",
                        text);
}

/* It has not seen a file yet. */
static stk_err a_stranger(const isolated *p, seat *s, const char *why, stk_diag *diag)
{
    stk_helper_end(&s->helper, 0, NULL);
    return stk_diag_set(diag, STK_EIO,
                        "%s answered what cannot be (%s): it is another program, or of another "
                        "version of this library; see STOKER_DECODER",
                        p->path, why);
}

static stk_err nonsense(seat *s, const char *why, stk_diag *diag)
{
    stk_helper_end(&s->helper, 0, NULL);
    return stk_diag_set(diag, STK_ECORRUPT,
                        "the decoder's process answered what cannot be (%s): the file has hit a "
                        "fault of the decoder; leave it out, or update what decodes it",
                        why);
}

/* --- the helper --- */

static stk_err greet(const isolated *p, seat *s, int end, stk_diag *diag)
{
    size_t size;
    char text[64];
    stk_fate fate;
    stk_diag why;
    stk_err err =
        stk_helper_ask(s->helper, stk_buffer_data(p->hello), stk_buffer_size(p->hello), &s->reply,
                       sizeof(s->reply), &size, stk_clock_ns() + START_NS, end);
    if (!err && stk_wire_check(&s->reply, size, 0, &(stk_wire_expected){0}, 0, &why))
        return a_stranger(p, s, why.text, diag);
    if (!err && !s->reply.diag.err) return STK_OK;
    stk_helper_end(&s->helper, err == STK_EEND ? DEATH_NS : 0, &fate);
    if (!err)
        return stk_diag_set(diag, s->reply.diag.err, "%s: %.1000s", p->path, s->reply.diag.text);
    if (err == STK_ECANCELLED) return stk_diag_set(diag, err, "the run was cancelled");
    stk_fate_print(&fate, text, sizeof(text));
    return stk_diag_set(diag, STK_EIO, "%s %s before it was ready", p->path,
                        err == STK_ETIMEOUT ? "took too long" : text);
}

/* One that ended while nobody asked it anything costs no sample. */
static stk_err have_helper(const isolated *p, seat *s, int end, stk_diag *diag)
{
    if (s->helper && stk_helper_alive(s->helper)) return STK_OK;
    stk_helper_end(&s->helper, LEAVE_NS, NULL);
    s->number = 0;
    const stk_err err = stk_helper_start(p->path, &s->helper, diag);
    return err ? err : greet(p, s, end, diag);
}

/* --- a sample --- */

static stk_err put_bytes(const isolated *p, seat *s, const stk_item *item, stk_wire_request *r,
                         stk_diag *diag)
{
    for (size_t i = 0; i < r->num_parts; i++) {
        uint64_t offset;
        const stk_buffer *bytes = stk_op_takes(p->inner, i) ? stk_item_bytes(item, i) : NULL;
        r->sizes[i] = bytes ? stk_buffer_size(bytes) : STK_WIRE_NO_BYTES;
        if (!bytes) continue;
        stk_err err = stk_wire_offset(r, i, &offset);
        if (!err)
            err = stk_wire_put(stk_helper_memory(s->helper), offset, stk_buffer_data(bytes),
                               stk_buffer_size(bytes), diag);
        if (err) return err;
    }
    return STK_OK;
}

/* The arrays that come, as far as they are known beforehand. */
static void expect(const isolated *p, size_t num_parts, stk_wire_expected *out)
{
    const stk_op_class *cls = stk_op_get_class(p->inner);
    const void *params = stk_op_params(p->inner);
    size_t n = 0;
    *out = (stk_wire_expected){0};
    for (; n < num_parts; n++) {
        out->taken[n] = stk_op_takes(p->inner, n);
        if (out->taken[n] && cls->spec) cls->spec(params, n, &out->known[n]);
    }
    for (size_t i = 0; cls->adds && n < STK_MAX_PARTS && cls->adds(params, i, &out->known[n]); i++)
        out->taken[n++] = true;
    out->num_parts = n;
}

static stk_err take_array(seat *s, stk_item *item, size_t part, stk_diag *diag)
{
    const stk_wire_array *a = &s->reply.arrays[part];
    stk_tensor t;
    size_t bytes;
    stk_err err = stk_spec_bytes(&a->spec, &bytes);
    if (!err) err = stk_item_new_array(item, part, &a->spec, &t);
    if (err) return stk_diag_set(diag, err, "no place for the array: %s", stk_err_str(err));
    err = stk_wire_get(stk_helper_memory(s->helper), a->offset, t.data, bytes, diag);
    if (!err) stk_item_commit_array(item, part);
    return err;
}

/* What was written: a file may be made of any length, but honest ones have no hole of a page. */
static uint64_t memory_size(const seat *s)
{
    struct stat st;
    if (fstat(stk_helper_memory(s->helper), &st) || st.st_size < 0 || st.st_blocks < 0) return 0;
    const uint64_t size = (uint64_t)st.st_size, held = (uint64_t)st.st_blocks * 512;
    return size < held ? size : held;
}

/* Memory that a giant left is given back, whatever became of it. */
static void shrink(seat *s)
{
    if (s->helper && memory_size(s) > KEPT_BYTES && ftruncate(stk_helper_memory(s->helper), 0))
        stk_helper_end(&s->helper, LEAVE_NS, NULL); /* and its memory with it */
}

static stk_err take_reply(const isolated *p, seat *s, stk_item *item, const stk_wire_request *r,
                          size_t size, stk_diag *diag)
{
    stk_wire_expected e;
    stk_diag why;
    expect(p, r->num_parts, &e);
    if (stk_wire_check(&s->reply, size, r->number, &e, memory_size(s), &why))
        return nonsense(s, why.text, diag);
    stk_err err = s->reply.diag.err;
    if (err) {
        *diag = s->reply.diag;
        return err;
    }
    err = stk_item_set_num_parts(item, e.num_parts);
    if (err) return stk_diag_set(diag, err, "no place for %zu parts", e.num_parts);
    for (size_t i = 0; i < e.num_parts && !err; i++)
        if (e.taken[i]) err = take_array(s, item, i, diag);
    return err;
}

static stk_err ask(const isolated *p, seat *s, stk_item *item, stk_wire_request *r, int end,
                   stk_diag *diag)
{
    size_t size;
    stk_err err = put_bytes(p, s, item, r, diag);
    if (err) return err;
    const int64_t deadline = stk_clock_ns() + (int64_t)(p->timeout * (double)SECOND);
    err =
        stk_helper_ask(s->helper, r, sizeof(*r), &s->reply, sizeof(s->reply), &size, deadline, end);
    return err ? give_up(s, err, p->timeout, diag) : take_reply(p, s, item, r, size, diag);
}

static stk_err isolated_run(const void *params, void *state, stk_item *item, stk_diag *diag)
{
    const isolated *p = params;
    seat *s = state;
    int end;
    stk_err err = stk_item_cancel_fd(item, &end, diag);
    if (!err) err = have_helper(p, s, end, diag);
    if (err) return err;
    stk_wire_request r = {.number = ++s->number,
                          .origin = stk_item_origin(item),
                          .num_parts = stk_item_num_parts(item)};
    err = ask(p, s, item, &r, end, diag);
    shrink(s);
    return err;
}

/* --- the op --- */

static stk_err isolated_open(const void *params, void **state, stk_diag *diag)
{
    (void)params;
    *state = stk_alloc_zero(1, sizeof(seat));
    return *state ? STK_OK : stk_diag_set(diag, STK_ENOMEM, "no memory for an isolated op");
}

static void isolated_close(void *state)
{
    seat *s = state;
    if (s) stk_helper_end(&s->helper, LEAVE_NS, NULL);
    stk_free(s);
}

static uint32_t isolated_takes(const void *params)
{
    const stk_op *inner = ((const isolated *)params)->inner;
    const stk_op_class *cls = stk_op_get_class(inner);
    return cls->takes ? cls->takes(stk_op_params(inner)) : 0;
}

static void isolated_spec(const void *params, size_t part, stk_spec *out)
{
    const stk_op *inner = ((const isolated *)params)->inner;
    stk_op_get_class(inner)->spec(stk_op_params(inner), part, out);
}

static const char *isolated_adds(const void *params, size_t i, stk_spec *spec)
{
    const stk_op *inner = ((const isolated *)params)->inner;
    const stk_op_class *cls = stk_op_get_class(inner);
    return cls->adds ? cls->adds(stk_op_params(inner), i, spec) : NULL;
}

static void isolated_fini(void *params)
{
    isolated *p = params;
    stk_op_unref(&p->inner);
    stk_buffer_unref(&p->hello);
    stk_free(p);
}

static void isolated_print(const void *params, char *dst, size_t size)
{
    const isolated *p = params;
    stk_op_get_class(p->inner)->print(stk_op_params(p->inner), dst, size);
    const size_t used = strlen(dst);
    snprintf(dst + used, size - used, " in a process of its own, at most %g s", p->timeout);
}

/* The names are those of the ops: random numbers are keyed by them. */
#define CLASS(op)                                                                       \
    {                                                                                   \
        .name = op, .flags = STK_OP_ALONE, .in = STK_KIND_BYTES, .out = STK_KIND_ARRAY, \
        .open = isolated_open, .close = isolated_close, .run = isolated_run,            \
        .takes = isolated_takes, .spec = isolated_spec, .adds = isolated_adds,          \
        .fini = isolated_fini, .print = isolated_print                                  \
    }
static const stk_op_class classes[] = {CLASS("decode_image"), CLASS("decode_video"),
                                       CLASS("decode_audio"), CLASS("decode_wav")};
enum { NUM_CLASSES = sizeof(classes) / sizeof(*classes) };

static stk_err make_hello(const stk_op *op, stk_buffer **out, stk_diag *diag)
{
    stk_buffer *recipe;
    stk_err err = stk_recipe_write(op, &recipe, diag);
    if (err) return err;
    stk_wire_hello hello = {.build = STK_WIRE_BUILD, .sizes = stk_wire_sizes()};
    const size_t size = stk_buffer_size(recipe);
    err = size > STK_WIRE_MOST - sizeof(hello) ? STK_ELIMIT
                                               : stk_buffer_new(sizeof(hello) + size, out);
    if (!err) {
        memcpy(stk_buffer_writable(*out), &hello, sizeof(hello));
        memcpy(stk_buffer_writable(*out) + sizeof(hello), stk_buffer_data(recipe), size);
    }
    stk_buffer_unref(&recipe);
    return err ? stk_diag_set(diag, err, "%zu bytes of options: %s", size, stk_err_str(err)) : err;
}

/* Takes *op on success. */
static stk_op *make(stk_op **op, double timeout, stk_diag *diag)
{
    char path[PATH_MAX];
    stk_buffer *hello = NULL;
    size_t k = 0;
    if (stk_helper_find(path, sizeof(path), diag) || make_hello(*op, &hello, diag)) return NULL;
    while (k < NUM_CLASSES && strcmp(classes[k].name, stk_op_get_class(*op)->name)) k++;
    isolated *p = k < NUM_CLASSES ? stk_alloc(sizeof(*p) + strlen(path) + 1) : NULL;
    if (!p) {
        stk_buffer_unref(&hello);
        stk_diag_set(diag, STK_ENOMEM, "no memory for an isolated op");
        return NULL;
    }
    *p = (isolated){.inner = *op, .hello = hello, .timeout = timeout};
    memcpy(p->path, path, strlen(path) + 1);
    *op = NULL;
    stk_op *made = stk_op_new(&classes[k], p);
    if (!made) stk_diag_set(diag, STK_ENOMEM, "no memory for an isolated op");
    return made;
}

stk_op *stk_op_isolate(stk_op *op, const stk_isolate_opts *opts, stk_diag *diag)
{
    const double timeout = opts && opts->timeout != 0 ? opts->timeout : DEFAULT_TIMEOUT;
    stk_op *made = NULL;
    if (!op) return NULL;
    if (timeout > 0 && timeout <= MAX_TIMEOUT)
        made = make(&op, timeout, diag);
    else
        stk_diag_set(diag, STK_EINVAL, "a time limit of %g s: it must be above 0, up to %g",
                     timeout, MAX_TIMEOUT);
    stk_op_unref(&op);
    return made;
}

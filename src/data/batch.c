#include "data/batch.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

#define MAX_SOURCES STK_MAX_FIELDS /* of one batch: more than a merge has inputs */

typedef struct field {
    char *name;
    stk_tensor array;     /* data NULL for strings */
    stk_buffer *mem;      /* of the array, or of `strings` */
    const char **strings; /* their texts are borrowed from the sources, or behind them in `mem` */
} field;

typedef struct sample {
    int64_t id;
    uint8_t source; /* index in sources */
    bool substituted;
    char *key; /* in place of the source's; NULL: none */
} sample;

struct stk_batch {
    atomic_size_t refs;
    int64_t epoch, index;
    stk_slab_pool *pool;
    size_t size, capacity;
    sample *samples;
    size_t num_sources;
    stk_source *sources[MAX_SOURCES];
    size_t num_fields;
    field fields[STK_MAX_FIELDS];
};

bool stk_batch_has_always(const char *name)
{
    static const char *const names[] = {"id", "key", "epoch", "index", "size", "substituted"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (!strcmp(name, names[i])) return true;
    return false;
}

stk_err stk_batch_new(const stk_batch_params *params, stk_batch **out)
{
    stk_batch *b = *out = stk_alloc_zero(1, sizeof(*b));
    if (!b) return STK_ENOMEM;
    atomic_init(&b->refs, 1);
    b->epoch = params->epoch;
    b->index = params->index;
    b->capacity = params->capacity;
    b->samples = stk_alloc_zero(params->capacity, sizeof(*b->samples));
    if (!b->samples) {
        stk_batch_unref(out);
        return STK_ENOMEM;
    }
    b->pool = stk_slab_pool_ref(params->pool);
    return STK_OK;
}

stk_batch *stk_batch_ref(stk_batch *b)
{
    atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    return b;
}

void stk_batch_unref(stk_batch **pb)
{
    stk_batch *b = *pb;
    *pb = NULL;
    if (!b || atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1) return;
    for (size_t i = 0; i < b->num_fields; i++) {
        stk_buffer_unref(&b->fields[i].mem);
        stk_free(b->fields[i].name);
    }
    for (size_t i = 0; i < b->size; i++) stk_free(b->samples[i].key);
    for (size_t i = 0; i < b->num_sources; i++) stk_source_unref(&b->sources[i]);
    stk_slab_pool_unref(&b->pool);
    stk_free(b->samples);
    stk_free(b);
}

/* The index of `source` in b->sources, which keeps it alive. */
static stk_err source_index(stk_batch *b, stk_source *source, uint8_t *out)
{
    size_t i = 0;
    while (i < b->num_sources && b->sources[i] != source) i++;
    if (i == MAX_SOURCES) return STK_ELIMIT;
    if (i == b->num_sources) {
        b->sources[i] = source ? stk_source_ref(source) : NULL;
        b->num_sources++;
    }
    *out = (uint8_t)i;
    return STK_OK;
}

stk_err stk_batch_add_sample(stk_batch *b, stk_source *source, int64_t id, bool substituted)
{
    assert(b->size < b->capacity);
    sample *s = &b->samples[b->size];
    stk_err err = source_index(b, source, &s->source);
    if (err) return err;
    s->id = id;
    s->substituted = substituted;
    b->size++;
    return STK_OK;
}

stk_source *stk_batch_source(const stk_batch *b, size_t i)
{
    return b->sources[b->samples[i].source];
}

int64_t stk_batch_id(const stk_batch *b, size_t i)
{
    return b->samples[i].id;
}

bool stk_batch_substituted(const stk_batch *b, size_t i)
{
    return b->samples[i].substituted;
}

static stk_err no_memory(const char *name, stk_diag *diag)
{
    return stk_diag_set(diag, STK_ENOMEM, "field \"%s\": no memory", name);
}

static stk_err add_field(stk_batch *b, const char *name, field **out, stk_diag *diag)
{
    *out = NULL;
    if (b->num_fields == STK_MAX_FIELDS)
        return stk_diag_set(diag, STK_ELIMIT, "field \"%s\": a batch has %d fields at most", name,
                            STK_MAX_FIELDS);
    const size_t size = strlen(name) + 1;
    field *f = &b->fields[b->num_fields];
    if (!(f->name = stk_alloc(size))) return no_memory(name, diag);
    memcpy(f->name, name, size);
    b->num_fields++;
    *out = f;
    return STK_OK;
}

static void set_array(field *f, const stk_spec *spec, stk_buffer **mem)
{
    /* The batch is the first owner: nobody else can be reading. */
    f->array = stk_tensor_over((void *)(uintptr_t)stk_buffer_data(*mem), spec);
    f->mem = *mem;
    *mem = NULL;
}

stk_err stk_batch_add_array(stk_batch *b, const char *name, const stk_spec *spec, stk_buffer **mem,
                            stk_diag *diag)
{
    field *f;
    stk_err err = add_field(b, name, &f, diag);
    if (!err) set_array(f, spec, mem);
    return err;
}

/* A table of the strings, and behind it their texts where they are `copied`. */
static stk_err make_strings(const stk_batch *b, const char *const *strings, bool copied,
                            stk_buffer **out)
{
    size_t bytes = b->size * sizeof(*strings);
    for (size_t i = 0; copied && i < b->size; i++) bytes += strlen(strings[i]) + 1;
    stk_err err = stk_buffer_new(bytes ? bytes : 1, out);
    if (err) return err;
    const char **table = (const char **)(void *)stk_buffer_writable(*out);
    char *text = (char *)(table + b->size);
    for (size_t i = 0; i < b->size; i++) {
        table[i] = copied ? text : strings[i];
        if (!copied) continue;
        const size_t size = strlen(strings[i]) + 1;
        memcpy(text, strings[i], size);
        text += size;
    }
    return STK_OK;
}

/* Takes *mem. */
static void set_strings(field *f, stk_buffer **mem)
{
    f->mem = *mem;
    f->strings = (const char **)(void *)stk_buffer_writable(*mem);
    *mem = NULL;
}

static stk_err add_strings(stk_batch *b, const char *name, const char *const *strings, bool copied,
                           stk_diag *diag)
{
    stk_buffer *mem;
    field *f;
    stk_err err = make_strings(b, strings, copied, &mem);
    err = err ? no_memory(name, diag) : add_field(b, name, &f, diag);
    if (!err) set_strings(f, &mem);
    stk_buffer_unref(&mem);
    return err;
}

stk_err stk_batch_add_strings(stk_batch *b, const char *name, const char *const *strings,
                              stk_diag *diag)
{
    return add_strings(b, name, strings, false, diag);
}

stk_err stk_batch_copy_strings(stk_batch *b, const char *name, const char *const *strings,
                               stk_diag *diag)
{
    return add_strings(b, name, strings, true, diag);
}

stk_err stk_batch_set_key(stk_batch *b, size_t i, const char *key)
{
    const size_t size = strlen(key) + 1;
    char *copy = stk_alloc(size);
    if (!copy) return STK_ENOMEM;
    stk_free(b->samples[i].key);
    b->samples[i].key = memcpy(copy, key, size);
    return STK_OK;
}

const char *stk_batch_own_key(const stk_batch *b, size_t i)
{
    return b->samples[i].key;
}

static stk_err copy_into(const stk_batch *from, stk_batch *to)
{
    stk_err err = STK_OK;
    for (size_t i = 0; i < from->size && !err; i++) {
        const sample *s = &from->samples[i];
        err = stk_batch_add_sample(to, from->sources[s->source], s->id, s->substituted);
        if (!err && s->key) err = stk_batch_set_key(to, i, s->key);
    }
    for (size_t i = 0; i < from->num_fields && !err; i++) {
        field *f;
        err = add_field(to, from->fields[i].name, &f, NULL);
        if (err) break;
        f->array = from->fields[i].array;
        f->strings = from->fields[i].strings;
        f->mem = stk_buffer_ref(from->fields[i].mem);
    }
    return err;
}

stk_err stk_batch_own(stk_batch **pb)
{
    stk_batch *b = *pb, *copy;
    /* Acquire: what others did with the batch before they gave it up is over. */
    if (atomic_load_explicit(&b->refs, memory_order_acquire) == 1) return STK_OK;
    const stk_batch_params params = {
        .capacity = b->capacity, .epoch = b->epoch, .index = b->index, .pool = b->pool};
    stk_err err = stk_batch_new(&params, &copy);
    if (err) return err;
    err = copy_into(b, copy);
    if (err) {
        stk_batch_unref(&copy);
        return err;
    }
    stk_batch_unref(pb);
    *pb = copy;
    return STK_OK;
}

stk_err stk_batch_replace_array(stk_batch *b, size_t i, const stk_spec *spec, stk_buffer **mem)
{
    if (i >= b->num_fields || b->fields[i].strings) return STK_EINVAL;
    stk_buffer_unref(&b->fields[i].mem);
    set_array(&b->fields[i], spec, mem);
    return STK_OK;
}

stk_err stk_batch_replace_strings(stk_batch *b, size_t i, const char *const *strings)
{
    stk_buffer *mem;
    if (i >= b->num_fields || !b->fields[i].strings) return STK_EINVAL;
    const stk_err err = make_strings(b, strings, true, &mem);
    if (err) return err;
    stk_buffer_unref(&b->fields[i].mem);
    set_strings(&b->fields[i], &mem);
    return STK_OK;
}

uint8_t *stk_batch_writable(stk_batch *b, size_t i)
{
    if (i >= b->num_fields || b->fields[i].strings || !b->fields[i].mem) return NULL;
    return stk_buffer_writable(b->fields[i].mem) ? b->fields[i].array.data : NULL;
}

stk_slab_pool *stk_batch_pool(const stk_batch *b)
{
    return b->pool;
}

size_t stk_batch_size(const stk_batch *b)
{
    return b->size;
}

int64_t stk_batch_epoch(const stk_batch *b)
{
    return b->epoch;
}

int64_t stk_batch_index(const stk_batch *b)
{
    return b->index;
}

size_t stk_batch_num_fields(const stk_batch *b)
{
    return b->num_fields;
}

const char *stk_batch_field_name(const stk_batch *b, size_t i)
{
    return i < b->num_fields ? b->fields[i].name : NULL;
}

bool stk_batch_field_is_strings(const stk_batch *b, size_t i)
{
    return i < b->num_fields && b->fields[i].strings;
}

int stk_batch_find(const stk_batch *b, const char *name)
{
    for (size_t i = 0; i < b->num_fields; i++)
        if (!strcmp(b->fields[i].name, name)) return (int)i;
    return -1;
}

stk_err stk_batch_array(const stk_batch *b, size_t i, stk_tensor *out, stk_buffer **mem)
{
    if (mem) *mem = NULL;
    if (i >= b->num_fields || b->fields[i].strings) return STK_EINVAL;
    *out = b->fields[i].array;
    if (mem) *mem = stk_buffer_ref(b->fields[i].mem);
    return STK_OK;
}

const char *stk_batch_string(const stk_batch *b, size_t i, size_t n)
{
    return stk_batch_field_is_strings(b, i) && n < b->size ? b->fields[i].strings[n] : NULL;
}

stk_err stk_batch_key(const stk_batch *b, size_t i, char *dst, size_t size)
{
    if (i >= b->size) return STK_EINVAL;
    const char *own = b->samples[i].key;
    if (own) return (size_t)snprintf(dst, size, "%s", own) < size ? STK_OK : STK_ELIMIT;
    stk_source *s = stk_batch_source(b, i);
    const stk_source_class *cls = s ? stk_source_get_class(s) : NULL;
    if (!cls || !cls->key) return STK_ENOTFOUND;
    return cls->key(stk_source_params(s), b->samples[i].id, 0, dst, size);
}

stk_err stk_batch_make(const stk_batch_sample *samples, size_t n, int64_t epoch, int64_t index,
                       stk_batch **out)
{
    *out = NULL;
    stk_slab_pool *pool;
    stk_err err = stk_slab_pool_new(0, &pool);
    if (err) return err;
    const stk_batch_params params = {
        .capacity = n ? n : 1, .epoch = epoch, .index = index, .pool = pool};
    err = stk_batch_new(&params, out);
    stk_slab_pool_unref(&pool);
    for (size_t i = 0; i < n && !err; i++) {
        err = stk_batch_add_sample(*out, NULL, samples[i].id, samples[i].substituted);
        if (!err && samples[i].key) err = stk_batch_set_key(*out, i, samples[i].key);
    }
    if (err) stk_batch_unref(out);
    return err;
}

stk_err stk_batch_put_array(stk_batch *b, const char *name, const stk_spec *spec, stk_buffer **mem)
{
    size_t bytes;
    stk_err err = stk_spec_bytes(spec, &bytes);
    if (err) return err;
    if (spec->ndim < 1 || (size_t)spec->shape[0] != b->size || bytes > stk_buffer_size(*mem) ||
        stk_batch_find(b, name) >= 0)
        return STK_EINVAL;
    return stk_batch_add_array(b, name, spec, mem, NULL);
}

stk_err stk_batch_put_strings(stk_batch *b, const char *name, const char *const *strings)
{
    return stk_batch_find(b, name) >= 0 ? STK_EINVAL
                                        : stk_batch_copy_strings(b, name, strings, NULL);
}

/* Samples that are entries of zip archives. */
#include <stoker/zip.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "source/shards.h"

/* An open archive. */
struct archive {
    const char *path;
    int fd;
    stk_zip *zip;
};

static stk_err read_at(void *ctx, uint64_t offset, void *dst, size_t size, stk_diag *diag)
{
    const struct archive *a = ctx;
    return stk_file_read_at(a->fd, a->path, offset, dst, size, diag);
}

static stk_err read_entry(void *ctx, const stk_shard_member *m, void *dst, stk_diag *diag)
{
    const struct archive *a = ctx;
    return stk_zip_read(a->zip, m->index, dst, diag);
}

/* An entry that cannot be read, as it is encrypted say, fails alone. */
static stk_err add_entry(struct archive *a, size_t i, stk_shard *s, const stk_shard_spec *spec,
                         stk_diag *diag)
{
    const stk_zip_entry *e = stk_zip_get(a->zip, i);
    uint64_t at = 0;
    stk_err err = stk_zip_locate(a->zip, i, &at, diag);
    if (err == STK_ENOMEM) return err;
    const stk_shard_member member = {
        .name = e->name,
        .name_size = e->name_size,
        .at = {.offset = at,
               .size = e->compressed,
               .unpacked = e->size,
               .crc = e->crc,
               .form = e->method == STK_ZIP_STORED ? STK_PIECE_CHECKED : STK_PIECE_DEFLATED},
        .index = i,
        .flaw = err ? diag : NULL,
    };
    return stk_shard_add(s, spec, &member, read_entry, a);
}

/* An entry on its way to its sample. */
struct place {
    uint64_t group; /* a hash of the sample's name; then the first entry that has that name */
    const char *name;
    size_t stem; /* of it, the sample's name */
    size_t index;
};

static int by_index(const struct place *x, const struct place *y)
{
    return (x->index > y->index) - (x->index < y->index);
}

static int by_name(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->group != y->group) return x->group < y->group ? -1 : 1;
    if (x->stem != y->stem) return x->stem < y->stem ? -1 : 1;
    const int order = memcmp(x->name, y->name, x->stem);
    return order ? order : by_index(x, y);
}

static int by_group(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->group != y->group) return x->group < y->group ? -1 : 1;
    return by_index(x, y);
}

static uint64_t hash(const char *name, size_t size)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (size_t i = 0; i < size; i++) h = (h ^ (uint8_t)name[i]) * UINT64_C(0x100000001b3);
    return h;
}

static bool is_same(const struct place *x, const struct place *y)
{
    return x->group == y->group && x->stem == y->stem && !memcmp(x->name, y->name, x->stem);
}

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* False: those of each sample follow each other.  True: perhaps not, as hashes are equal. */
static stk_err look_for_scattered(const struct place *p, size_t n, bool *scattered)
{
    uint64_t *groups = stk_alloc(n * sizeof(*groups));
    size_t num = 0;
    if (!groups) return STK_ENOMEM;
    for (size_t i = 0; i < n; i++)
        if (i == 0 || !is_same(&p[i - 1], &p[i])) groups[num++] = p[i].group;
    qsort(groups, num, sizeof(*groups), by_value);
    *scattered = false;
    for (size_t i = 1; i < num; i++) *scattered |= groups[i - 1] == groups[i];
    stk_free(groups);
    return STK_OK;
}

/* Puts the entries of each sample together, in the order of their first ones. */
static void gather(struct place *p, size_t n)
{
    qsort(p, n, sizeof(*p), by_name);
    for (size_t i = 0, next; i < n; i = next) {
        const uint64_t group = p[i].index;
        for (next = i + 1; next < n && is_same(&p[i], &p[next]); next++) p[next].group = group;
        p[i].group = group;
    }
    qsort(p, n, sizeof(*p), by_group);
}

/* Gives the entries that have a sample. */
static stk_err find_places(const stk_zip *zip, struct place **out, size_t *num)
{
    const size_t count = stk_zip_count(zip);
    struct place *p = *out = stk_alloc_zero(count ? count : 1, sizeof(*p));
    if (!p) return STK_ENOMEM;
    for (size_t i = 0; i < count; i++) {
        const stk_zip_entry *e = stk_zip_get(zip, i);
        const size_t stem = e->kind == STK_ZIP_FILE ? stk_shard_stem(e->name, e->name_size) : 0;
        if (stem) p[(*num)++] = (struct place){hash(e->name, stem), e->name, stem, i};
    }
    bool scattered = false;
    stk_err err = *num ? look_for_scattered(p, *num, &scattered) : STK_OK;
    if (!err && scattered) gather(p, *num);
    return err;
}

static stk_err list(stk_shard *s, const stk_shard_spec *spec, const atomic_bool *stop,
                    stk_diag *diag)
{
    struct archive a = {.path = s->path};
    struct place *places = NULL;
    uint64_t size;
    size_t n = 0;
    stk_err err = stk_file_open(s->path, &a.fd, &size, diag);
    if (err) return err;
    const stk_zip_input in = {.size = size, .read = read_at, .ctx = &a};
    err = stk_zip_new(&in, NULL, &a.zip, diag);
    if (!err) err = find_places(a.zip, &places, &n);
    for (size_t i = 0; !err && i < n; i++) {
        if (atomic_load_explicit(stop, memory_order_relaxed))
            err = STK_ECANCELLED;
        else
            err = add_entry(&a, places[i].index, s, spec, diag);
    }
    if (err) stk_shard_name(s, diag);
    stk_free(places);
    stk_zip_free(&a.zip);
    close(a.fd);
    return err;
}

stk_source *stk_zip_source(const stk_shards_opts *opts, stk_diag *diag)
{
    return stk_shards_source("Zip", list, opts, diag);
}

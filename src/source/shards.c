#include "source/shards.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "data/batch.h"
#include "exec/pool.h"
#include "source/order.h"
#include "source/progress.h"

#define AHEAD 4096    /* samples that are listed ahead of readers who need no total */
#define MAX_THREADS 8 /* that list: as many disks and networks answer at once */

struct shards {
    stk_indexed indexed; /* first: params of an indexed source; these never change */
    stk_source_class cls;
    const char *name;         /* of the class */
    size_t samples_per_shard; /* 0: not known */
    stk_shards_list_fn *list;
    stk_shard_spec spec;
    stk_shard_part parts[STK_MAX_PARTS];
    const char *part_names[STK_MAX_PARTS];
    stk_shard_column *field_columns;
    stk_column *columns;
    char *strings; /* of all of these, and the paths */
    size_t num;
    stk_shard *shards; /* each changes until it is released */

    atomic_size_t released; /* changed under the lock: shards that can be read without */
    atomic_size_t memory;
    stk_progress p; /* its lock guards what follows */
    size_t taken;   /* shards that a thread lists, or has listed */
    size_t num_listed, num_whole;
    int64_t in_whole; /* samples in the latter */
    bool needs_all;   /* what is lost counts as much as they have: all are listed */
    int num_threads, idle;
    stk_thread threads[MAX_THREADS];
};

static struct shards *of_progress(stk_progress *p)
{
    return (struct shards *)((char *)p - offsetof(struct shards, p));
}

/* --- listing --- */

static bool may_take_locked(const struct shards *x) STK_REQUIRES(x->p.lock)
{
    if (x->taken == x->num || stk_progress_stopped(&x->p)) return false;
    if (x->p.demand == INT64_MAX || x->needs_all) return true;
    const size_t released = atomic_load_explicit(&x->released, memory_order_relaxed);
    return x->p.available < x->p.demand + AHEAD && x->taken < released + MAX_THREADS;
}

/* What the last sample of a broken shard counts as; 0: not known before all are listed. */
static size_t count_lost_locked(const struct shards *x, const stk_shard *s) STK_REQUIRES(x->p.lock)
{
    const size_t found = s->num - 1;
    if (x->samples_per_shard)
        return x->samples_per_shard > found ? x->samples_per_shard - found : 1;
    if (found) return 1;
    if (x->num_listed < x->num) return 0;
    const size_t n = x->num_whole ? x->num_whole : 1;
    const size_t mean = ((size_t)x->in_whole + n / 2) / n;
    return mean ? mean : 1;
}

static int64_t num_places(const stk_shard *s)
{
    return (int64_t)(s->num + s->lost - (s->lost > 0));
}

static void count_locked(struct shards *x, stk_shard *s) STK_REQUIRES(x->p.lock)
{
    s->listed = true;
    x->num_listed++;
    if (s->broken) return;
    x->num_whole++;
    x->in_whole += (int64_t)s->num;
}

static void release_locked(struct shards *x) STK_REQUIRES(x->p.lock)
{
    size_t i = atomic_load_explicit(&x->released, memory_order_relaxed);
    for (; i < x->num && x->shards[i].listed; i++) {
        stk_shard *s = &x->shards[i];
        if (s->broken) {
            s->lost = count_lost_locked(x, s);
            x->needs_all = !s->lost;
            if (x->needs_all) return;
        }
        s->first = x->p.available;
        x->p.available += num_places(s);
        atomic_fetch_add_explicit(&x->memory, stk_shard_memory(s, &x->spec), memory_order_relaxed);
        atomic_store_explicit(&x->released, i + 1, memory_order_release);
    }
    if (i < x->num) return;
    if (x->p.available > 0) {
        stk_progress_complete_locked(&x->p);
        return;
    }
    stk_diag diag;
    stk_diag_set(&diag, STK_EINVAL,
                 "%s: no samples in %zu shard%s: no member ends in .%s; check the paths, and the "
                 "endings",
                 x->name, x->num, x->num > 1 ? "s" : "", x->spec.parts[0].endings);
    stk_progress_fail_locked(&x->p, STK_EINVAL, &diag);
}

static stk_err list_one(struct shards *x, stk_shard *s, stk_diag *diag)
{
    stk_err err = x->list(s, &x->spec, &x->p.stop, diag);
    if (err == STK_ENOMEM || err == STK_ECANCELLED) return err;
    diag->err = err;
    return stk_shard_end(s, &x->spec, err ? diag : NULL);
}

static void help_locked(stk_progress *p);

static void *list_shards(void *arg)
{
    struct shards *x = arg;
    stk_mutex_lock(&x->p.lock);
    while (x->taken < x->num && !stk_progress_stopped(&x->p)) {
        if (!may_take_locked(x)) {
            x->idle++;
            (void)stk_cond_wait(&x->p.work, &x->p.lock, STK_NEVER);
            x->idle--;
            continue;
        }
        stk_shard *s = &x->shards[x->taken++];
        help_locked(&x->p);
        stk_mutex_unlock(&x->p.lock);
        stk_diag diag = {0};
        stk_err err = list_one(x, s, &diag);
        stk_mutex_lock(&x->p.lock);
        count_locked(x, s);
        if (err)
            stk_progress_fail_locked(&x->p, err, NULL);
        else
            release_locked(x);
        stk_progress_wake_locked(&x->p);
        stk_cond_broadcast(&x->p.work); /* others may be allowed to go on, or to end */
    }
    stk_mutex_unlock(&x->p.lock);
    return NULL;
}

static stk_err start_thread_locked(struct shards *x) STK_REQUIRES(x->p.lock)
{
    stk_err err = stk_thread_start(&x->threads[x->num_threads], "stk-list", list_shards, x);
    if (!err) x->num_threads++;
    return err;
}

/* Holds p's lock, which the analysis does not know as that of the shards. */
static void help_locked(stk_progress *p) STK_TSA(no_thread_safety_analysis)
{
    struct shards *x = of_progress(p);
    if (!may_take_locked(x)) return;
    if (x->idle > 0)
        stk_cond_signal(&p->work);
    else if (x->num_threads < MAX_THREADS)
        (void)start_thread_locked(x); /* those that run do without */
}

static stk_err start(stk_indexed *i, stk_diag *diag)
{
    struct shards *x = (struct shards *)i;
    stk_err err = STK_OK;
    if (stk_progress_is_complete(&x->p)) return STK_OK;
    if (stk_progress_is_forked(&x->p)) return stk_progress_refuse_child(&x->p, diag);
    stk_mutex_lock(&x->p.lock);
    if (!atomic_load_explicit(&x->p.started, memory_order_relaxed)) {
        x->p.generation = stk_fork_generation();
        if (start_thread_locked(x))
            err = stk_diag_set(diag, STK_ELIMIT, "%s: the system refused a thread to list shards",
                               x->name);
        else
            atomic_store_explicit(&x->p.started, true, memory_order_release);
    }
    stk_mutex_unlock(&x->p.lock);
    return err;
}

static stk_err look(stk_indexed *i, int64_t wanted, stk_watcher *w, stk_look *out, stk_diag *diag)
{
    return stk_progress_look(&((struct shards *)i)->p, wanted, w, out, diag);
}

static void forget(stk_indexed *i, stk_watcher *w)
{
    stk_progress_forget(&((struct shards *)i)->p, w);
}

static stk_err wait_for_all(stk_indexed *i, int64_t *count, stk_diag *diag)
{
    return stk_progress_wait(&((struct shards *)i)->p, NULL, count, diag);
}

static size_t memory(stk_indexed *i)
{
    struct shards *x = (struct shards *)i;
    return sizeof(*x) + atomic_load_explicit(&x->memory, memory_order_relaxed);
}

static const stk_indexed_ops ops = {
    .start = start,
    .look = look,
    .forget = forget,
    .wait = wait_for_all,
    .memory = memory,
};

/* --- samples --- */

/* The shard of sample `id`, and its number in it; NULL: not released yet. */
static const stk_shard *find(const struct shards *x, int64_t id, size_t *k)
{
    size_t low = 0, high = atomic_load_explicit(&x->released, memory_order_acquire);
    while (low < high) { /* the first one that ends behind it */
        const size_t middle = low + (high - low) / 2;
        const stk_shard *s = &x->shards[middle];
        if (id < s->first + num_places(s))
            high = middle;
        else
            low = middle + 1;
    }
    const bool found = id >= 0 && low < atomic_load_explicit(&x->released, memory_order_acquire);
    if (!found) return NULL;
    const stk_shard *s = &x->shards[low];
    *k = (size_t)(id - s->first);
    if (*k >= s->num) *k = s->num - 1;
    return s;
}

static const stk_column *columns(void *params, size_t *n)
{
    const struct shards *x = params;
    *n = x->spec.num_columns;
    return x->columns;
}

static stk_err column(void *params, size_t c, int64_t id, void *dst)
{
    const struct shards *x = params;
    size_t k;
    const stk_shard *s = find(x, id, &k);
    if (c >= x->spec.num_columns) return STK_EINVAL;
    if (!s) return STK_ENOTFOUND;
    const int64_t value = s->values[k * x->spec.num_columns + c];
    if (x->spec.columns[c].is_text)
        *(const char **)dst = s->pool + value;
    else
        memcpy(dst, &value, sizeof(value));
    return STK_OK;
}

static stk_err key(void *params, int64_t id, size_t part, char *dst, size_t size)
{
    const struct shards *x = params;
    size_t k;
    const stk_shard *s = find(x, id, &k);
    if (!s || part >= x->spec.num_parts) return STK_ENOTFOUND;
    const char *name = s->pool + s->samples[k].name;
    const char *ending = s->pool + s->endings[k * x->spec.num_parts + part];
    const int n = snprintf(dst, size, "%s%s%s%s%s", s->path, *name ? "/" : "", name,
                           *ending ? "." : "", ending);
    return n >= 0 && (size_t)n < size ? STK_OK : STK_ELIMIT;
}

static stk_err piece(void *params, int64_t id, size_t part, stk_piece *out, stk_diag *diag)
{
    const struct shards *x = params;
    size_t k;
    const stk_shard *s = find(x, id, &k);
    if (!s || part >= x->spec.num_parts)
        return stk_diag_set(diag, STK_EINVAL, "%s: there is no such sample", x->name);
    const stk_shard_sample *sample = &s->samples[k];
    if (sample->flaw.text) {
        char lost[64] = "";
        if (s->lost && k == s->num - 1)
            snprintf(lost, sizeof(lost), " (counts as %zu sample%s)", s->lost,
                     s->lost > 1 ? "s" : "");
        stk_diag_set(diag, sample->flaw.err, "%s%s", s->pool + sample->flaw.text, lost);
        if (diag) diag->os_error = sample->flaw.os_error;
        return sample->flaw.err;
    }
    const stk_shard_extent *e = &s->extents[k * x->spec.num_parts + part];
    *out = (stk_piece){s->path, e->offset, e->size, e->form, e->unpacked, e->crc};
    return STK_OK;
}

static const char *const *parts(void *params, size_t *n)
{
    const struct shards *x = params;
    *n = x->spec.num_parts;
    return (const char *const *)x->part_names;
}

static void print(void *params, char *dst, size_t size)
{
    const struct shards *x = params;
    char order[128], count[64] = "not listed yet";
    stk_indexed_print(&x->indexed, order, sizeof(order));
    stk_look found;
    const stk_err err = stk_progress_look((stk_progress *)&x->p, 0, NULL, &found, NULL);
    if (!err && (found.complete || found.available))
        snprintf(count, sizeof(count), "%lld samples%s", (long long)found.available,
                 found.complete ? "" : " so far");
    else if (err)
        snprintf(count, sizeof(count), "cannot be listed");
    snprintf(dst, size, "%s(%zu shard%s, %s%s)", x->name, x->num, x->num > 1 ? "s" : "", count,
             order);
}

/* --- life --- */

static void fini(void *params)
{
    struct shards *x = params;
    if (stk_progress_is_forked(&x->p)) return; /* the parent's threads may be in the middle */
    if (atomic_load_explicit(&x->p.started, memory_order_acquire)) {
        stk_progress_stop(&x->p);
        /* From the first to the last: a thread starts others only before it ends. */
        for (int i = 0; i < MAX_THREADS; i++) stk_thread_join(&x->threads[i]);
    }
    stk_progress_fini(&x->p);
    for (size_t i = 0; x->shards && i < x->num; i++) stk_shard_fini(&x->shards[i]);
    stk_free(x->shards);
    stk_free(x->field_columns);
    stk_free(x->columns);
    stk_free(x->strings);
    stk_free(x);
}

static const char *copy(char **at, const char *text)
{
    char *const begin = *at;
    *at = stpcpy(begin, text) + 1;
    return begin;
}

static const char *name_of(const stk_shard_part *p)
{
    return p->name ? p->name : "image";
}

static const char *endings_of(const stk_shard_part *p)
{
    return p->endings ? p->endings : "jpg|jpeg|jpe|png|webp|avif|bmp|gif|tif|tiff";
}

static size_t bytes_of_strings(const stk_shards_opts *o, const stk_shard_part *parts, size_t n)
{
    size_t bytes = 0;
    for (size_t i = 0; i < o->num_shards; i++) bytes += strlen(o->paths[i]) + 1;
    for (size_t i = 0; i < n; i++)
        bytes += strlen(name_of(&parts[i])) + strlen(endings_of(&parts[i])) + 2;
    for (size_t i = 0; i < o->num_columns; i++)
        bytes += strlen(o->columns[i].name) + strlen(o->columns[i].endings) + 2;
    return bytes;
}

static stk_err copy_opts(struct shards *x, const stk_shards_opts *o)
{
    const stk_shard_part one = {0};
    const stk_shard_part *const parts = o->num_parts ? o->parts : &one;
    const size_t num_parts = o->num_parts ? o->num_parts : 1;
    x->strings = stk_alloc(bytes_of_strings(o, parts, num_parts));
    x->shards = stk_alloc_zero(o->num_shards, sizeof(*x->shards));
    if (!x->strings || !x->shards) return STK_ENOMEM;
    if (o->num_columns) {
        x->field_columns = stk_alloc_zero(o->num_columns, sizeof(*x->field_columns));
        x->columns = stk_alloc_zero(o->num_columns, sizeof(*x->columns));
        if (!x->field_columns || !x->columns) return STK_ENOMEM;
    }
    char *at = x->strings;
    x->num = o->num_shards;
    for (size_t i = 0; i < x->num; i++) x->shards[i].path = copy(&at, o->paths[i]);
    for (size_t i = 0; i < num_parts; i++) {
        x->part_names[i] = copy(&at, name_of(&parts[i]));
        x->parts[i] = (stk_shard_part){x->part_names[i], copy(&at, endings_of(&parts[i]))};
    }
    for (size_t i = 0; i < o->num_columns; i++) {
        const stk_shard_column *c = &o->columns[i];
        x->columns[i].name = copy(&at, c->name);
        x->columns[i].spec.dtype = c->is_text ? STK_DTYPE_NONE : STK_INT64;
        x->field_columns[i] =
            (stk_shard_column){x->columns[i].name, copy(&at, c->endings), c->is_text};
    }
    x->samples_per_shard = (size_t)o->samples_per_shard;
    x->spec = (stk_shard_spec){num_parts, o->num_columns, x->parts, x->field_columns};
    return STK_OK;
}

static const char *field_name(const stk_shards_opts *o, size_t i)
{
    return i < o->num_parts ? name_of(&o->parts[i]) : o->columns[i - o->num_parts].name;
}

static stk_err check_fields(const char *name, const stk_shards_opts *o, stk_diag *diag)
{
    for (size_t i = 0; i < o->num_parts + o->num_columns; i++) {
        const char *field = field_name(o, i);
        const char *endings =
            i < o->num_parts ? endings_of(&o->parts[i]) : o->columns[i - o->num_parts].endings;
        if (!field || !field[0] || stk_batch_has_always(field))
            return stk_diag_set(diag, STK_EINVAL, "%s: a field may not be called \"%s\"", name,
                                field ? field : "");
        if (!endings || !endings[0])
            return stk_diag_set(diag, STK_EINVAL,
                                "%s: %s has no ending: give that of its members' names", name,
                                field);
        for (size_t k = 0; k < i; k++)
            if (!strcmp(field_name(o, k), field))
                return stk_diag_set(diag, STK_EINVAL, "%s: two fields are called \"%s\"", name,
                                    field);
    }
    return STK_OK;
}

static stk_err check(const char *name, const stk_shards_opts *o, stk_diag *diag)
{
    if (!o || !o->num_shards || !o->paths)
        return stk_diag_set(diag, STK_EINVAL, "%s: there are no shards", name);
    for (size_t i = 0; i < o->num_shards; i++)
        if (!o->paths[i] || !o->paths[i][0])
            return stk_diag_set(diag, STK_EINVAL, "%s: the path of shard %zu is empty", name, i);
    if (o->num_parts > STK_MAX_PARTS || (o->num_parts && !o->parts))
        return stk_diag_set(diag, STK_EINVAL, "%s: %zu parts: a sample has %d at most", name,
                            o->num_parts, STK_MAX_PARTS);
    if (o->num_columns > STK_SHARD_MAX_COLUMNS || (o->num_columns && !o->columns))
        return stk_diag_set(diag, STK_EINVAL, "%s: %zu columns: a sample has %d at most", name,
                            o->num_columns, STK_SHARD_MAX_COLUMNS);
    if (o->samples_per_shard < 0 || o->samples_per_shard > INT32_MAX)
        return stk_diag_set(diag, STK_EINVAL, "%s: samples_per_shard must be 0 to %d, not %lld",
                            name, INT32_MAX, (long long)o->samples_per_shard);
    return check_fields(name, o, diag);
}

static void complete_class(stk_source_class *cls, const char *name)
{
    *cls = (stk_source_class){
        .name = name,
        .seed = stk_indexed_seed,
        .batch_seed = stk_indexed_batch_seed,
        .open = stk_indexed_open,
        .close = stk_indexed_close,
        .next = stk_indexed_next,
        .substitute = stk_indexed_substitute,
        .length = stk_indexed_length,
        .epochs = stk_indexed_epochs,
        .columns = columns,
        .column = column,
        .key = key,
        .piece = piece,
        .parts = parts,
        .fini = fini,
        .print = print,
        .reproducible = true,
    };
}

stk_source *stk_shards_source(const char *name, stk_shards_list_fn *list,
                              const stk_shards_opts *opts, stk_diag *diag)
{
    stk_order_opts order;
    if (check(name, opts, diag) || stk_order_check(&opts->order, &order, diag)) return NULL;
    struct shards *x = stk_alloc_zero(1, sizeof(*x));
    stk_source *s = NULL;
    if (!x) goto failed;
    x->name = name;
    x->list = list;
    stk_err err = stk_progress_init(&x->p, name, help_locked);
    if (!err) err = copy_opts(x, opts);
    if (err) {
        fini(x);
        goto failed;
    }
    x->indexed = (stk_indexed){.ops = &ops, .order = order, .num_parts = x->spec.num_parts};
    x->p.demand = order.shuffle ? INT64_MAX : 0;
    complete_class(&x->cls, name);
    s = stk_source_new(&x->cls, x);
failed:
    if (!s) stk_diag_set(diag, STK_ENOMEM, "%s: no memory for the source", name);
    return s;
}

#include "source/listing.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/failpoint.h"
#include "base/thread.h"
#include "exec/pool.h"
#include "source/progress.h"
#include "source/runs.h"

/* Names found ahead of what readers want: enough for them to go on with while more are found, few
 * enough not to delay their first batch.  The more they have read, the more, so that a fast reader
 * of many names asks rarely. */
#define LEAST_AHEAD 1024
#define MOST_AHEAD 65536

/* A scan that takes longer for so many names waits for a disk or a network: then many help. */
#define WAITS_NS(names) (1000000 + 1000 * (int64_t)(names))

struct stk_listing {
    stk_progress p; /* its lock guards what is said to be below, and the listing's own fields of
                       folders */
    char *path;     /* these never change */
    stk_glob *glob;
    bool labels, flat, no_follow;
    int few_threads; /* where none waits */

    atomic_size_t memory;
    stk_runs runs; /* written under the lock, read without */

    stk_folder root;
    stk_folder *stack;   /* folders with kids that nobody has taken; the next to take on top */
    stk_folder *pending; /* the next to release; NULL: none */
    bool root_taken, root_released, releasing;
    int64_t found, num_scanned; /* names of the folders that were scanned, and those */
    int num_threads, idle, busy;
    bool slow; /* scans wait */
    stk_thread threads[STK_MAX_LIST_THREADS];
};

static void help_locked(stk_progress *p);

stk_err stk_listing_new(const stk_listing_opts *opts, stk_listing **out, stk_diag *diag)
{
    stk_listing *l = *out = stk_alloc_zero(1, sizeof(*l));
    if (!l) return stk_diag_set(diag, STK_ENOMEM, "no memory for a listing");
    l->labels = opts->labels;
    l->flat = opts->flat;
    l->no_follow = opts->no_follow;
    l->few_threads = stk_usable_processors();
    if (l->few_threads > STK_MAX_LIST_THREADS) l->few_threads = STK_MAX_LIST_THREADS;
    l->p.demand = opts->in_order ? 0 : INT64_MAX;
    size_t len = strlen(opts->path);
    while (len > 1 && opts->path[len - 1] == '/') len--;
    l->path = stk_alloc_zero(len + 1, 1);
    if (l->path) memcpy(l->path, opts->path, len);
    l->root = (stk_folder){.name = l->path, .label = -1};

    stk_err err = l->path ? STK_OK : STK_ENOMEM;
    if (!err) err = stk_progress_init(&l->p, l->path, help_locked);
    if (err) stk_diag_set(diag, err, "no memory for a listing");
    if (!err) err = stk_glob_new(opts->pattern, &l->glob, diag);
    if (err) stk_listing_free(out);
    return err;
}

void stk_listing_free(stk_listing **pl)
{
    stk_listing *l = *pl;
    *pl = NULL;
    if (!l) return;
    if (stk_progress_is_forked(&l->p))
        return; /* the parent's threads may have been in the middle of anything */

    if (atomic_load_explicit(&l->p.started, memory_order_acquire)) {
        stk_progress_stop(&l->p);
        /* From the first to the last: a thread starts others only before it ends. */
        for (int i = 0; i < STK_MAX_LIST_THREADS; i++) stk_thread_join(&l->threads[i]);
    }
    stk_progress_fini(&l->p);
    stk_folder_fini(&l->root);
    stk_runs_fini(&l->runs);
    stk_glob_free(&l->glob);
    stk_free(l->path);
    stk_free(l);
}

static void publish_locked(stk_listing *l, stk_folder *f) STK_REQUIRES(l->p.lock)
{
    stk_diag diag;
    if (f->err) {
        stk_progress_fail_locked(&l->p, f->err, f->why);
        return;
    }
    if (l->labels && !f->parent && f->files.num) {
        stk_progress_fail_locked(
            &l->p,
            stk_diag_set(
                &diag, STK_EINVAL,
                "%s/%s: labels come from the first folder below %s, and this file is in none: "
                "move it into one, or take no labels",
                l->path, stk_names_get(&f->files, 0), l->path),
            &diag);
        return;
    }
    f->first = l->p.available;
    if (f->files.num && stk_runs_add(&l->runs, f)) {
        stk_progress_fail_locked(&l->p, STK_ENOMEM, NULL);
        return;
    }
    l->p.available += f->files.num;
    atomic_fetch_add_explicit(&l->memory, stk_folder_memory(f), memory_order_relaxed);
    if (!f->parent) {
        l->root_released = true;
        stk_cond_broadcast(&l->p.news);
    }
}

static void complete_locked(stk_listing *l) STK_REQUIRES(l->p.lock)
{
    if (l->p.available) {
        stk_progress_complete_locked(&l->p);
        return;
    }
    stk_diag diag;
    stk_diag_set(&diag, STK_EINVAL,
                 "no files matching \"%s\" %s %s: check the path, and the pattern",
                 stk_glob_text(l->glob), l->flat ? "directly in" : "under", l->path);
    stk_progress_fail_locked(&l->p, STK_EINVAL, &diag);
}

/* Releases what is there, in order.  Lets the lock go; one thread at a time does it, and it
 * sees what others have scanned meanwhile. */
static void release_locked(stk_listing *l) STK_REQUIRES(l->p.lock)
{
    if (l->releasing) return;
    l->releasing = true;
    while (!l->p.err && l->pending && l->pending->scanned) {
        stk_folder *f = l->pending;
        stk_mutex_unlock(&l->p.lock);
        stk_diag diag;
        stk_err err = STK_OK;
        if (stk_failpoint("dir.list")) {
            char path[STK_MAX_PATH];
            err = stk_folder_path(f, NULL, path, sizeof(path));
            if (!err) err = stk_diag_errno(&diag, errno, "%s: cannot list the folder", path);
            if (err == STK_ENOTFOUND) err = STK_EIO;
        }
        stk_mutex_lock(&l->p.lock);
        if (err) stk_progress_fail_locked(&l->p, err, &diag);
        if (!l->p.err) publish_locked(l, f);
        l->pending = stk_folder_next(f);
        if (!l->p.err && !l->pending) complete_locked(l);
        stk_progress_wake_locked(&l->p);
    }
    l->releasing = false;
}

/* There is something to scan, and it is near enough to what readers want. */
static bool may_take_locked(const stk_listing *l) STK_REQUIRES(l->p.lock)
{
    if (!l->root_taken) return true;
    if (!l->stack) return false;
    if (l->p.demand == INT64_MAX) return true;
    /* Folders are not quite taken in the order of release: the next one may wait behind many. */
    if (l->p.available < l->p.demand && !l->busy) return true;
    int64_t ahead = l->p.demand > LEAST_AHEAD ? l->p.demand : LEAST_AHEAD;
    if (ahead > MOST_AHEAD) ahead = MOST_AHEAD;
    const int64_t each = l->num_scanned ? l->found / l->num_scanned : LEAST_AHEAD;
    return l->found + l->busy * each < l->p.demand + ahead; /* with what is being scanned, about */
}

static stk_folder *take_locked(stk_listing *l) STK_REQUIRES(l->p.lock)
{
    if (!may_take_locked(l)) return NULL;
    if (!l->root_taken) {
        l->root_taken = true;
        return &l->root;
    }
    stk_folder *top = l->stack;
    stk_folder *f = &top->kids[top->num_taken++];
    if (top->num_taken == top->num_kids) l->stack = top->below;
    return f;
}

static void *list_folders(void *arg);

static stk_err start_thread_locked(stk_listing *l) STK_REQUIRES(l->p.lock)
{
    stk_thread *t = &l->threads[l->num_threads];
    stk_err err = stk_thread_start(t, "stk-list", list_folders, l);
    if (!err) l->num_threads++;
    return err;
}

/* As many threads as find something to do: no more than processors, unless they would wait. */
static void call_help_locked(stk_listing *l) STK_REQUIRES(l->p.lock)
{
    if (!may_take_locked(l) || stk_progress_stopped(&l->p)) return;
    if (l->idle) {
        stk_cond_signal(&l->p.work);
        return;
    }
    const int most = l->slow ? STK_MAX_LIST_THREADS : l->few_threads;
    if (l->num_threads >= most || !start_thread_locked(l)) return;
    stk_diag diag;
    stk_diag_set(&diag, STK_ELIMIT, "%s: the system refused a thread to list folders", l->path);
    stk_progress_fail_locked(&l->p, STK_ELIMIT, &diag);
}

/* Holds p's lock, which the analysis does not know as l's. */
static void help_locked(stk_progress *p) STK_TSA(no_thread_safety_analysis)
{
    call_help_locked((stk_listing *)p);
}

/* Called without the lock; the result is seen under it. */
static void scan(stk_listing *l, stk_folder *f, void *buffer)
{
    const stk_scan how = {
        .glob = l->glob,
        .flat = l->flat,
        .no_follow = l->no_follow,
        .stop = &l->p.stop,
        .buffer = buffer,
    };
    stk_diag diag;
    f->err = stk_folder_scan(f, &how, &diag);
    if (!f->err) return;
    f->why = stk_alloc(sizeof(*f->why));
    if (f->why)
        *f->why = diag;
    else
        f->err = STK_ENOMEM;
}

static void scan_all_locked(stk_listing *l, void *buffer) STK_REQUIRES(l->p.lock)
{
    for (;;) {
        stk_folder *f = NULL;
        while (!stk_progress_stopped(&l->p)) {
            f = take_locked(l);
            if (f || (!l->stack && !l->busy)) break;
            l->idle++;
            (void)stk_cond_wait(&l->p.work, &l->p.lock, STK_NEVER);
            l->idle--;
        }
        if (!f) return;
        l->busy++;
        call_help_locked(l);
        stk_mutex_unlock(&l->p.lock);
        const int64_t began = stk_clock_ns();
        scan(l, f, buffer);
        const int64_t took = stk_clock_ns() - began;
        stk_mutex_lock(&l->p.lock);
        l->slow |= took > WAITS_NS(f->files.num);
        l->busy--;
        f->scanned = true;
        l->found += f->files.num;
        l->num_scanned += f != &l->root;
        if (f->num_kids) {
            f->below = l->stack;
            l->stack = f;
            call_help_locked(l); /* releasing may take a while */
        }
        release_locked(l);
    }
}

static void *list_folders(void *arg)
{
    stk_listing *l = arg;
    void *buffer = stk_alloc(STK_SCAN_BUFFER);
    stk_mutex_lock(&l->p.lock);
    if (buffer)
        scan_all_locked(l, buffer);
    else
        stk_progress_fail_locked(&l->p, STK_ENOMEM, NULL);
    stk_progress_wake_locked(&l->p); /* of a failure outside of a release */
    stk_cond_broadcast(&l->p.work);
    stk_mutex_unlock(&l->p.lock);
    stk_free(buffer);
    return NULL;
}

static stk_err check_path(const stk_listing *l, stk_diag *diag)
{
    struct stat st;
    if (stat(l->path, &st))
        return stk_diag_errno(diag, errno, "%s: cannot list the folder", l->path);
    if (!S_ISDIR(st.st_mode))
        return stk_diag_errno(diag, ENOTDIR, "%s: cannot list it; give the folder of the samples",
                              l->path);
    return STK_OK;
}

stk_err stk_listing_start(stk_listing *l, stk_diag *diag)
{
    if (stk_progress_is_complete(&l->p)) return STK_OK;
    if (stk_progress_is_forked(&l->p)) return stk_progress_refuse_child(&l->p, diag);
    if (atomic_load_explicit(&l->p.started, memory_order_acquire)) return STK_OK;
    stk_err err = check_path(l, diag);
    if (err) return err;

    stk_mutex_lock(&l->p.lock);
    if (!atomic_load_explicit(&l->p.started, memory_order_relaxed)) {
        l->pending = &l->root;
        l->p.generation = stk_fork_generation();
        if (start_thread_locked(l))
            err = stk_diag_set(diag, STK_ELIMIT, "%s: the system refused a thread to list folders",
                               l->path);
        else
            atomic_store_explicit(&l->p.started, true, memory_order_release);
    }
    stk_mutex_unlock(&l->p.lock);
    return err;
}

stk_err stk_listing_look(stk_listing *l, int64_t wanted, stk_watcher *w, stk_look *out,
                         stk_diag *diag)
{
    return stk_progress_look(&l->p, wanted, w, out, diag);
}

void stk_listing_forget(stk_listing *l, stk_watcher *w)
{
    stk_progress_forget(&l->p, w);
}

stk_err stk_listing_wait(stk_listing *l, int64_t *count, stk_diag *diag)
{
    return stk_progress_wait(&l->p, NULL, count, diag);
}

stk_err stk_listing_wait_root(stk_listing *l, const stk_folder **root, stk_diag *diag)
{
    int64_t available;
    stk_err err = stk_progress_wait(&l->p, &l->root_released, &available, diag);
    *root = err ? NULL : &l->root;
    return err;
}

const stk_folder *stk_listing_find(const stk_listing *l, int64_t id, size_t *file)
{
    const stk_folder *f = stk_runs_find(&l->runs, id);
    *file = f ? (size_t)(id - f->first) : 0;
    return f;
}

size_t stk_listing_memory(const stk_listing *l)
{
    return sizeof(*l) + atomic_load_explicit(&l->memory, memory_order_relaxed) +
           stk_runs_memory(&l->runs);
}

const char *stk_listing_path(const stk_listing *l)
{
    return l->path;
}

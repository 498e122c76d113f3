#include "job.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include <stoker/ops.h>

#include "command.h"
#include "say.h"
#include "shards.h"

const job job_defaults = {
    .size = 224,
    .batch = 64,
    .epochs = 1,
    .reads = 16,
    .shuffle = true,
    .columns = 8,
    .rows = 6,
};

/* Folders in `dir` are classes, unless images lie beside them, which would be in none. */
static int find_classes(const char *dir, bool *classes)
{
    DIR *d = opendir(dir);
    if (!d) {
        say_error("%s: %s", dir, strerror(errno));
        return EXIT_WORLD;
    }
    bool folders = false, images = false;
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        struct stat st;
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        if (e->d_type == DT_REG && !shard_list_is_image(e->d_name)) continue;
        if (!fstatat(dirfd(d), e->d_name, &st, 0) && S_ISDIR(st.st_mode))
            folders = true;
        else if (shard_list_is_image(e->d_name))
            images = true;
        if (images) break;
    }
    closedir(d);
    *classes = folders && !images;
    return EXIT_FINE;
}

/* The words of the option are in an order of their own: the commonest first. */
static stk_crop crop_of(const job *j)
{
    static const stk_crop crops[] = {STK_CROP_RANDOM_RESIZED, STK_CROP_CENTER, STK_CROP_NONE};
    return crops[j->crop];
}

static void add_stages(const job *j, stk_plan *plan)
{
    const stk_stage_opts read = {
        .concurrency = (int32_t)j->reads,
        .order = (stk_order)j->order,
        .on_error = (stk_on_error)j->on_error,
    };
    const stk_stage_opts decode = {
        .order = (stk_order)j->order,
        .on_error = (stk_on_error)j->on_error,
    };
    const stk_image_opts image = {
        .width = (int32_t)j->size,
        .height = (int32_t)j->size,
        .crop = crop_of(j),
        .filter = (stk_filter)j->filter,
        .quality = (stk_quality)j->quality,
        .flip = j->crop == 0 ? 0.5 : 0,
    };
    stk_plan_pipe(plan, stk_op_read(NULL, NULL), &read);
    stk_plan_pipe(plan, stk_op_decode_image(&image, NULL), &decode);
    stk_plan_batch(plan, (size_t)j->batch, NULL);
    stk_plan_sink(plan, 3);
}

static stk_source *open_folder(const char *dir, const stk_order_opts *order, stk_diag *diag,
                               int *code)
{
    bool classes = false;
    *code = find_classes(dir, &classes);
    if (*code != EXIT_FINE) return NULL;
    const stk_dir_opts opts = {
        .labels = classes ? STK_LABELS_DIR : STK_LABELS_NONE,
        .order = *order,
    };
    return stk_dir_source(dir, &opts, diag);
}

int job_plan(const job *j, const char *path, stk_plan **out, stk_source **source)
{
    stk_diag diag = {0};
    int code = EXIT_WORLD;
    const stk_order_opts order = {
        .shuffle = j->shuffle, .seed = (uint64_t)j->seed, .epochs = j->epochs};
    shard_list shards = {0};
    stk_source *s = NULL;
    *out = NULL;
    if (source) *source = NULL;
    if (!shard_list_find(&shards, path, &diag)) {
        if (shards.num)
            s = shard_list_open(&shards, &order, &diag);
        else
            s = open_folder(path, &order, &diag, &code);
    }
    shard_list_fini(&shards);
    if (!s || stk_plan_new(out)) {
        if (s || diag.err) say_error("%s: %s", path, s ? stk_err_str(STK_ENOMEM) : diag.text);
        stk_source_unref(&s);
        return code == EXIT_FINE ? EXIT_WORLD : code;
    }
    if (source) *source = stk_source_ref(s);
    stk_plan_source(*out, s);
    add_stages(j, *out);
    return EXIT_FINE;
}

#include "job.h"

#include <stoker/clip.h>

#include "command.h"
#include "say.h"
#include "shards.h"

const job job_defaults = {
    .size = 224,
    .epochs = 1,
    .reads = 16,
    .shuffle = true,
    .columns = 8,
    .rows = 6,
    .frames = 16,
    .stride = 2,
    .seconds = 4,
    .rate = 16000,
    .wanted = KIND_NONE,
};

/* The words of the option are in an order of their own: the commonest first. */
static stk_crop crop_of(const job *j)
{
    static const stk_crop crops[] = {STK_CROP_RANDOM_RESIZED, STK_CROP_CENTER, STK_CROP_NONE};
    return crops[j->crop];
}

static stk_image_opts picture_of(const job *j)
{
    return (stk_image_opts){
        .width = (int32_t)j->size,
        .height = (int32_t)j->size,
        .crop = crop_of(j),
        .filter = (stk_filter)j->filter,
        .flip = j->crop == 0 ? 0.5 : 0,
    };
}

/* Without FFmpeg, WAV alone is decoded all the same, at each file's own rate. */
static stk_op *sound_decoder(const job *j, bool only_wav, stk_diag *diag)
{
    stk_audio_opts audio = {
        .seconds = (double)j->seconds,
        .sample_rate = (int32_t)j->rate,
        .channels = 1,
        .where = STK_WHERE_RANDOM,
    };
    stk_op *op = stk_op_decode_audio(&audio, diag);
    if (op || !only_wav || diag->err != STK_EUNSUPPORTED) return op;
    audio.sample_rate = 0;
    return stk_op_decode_wav(&audio, diag);
}

/* NULL: it says why. */
static stk_op *decoder_of(const job *j, bool only_wav, stk_diag *diag)
{
    stk_image_opts picture = picture_of(j);
    const stk_video_opts video = {
        .frames = (int32_t)j->frames,
        .stride = (int32_t)j->stride,
        .where = STK_WHERE_RANDOM,
        .repeat = true,
        .picture = picture,
    };
    switch (j->kind) {
    case KIND_VIDEO: return stk_op_decode_video(&video, diag);
    case KIND_AUDIO: return sound_decoder(j, only_wav, diag);
    case KIND_IMAGE:
    case KIND_NONE: break;
    }
    picture.quality = (stk_quality)j->quality;
    return stk_op_decode_image(&picture, diag);
}

static int add_stages(const job *j, bool only_wav, stk_plan *plan)
{
    stk_diag diag = {0};
    const stk_stage_opts read = {
        .concurrency = (int32_t)j->reads,
        .order = (stk_order)j->order,
        .on_error = (stk_on_error)j->on_error,
    };
    const stk_stage_opts decode = {
        .order = (stk_order)j->order,
        .on_error = (stk_on_error)j->on_error,
    };
    stk_op *op = decoder_of(j, only_wav, &diag);
    if (!op) {
        say_error("%s", diag.text);
        return diag.err == STK_EINVAL || diag.err == STK_ELIMIT ? EXIT_USAGE : EXIT_WORLD;
    }
    stk_plan_pipe(plan, stk_op_read(NULL, NULL), &read);
    stk_plan_pipe(plan, op, &decode);
    stk_plan_batch(plan, (size_t)j->batch, NULL);
    stk_plan_sink(plan, 3);
    return EXIT_FINE;
}

/* Decides, of what was counted. */
static void choose(job *j, const kind_counts *all)
{
    sample_kind kind = (sample_kind)j->wanted;
    if (kind == KIND_NONE)
        kind = j->images_first && all->of[KIND_IMAGE] ? KIND_IMAGE : kind_most(all);
    j->kind = kind == KIND_NONE ? KIND_IMAGE : kind;
}

static stk_source *open_folder(job *j, const char *dir, const stk_order_opts *order,
                               kind_counts *all, stk_diag *diag, int *code)
{
    kind_folder folder;
    char pattern[KIND_TEXT_SIZE];
    *code = kind_look(dir, &folder);
    if (*code != EXIT_FINE) return NULL;
    *all = kind_sum(&folder.in, &folder.below);
    choose(j, all);
    const bool classes = folder.folders && !folder.in.of[j->kind];
    const stk_dir_opts opts = {
        .labels = classes ? STK_LABELS_DIR : STK_LABELS_NONE,
        .pattern = kind_pattern(j->kind, pattern),
        .order = *order,
    };
    return stk_dir_source(dir, &opts, diag);
}

/* Looks at `path`, and decides j->kind. */
static stk_source *open_source(job *j, const char *path, kind_counts *all, int *code)
{
    stk_diag diag = {0};
    const stk_order_opts order = {
        .shuffle = j->shuffle, .seed = (uint64_t)j->seed, .epochs = j->epochs};
    shard_list shards = {0};
    stk_source *s = NULL;
    *code = EXIT_WORLD;
    if (!shard_list_find(&shards, path, &diag)) {
        if (shards.num) {
            shard_list_count(&shards, all);
            choose(j, all);
            s = shard_list_open(&shards, j->kind, &order, &diag);
        }
        else {
            s = open_folder(j, path, &order, all, &diag, code);
        }
    }
    shard_list_fini(&shards);
    if (diag.err) say_error("%s: %s", path, diag.text);
    if (!s && *code == EXIT_FINE) *code = EXIT_WORLD;
    return s;
}

int job_plan(job *j, const char *path, stk_plan **out, stk_source **source)
{
    int code;
    kind_counts all = {0};
    *out = NULL;
    if (source) *source = NULL;
    stk_source *s = open_source(j, path, &all, &code);
    if (!s) return code;
    if (stk_plan_new(out)) {
        say_error("%s: %s", path, stk_err_str(STK_ENOMEM));
        stk_source_unref(&s);
        return EXIT_WORLD;
    }
    if (source) *source = stk_source_ref(s);
    stk_plan_source(*out, s);
    if (!j->batch) j->batch = j->kind == KIND_VIDEO ? 8 : 64;
    code = add_stages(j, all.wav && all.wav == all.of[KIND_AUDIO], *out);
    if (code == EXIT_FINE) return code;
    if (source) stk_source_unref(source);
    stk_plan_free(out);
    return code;
}

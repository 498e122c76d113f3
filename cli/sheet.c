/* stoker sheet: draws one augmented batch, for people to look at. */
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <stoker/image.h>
#include <stoker/run.h>

#include "command.h"
#include "job.h"
#include "report.h"
#include "say.h"

#define GAP 4     /* pixels between two images, and around them */
#define GROUND 32 /* the grey behind them */
#define MAX_SIDE 65500

static const option options[] = {
    {"size", OPTION_INT, "N", offsetof(job, size), 8, 4096, "width and height of each image (224)"},
    {"columns", OPTION_INT, "N", offsetof(job, columns), 1, 256, "images in a row (8)"},
    {"rows", OPTION_INT, "N", offsetof(job, rows), 1, 256, "rows of images, at most (6)"},
    JOB_IMAGE_OPTIONS,
    {0},
};

/* Copies image `i` of the batch to its place. */
static void place(const stk_tensor *images, int64_t i, const job *j, const stk_tensor *sheet)
{
    const size_t row_bytes = (size_t)(j->size * 3);
    const int64_t x = GAP + i % j->columns * (j->size + GAP);
    const int64_t y = GAP + i / j->columns * (j->size + GAP);
    const uint8_t *from = (const uint8_t *)images->data + i * images->strides[0];
    uint8_t *to = (uint8_t *)sheet->data + y * sheet->strides[0] + x * 3;
    for (int64_t row = 0; row < j->size; row++)
        memcpy(to + row * sheet->strides[0], from + row * images->strides[1], row_bytes);
}

static stk_err draw(const stk_batch *batch, const job *j, const char *path, stk_diag *diag)
{
    const int field = stk_batch_find(batch, "image");
    stk_tensor images;
    stk_buffer *mem = NULL;
    if (field < 0) return stk_diag_set(diag, STK_EINVAL, "the batch has no images");
    stk_err err = stk_batch_array(batch, (size_t)field, &images, NULL);
    if (err) return stk_diag_set(diag, err, "%s", stk_err_str(err));

    const int64_t n = images.shape[0];
    const int64_t rows = (n + j->columns - 1) / j->columns;
    const int64_t columns = n < j->columns ? n : j->columns;
    const stk_spec spec = {
        .dtype = STK_UINT8,
        .ndim = 3,
        .shape = {rows * (j->size + GAP) + GAP, columns * (j->size + GAP) + GAP, 3},
    };
    size_t bytes = 0;
    err = stk_spec_bytes(&spec, &bytes);
    if (!err) err = stk_buffer_new(bytes, &mem);
    if (err) return stk_diag_set(diag, err, "%s", stk_err_str(err));

    memset(stk_buffer_writable(mem), GROUND, bytes);
    const stk_tensor sheet = stk_tensor_over(stk_buffer_writable(mem), &spec);
    for (int64_t i = 0; i < n; i++) place(&images, i, j, &sheet);
    err = stk_image_write_png(path, &sheet, diag);
    if (!err)
        say(stdout, "%s: %" PRId64 " images, %" PRId64 " x %" PRId64 " pixels\n", path, n,
            spec.shape[1], spec.shape[0]);
    stk_buffer_unref(&mem);
    return err;
}

/* Images that fail are named, and left out. */
static void name_failures(stk_run *run)
{
    stk_failure *failures = NULL;
    size_t n = 0;
    if (stk_run_failures(run, &failures, &n)) return;
    for (size_t i = 0; i < n; i++) {
        const stk_failure *f = &failures[i];
        const char *key = report_key(f);
        say_error("left out: %s%s%s", key, *key ? ": " : "", f->diag.text);
    }
    stk_failures_free(&failures, n);
}

static int run(int argc, char **argv)
{
    job j = job_defaults;
    stk_plan *plan = NULL;
    stk_run *r = NULL;
    stk_batch *batch = NULL;
    stk_diag diag = {0};
    int code = EXIT_FINE;
    j.on_error = STK_SKIP;
    j.images_first = true;
    if (!command_parse(&sheet_command, &argc, &argv, &j, &code)) return code;

    const int64_t longest = j.columns > j.rows ? j.columns : j.rows;
    if (longest * (j.size + GAP) + GAP > MAX_SIDE) {
        say_error("the sheet would be more than %d pixels wide or high", MAX_SIDE);
        return EXIT_USAGE;
    }
    if (fnmatch("*.png", argv[1], FNM_CASEFOLD)) {
        say_error("%s: the sheet is a PNG picture: let its name end in .png", argv[1]);
        return EXIT_USAGE;
    }
    j.batch = j.columns * j.rows;
    code = job_plan(&j, argv[0], &plan, NULL);
    if (code != EXIT_FINE) return code;
    if (j.kind != KIND_IMAGE) {
        say_error("%s: a sheet shows images, and these are clips", argv[0]);
        stk_plan_free(&plan);
        return EXIT_USAGE;
    }
    const stk_run_opts opts = {.num_threads = (int32_t)j.threads};
    code = EXIT_WORLD;
    stk_err err = stk_run_start(plan, &opts, &r, &diag);
    if (err) goto done;
    err = stk_run_next(r, STK_FOREVER, &batch, &diag);
    name_failures(r);
    code = EXIT_FAILED;
    if (err == STK_EEND) err = stk_diag_set(&diag, err, "%s: no image to show", argv[0]);
    if (err) goto done;
    code = EXIT_WORLD;
    err = draw(batch, &j, argv[1], &diag);
done:
    if (err) say_error("%s", diag.text);
    stk_batch_unref(&batch);
    stk_run_free(&r);
    stk_plan_free(&plan);
    return err ? code : EXIT_FINE;
}

const command sheet_command = {
    .name = "sheet",
    .args = "DIR OUT.png",
    .help = "draw one batch of a folder: what a model would see",
    .about =
        "Loads the first batch as bench does, shuffled, cropped and flipped, and writes it as\n"
        "one PNG picture.",
    .min_args = 2,
    .max_args = 2,
    .options = options,
    .run = run,
};

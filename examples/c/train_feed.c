/* Reads batches of images from a folder, as a training loop would.
 *
 *     cc train_feed.c $(pkg-config --cflags --libs stoker) && ./a.out FOLDER
 */
#include <stdio.h>

#include <stoker/ops.h>
#include <stoker/run.h>

int main(int argc, char **argv)
{
    stk_plan *plan = NULL;
    stk_run *run = NULL;
    stk_batch *batch = NULL;
    stk_diag diag = {0};
    const stk_dir_opts files = {.labels = STK_LABELS_DIR, .order = {.shuffle = true, .seed = 1}};
    const stk_image_opts image = {
        .width = 224, .height = 224, .crop = STK_CROP_RANDOM_RESIZED, .flip = 0.5};
    if (argc != 2) return fprintf(stderr, "usage: train_feed FOLDER\n"), 2;

    stk_err err = stk_plan_new(&plan);
    if (!err) {
        stk_plan_source(plan, stk_dir_source(argv[1], &files, NULL));
        stk_plan_pipe(plan, stk_op_read(NULL, NULL), &(stk_stage_opts){.concurrency = 16});
        stk_plan_pipe(plan, stk_op_decode_image(&image, NULL), NULL);
        stk_plan_batch(plan, 64, NULL);
        stk_plan_sink(plan, 3);
        err = stk_run_start(plan, NULL, &run, &diag); /* reports what went wrong above, too */
    }
    while (!err && !(err = stk_run_next(run, STK_FOREVER, &batch, &diag))) {
        stk_tensor pixels; /* (n, 224, 224, 3) uint8 */
        err = stk_batch_array(batch, (size_t)stk_batch_find(batch, "image"), &pixels, NULL);
        if (!err)
            printf("batch %lld: %lld images of %lld x %lld\n", (long long)stk_batch_index(batch),
                   (long long)pixels.shape[0], (long long)pixels.shape[2],
                   (long long)pixels.shape[1]);
        stk_batch_unref(&batch); /* its memory goes back to the run */
    }
    if (err != STK_EEND) fprintf(stderr, "%s: %s\n", stk_err_str(err), diag.text);
    stk_run_free(&run);
    stk_plan_free(&plan);
    return err == STK_EEND ? 0 : 1;
}

/* stoker bench: runs the main job on a folder and measures it. */
#include <signal.h>
#include <stdio.h>

#include <stoker/run.h>

#include "command.h"
#include "job.h"
#include "progress.h"
#include "report.h"
#include "say.h"
#include "usage.h"

/* How often a wait looks for Ctrl-C and shows the progress. */
#define LOOK_NS (INT64_C(100) * 1000 * 1000)

static const option options[] = {
    JOB_RUN_OPTIONS,
    {"limit", OPTION_INT, "N", offsetof(job, limit), 0, INT64_MAX,
     "end after N images; 0: none (0)"},
    {"json", OPTION_FLAG, NULL, offsetof(job, json), 0, 0, "print the figures as JSON"},
    {0},
};

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

/* How many images there will be, or -1 while the folder is still being listed. */
static int64_t find_total(stk_plan *plan, stk_source *source, const job *j)
{
    int64_t n = 0;
    if (stk_plan_length(plan) < 0 || stk_source_count(source, &n, NULL)) return -1;
    n *= j->epochs;
    return j->limit > 0 && j->limit < n ? j->limit : n;
}

/* Reads to the end, to the limit, or to Ctrl-C. */
static stk_err read_all(stk_run *run, stk_plan *plan, stk_source *source, report *r)
{
    progress p;
    int64_t total = -1;
    stk_err err = STK_OK;
    progress_init(&p);
    while (!interrupted && (r->job->limit == 0 || r->images < r->job->limit)) {
        stk_batch *batch = NULL;
        err = stk_run_next(run, LOOK_NS, &batch, &r->diag);
        if (err == STK_OK) {
            if (r->batches++ == 0)
                r->first_batch_ms = (double)(progress_clock() - p.started) * 1e-6;
            r->images += (int64_t)stk_batch_size(batch);
            stk_batch_unref(&batch);
        }
        else if (err != STK_ETIMEOUT) {
            break;
        }
        if (p.terminal && total < 0) total = find_total(plan, source, r->job);
        progress_show(&p, kind_noun(r->job->kind), r->images, total);
    }
    progress_fini(&p);
    r->seconds = (double)(progress_clock() - p.started) * 1e-9;
    r->interrupted = interrupted;
    if (err == STK_OK || err == STK_ETIMEOUT || err == STK_EEND) r->diag = (stk_diag){0};
    return r->diag.err;
}

static int judge(const report *r)
{
    if (r->diag.err) say_error("%s", r->diag.text);
    if (r->interrupted) return EXIT_INTERRUPTED;
    if (r->diag.err == STK_ENOMEM) return EXIT_WORLD;
    if (r->diag.err) return EXIT_FAILED;
    if (r->images > 0) return EXIT_FINE;
    const char *noun = kind_noun(r->job->kind);
    if (r->num_failures)
        say_error("%s: no %s could be decoded", r->dir, noun);
    else
        say_error("%s: no %ss", r->dir, noun);
    return EXIT_FAILED;
}

static int measure(stk_plan *plan, stk_source *source, report *r)
{
    const stk_run_opts opts = {.num_threads = (int32_t)r->job->threads};
    stk_run *run = NULL;
    int code = EXIT_WORLD;
    const double cpu = usage_cpu_seconds();
    stk_err err = stk_run_start(plan, &opts, &run, &r->diag);
    if (err) {
        say_error("%s", r->diag.text);
        return err == STK_EINVAL || err == STK_ELIMIT ? EXIT_USAGE : EXIT_WORLD;
    }
    (void)read_all(run, plan, source, r);
    r->cpu_seconds = usage_cpu_seconds() - cpu;
    r->peak_bytes = usage_peak_bytes();
    stk_run_cancel(run);

    size_t classes = 0;
    if (!stk_dir_source_classes(source, &classes, NULL)) r->classes = (int64_t)classes;
    err = stk_run_failures(run, &r->failures, &r->num_failures);
    if (!err) err = stk_run_stats(run, &r->stats);
    if (err) {
        say_error("%s", stk_err_str(err));
    }
    else {
        (r->job->json ? report_json : report_print)(r, stdout);
        fflush(stdout);
        code = judge(r);
    }
    stk_stats_free(&r->stats);
    stk_failures_free(&r->failures, r->num_failures);
    stk_run_free(&run);
    return code;
}

static int run(int argc, char **argv)
{
    job j = job_defaults;
    stk_plan *plan = NULL;
    stk_source *source = NULL;
    int code = EXIT_FINE;
    if (!command_parse(&bench_command, &argc, &argv, &j, &code)) return code;

    /* A second Ctrl-C ends the process at once. */
    const struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    report r = {.dir = argv[0], .job = &j, .classes = -1, .first_batch_ms = -1};
    code = job_plan(&j, argv[0], &plan, &source);
    if (code == EXIT_FINE) code = measure(plan, source, &r);
    stk_source_unref(&source);
    stk_plan_free(&plan);
    return code;
}

const command bench_command = {
    .name = "bench",
    .args = "DIR",
    .help = "load all images or clips of a folder, and say how fast that was",
    .about =
        "Reads each image under DIR, decodes a part of it to SIZE x SIZE, with random\n"
        "crops and flips, and makes batches; folders in DIR are classes.  DIR may be a tar\n"
        "or zip archive, or a folder of such shards.  Of video or sound, in folders or shards,\n"
        "it takes a clip at a random place of each file, which needs FFmpeg; without it, WAV\n"
        "files are decoded at their own rate.  What most files are, by the endings of their\n"
        "names, is loaded; --kind says otherwise.  Prints images a second, CPU time, memory,\n"
        "what each stage did, and which one holds up the others.  Ctrl-C ends it, and prints\n"
        "what was measured.",
    .min_args = 1,
    .max_args = 1,
    .options = options,
    .run = run,
};

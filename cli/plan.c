/* stoker plan: prints what bench would run. */
#include <stdio.h>

#include <stoker/plan.h>

#include "command.h"
#include "job.h"
#include "say.h"

static const option options[] = {JOB_RUN_OPTIONS, {0}};

static int run(int argc, char **argv)
{
    job j = job_defaults;
    stk_plan *plan = NULL;
    stk_diag diag = {0};
    char *text = NULL;
    int code = EXIT_FINE;
    if (!command_parse(&plan_command, &argc, &argv, &j, &code)) return code;

    code = job_plan(&j, argv[0], &plan, NULL);
    if (code != EXIT_FINE) goto done;
    if (stk_plan_check(plan, &diag)) {
        say_error("%s", diag.text);
        code = EXIT_USAGE;
        goto done;
    }
    const stk_err err = stk_plan_print(plan, &text);
    if (err) {
        say_error("%s", stk_err_str(err));
        code = EXIT_WORLD;
        goto done;
    }
    say(stdout, "%s", text);
done:
    stk_text_free(&text);
    stk_plan_free(&plan);
    return code;
}

const command plan_command = {
    .name = "plan",
    .args = "DIR",
    .help = "print what bench would run, stage by stage",
    .min_args = 1,
    .max_args = 1,
    .options = options,
    .run = run,
};

#include "graph/lone.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/failpoint.h"
#include "tests/op_run.h"

/* What an op in a run sees, and the same op with an item that has none. */
static stk_err note_run(const void *params, void *state, stk_item *item, stk_diag *diag)
{
    const stk_spec spec = {.dtype = STK_UINT32, .ndim = 1, .shape = {8}};
    stk_tensor t;
    int fd;
    (void)params, (void)state;
    stk_err err = stk_item_new_array(item, 0, &spec, &t);
    if (err) return err;
    for (uint32_t n = 0; n < 2; n++) stk_item_random(item, n, (uint32_t *)t.data + 4 * n);
    stk_lone *lone;
    err = stk_lone_new(&lone);
    if (err) return err;
    const stk_origin origin = stk_item_origin(item);
    const stk_item *same = stk_lone_begin(lone, &origin, 2);
    CHECK_EQ(stk_item_num_parts(same), 2);
    CHECK_EQ(stk_item_id(same), stk_item_id(item));
    CHECK(!stk_item_cancelled(same));
    for (uint32_t n = 0; n < 2; n++) {
        uint32_t word[4];
        stk_item_random(same, n, word);
        CHECK(!memcmp(word, (uint32_t *)t.data + 4 * n, sizeof(word)));
    }
    stk_lone_free(&lone);
    stk_item_commit_array(item, 0);
    return stk_item_cancel_fd(item, &fd, diag);
}

static stk_op *note(void)
{
    static const stk_op_class cls = {.name = "note",
                                     .flags = STK_OP_ALONE,
                                     .in = STK_KIND_ARRAY,
                                     .out = STK_KIND_ARRAY,
                                     .run = note_run};
    return stk_op_new(&cls, NULL);
}

static op_run job(void)
{
    return (op_run){
        .samples = 3, .seed = 7, .spec = {{.dtype = STK_UINT8, .ndim = 1, .shape = {4}}}};
}

static void same_random_numbers(void)
{
    op_run r = job();
    CHECK_EQ(op_run_go(&r, note()), STK_OK);
    const stk_tensor t = op_run_field(&r, "image");
    CHECK_EQ(t.shape[0], 3);
    CHECK(memcmp(t.data, (uint8_t *)t.data + 32, 32));
    op_run_end(&r);
    stk_err err;
    TORTURE (err) {
        r = job();
        err = op_run_torture(&r, note());
    }
}

static void parts_and_memory(void)
{
    const stk_origin origin = {.seed = 1, .id = 2};
    const stk_spec spec = {.dtype = STK_UINT8, .ndim = 1, .shape = {100}};
    stk_lone *lone;
    stk_buffer *bytes;
    stk_tensor t;
    CHECK_EQ(stk_lone_new(&lone), STK_OK);
    stk_item *item = stk_lone_begin(lone, &origin, 1);
    CHECK_EQ(stk_lone_memory(lone, 10, &bytes), STK_OK);
    stk_item_set_bytes(item, 0, &bytes);
    CHECK_EQ(stk_item_new_array(item, 0, &spec, &t), STK_OK);
    memset(t.data, 1, 100);
    stk_item_commit_array(item, 0);
    CHECK(!stk_item_bytes(item, 0));
    CHECK_EQ(stk_item_set_num_parts(item, STK_MAX_PARTS + 1), STK_EINVAL);
    CHECK_EQ(stk_item_set_num_parts(item, 2), STK_OK);
    CHECK_EQ(stk_item_new_array(item, 1, &spec, &t), STK_OK); /* and is never committed */
    CHECK(stk_lone_begin(lone, &origin, 1) == item);
    CHECK(!stk_item_array(item, 0).data);
    CHECK_EQ(stk_item_num_parts(item), 1);
    stk_lone_free(&lone);
}

/* --- the descriptor of a run's end --- */

static stk_err wait_run(const void *params, void *state, stk_item *item, stk_diag *diag)
{
    const int began = *(const int *)params;
    struct pollfd end = {.events = POLLIN};
    (void)state;
    stk_err err = stk_item_cancel_fd(item, &end.fd, diag);
    if (err) return err;
    CHECK_EQ(poll(&end, 1, 0), 0);
    CHECK_EQ(eventfd_write(began, 1), 0);
    CHECK_EQ(poll(&end, 1, -1), 1);
    CHECK(stk_item_cancelled(item));
    int again;
    CHECK_EQ(stk_item_cancel_fd(item, &again, diag), STK_OK);
    CHECK_EQ(again, end.fd);
    return STK_ECANCELLED;
}

static stk_op *waiter(int *began)
{
    static const stk_op_class cls = {.name = "wait",
                                     .flags = STK_OP_ALONE,
                                     .in = STK_KIND_KEY,
                                     .out = STK_KIND_KEY,
                                     .run = wait_run};
    return stk_op_new(&cls, began);
}

static stk_run *start(stk_op *op)
{
    const char *const keys[] = {"a"};
    const stk_list_opts list = {.num_samples = 1, .paths = (const char *const *const[]){keys}};
    stk_plan *plan;
    stk_run *run;
    stk_diag diag;
    CHECK_EQ(stk_plan_new(&plan), STK_OK);
    stk_plan_source(plan, stk_list_source(&list, NULL));
    stk_plan_pipe(plan, op, NULL);
    stk_plan_sink(plan, 1);
    if (stk_run_start(plan, NULL, &run, &diag)) check_fail(__FILE__, __LINE__, diag.text);
    stk_plan_free(&plan);
    return run;
}

static void end_of_the_run(void)
{
    int began = eventfd(0, EFD_CLOEXEC);
    eventfd_t n;
    stk_run *run = start(waiter(&began));
    CHECK_EQ(eventfd_read(began, &n), 0);
    stk_run_cancel(run);
    stk_run_free(&run);
    close(began);
}

static void no_descriptor(void)
{
    int began = eventfd(0, EFD_CLOEXEC);
    stk_item *items[1];
    stk_diag diag;
    size_t n;
    CHECK(stk_failpoints_set("run.eventfd=EMFILE"));
    stk_run *run = start(waiter(&began));
    CHECK_EQ(stk_run_next_items(run, STK_FOREVER, 1, items, &n, &diag), STK_EIO);
    CHECK(strstr(diag.text, "Too many open files"));
    stk_run_free(&run);
    CHECK(stk_failpoints_set(NULL));
    close(began);
}

TESTS(TEST(end_of_the_run), TEST(no_descriptor), TEST(same_random_numbers), TEST(parts_and_memory))

#include <stoker/isolate.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stoker/clip.h>
#include <stoker/run.h>

#include "base/alloc.h"
#include "base/failpoint.h"
#include "base/thread.h"
#include "ops/helper.h"
#include "ops/recipe.h"
#include "ops/serve.h"
#include "ops/wire.h"
#include "tests/jpeg_make.h"
#include "tests/tree.h"

/* --- helpers that are not what they should be: this program once more --- */

static stk_wire_reply lie;

static void answer(uint64_t number)
{
    lie.number = number;
    CHECK_EQ(send(STK_HELPER_SOCKET, &lie, sizeof(lie), 0), sizeof(lie));
}

static stk_wire_request listen_to(void)
{
    stk_wire_request r = {0};
    CHECK(recv(STK_HELPER_SOCKET, &r, sizeof(r), 0) >= 0);
    return r;
}

enum { GIANT = 65 << 20 };

/* The first sample fails, and leaves a lot of memory; at the second that is gone. */
static void pretend_giant(uint64_t number)
{
    struct stat st;
    CHECK_EQ(fstat(STK_HELPER_MEMORY, &st), 0);
    if (number > 1) _exit(st.st_size < GIANT ? 7 : 8);
    CHECK_EQ(posix_fallocate(STK_HELPER_MEMORY, 0, GIANT), 0);
    stk_diag_set(&lie.diag, STK_ECORRUPT, "a giant");
}

static void pretend(const char *as)
{
    if (!strcmp(as, "mute")) pause();
    (void)listen_to(); /* hello */
    if (!strcmp(as, "early")) _exit(4);
    if (!strcmp(as, "old")) stk_diag_set(&lie.diag, STK_EUNSUPPORTED, "another version");
    answer(!strcmp(as, "odd hello"));
    for (;;) {
        const stk_wire_request r = listen_to();
        if (!r.number) _exit(0);
        lie = (stk_wire_reply){.num_parts = 2};
        lie.arrays[0].spec = (stk_spec){.dtype = STK_UINT8, .ndim = 3, .shape = {24, 24, 3}};
        lie.arrays[1] = lie.arrays[0];
        if (!strcmp(as, "crash")) signal(SIGSEGV, SIG_DFL), (void)raise(SIGSEGV);
        if (!strcmp(as, "killed")) (void)raise(SIGKILL);
        if (!strcmp(as, "exit")) _exit(5);
        if (!strcmp(as, "hang")) pause();
        if (!strcmp(as, "shape")) lie.arrays[0].spec.shape[0] = 23;
        if (!strcmp(as, "beyond")) lie.arrays[0].offset = 1 << 20;
        if (!strcmp(as, "hole")) {
            lie.arrays[0].offset = 1 << 30;
            CHECK_EQ(ftruncate(STK_HELPER_MEMORY, (off_t)1 << 40), 0);
        }
        if (!strcmp(as, "giant")) pretend_giant(r.number);
        if (!strcmp(as, "empty")) CHECK_EQ(ftruncate(STK_HELPER_MEMORY, 0), 0);
        if (!strcmp(as, "error")) lie.diag.err = STK_ECANCELLED;
        if (!strcmp(as, "short")) CHECK_EQ(send(STK_HELPER_SOCKET, "no", 2, 0), 2);
        if (!strcmp(as, "many")) answer(r.number + 1);
        answer(r.number);
    }
}

__attribute__((constructor)) static void pretend_first(void)
{
    const char *as = getenv("PRETEND");
    if (!as || getenv("STOKER_DECODER")) return;
    alarm(100);
    pretend(as);
}

/* --- pipelines --- */

enum { FILES = 12 };

struct set {
    struct tree tree;
    const stk_stage_opts *stage; /* of the op */
    char paths[FILES][128];
};

static struct set make(void)
{
    struct set s = {.tree = tree_new()};
    for (int i = 0; i < FILES; i++) {
        uint8_t *data;
        const size_t size =
            jpeg_make_file(&(jpeg_make){.width = 40 + 3 * i, .height = 60 - i}, &data);
        snprintf(s.paths[i], sizeof(s.paths[i]), "%s/%02d.jpg", s.tree.path, i);
        FILE *f = fopen(s.paths[i], "wb");
        CHECK(f && fwrite(data, 1, size, f) == size);
        fclose(f);
        free(data);
    }
    return s;
}

static stk_op *decoder(stk_diag *diag)
{
    const stk_image_opts o = {
        .width = 24, .height = 24, .crop = STK_CROP_RANDOM_RESIZED, .flip = 0.5};
    return stk_op_decode_image(&o, diag);
}

/* Begins a run over pictures and their masks; takes `op`. */
static stk_err begin(const struct set *s, stk_op *op, int32_t threads, stk_run **out,
                     stk_diag *diag)
{
    static const char *const names[] = {"image", "mask"};
    const char *paths[FILES];
    for (int i = 0; i < FILES; i++) paths[i] = s->paths[i];
    const char *const *const all[] = {paths, paths};
    const stk_list_opts list = {.num_samples = FILES,
                                .num_parts = 2,
                                .part_names = names,
                                .paths = all,
                                .order = {.shuffle = true, .seed = 3}};
    stk_plan *plan;
    *out = NULL;
    stk_err err = stk_plan_new(&plan);
    if (err) {
        stk_op_unref(&op);
        return err;
    }
    stk_plan_source(plan, stk_list_source(&list, diag));
    stk_plan_pipe(plan, stk_op_read(NULL, diag), NULL);
    stk_plan_pipe(plan, op, s->stage);
    stk_plan_batch(plan, FILES, NULL);
    stk_plan_sink(plan, 1);
    err = stk_run_start(plan, &(stk_run_opts){.num_threads = threads}, out, diag);
    stk_plan_free(&plan);
    return err;
}

static stk_err one_batch(const struct set *s, stk_op *op, int32_t threads, stk_batch **out,
                         stk_diag *diag)
{
    stk_run *run;
    *out = NULL;
    stk_err err = begin(s, op, threads, &run, diag);
    if (!err) err = stk_run_next(run, STK_FOREVER, out, diag);
    stk_run_free(&run);
    return err;
}

static void check_equal(const stk_batch *a, const stk_batch *b, const char *name)
{
    stk_tensor x, y;
    CHECK_EQ(stk_batch_array(a, (size_t)stk_batch_find(a, name), &x, NULL), STK_OK);
    CHECK_EQ(stk_batch_array(b, (size_t)stk_batch_find(b, name), &y, NULL), STK_OK);
    const stk_spec spec = stk_tensor_spec(&x), other = stk_tensor_spec(&y);
    size_t bytes;
    CHECK(stk_spec_equal(&spec, &other));
    CHECK_EQ(stk_spec_bytes(&spec, &bytes), STK_OK);
    CHECK(!memcmp(x.data, y.data, bytes));
}

/* The same pixels, with any number of threads. */
static void same_results(void)
{
    struct set s = make();
    stk_batch *want, *got;
    stk_diag diag = {0};
    CHECK_EQ(one_batch(&s, decoder(NULL), 2, &want, &diag), STK_OK);
    for (int32_t threads = 1; threads <= 3; threads++) {
        stk_op *op = stk_op_isolate(decoder(NULL), NULL, &diag);
        if (!op || one_batch(&s, op, threads, &got, &diag))
            check_fail(__FILE__, __LINE__, diag.text);
        check_equal(want, got, "image");
        check_equal(want, got, "mask");
        stk_batch_unref(&got);
    }
    stk_batch_unref(&want);
    tree_free(&s.tree);
    CHECK_EQ(waitpid(-1, NULL, WNOHANG), -1);
}

static void same_errors(void)
{
    struct set s = make();
    stk_batch *none;
    stk_diag diag = {0}, want = {0};
    CHECK_EQ(truncate(s.paths[0], 300), 0);
    const stk_err err = one_batch(&s, decoder(NULL), 1, &none, &want);
    CHECK_EQ(err, STK_ECORRUPT);
    CHECK_EQ(one_batch(&s, stk_op_isolate(decoder(NULL), NULL, &diag), 1, &none, &diag), err);
    CHECK(!strcmp(diag.text, want.text));
    tree_free(&s.tree);
}

static void prints(void)
{
    stk_op *op = stk_op_isolate(decoder(NULL), &(stk_isolate_opts){.timeout = 2.5}, NULL);
    char text[512];
    stk_op_get_class(op)->print(stk_op_params(op), text, sizeof(text));
    CHECK(strstr(text, "decode_image(24x24"));
    CHECK(strstr(text, "in a process of its own, at most 2.5 s"));
    stk_op_unref(&op);
}

static void refusals(void)
{
    stk_diag diag;
    CHECK(!stk_op_isolate(NULL, NULL, &diag));
    CHECK(!stk_op_isolate(stk_op_read(NULL, NULL), NULL, &diag));
    CHECK_EQ(diag.err, STK_EUNSUPPORTED);
    CHECK(!stk_op_isolate(decoder(NULL), &(stk_isolate_opts){.timeout = -1}, &diag));
    CHECK_EQ(diag.err, STK_EINVAL);
    CHECK(!stk_op_isolate(decoder(NULL), &(stk_isolate_opts){.timeout = NAN}, &diag));
    CHECK_EQ(diag.err, STK_EINVAL);
    char *mask = malloc(STK_WIRE_MOST + 1);
    CHECK(mask);
    memset(mask, 'm', STK_WIRE_MOST);
    mask[STK_WIRE_MOST] = '\0';
    const stk_audio_opts o = {.seconds = 1, .mask = mask};
    CHECK(!stk_op_isolate(stk_op_decode_wav(&o, NULL), NULL, &diag));
    CHECK_EQ(diag.err, STK_ELIMIT);
    free(mask);
}

static void every_failure(void)
{
    struct set s = make();
    stk_err err;
    TORTURE (err) {
        stk_batch *got = NULL;
        stk_diag diag = {0};
        stk_op *op = stk_op_isolate(decoder(&diag), NULL, &diag);
        err = op ? one_batch(&s, op, 1, &got, &diag) : STK_ENOMEM;
        if (!err && !stk_fault_armed()) err = STK_ENOMEM; /* it coped */
        CHECK(!err || err == STK_ENOMEM || err == STK_EAGAIN || err == STK_EINVAL);
        stk_batch_unref(&got);
    }
    CHECK_EQ(waitpid(-1, NULL, WNOHANG), -1);
    tree_free(&s.tree);
}

/* --- what helpers do to us --- */

static char *real;

/* The op's program is this one, which is then what PRETEND says. */
static stk_op *pretender(const char *as, double timeout)
{
    char self[4096];
    stk_diag diag = {0};
    const ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    CHECK(n > 0);
    self[n] = '\0';
    setenv("STOKER_DECODER", self, 1);
    stk_op *op = stk_op_isolate(decoder(NULL), &(stk_isolate_opts){.timeout = timeout}, &diag);
    if (!op) check_fail(__FILE__, __LINE__, diag.text);
    unsetenv("STOKER_DECODER");
    setenv("PRETEND", as, 1);
    return op;
}

static void stop_pretending(void)
{
    unsetenv("PRETEND");
    setenv("STOKER_DECODER", real, 1);
    CHECK_EQ(waitpid(-1, NULL, WNOHANG), -1);
}

static void bad_helpers(void)
{
    static const struct {
        const char *as, *words;
        stk_err err;
    } cases[] = {
        {"crash", "died of SIGSEGV", STK_ECORRUPT},
        {"killed", "died of SIGKILL", STK_ECORRUPT},
        {"exit", "ended with status 5", STK_ECORRUPT},
        {"hang", "took longer than 0.05 s", STK_ECORRUPT},
        {"shape", "another shape", STK_ECORRUPT},
        {"beyond", "where there are", STK_ECORRUPT},
        {"hole", "where there are", STK_ECORRUPT},
        {"empty", "where there are 0", STK_ECORRUPT},
        {"error", "error -7", STK_ECORRUPT},
        {"short", "2 bytes", STK_ECORRUPT},
        {"many", "another request", STK_ECORRUPT},
        {"odd hello", "another program", STK_EIO},
        {"early", "ended with status 4 before", STK_EIO},
        {"old", "another version", STK_EUNSUPPORTED},
    };
    struct set s = make();
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        stk_batch *none;
        stk_diag diag = {0};
        const bool hangs = !strcmp(cases[i].as, "hang");
        stk_op *op = pretender(cases[i].as, hangs ? 0.05 : 0);
        CHECK_EQ(one_batch(&s, op, 1, &none, &diag), cases[i].err);
        if (!strstr(diag.text, cases[i].words)) check_fail(__FILE__, __LINE__, diag.text);
        CHECK(strstr(diag.text, ".jpg")); /* the file */
        stop_pretending();
    }
    tree_free(&s.tree);
}

static void giants(void)
{
    const stk_stage_opts skip = {.on_error = STK_SKIP, .max_failures = 1};
    struct set s = make();
    stk_batch *none;
    stk_diag diag = {0};
    s.stage = &skip;
    CHECK_EQ(one_batch(&s, pretender("giant", 0), 1, &none, &diag), STK_ETOOMANY);
    if (!strstr(diag.text, "ended with status 7")) check_fail(__FILE__, __LINE__, diag.text);
    stop_pretending();
    tree_free(&s.tree);
}

/* One that does not answer, at the hello or at a sample, keeps no run from its end. */
static void cancelled(void)
{
    static const char *const as[] = {"mute", "hang"};
    struct set s = make();
    for (int i = 0; i < 2; i++) {
        stk_run *run;
        stk_batch *none;
        stk_diag diag = {0};
        CHECK_EQ(begin(&s, pretender(as[i], 1000), 2, &run, &diag), STK_OK);
        CHECK_EQ(stk_run_next(run, 20000000, &none, &diag), STK_ETIMEOUT);
        CHECK_EQ(stk_run_stop(run, INT64_C(50) * 1000000000, &diag), STK_OK);
        stk_run_free(&run);
        stop_pretending();
    }
    tree_free(&s.tree);
}

/* --- the helper's side, in a thread of this process --- */

struct service {
    int sockets[2], memory;
    stk_err err;
};

static void *serve(void *arg)
{
    struct service *v = arg;
    v->err = stk_serve(v->sockets[1], v->memory);
    close(v->sockets[1]);
    return NULL;
}

static stk_wire_reply ask(const struct service *v, const void *message, size_t size)
{
    stk_wire_reply r;
    CHECK_EQ(send(v->sockets[0], message, size, MSG_NOSIGNAL), size);
    CHECK_EQ(recv(v->sockets[0], &r, sizeof(r), 0), sizeof(r));
    return r;
}

/* Says hello, and then `rest`: what it says of the connection, and the last reply. */
static stk_err conversation(const void *rest, size_t size, stk_wire_reply *last)
{
    struct service v = {.memory = -1};
    stk_thread t = {0};
    stk_buffer *recipe;
    stk_diag diag;
    struct {
        stk_wire_hello hello;
        uint8_t recipe[1000];
    } m = {{.build = STK_WIRE_BUILD, .sizes = stk_wire_sizes()}, {0}};
    stk_op *op = decoder(&diag);
    CHECK_EQ(stk_recipe_write(op, &recipe, &diag), STK_OK);
    memcpy(m.recipe, stk_buffer_data(recipe), stk_buffer_size(recipe));
    CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, v.sockets), 0);
    CHECK_EQ(stk_thread_start(&t, "serve", serve, &v), STK_OK);
    const stk_wire_reply r = ask(&v, &m, sizeof(m.hello) + stk_buffer_size(recipe));
    CHECK(!r.diag.err && !r.number);
    if (last) *last = ask(&v, rest, size);
    if (!last) CHECK_EQ(send(v.sockets[0], rest, size, MSG_NOSIGNAL), size);
    if (last) CHECK_EQ(shutdown(v.sockets[0], SHUT_RDWR), 0);
    stk_thread_join(&t);
    close(v.sockets[0]);
    stk_buffer_unref(&recipe);
    stk_op_unref(&op);
    return v.err;
}

static void odd_requests(void)
{
    stk_wire_request r = {.number = 1, .num_parts = 1, .sizes = {STK_WIRE_NO_BYTES}};
    stk_wire_reply last;
    CHECK_EQ(conversation(&r, sizeof(r), &last), STK_OK);
    CHECK_EQ(last.diag.err, STK_EINVAL);
    CHECK(strstr(last.diag.text, "no bytes"));
    r.sizes[0] = 10; /* there is no memory */
    CHECK_EQ(conversation(&r, sizeof(r), &last), STK_OK);
    CHECK_EQ(last.diag.err, STK_EIO);
    r.sizes[0] = UINT64_MAX - 100;
    CHECK_EQ(conversation(&r, sizeof(r), &last), STK_OK);
    CHECK_EQ(last.diag.err, STK_ELIMIT);
    CHECK_EQ(conversation(&r, sizeof(r) - 1, NULL), STK_EINVAL);
    r.num_parts = 0;
    CHECK_EQ(conversation(&r, sizeof(r), NULL), STK_EINVAL);
    r.num_parts = STK_MAX_PARTS + 1;
    CHECK_EQ(conversation(&r, sizeof(r), NULL), STK_EINVAL);
}

static void odd_hellos(void)
{
    const stk_wire_hello old = {.build = "0", .sizes = stk_wire_sizes()};
    const stk_wire_hello sizes = {.build = STK_WIRE_BUILD, .sizes = 1};
    const stk_wire_hello bare = {.build = STK_WIRE_BUILD, .sizes = stk_wire_sizes()};
    const struct {
        const void *message;
        size_t size;
        stk_err err;
    } cases[] = {{"?", 1, STK_EINVAL},
                 {&old, sizeof(old), STK_EUNSUPPORTED},
                 {&sizes, sizeof(sizes), STK_EUNSUPPORTED},
                 {&bare, sizeof(bare), STK_EINVAL}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct service v = {.memory = -1};
        stk_thread t = {0};
        CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, v.sockets), 0);
        CHECK_EQ(stk_thread_start(&t, "serve", serve, &v), STK_OK);
        const stk_wire_reply r = ask(&v, cases[i].message, cases[i].size);
        CHECK_EQ(r.diag.err, cases[i].err);
        stk_thread_join(&t);
        CHECK_EQ(v.err, STK_OK);
        close(v.sockets[0]);
    }
}

static void keep_real(void)
{
    real = strdup(getenv("STOKER_DECODER"));
    CHECK(real);
}

static void free_real(void)
{
    free(real);
}

TESTS(TEST(keep_real), TEST(same_results), TEST(same_errors), TEST(prints), TEST(refusals),
      TEST(every_failure), TEST(bad_helpers), TEST(giants), TEST(cancelled), TEST(odd_requests),
      TEST(odd_hellos), TEST(free_real))

/* What FFmpeg logs in a call is its error's; everybody else's callback stays. */
#include <libavcodec/avcodec.h>
#include <libavutil/error.h>
#include <libavutil/log.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "av/call.h"
#include "base/alloc.h"
#include "tests/check.h"

static int heard;

static void theirs(void *ctx, int level, const char *fmt, va_list args)
{
    (void)ctx;
    (void)level;
    (void)fmt;
    (void)args;
    heard++;
}

static void *log_one(void *arg)
{
    (void)arg;
    av_log(NULL, AV_LOG_ERROR, "from another thread\n");
    return NULL;
}

static void lines_become_the_error(void)
{
    stk_av_call call;
    stk_diag diag;
    stk_av_enter(&call, &diag);
    av_log(NULL, AV_LOG_ERROR, "first %d\n", 1);
    av_log(NULL, AV_LOG_ERROR, "first %d\n", 1);
    av_log(NULL, AV_LOG_WARNING, "not this\n");
    av_log(NULL, AV_LOG_ERROR, "in ");
    av_log(NULL, AV_LOG_ERROR, "parts\n");
    CHECK_EQ(stk_av_fail(&call, AVERROR_INVALIDDATA, "cannot %s", "read"), STK_ECORRUPT);
    stk_av_leave(&call);
    CHECK(!strcmp(diag.text, "cannot read: Invalid data found when processing input (first 1;in "
                             "parts)"));
}

static void others_hear_what_is_theirs(void)
{
    stk_av_call call, inner;
    pthread_t thread;
    heard = 0;
    av_log_set_callback(theirs);
    av_log(NULL, AV_LOG_ERROR, "outside\n");
    CHECK_EQ(heard, 1);
    stk_av_enter(&call, NULL);
    stk_av_enter(&inner, NULL);
    av_log(NULL, AV_LOG_ERROR, "inside\n");
    CHECK_EQ(heard, 1);
    CHECK_EQ(pthread_create(&thread, NULL, log_one, NULL), 0);
    pthread_join(thread, NULL);
    CHECK_EQ(heard, 2);
    stk_av_leave(&inner);
    stk_av_leave(&call);
    av_log(NULL, AV_LOG_ERROR, "outside\n");
    CHECK_EQ(heard, 3);
}

typedef struct part {
    const AVClass *cls;
    void *parent;
} part;

static const char *name_of(void *ctx)
{
    (void)ctx;
    return "part";
}

static void *log_of_codec(void *arg)
{
    static const AVClass cls = {.class_name = "part",
                                .item_name = name_of,
                                .version = LIBAVUTIL_VERSION_INT,
                                .parent_log_context_offset = offsetof(part, parent)};
    part inner = {&cls, arg}, other = {&cls, NULL};
    av_log(arg, AV_LOG_ERROR, "of the codec\n");
    av_log(arg, AV_LOG_WARNING, "not this\n");
    av_log(&inner, AV_LOG_ERROR, "of its part\n");
    av_log(&inner, AV_LOG_ERROR, "of its part\n");
    av_log(&other, AV_LOG_ERROR, "of another\n");
    return NULL;
}

static void log_on_a_thread(AVCodecContext *codec)
{
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, log_of_codec, codec), 0);
    pthread_join(thread, NULL);
}

static void check_says(stk_av_log *log, bool fails, const char *text)
{
    stk_av_call call;
    stk_diag diag = {0};
    stk_av_enter(&call, &diag);
    stk_av_call_hears(&call, log);
    if (fails) CHECK_EQ(stk_av_say(&call, STK_EIO, "no"), STK_EIO);
    stk_av_leave(&call);
    if (fails && strcmp(diag.text, text)) check_fail(__FILE__, __LINE__, diag.text);
}

static void threads_of_codecs_are_heard(void)
{
    stk_av_log log = {0};
    AVCodecContext *codec = avcodec_alloc_context3(NULL), *other = avcodec_alloc_context3(NULL);
    CHECK(codec && other);
    heard = 0;
    av_log_set_callback(theirs);
    stk_av_log_start(&log, codec);
    log_on_a_thread(codec); /* no call runs */
    CHECK_EQ(heard, 1);     /* of another */
    check_says(&log, true, "no ([NULL] of the codec;[part] of its part)");
    check_says(&log, true, "no");
    log_on_a_thread(codec);
    check_says(&log, false, NULL);
    check_says(&log, true, "no ([NULL] of the codec;[part] of its part)");
    log_on_a_thread(codec);
    for (int i = 0; i < 100; i++) check_says(&log, false, NULL); /* so it was of no error */
    check_says(&log, true, "no");
    log_on_a_thread(other);
    CHECK_EQ(heard, 3 + 5);
    stk_av_log_stop(&log);
    stk_av_log_stop(&log);
    log_on_a_thread(codec);
    CHECK_EQ(heard, 8 + 5);
    avcodec_free_context(&codec);
    avcodec_free_context(&other);
}

static void a_log_may_go_before_its_call(void)
{
    stk_av_call call;
    stk_diag diag;
    stk_av_log *log = stk_alloc_zero(1, sizeof(*log));
    AVCodecContext *codec = avcodec_alloc_context3(NULL);
    CHECK(log && codec);
    stk_av_enter(&call, &diag);
    stk_av_log_start(log, codec);
    stk_av_call_hears(&call, log);
    stk_av_log_stop(log);
    stk_free(log);
    CHECK_EQ(stk_av_say(&call, STK_EIO, "no"), STK_EIO);
    stk_av_leave(&call);
    avcodec_free_context(&codec);
}

static void a_long_log_is_cut(void)
{
    stk_av_call call;
    stk_diag diag;
    stk_av_enter(&call, &diag);
    for (int i = 0; i < 1000; i++) av_log(NULL, AV_LOG_ERROR, "line %d of many\n", i);
    CHECK_EQ(stk_av_say(&call, STK_EIO, "no"), STK_EIO);
    stk_av_leave(&call);
    CHECK(strstr(diag.text, "no (line 0 of many;line 1 of many"));
    CHECK(strlen(diag.text) < sizeof(diag.text));
}

static void passwords_are_left_out(void)
{
    char path[600] = "tcp://me:";
    stk_av_call call;
    stk_diag diag;
    memset(path + 9, 's', 590);
    stk_av_enter(&call, &diag);
    av_log(NULL, AV_LOG_ERROR, "a://me:s@s@b:1/x@y and c://d://me:s@e failed\n");
    av_log(NULL, AV_LOG_ERROR, "%s@host\n", path);
    CHECK_EQ(stk_av_say(&call, STK_EIO, "no"), STK_EIO);
    stk_av_leave(&call);
    if (strcmp(diag.text, "no (a://b:1/x@y and c://d://e failed;tcp://)"))
        check_fail(__FILE__, __LINE__, diag.text);
}

static void *enter_again_and_again(void *stop)
{
    while (!atomic_load((atomic_bool *)stop)) {
        stk_av_call call;
        stk_av_enter(&call, NULL);
        stk_av_leave(&call);
    }
    return NULL;
}

static void children_can_go_on(void)
{
    atomic_bool stop = false;
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, enter_again_and_again, &stop), 0);
    for (int i = 0; i < 50; i++) {
        const pid_t pid = fork();
        CHECK(pid >= 0);
        if (!pid) {
            stk_av_call call;
            alarm(60); /* a lock that nobody gives back */
            stk_av_enter(&call, NULL);
            stk_av_leave(&call);
            _exit(0);
        }
        int status;
        CHECK_EQ(waitpid(pid, &status, 0), pid);
        CHECK_EQ(status, 0);
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
}

static void codes(void)
{
    stk_av_call call;
    stk_av_enter(&call, NULL);
    CHECK_EQ(stk_av_fail(&call, AVERROR(ENOMEM), "x"), STK_ENOMEM);
    CHECK_EQ(stk_av_fail(&call, AVERROR(ENOENT), "x"), STK_ENOTFOUND);
    CHECK_EQ(stk_av_fail(&call, AVERROR(EINVAL), "x"), STK_ECORRUPT);
    CHECK_EQ(stk_av_wrong(&call, AVERROR(EINVAL), "x"), STK_EINVAL);
    CHECK_EQ(stk_av_wrong(&call, AVERROR(ENOMEM), "x"), STK_ENOMEM);
    CHECK_EQ(stk_av_fail(&call, AVERROR_DECODER_NOT_FOUND, "x"), STK_EUNSUPPORTED);
    stk_av_leave(&call);
}

int main(void)
{
    stk_av_call_start();
    lines_become_the_error();
    others_hear_what_is_theirs();
    lines_become_the_error();
    threads_of_codecs_are_heard();
    a_log_may_go_before_its_call();
    a_long_log_is_cut();
    passwords_are_left_out();
    codes();
    children_can_go_on();
    return 0;
}

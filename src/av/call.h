/*
 * A call into FFmpeg: what it logs meanwhile on this thread becomes part of its error.
 *
 *     stk_av_call call;
 *     stk_av_enter(&call, diag);
 *     int rc = avformat_...();
 *     if (rc < 0) err = stk_av_fail(&call, rc, "cannot seek");
 *     stk_av_leave(&call);
 *
 * FFmpeg has one log callback for the whole process, and no function that tells which it is.  While
 * a call here runs, and only then, ours is in its place, and passes on what other threads log to
 * the one that was there.  Which one that was is found in the data of libavutil: the word that
 * changes when av_log_set_callback is called.  Where that word is not found, ours stays, and passes
 * on to FFmpeg's default.
 *
 * Codecs may have threads of their own, which log on these, also between calls.  Such a codec has a
 * stk_av_log, and ours stays in place until it is gone; a call that uses the codec has its words.
 *
 * Threads: a call belongs to the thread that entered it.  Calls may be nested.
 */
#ifndef STK_AV_CALL_H
#define STK_AV_CALL_H

#include <stoker/error.h>

struct AVCodecContext;

enum { STK_AV_LINES = 1024 };

typedef struct stk_av_call {
    struct stk_av_call *outer;
    stk_diag *diag;
    struct stk_av_log *log; /* of the codec that it uses; NULL: of none */
    size_t used;
    char lines[STK_AV_LINES]; /* the first errors that were logged */
} stk_av_call;

/* What a codec's own threads logged, and no call had yet. */
typedef struct stk_av_log {
    bool on;
    struct stk_av_log *next; /* the rest is guarded, as all logs are, by one lock */
    unsigned age;            /* calls since the last line */
    size_t used;
    char lines[STK_AV_LINES];
} stk_av_log;

void stk_av_call_start(void); /* once */

void stk_av_enter(stk_av_call *call, stk_diag *diag);
void stk_av_leave(stk_av_call *call);

/* Sets the diag: the text, FFmpeg's words for `rc`, and what was logged.  Gives the code that fits
 * `rc`, where data was wrong (_fail) or an argument (_wrong).  stk_av_say: without a code of
 * FFmpeg's. */
stk_err stk_av_fail(stk_av_call *call, int rc, const char *fmt, ...) STK_PRINTF(3, 4);
stk_err stk_av_wrong(stk_av_call *call, int rc, const char *fmt, ...) STK_PRINTF(3, 4);
stk_err stk_av_say(stk_av_call *call, stk_err err, const char *fmt, ...) STK_PRINTF(3, 4);

/* Before the codec is opened: from here on its threads log into `log`, which is all zero, and not
 * elsewhere.  `codec` has its address as `opaque`. */
void stk_av_log_start(stk_av_log *log, struct AVCodecContext *codec);

/* The codec has no threads, or not any more; also of all zero, and again. */
void stk_av_log_stop(stk_av_log *log);

/* What is in the log, or comes into it until the call is left, becomes part of the call's errors.
 * Lines that came many calls ago were of no error, and go. */
void stk_av_call_hears(stk_av_call *call, stk_av_log *log);

/* Takes names and passwords out of addresses: what is before the last @ of a host (RFC 3986, 3.2).
 * `cut`: the end of the text is missing, and an @ may have been there. */
void stk_av_hide_passwords(char *text, bool cut);

/* The log level was set by the user: from now on, what happens in calls is logged, too. */
void stk_av_call_loud(void);

#endif /* STK_AV_CALL_H */

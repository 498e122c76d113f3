/*
 * stk_filter_graph: FFmpeg's filters between any number of inputs and outputs.
 *
 *     stk_filter_graph_add("buffer@a") ──► [a][b] hstack ──► stk_filter_graph_get("buffersink@c")
 *
 * Its description has them all: each `buffer` and `abuffer` is an input, each `buffersink` and
 * `abuffersink` an output.  Written buffer@a, that is the name; otherwise FFmpeg gives one.
 *
 * Threads: one at a time; a second one is told STK_EAGAIN.
 */
#ifndef STK_AV_GRAPH_H
#define STK_AV_GRAPH_H

#include <stoker/av_frames.h>

STK_BEGIN

typedef struct stk_filter_graph stk_filter_graph;

/* STK_EINVAL, with FFmpeg's words: a wrong description, open ends, or no output. */
STK_API STK_NODISCARD stk_err stk_filter_graph_new(const char *description, stk_filter_graph **out,
                                                   stk_diag *diag);
STK_API void stk_filter_graph_free(stk_filter_graph **graph);

/* The name of the i-th input or output, which lives as long as the graph; NULL: there is none. */
STK_API const char *stk_filter_graph_name(const stk_filter_graph *graph, bool output, size_t i);

/* Puts frames in, which are filtered when somebody asks for what becomes of them; until then, and
 * while they wait for frames of another input, the graph keeps them.  `name`: of the input, also
 * without what is before the @; NULL: the only one.
 * STK_ENOTFOUND: no such input.  STK_EINVAL: several, or not such frames as the input was described
 * with, of which then none was put in; or the graph was flushed. */
STK_API STK_NODISCARD stk_err stk_filter_graph_add(stk_filter_graph *graph, const char *name,
                                                   const stk_frames *frames, stk_diag *diag);

/* What the output can give, at most `max_frames` of it; 0: all.  *out may hold no frame.
 * STK_ENOTFOUND, STK_EINVAL: as above.  STK_ELIMIT: more than `max_bytes`, 0 for 4 GiB. */
STK_API STK_NODISCARD stk_err stk_filter_graph_get(stk_filter_graph *graph, const char *name,
                                                   size_t max_frames, size_t max_bytes,
                                                   stk_frames **out, stk_diag *diag);

/* No more frames come in: what filters hold back can be had. */
STK_API STK_NODISCARD stk_err stk_filter_graph_flush(stk_filter_graph *graph, stk_diag *diag);

/* A drawing of the graph, as text; a new buffer. */
STK_API STK_NODISCARD stk_err stk_filter_graph_dump(stk_filter_graph *graph, stk_buffer **out,
                                                    stk_diag *diag);

STK_END

#endif /* STK_AV_GRAPH_H */

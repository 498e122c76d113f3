/*
 * What a module gives the library: one table of functions, which is the list below.
 *
 *     stk_x(...) in libstoker  ──► table->x  ──►  mod_x(...) in stoker-av-N.so
 *
 * A module is built with one version of the library and works with no other.  It has copies of
 * what it uses of src/base and src/data; buffers and diags cross between the two.
 */
#ifndef STK_AV_TABLE_H
#define STK_AV_TABLE_H

#include <stoker/av.h>
#include <stoker/av_demux.h>
#include <stoker/av_frames.h>
#include <stoker/av_graph.h>
#include <stoker/av_live.h>
#include <stoker/av_mux.h>
#include <stoker/av_picture.h>
#include <stoker/av_reader.h>

/* clang-format off */

/* F: fails, has an `out`, which is 0 or NULL after a failure, and a `diag`.
 * name, parameters, arguments */
#define STK_AV_CALLS(F) \
    F(av_filter_next, (size_t *at, stk_av_filter *out, stk_diag *diag), (at, out, diag)) \
    F(av_log_level, (int *out, stk_diag *diag), (out, diag)) \
    F(packets_write, (const stk_packets *packets, stk_buffer **out, stk_diag *diag), (packets, out, diag)) \
    F(packets_read, (stk_buffer *bytes, stk_packets **out, stk_diag *diag), (bytes, out, diag)) \
    F(packets_cut, (const stk_packets *packets, const stk_window *window, stk_packets **out, stk_diag *diag), (packets, window, out, diag)) \
    F(demuxer_open, (const stk_av_input *input, const stk_demux_opts *opts, stk_demuxer **out, stk_diag *diag), (input, opts, out, diag)) \
    F(demuxer_stream_info, (stk_demuxer *demuxer, int stream, stk_stream_info *out, stk_diag *diag), (demuxer, stream, out, diag)) \
    F(demuxer_codec, (stk_demuxer *demuxer, int stream, stk_media media, stk_av_codec **out, stk_diag *diag), (demuxer, stream, media, out, diag)) \
    F(demuxer_read, (stk_demuxer *demuxer, stk_media media, const stk_window *window, const char *bsf, stk_packets **out, stk_diag *diag), (demuxer, media, window, bsf, out, diag)) \
    F(demuxer_next, (stk_demuxer *demuxer, const int *streams, size_t n, stk_ratio duration, size_t num_packets, stk_packets **out, stk_diag *diag), (demuxer, streams, n, duration, num_packets, out, diag)) \
    F(bsf_new, (const stk_av_codec *codec, const char *filters, stk_bsf **out, stk_diag *diag), (codec, filters, out, diag)) \
    F(bsf_filter, (stk_bsf *bsf, const stk_packets *packets, bool flush, stk_packets **out, stk_diag *diag), (bsf, packets, flush, out, diag)) \
    F(frames_pick, (const stk_frames *frames, const size_t *indices, size_t n, stk_media media, stk_frames **out, stk_diag *diag), (frames, indices, n, media, out, diag)) \
    F(frames_spec, (const stk_frames *const *frames, size_t n, bool batched, stk_spec *out, stk_diag *diag), (frames, n, batched, out, diag)) \
    F(frames_memory, (const stk_frames *frames, stk_buffer **out, stk_diag *diag), (frames, out, diag)) \
    F(frames_over, (const stk_av_array *array, stk_frames **out, stk_diag *diag), (array, out, diag)) \
    F(decoder_new, (const stk_av_codec *codec, const stk_decode_opts *opts, stk_decoder **out, stk_diag *diag), (codec, opts, out, diag)) \
    F(decoder_decode, (stk_decoder *decoder, stk_packets *packets, bool flush, stk_frames **out, stk_diag *diag), (decoder, packets, flush, out, diag)) \
    F(decoder_next, (stk_decoder *decoder, size_t max_frames, size_t max_bytes, stk_frames **out, stk_diag *diag), (decoder, max_frames, max_bytes, out, diag)) \
    F(decoder_pick, (stk_decoder *decoder, const stk_packets *packets, const size_t *indices, size_t n, stk_frames **out, stk_diag *diag), (decoder, packets, indices, n, out, diag)) \
    F(video_reader_new, (stk_demuxer *demuxer, const stk_decode_opts *opts, stk_video_reader **out, stk_diag *diag), (demuxer, opts, out, diag)) \
    F(video_plan_new, (stk_video_reader *reader, const size_t *frames, const size_t *lengths, size_t n, size_t max_bytes, stk_video_plan **out, stk_diag *diag), (reader, frames, lengths, n, max_bytes, out, diag)) \
    F(video_plan_next, (stk_video_plan *plan, stk_spec *spec, stk_buffer **out, stk_diag *diag), (plan, spec, out, diag)) \
    F(filter_graph_new, (const char *description, stk_filter_graph **out, stk_diag *diag), (description, out, diag)) \
    F(filter_graph_get, (stk_filter_graph *graph, const char *name, size_t max_frames, size_t max_bytes, stk_frames **out, stk_diag *diag), (graph, name, max_frames, max_bytes, out, diag)) \
    F(filter_graph_dump, (stk_filter_graph *graph, stk_buffer **out, stk_diag *diag), (graph, out, diag)) \
    F(encoder_encode, (stk_encoder *encoder, const stk_frames *frames, bool flush, stk_packets **out, stk_diag *diag), (encoder, frames, flush, out, diag)) \
    F(live_open, (const stk_av_input *input, const stk_live_opts *opts, stk_live **out, stk_diag *diag), (input, opts, out, diag)) \
    F(live_next, (stk_live *live, int64_t timeout, stk_frames **out, stk_diag *diag), (live, timeout, out, diag)) \
    F(muxer_new, (const char *url, const stk_mux_opts *opts, stk_muxer **out, stk_diag *diag), (url, opts, out, diag)) \
    F(muxer_add_encoder, (stk_muxer *muxer, const stk_encode_opts *opts, stk_encoder **out, stk_diag *diag), (muxer, opts, out, diag)) \
    F(picture_decoder_new, (const char *codec, stk_picture_decoder **out, stk_diag *diag), (codec, out, diag))

/* V: fails, and gives nothing that would have to be cleared.  name, parameters, arguments */
#define STK_AV_CHECKS(V) \
    V(av_versions, (stk_av_version out[STK_AV_VERSIONS], stk_diag *diag), (out, diag)) \
    V(av_set_log_level, (int level, stk_diag *diag), (level, diag)) \
    V(av_codec_mixes, (const stk_av_codec *codec, int channels, stk_diag *diag), (codec, channels, diag)) \
    V(decoder_put, (stk_decoder *decoder, stk_packets *packets, stk_diag *diag), (decoder, packets, diag)) \
    V(decoder_fill, (stk_decoder *decoder, const stk_packets *packets, const stk_frames_wanted *wanted, void *dst, size_t size, stk_diag *diag), (decoder, packets, wanted, dst, size, diag)) \
    V(filter_graph_add, (stk_filter_graph *graph, const char *name, const stk_frames *frames, stk_diag *diag), (graph, name, frames, diag)) \
    V(filter_graph_flush, (stk_filter_graph *graph, stk_diag *diag), (graph, diag)) \
    V(frames_copy, (const stk_frames *const *frames, size_t n, void *dst, size_t size, stk_diag *diag), (frames, n, dst, size, diag)) \
    V(muxer_add_codec, (stk_muxer *muxer, const stk_av_codec *codec, stk_diag *diag), (muxer, codec, diag)) \
    V(muxer_open, (stk_muxer *muxer, const char *const *options, stk_diag *diag), (muxer, options, diag)) \
    V(muxer_write, (stk_muxer *muxer, size_t stream, const stk_packets *packets, stk_diag *diag), (muxer, stream, packets, diag)) \
    V(muxer_flush, (stk_muxer *muxer, stk_diag *diag), (muxer, diag)) \
    V(muxer_close, (stk_muxer *muxer, stk_diag *diag), (muxer, diag)) \
    V(picture_decode, (stk_picture_decoder *decoder, const stk_picture *picture, stk_picture_row_fn *push, void *ctx, stk_diag *diag), (decoder, picture, push, ctx, diag))

/* Q: asks an object, which only exists if the module is loaded.  result, name, parameters, arguments */
#define STK_AV_QUERIES(Q) \
    Q(stk_av_codec *, av_codec_ref, (stk_av_codec *codec), (codec)) \
    Q(stk_packets *, packets_ref, (stk_packets *packets), (packets)) \
    Q(stk_av_codec *, packets_codec, (const stk_packets *packets), (packets)) \
    Q(size_t, packets_times, (const stk_packets *packets, bool all, stk_ratio *time_base, int64_t *out, size_t n), (packets, all, time_base, out, n)) \
    Q(size_t, packets_shown, (const stk_packets *packets, stk_ratio *time_base, int64_t *end, int64_t *out, size_t n), (packets, time_base, end, out, n)) \
    Q(int, demuxer_best, (const stk_demuxer *demuxer, stk_media media), (demuxer, media)) \
    Q(int, demuxer_num_streams, (const stk_demuxer *demuxer), (demuxer)) \
    Q(size_t, decoder_failed, (const stk_decoder *decoder), (decoder)) \
    Q(size_t, video_reader_length, (const stk_video_reader *reader), (reader)) \
    Q(const char *, filter_graph_name, (const stk_filter_graph *graph, bool output, size_t i), (graph, output, i)) \
    Q(stk_frames *, frames_ref, (stk_frames *frames), (frames)) \
    Q(bool, frames_metadata, (const stk_frames *frames, size_t *at, const char **key, const char **value), (frames, at, key, value)) \
    Q(const char *, muxer_format, (const stk_muxer *muxer), (muxer)) \
    Q(int, encoder_frame_size, (const stk_encoder *encoder), (encoder)) \
    Q(stk_av_codec *, encoder_codec, (const stk_encoder *encoder), (encoder))

/* D: does something to an object.  name, parameters, arguments */
#define STK_AV_DEEDS(D) \
    D(av_codec_get_info, (const stk_av_codec *codec, stk_av_codec_info *out), (codec, out)) \
    D(packets_get_info, (const stk_packets *packets, stk_packets_info *out), (packets, out)) \
    D(demuxer_get_info, (const stk_demuxer *demuxer, stk_demuxer_info *out), (demuxer, out)) \
    D(demuxer_cancel, (stk_demuxer *demuxer), (demuxer)) \
    D(muxer_cancel, (stk_muxer *muxer), (muxer)) \
    D(live_cancel, (stk_live *live), (live)) \
    D(live_close, (stk_live *live), (live)) \
    D(live_get_stats, (stk_live *live, stk_live_stats *out), (live, out)) \
    D(video_reader_times, (const stk_video_reader *reader, stk_ratio *time_base, int64_t *times, bool *keys, size_t n), (reader, time_base, times, keys, n)) \
    D(video_reader_get_stats, (const stk_video_reader *reader, stk_video_reader_stats *out), (reader, out)) \
    D(frames_get_info, (const stk_frames *frames, stk_frames_info *out), (frames, out)) \
    D(frames_times, (const stk_frames *frames, int64_t *out, size_t n), (frames, out, n))

/* U: a destructor, which takes the address of NULL too.  name, type, variable */
#define STK_AV_ENDS(U) \
    U(av_codec_unref, stk_av_codec) \
    U(packets_unref, stk_packets) \
    U(demuxer_free, stk_demuxer) \
    U(bsf_free, stk_bsf) \
    U(frames_unref, stk_frames) \
    U(decoder_free, stk_decoder) \
    U(video_plan_free, stk_video_plan) \
    U(video_reader_free, stk_video_reader) \
    U(filter_graph_free, stk_filter_graph) \
    U(live_free, stk_live) \
    U(encoder_free, stk_encoder) \
    U(muxer_free, stk_muxer) \
    U(picture_decoder_free, stk_picture_decoder)

/* clang-format on */

typedef struct stk_av_table {
    const char *built_for; /* STK_AV_BUILD of the library it belongs to */
    size_t size;           /* of this struct */
    void (*start)(void);   /* once, after loading */

#define F(name, params, args) stk_err(*name) params;
#define Q(result, name, params, args) result(*name) params;
#define D(name, params, args) void(*name) params;
#define U(name, type) void (*name)(type * *object);
    STK_AV_CALLS(F)
    STK_AV_CHECKS(F)
    STK_AV_QUERIES(Q)
    STK_AV_DEEDS(D)
    STK_AV_ENDS(U)
#undef F
#undef Q
#undef D
#undef U
} stk_av_table;

#define STK_AV_BUILD STK_VERSION " 16" /* the number grows with every change of what crosses */
#define STK_AV_SYMBOL "stk_av_module"  /* the table's name */

#endif /* STK_AV_TABLE_H */

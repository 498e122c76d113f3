/* Whether an input ends before what its header says: packets are counted, stream by stream. */
#include <string.h>

#include "av/demuxer.h"
#include "av/ending.h"
#include "base/alloc.h"

enum {
    RIFF_SLACK = 8
}; /* bytes that some count too many: the head, or padding that is not there */

struct stk_tally {
    size_t n;
    int64_t first, lasts; /* how long the first one is shown, and all together */
    bool untold;          /* one does not say how long */
    bool part;            /* not all were read that there were */
};

stk_err stk_demuxer_count_from_start(stk_demuxer *d)
{
    if (!d->tallies) {
        d->num_tallies = d->fc->nb_streams;
        d->tallies = stk_alloc_zero(d->num_tallies ? d->num_tallies : 1, sizeof(*d->tallies));
        return d->tallies ? STK_OK : STK_ENOMEM;
    }
    memset(d->tallies, 0, d->num_tallies * sizeof(*d->tallies));
    return STK_OK;
}

void stk_demuxer_count(stk_demuxer *d)
{
    const AVPacket *p = d->packet;
    if ((unsigned)p->stream_index >= d->num_tallies) return;
    stk_tally *t = &d->tallies[p->stream_index];
    if (!t->n++) t->first = p->duration;
    t->untold |= p->duration <= 0 || __builtin_add_overflow(t->lasts, p->duration, &t->lasts);
}

void stk_demuxer_count_part(stk_demuxer *d, unsigned stream)
{
    if (stream < d->num_tallies) d->tallies[stream].part = true;
}

/* Whether the packets of sound last less than the header says, by so many of them at least. */
static bool lasts_less(const AVStream *st, const stk_tally *t, int64_t packets)
{
    return !t->untold && st->duration > t->lasts && (st->duration - t->lasts) / packets >= t->first;
}

/* AVI and WAV tell the size of the whole file, too.  AVI counts pictures that were left out; where
 * WAV is cut, FFmpeg forgets what its header said. */
static bool is_short_riff(const stk_demuxer *d, const stk_tally *t, const AVStream *st, bool told)
{
    if (!av_input_is_cut(&d->input, told ? 0 : RIFF_SLACK)) return false;
    if (st->codecpar->codec_type == AVMEDIA_TYPE_VIDEO) return (uint64_t)st->nb_frames > t->n;
    return !told || lasts_less(st, t, 1);
}

/* Whether the file's index has more packets.  Those without a byte show nothing, and are not given
 * where a parser looks at the stream. */
static bool has_more(const AVStream *st, size_t n, bool surely)
{
    const int entries = avformat_index_get_entries_count(st);
    size_t more = 0;
    if (entries < 0 || (size_t)entries <= n) return false;
    if (!surely) return true;
    for (int i = 0; i < entries; i++) {
        const AVIndexEntry *e = avformat_index_get_entry((AVStream *)st, i);
        more += e && e->size > 0;
    }
    return more > n;
}

/* Some encoders of MP3 count the frame that holds the number. */
bool stk_demuxer_is_short(const stk_demuxer *d, int stream, bool surely)
{
    if ((unsigned)stream >= d->num_tallies) return false;
    const char *name = d->fc->iformat->name;
    const AVStream *st = d->fc->streams[stream];
    const stk_tally *t = &d->tallies[stream];
    const bool told = d->fc->duration_estimation_method == AVFMT_DURATION_FROM_STREAM;
    const bool avi = !strcmp(name, "avi"), mov = !strncmp(name, "mov,", 4);
    const bool wav = !strcmp(name, "wav"), mp3 = !strcmp(name, "mp3");
    if (!t->n || t->part) return false;
    if (av_ending_is_missing(name, &d->input, surely ? d->fc->pb : NULL)) return true;
    const bool indexed = mov || (avi && st->codecpar->codec_type == AVMEDIA_TYPE_VIDEO);
    if (indexed && has_more(st, t->n, surely)) return true;
    if ((avi || wav) && av_input_has_riff(&d->input)) return is_short_riff(d, t, st, told);
    if (mp3) return told && lasts_less(st, t, 2);
    if (wav || !strcmp(name, "w64") || !strcmp(name, "flac")) return told && lasts_less(st, t, 1);
    return false;
}

/* --- parts --- */

/* Whether the end is looked for behind a part that is full: where that waits for nobody, or the
 * header says that there is more. */
static bool looks_ahead(const stk_demuxer *d, const stk_demuxer_part *part)
{
    if (d->live || d->held) return false;
    bool more = d->input.size >= 0;
    for (size_t i = 0; i < part->n; i++) more |= stk_demuxer_is_short(d, part->streams[i], false);
    return more;
}

stk_err stk_demuxer_look_ahead(stk_demuxer *d, const stk_demuxer_part *part, stk_av_call *call)
{
    if (!looks_ahead(d, part)) return STK_OK;
    stk_diag *told = call->diag;
    call->diag = &d->later;
    const stk_err err = stk_demuxer_packet(d, call);
    call->diag = told;
    d->held = !err;
    /* Who was asked and said no is told now, and the next call asks again. */
    if (!err || err == STK_EEND || err == STK_ECANCELLED)
        d->later = (stk_diag){0};
    else
        d->later.err = err;
    return err == STK_EEND ? err : STK_OK;
}

void stk_demuxer_mark_end(const stk_demuxer *d, const stk_demuxer_part *part, stk_packets **out,
                          bool complained)
{
    bool nowhere = complained; /* a stream is short of which this part has no packet */
    for (size_t i = 0; i < part->n; i++)
        nowhere |= !out[i] && stk_demuxer_is_short(d, part->streams[i], true);
    for (size_t i = 0; i < part->n; i++)
        if (out[i] && (nowhere || stk_demuxer_is_short(d, part->streams[i], true)))
            out[i]->list[out[i]->n - 1]->flags |= AV_PKT_FLAG_CORRUPT;
}

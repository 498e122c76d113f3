#include "data.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <stoker/image.h>
#include <stoker/tar.h>
#include <stoker/zip.h>

#include "file.h"

/* Bytes from where the last ones ended. */
typedef struct reading {
    file *f;
    uint64_t at;
} reading;

static stk_err read_on(void *ctx, void *dst, size_t size, size_t *got, stk_diag *diag)
{
    reading *r = ctx;
    ssize_t n;
    do n = pread(r->f->fd, dst, size, (off_t)r->at);
    while (n < 0 && errno == EINTR);
    *got = n < 0 ? 0 : (size_t)n;
    r->at += *got;
    return n < 0 ? stk_diag_errno(diag, errno, "read %s", r->f->path) : STK_OK;
}

/* Of a format whose header needs no FFmpeg; the head may be cut. */
static bool is_picture(const uint8_t *head, size_t size)
{
    stk_image_info info;
    return stk_image_probe(head, size, &info, NULL) != STK_EUNSUPPORTED;
}

static bool is_tar(const uint8_t *head, size_t size)
{
    return size >= 512 && !memcmp(head + 257, "ustar", 5);
}

static uint32_t number_at(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* A file begins with its magic; a stream with a message, which is a mark, its size, and a
 * FlatBuffer, which begins with where its table is ("Encapsulated message format" of the Arrow
 * columnar format). */
static bool is_arrow(const uint8_t *head, size_t size)
{
    if (size >= 8 && !memcmp(head, "ARROW1\0\0", 8)) return true;
    if (size < 16 || number_at(head) != UINT32_MAX) return false;
    const uint32_t message = number_at(head + 4), table = number_at(head + 8);
    return message >= 16 && message <= 1 << 24 && message % 8 == 0 && table >= 4 && table < message;
}

/* PARE: whose footer is encrypted. */
static bool is_parquet(const uint8_t *magic)
{
    return !memcmp(magic, "PAR1", 4) || !memcmp(magic, "PARE", 4);
}

static data_kind kind_of(const uint8_t *head, size_t size)
{
    static const uint8_t w64[] = {'r', 'i', 'f', 'f', 0x2e, 0x91, 0xcf, 0x11};
    if (size >= 6 && !memcmp(head, "\x93NUMPY", 6)) return DATA_NPY;
    if (size >= 12 && !memcmp(head + 8, "WAVE", 4)) return DATA_WAV;
    if (size >= 8 && !memcmp(head, w64, 8)) return DATA_WAV;
    if (size >= 4 && (!memcmp(head, "PK\3\4", 4) || !memcmp(head, "PK\5\6", 4))) return DATA_ZIP;
    if (is_tar(head, size)) return DATA_TAR;
    if (stk_packing_of(head, size)) return DATA_PACKED;
    if (is_arrow(head, size)) return DATA_ARROW;
    if (size >= 4 && is_parquet(head)) return DATA_PARQUET;
    return size && !is_picture(head, size) ? DATA_MEDIA : DATA_NONE;
}

/* Only the header is touched. */
static stk_err look_npy(file *f, data_facts *d, stk_diag *diag)
{
    void *all = mmap(NULL, (size_t)d->bytes, PROT_READ, MAP_PRIVATE, f->fd, 0);
    if (all == MAP_FAILED) return stk_diag_errno(diag, errno, "read %s", f->path);
    const stk_err err = stk_npy_parse(all, (size_t)d->bytes, &d->npy, diag);
    munmap(all, (size_t)d->bytes);
    return err;
}

/* Takes the archive. */
static stk_err count_members(stk_tar **t, data_facts *d, stk_diag *diag)
{
    stk_err err = STK_OK;
    while (!err) {
        stk_tar_member m;
        err = stk_tar_next(*t, &m, diag);
        d->members += !err;
        d->member_bytes += err ? 0 : (int64_t)m.size;
        if (err == STK_EAGAIN) err = stk_tar_fill(*t, diag);
    }
    stk_tar_free(t);
    return err == STK_EEND ? STK_OK : err;
}

static stk_err look_tar(file *f, data_facts *d, stk_diag *diag)
{
    stk_tar *t;
    const stk_err err = stk_tar_at(file_read_at, f, d->bytes, NULL, &t);
    if (err) return stk_diag_set(diag, err, "%s", stk_err_str(err));
    return count_members(&t, d, diag);
}

/* All of it, and the first bytes into `head`. */
static stk_err unpack(stk_stream *s, data_facts *d, uint8_t head[512], stk_diag *diag)
{
    uint8_t block[1 << 15];
    size_t got = 1;
    stk_err err = STK_OK;
    while (!err && got && d->unpacked < 512) {
        err = stk_stream_read(s, head + d->unpacked, 512 - (size_t)d->unpacked, &got, diag);
        d->unpacked += (int64_t)got;
    }
    if (is_tar(head, (size_t)d->unpacked)) return STK_EAGAIN;
    while (!err && got) {
        err = stk_stream_read(s, block, sizeof(block), &got, diag);
        d->unpacked += (int64_t)got;
    }
    return err;
}

static stk_err look_packed(file *f, data_facts *d, stk_diag *diag)
{
    uint8_t head[512];
    reading r = {.f = f};
    stk_stream *s;
    stk_tar *t;
    stk_err err = stk_stream_from(read_on, &r, NULL, &s);
    if (err) return stk_diag_set(diag, err, "%s", stk_err_str(err));
    err = unpack(s, d, head, diag);
    stk_stream_free(&s);
    if (err != STK_EAGAIN) return err;

    d->kind = DATA_TAR;
    r.at = 0;
    err = stk_stream_from(read_on, &r, NULL, &s);
    if (!err) err = stk_tar_from(&s, NULL, &t);
    if (!err) return count_members(&t, d, diag);
    stk_stream_free(&s);
    return stk_diag_set(diag, err, "%s", stk_err_str(err));
}

/* Both end as they begin: that is seen without Python. */
static stk_err look_columns(file *f, data_facts *d, stk_diag *diag)
{
    uint8_t head[6], tail[6] = {0};
    stk_err err = file_read_at(f, 0, head, sizeof(head), diag);
    if (!err && d->bytes >= 2 * sizeof(tail))
        err = file_read_at(f, d->bytes - sizeof(tail), tail, sizeof(tail), diag);
    if (err) return err;
    const bool parquet = d->kind == DATA_PARQUET, stream = head[0] == 0xff;
    if (parquet ? !is_parquet(tail + 2) : !stream && memcmp(tail, "ARROW1", sizeof(tail)) != 0)
        return stk_diag_set(diag, STK_ECORRUPT, "its end is missing");
    return columns_look(f->path, &d->columns, diag);
}

static stk_err look_zip(file *f, data_facts *d, stk_diag *diag)
{
    const stk_zip_input in = {.size = d->bytes, .read = file_read_at, .ctx = f};
    stk_zip *zip;
    stk_err err = stk_zip_new(&in, NULL, &zip, diag);
    if (err) return err;
    for (size_t i = 0; i < stk_zip_count(zip) && !err; i++) {
        const stk_zip_entry *e = stk_zip_get(zip, i);
        uint64_t at;
        if (e->kind != STK_ZIP_FILE) continue;
        err = stk_zip_locate(zip, i, &at, diag);
        d->members++;
        d->member_bytes += (int64_t)e->size;
    }
    stk_zip_free(&zip);
    return err;
}

static stk_err look(file *f, data_facts *d, stk_diag *diag)
{
    uint8_t head[512];
    const ssize_t n = pread(f->fd, head, sizeof(head), 0);
    d->kind = kind_of(head, n < 0 ? 0 : (size_t)n);
    switch (d->kind) {
    case DATA_NPY: return look_npy(f, d, diag);
    case DATA_WAV: return stk_wav_probe(f->path, &d->wav, diag);
    case DATA_TAR: return look_tar(f, d, diag);
    case DATA_ZIP: return look_zip(f, d, diag);
    case DATA_PACKED:
        d->packing = stk_packing_of(head, sizeof(head));
        return look_packed(f, d, diag);
    case DATA_ARROW:
    case DATA_PARQUET: return look_columns(f, d, diag);
    case DATA_MEDIA:
    case DATA_NONE: break;
    }
    return STK_OK;
}

stk_err data_look(const char *path, data_facts *out, stk_diag *diag)
{
    *out = (data_facts){0};
    file f;
    if (!file_open(&f, path)) return STK_OK;
    out->bytes = f.size;
    const stk_err err = look(&f, out, diag);
    file_close(&f);
    return err;
}

void data_fini(data_facts *d)
{
    columns_fini(&d->columns);
}

static const char *name_of(const data_facts *d)
{
    switch (d->kind) {
    case DATA_NPY: return "npy";
    case DATA_WAV: return "WAV";
    case DATA_TAR: return "tar";
    case DATA_ZIP: return "zip";
    case DATA_PACKED: return stk_packing_str(d->packing);
    case DATA_ARROW: return "Arrow";
    case DATA_PARQUET: return "Parquet";
    case DATA_MEDIA:
    case DATA_NONE: break;
    }
    return NULL;
}

static double seconds(const stk_wav_info *w)
{
    return w->sample_rate ? (double)w->frames / w->sample_rate : 0;
}

static void append(char *dst, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void append(char *dst, size_t size, const char *format, ...)
{
    va_list args;
    const size_t used = strlen(dst);
    va_start(args, format);
    vsnprintf(dst + used, size - used, format, args);
    va_end(args);
}

static const char *plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

static void npy_text(const stk_npy *npy, char *dst, size_t size)
{
    append(dst, size, " %s (", npy->descr);
    for (int32_t i = 0; i < npy->ndim; i++)
        append(dst, size, "%s%" PRId64, i ? ", " : "", npy->shape[i]);
    append(dst, size, "%s), %s order", npy->ndim == 1 ? "," : "", npy->fortran ? "Fortran" : "C");
}

void data_text(const data_facts *d, char *dst, size_t size)
{
    const stk_wav_info *w = &d->wav;
    const column_facts *c = &d->columns;
    snprintf(dst, size, "%s", name_of(d));
    switch (d->kind) {
    case DATA_NPY: npy_text(&d->npy, dst, size); break;
    case DATA_WAV:
        append(dst, size, " (%s), %u channel%s of %u bits, %u Hz, %.3f s",
               stk_wav_kind_str(w->kind), w->channels, plural(w->channels), w->bits, w->sample_rate,
               seconds(w));
        break;
    case DATA_TAR:
    case DATA_ZIP:
        if (d->packing) append(dst, size, " in %s", stk_packing_str(d->packing));
        append(dst, size, ", %" PRId64 " file%s of %" PRId64 " bytes", d->members,
               plural(d->members), d->member_bytes);
        break;
    case DATA_PACKED: append(dst, size, ", %" PRId64 " bytes unpacked", d->unpacked); break;
    case DATA_ARROW:
    case DATA_PARQUET:
        if (c->list)
            append(dst, size, ", %" PRId64 " row%s of %" PRId64 " column%s", c->rows,
                   plural(c->rows), c->num, plural(c->num));
        break;
    case DATA_MEDIA:
    case DATA_NONE: break;
    }
}

void data_json(const data_facts *d, json *j)
{
    json_string(j, "format", name_of(d));
    if (d->kind == DATA_NPY) {
        json_string(j, "dtype", d->npy.descr);
        json_open(j, "shape", '[');
        for (int32_t i = 0; i < d->npy.ndim; i++) json_int(j, NULL, d->npy.shape[i]);
        json_close(j, ']');
        json_bool(j, "fortran_order", d->npy.fortran);
    }
    if (d->kind == DATA_WAV) {
        json_int(j, "channels", d->wav.channels);
        json_int(j, "bits", d->wav.bits);
        json_int(j, "sample_rate", d->wav.sample_rate);
        json_number(j, "seconds", seconds(&d->wav));
    }
    if (d->kind == DATA_PACKED) json_int(j, "unpacked_bytes", d->unpacked);
    if (d->columns.list) columns_json(&d->columns, j);
    if (d->kind == DATA_TAR)
        json_string(j, "compression", d->packing ? stk_packing_str(d->packing) : NULL);
    if (d->kind == DATA_TAR || d->kind == DATA_ZIP) {
        json_int(j, "files", d->members);
        json_int(j, "file_bytes", d->member_bytes);
    }
}

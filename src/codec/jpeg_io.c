#include "codec/jpeg_io.h"

#include <string.h>

#include <jerror.h>

static stk_err code_of_message(int msg)
{
    switch (msg) {
    case JERR_OUT_OF_MEMORY:
    case JERR_NO_BACKING_STORE: return STK_ENOMEM;
    case JERR_IMAGE_TOO_BIG:
    case JERR_WIDTH_OVERFLOW: return STK_ELIMIT;
    case JERR_ARITH_NOTIMPL:
    case JERR_BAD_PRECISION:
    case JERR_CCIR601_NOTIMPL:
    case JERR_COMPONENT_COUNT:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
    case JERR_NOTIMPL:
    case JERR_NOT_COMPILED:
    case JERR_SOF_UNSUPPORTED: return STK_EUNSUPPORTED;
    default: return STK_ECORRUPT;
    }
}

/* Warnings after which what is painted is not what was encoded. */
static bool warns_of_damage(const struct jpeg_error_mgr *err)
{
    switch (err->msg_code) {
    case JWRN_ARITH_BAD_CODE:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_JPEG_EOF:
    case JWRN_MUST_RESYNC:
    case JWRN_NOT_SEQUENTIAL: return true;
    /* Bytes that belong to nothing: common, and harmless, before EOI; within a scan (a restart
     * marker follows) they are what a broken interval left over. */
    case JWRN_EXTRANEOUS_DATA: return (err->msg_parm.i[1] & 0xF8) == JPEG_RST0;
    default: return false;
    }
}

static _Noreturn void raise_message(j_common_ptr c)
{
    stk_jpeg_io *io = c->client_data;
    char text[JMSG_LENGTH_MAX];
    c->err->format_message(c, text);
    if (io->ended)
        snprintf(text, sizeof(text), "the data ends after %zu bytes, before the image does",
                 io->size);
    stk_jpeg_io_raise(io, io->ended ? STK_ECORRUPT : code_of_message(c->err->msg_code), text);
}

static void emit_message(j_common_ptr c, int level)
{
    if (level < 0 && warns_of_damage(c->err)) raise_message(c);
}

static void output_message(j_common_ptr c)
{
    (void)c;
}

static void init_source(j_decompress_ptr c)
{
    (void)c;
}

/* An end of image where the data ends: what is complete before it still counts. */
static boolean fill_input_buffer(j_decompress_ptr c)
{
    static const JOCTET end[2] = {0xFF, JPEG_EOI};
    stk_jpeg_io *io = c->client_data;
    io->ended = true;
    io->src.next_input_byte = end;
    io->src.bytes_in_buffer = sizeof(end);
    return TRUE;
}

static void skip_input_data(j_decompress_ptr c, long count)
{
    stk_jpeg_io *io = c->client_data;
    if (count <= 0) return;
    const size_t n =
        (size_t)count < io->src.bytes_in_buffer ? (size_t)count : io->src.bytes_in_buffer;
    io->src.next_input_byte += n;
    io->src.bytes_in_buffer -= n;
}

static void term_source(j_decompress_ptr c)
{
    (void)c;
}

static void monitor(j_common_ptr c)
{
    const j_decompress_ptr d = (j_decompress_ptr)c;
    if (d->input_scan_number > STK_JPEG_MAX_SCANS)
        stk_jpeg_io_raise(c->client_data, STK_ELIMIT, "more than 500 scans");
}

void stk_jpeg_io_init(stk_jpeg_io *io, j_decompress_ptr c)
{
    c->err = jpeg_std_error(&io->err);
    c->client_data = io;
    io->err.error_exit = raise_message;
    io->err.emit_message = emit_message;
    io->err.output_message = output_message;
    io->src = (struct jpeg_source_mgr){
        .init_source = init_source,
        .fill_input_buffer = fill_input_buffer,
        .skip_input_data = skip_input_data,
        .resync_to_restart = jpeg_resync_to_restart,
        .term_source = term_source,
    };
    io->progress = (struct jpeg_progress_mgr){.progress_monitor = monitor};
}

void stk_jpeg_io_start(stk_jpeg_io *io, j_decompress_ptr c, const uint8_t *data, size_t size)
{
    io->src.next_input_byte = data;
    io->src.bytes_in_buffer = size;
    io->size = size;
    io->ended = false;
    c->src = &io->src;
    c->progress = &io->progress;
}

void stk_jpeg_io_raise(stk_jpeg_io *io, stk_err code, const char *text)
{
    io->code = code;
    snprintf(io->text, sizeof(io->text), "%s", text);
    longjmp(io->jump, 1);
}

stk_err stk_jpeg_io_fail(const stk_jpeg_io *io, stk_diag *diag)
{
    return stk_diag_set(diag, io->code, "JPEG: %s", io->text);
}

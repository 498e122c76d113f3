/*
 * decode_tool: the pixels of an image file, for comparing with other programs.
 *
 *     decode_tool IN OUT [gray] [X Y WIDTH HEIGHT]
 *
 * OUT gets the rows of that rectangle, or of the whole image; standard output gets their width,
 * height and channels, and the orientation.  Exit status: 0, or 1 with a line on standard error.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/codec.h"

struct sink {
    FILE *file;
    size_t row_bytes;
    bool full; /* a write failed */
};

static bool push(void *ctx, const uint8_t *row)
{
    struct sink *s = ctx;
    s->full = fwrite(row, 1, s->row_bytes, s->file) != s->row_bytes;
    return !s->full;
}

static int fail(const char *what, const char *detail)
{
    fprintf(stderr, "decode_tool: %s: %s\n", what, detail);
    return 1;
}

static stk_err decode(const uint8_t *data, size_t size, stk_window_request *req, struct sink *s,
                      stk_diag *diag)
{
    const stk_image_limits limits = {.max_pixels = INT32_MAX, .max_side = INT32_MAX};
    stk_image_info info;
    stk_row_window win;
    void *state = NULL;
    const stk_codec *codec = stk_codec_find(data, size);
    if (!codec) return stk_diag_set(diag, STK_EUNSUPPORTED, "not an image");
    stk_err err = codec->open(&state, diag);
    if (!err) err = codec->begin(state, data, size, &limits, &info, diag);
    if (!err && !req->rect.width) req->rect = (stk_rect){0, 0, info.width, info.height};
    if (!err) err = codec->window(state, req, &win, diag);
    if (!err) {
        const int channels = win.pixels == STK_PIXELS_GRAY ? 1 : 3;
        printf("%d %d %d %d\n", (int)win.width, (int)win.height, channels, (int)info.orientation);
        s->row_bytes = (size_t)win.width * (size_t)channels;
        err = codec->rows(state, push, s, diag);
    }
    codec->close(state);
    return err;
}

/* Frees with free(); NULL: cannot be read. */
static uint8_t *read_file(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    const long end = fseek(f, 0, SEEK_END) ? -1 : ftell(f);
    rewind(f);
    uint8_t *data = end >= 0 ? malloc((size_t)end + 1) : NULL;
    *size = (size_t)end;
    if (data && fread(data, 1, *size, f) != *size) {
        free(data);
        data = NULL;
    }
    fclose(f);
    return data;
}

int main(int argc, char **argv)
{
    if (argc < 3) return fail("usage", "IN OUT [gray] [X Y WIDTH HEIGHT]");
    stk_window_request req = {.gray = argc > 3 && !strcmp(argv[3], "gray")};
    char **rect = argv + 3 + req.gray;
    if (argv + argc - rect == 4)
        req.rect = (stk_rect){
            (int32_t)strtoimax(rect[0], NULL, 10), (int32_t)strtoimax(rect[1], NULL, 10),
            (int32_t)strtoimax(rect[2], NULL, 10), (int32_t)strtoimax(rect[3], NULL, 10)};

    size_t size;
    uint8_t *data = read_file(argv[1], &size);
    if (!data) return fail(argv[1], "cannot be read");
    stk_diag diag = {0};
    struct sink s = {.file = fopen(argv[2], "wb")};
    const stk_err err = s.file ? decode(data, size, &req, &s, &diag) : STK_OK;
    free(data);
    const bool written = s.file && fclose(s.file) == 0 && !s.full;
    if (err) return fail(argv[1], diag.text);
    return written ? 0 : fail(argv[2], "cannot be written");
}

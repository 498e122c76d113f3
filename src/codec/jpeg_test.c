#include <limits.h>

#include "tests/codec_check.h"
#include "tests/jpeg_make.h"

/* The whole image by libjpeg alone, 1/reduction of its size. */
static uint8_t *plain_decode(const uint8_t *data, size_t size, J_COLOR_SPACE space, int reduction,
                             int *width, int *height)
{
    struct jpeg_decompress_struct c;
    struct jpeg_error_mgr err;
    c.err = jpeg_std_error(&err);
    jpeg_create_decompress(&c);
    jpeg_mem_src(&c, data, size);
    jpeg_read_header(&c, TRUE);
    c.out_color_space = space;
    c.scale_num = 1;
    c.scale_denom = (unsigned)reduction;
    c.dct_method = JDCT_ISLOW;
    jpeg_start_decompress(&c);
    *width = (int)c.output_width;
    *height = (int)c.output_height;
    const size_t row_bytes = (size_t)c.output_width * (size_t)c.output_components;
    uint8_t *pixels = malloc(row_bytes * c.output_height);
    CHECK(pixels);
    while (c.output_scanline < c.output_height) {
        JSAMPROW row = pixels + c.output_scanline * row_bytes;
        jpeg_read_scanlines(&c, &row, 1);
    }
    jpeg_finish_decompress(&c);
    jpeg_destroy_decompress(&c);
    return pixels;
}

static int32_t draw(unsigned *seed, int32_t below)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (int32_t)((*seed >> 8) % (unsigned)below);
}

/* The pixels inside of the requested rect equal those of a full decode. */
static void check_rect(void *state, const uint8_t *data, size_t size, stk_window_request req,
                       const uint8_t *whole, int width)
{
    struct pixels part = {0};
    CHECK_EQ(codec_decode(&stk_codec_jpeg, state, data, size, req, &part, NULL), STK_OK);
    const stk_row_window *w = &part.window;
    const size_t pixel = part.row_bytes / (size_t)w->width;
    CHECK(w->x0 >= 0 && w->y0 == 0 && w->x1 <= w->width && w->y1 == w->height);
    CHECK(w->x1 - w->x0 == req.rect.width && w->y1 - w->y0 == req.rect.height);
    for (int32_t y = 0; y < req.rect.height; y++) {
        const uint8_t *got = part.data + (size_t)y * part.row_bytes + (size_t)w->x0 * pixel;
        const uint8_t *want =
            whole + ((size_t)(req.rect.y + y) * (size_t)width + (size_t)req.rect.x) * pixel;
        if (!memcmp(got, want, (size_t)req.rect.width * pixel)) continue;
        fprintf(stderr, "rect %d,%d %dx%d differs in row %d\n", req.rect.x, req.rect.y,
                req.rect.width, req.rect.height, y);
        check_fail(__FILE__, __LINE__, "equal to a full decode");
    }
    free(part.data);
}

static stk_rect draw_rect(unsigned *seed, int32_t width, int32_t height)
{
    stk_rect r = {.x = draw(seed, width), .y = draw(seed, height)};
    r.width = 1 + draw(seed, width - r.x);
    r.height = 1 + draw(seed, height - r.y);
    return r;
}

static const int samplings[][2] = {{1, 1}, {2, 1}, {2, 2}, {1, 2}, {4, 1}, {4, 2}};
enum { SAMPLINGS = sizeof(samplings) / sizeof(samplings[0]) };

static void any_rect(void)
{
    void *state = codec_state(&stk_codec_jpeg);
    unsigned seed = 1;
    for (int n = 0; n < 8 * SAMPLINGS; n++) {
        jpeg_make m = {.width = 1 + draw(&seed, 150),
                       .height = 1 + draw(&seed, 150),
                       .channels = n % 8 == 7 ? 1 : 3,
                       .h = samplings[n % SAMPLINGS][0],
                       .v = samplings[n % SAMPLINGS][1],
                       .progressive = n / SAMPLINGS % 2,
                       .restart = n % 5 ? 0 : 3,
                       .stored = n % 11 == 10 ? JCS_RGB : JCS_UNKNOWN};
        if (m.channels == 1) m.stored = JCS_UNKNOWN;
        uint8_t *data;
        const size_t size = jpeg_make_file(&m, &data);
        int width, height;
        const bool gray = n % 7 == 6;
        uint8_t *whole = plain_decode(data, size, gray || m.channels == 1 ? JCS_GRAYSCALE : JCS_RGB,
                                      1, &width, &height);
        for (int i = 0; i < 60; i++) {
            stk_window_request req = {.rect = draw_rect(&seed, width, height), .gray = gray};
            if (i == 0) req.rect = (stk_rect){0, 0, width, height};
            check_rect(state, data, size, req, whole, width);
        }
        free(whole);
        free(data);
    }
    stk_codec_jpeg.close(state);
}

/* The larger shapes: several rows of MCUs above and below. */
static void rects_of_a_photograph(void)
{
    void *state = codec_state(&stk_codec_jpeg);
    unsigned seed = 2;
    for (int n = 0; n < SAMPLINGS; n++) {
        jpeg_make m = {.width = 500, .height = 375, .h = samplings[n][0], .v = samplings[n][1]};
        uint8_t *data;
        const size_t size = jpeg_make_file(&m, &data);
        int width, height;
        uint8_t *whole = plain_decode(data, size, JCS_RGB, 1, &width, &height);
        for (int i = 0; i < 40; i++)
            check_rect(state, data, size,
                       (stk_window_request){.rect = draw_rect(&seed, width, height)}, whole, width);
        free(whole);
        free(data);
    }
    stk_codec_jpeg.close(state);
}

/* Scaled down, the window covers the rect and keeps at least what was asked for. */
static void scales_down(void)
{
    void *state = codec_state(&stk_codec_jpeg);
    uint8_t *data;
    const size_t size =
        jpeg_make_file(&(jpeg_make){.width = 401, .height = 303, .h = 2, .v = 2}, &data);
    for (int reduction = 1; reduction <= 8; reduction *= 2) {
        const stk_rect r = {17, 32, 320, 240};
        const stk_window_request req = {
            .rect = r, .min_width = 320 / reduction, .min_height = 240 / reduction, .fast = true};
        int width, height;
        uint8_t *whole = plain_decode(data, size, JCS_YCbCr, reduction, &width, &height);
        struct pixels p = {0};
        CHECK_EQ(codec_decode(&stk_codec_jpeg, state, data, size, req, &p, NULL), STK_OK);
        CHECK_EQ(p.window.pixels, STK_PIXELS_YCC);
        CHECK(p.window.x1 - p.window.x0 == 320.0 / reduction);
        CHECK(p.window.y1 - p.window.y0 == 240.0 / reduction);
        CHECK(p.window.x0 >= 0 && p.window.x1 <= p.window.width && p.window.y1 <= p.window.height);
        const int32_t x = (int32_t)(17.0 / reduction - p.window.x0), y = 32 / reduction;
        CHECK(x >= 0 && 17.0 / reduction - p.window.x0 == x);
        for (int32_t row = 0; row < p.window.height; row++)
            for (int32_t col = 2; col < p.window.width - 2; col++)
                CHECK(!memcmp(p.data + (size_t)row * p.row_bytes + col * 3,
                              whole + ((size_t)(y + row) * (size_t)width + (size_t)(x + col)) * 3,
                              3));
        free(whole);
        free(p.data);
    }
    free(data);
    stk_codec_jpeg.close(state);
}

/* A plane of the whole image, as jpeg_read_raw_data gives it. */
typedef struct plane {
    uint8_t *data;
    size_t stride;
    int width, height;
} plane;

static void raw_planes(const uint8_t *data, size_t size, int reduction, plane out[3])
{
    struct jpeg_decompress_struct c;
    struct jpeg_error_mgr err;
    c.err = jpeg_std_error(&err);
    jpeg_create_decompress(&c);
    jpeg_mem_src(&c, data, size);
    jpeg_read_header(&c, TRUE);
    c.raw_data_out = TRUE;
    c.out_color_space = JCS_YCbCr;
    c.scale_num = 1;
    c.scale_denom = (unsigned)reduction;
    jpeg_start_decompress(&c);
    const int mcu = c.max_v_samp_factor * c.min_DCT_scaled_size;
    const int mcus = ((int)c.output_height + mcu - 1) / mcu;
    int lines[3];
    for (int i = 0; i < 3; i++) {
        const jpeg_component_info *comp = &c.comp_info[i];
        lines[i] = comp->v_samp_factor * comp->DCT_scaled_size;
        out[i].stride = comp->width_in_blocks * (size_t)comp->DCT_scaled_size + 64;
        out[i].data = malloc(out[i].stride * (size_t)(mcus * lines[i]));
        out[i].width = (int)comp->downsampled_width;
        out[i].height = (int)comp->downsampled_height;
        CHECK(out[i].data);
    }
    for (int n = 0; n < mcus; n++) {
        JSAMPROW rows[3][32];
        JSAMPARRAY planes[3] = {rows[0], rows[1], rows[2]};
        for (int i = 0; i < 3; i++)
            for (int k = 0; k < lines[i]; k++)
                rows[i][k] = out[i].data + (size_t)(n * lines[i] + k) * out[i].stride;
        jpeg_read_raw_data(&c, planes, (JDIMENSION)mcu);
    }
    jpeg_abort_decompress(&c);
    jpeg_destroy_decompress(&c);
}

/* Compares rows that come with those of the whole. */
typedef struct comparison {
    const plane *whole;
    int x[2], y[2];   /* where the next row of luma and of chroma begins in the whole */
    int width[2];     /* of a row */
    int rows[2], end; /* rows so far; luma rows after which it is enough */
} comparison;

static bool compare_planes(void *ctx, const uint8_t *y, const uint8_t *cb, const uint8_t *cr)
{
    comparison *c = ctx;
    const int kind = y ? 0 : 1;
    CHECK(y ? !cb && !cr : cb && cr);
    for (int i = kind; i <= 2 * kind; i++) {
        const uint8_t *row = i == 0 ? y : i == 1 ? cb : cr;
        const plane *p = &c->whole[i];
        CHECK(c->x[kind] + c->width[kind] <= p->width && c->y[kind] < p->height);
        CHECK(!memcmp(row, p->data + (size_t)c->y[kind] * p->stride + c->x[kind],
                      (size_t)c->width[kind]));
    }
    c->y[kind]++;
    return ++c->rows[kind] < c->end || kind == 1;
}

static void check_planes(void *state, const uint8_t *data, size_t size, stk_rect r, int reduction,
                         const plane whole[3], unsigned *seed)
{
    const stk_window_request req = {.rect = r,
                                    .min_width = r.width / reduction,
                                    .min_height = r.height / reduction,
                                    .fast = true,
                                    .planes = true};
    stk_image_info info;
    stk_row_window w;
    CHECK_EQ(stk_codec_jpeg.begin(state, data, size, CODEC_LIMITS, &info, NULL), STK_OK);
    CHECK_EQ(stk_codec_jpeg.window(state, &req, &w, NULL), STK_OK);
    CHECK_EQ(w.pixels, STK_PIXELS_PLANES);
    const double luma = r.width / (w.x1 - w.x0); /* pixels of the image in one of these */
    const double across = r.width / (w.chroma.x1 - w.chroma.x0);
    const double down = r.height / (w.chroma.y1 - w.chroma.y0);
    comparison c = {.whole = whole,
                    .x = {(int)(r.x / luma - w.x0), (int)(r.x / across - w.chroma.x0)},
                    .y = {(int)(r.y / luma - w.y0), (int)(r.y / down - w.chroma.y0)},
                    .width = {w.width, w.chroma.width},
                    .end = draw(seed, 4) ? INT_MAX : 1 + draw(seed, w.height)};
    CHECK(r.x / luma - w.x0 == c.x[0] && r.x / across - w.chroma.x0 == c.x[1]);
    CHECK(w.chroma.x0 >= 0 && w.chroma.x1 <= w.chroma.width && w.chroma.y1 <= w.chroma.height);
    CHECK_EQ(stk_codec_jpeg.planes(state, compare_planes, &c, NULL), STK_OK);
    if (c.end == INT_MAX) CHECK(c.rows[0] == w.height && c.rows[1] == w.chroma.height);
}

/* Cropped and skipped planes equal those of raw_data_out, which can do neither. */
static void planes_of_any_rect(void)
{
    void *state = codec_state(&stk_codec_jpeg);
    unsigned seed = 4;
    for (int n = 0; n < 32; n++) {
        const jpeg_make m = {.width = 16 + draw(&seed, 200),
                             .height = 16 + draw(&seed, 200),
                             .h = samplings[n % 4][0],
                             .v = samplings[n % 4][1],
                             .restart = n % 3 ? 0 : 2,
                             .progressive = n / 4 % 2};
        uint8_t *data;
        const size_t size = jpeg_make_file(&m, &data);
        for (int reduction = 1; reduction <= 4; reduction *= 2) {
            plane whole[3];
            raw_planes(data, size, reduction, whole);
            for (int i = 0; i < 25; i++) {
                stk_rect r = draw_rect(&seed, m.width, m.height);
                if (r.width / reduction < 1 || r.height / reduction < 1) continue;
                r.width -= r.width % reduction, r.height -= r.height % reduction;
                check_planes(state, data, size, r, reduction, whole, &seed);
            }
            for (int i = 0; i < 3; i++) free(whole[i].data);
        }
        free(data);
    }
    stk_codec_jpeg.close(state);
}

static void inks(void)
{
    void *state = codec_state(&stk_codec_jpeg);
    for (int n = 0; n < 4; n++) {
        jpeg_make m = {.width = 50, .height = 37, .channels = 4, .h = 1 + n % 2, .v = 1 + n % 2};
        m.stored = n < 2 ? JCS_CMYK : JCS_YCCK;
        uint8_t *data;
        const size_t size = jpeg_make_file(&m, &data);
        int width, height;
        uint8_t *ink = plain_decode(data, size, JCS_CMYK, 1, &width, &height);
        for (int gray = 0; gray < 2; gray++) {
            struct pixels p = {0};
            CHECK_EQ(codec_decode(&stk_codec_jpeg, state, data, size,
                                  (stk_window_request){.gray = gray}, &p, NULL),
                     STK_OK);
            CHECK_EQ(p.window.pixels, gray ? STK_PIXELS_GRAY : STK_PIXELS_RGB);
            for (int i = 0; i < width * height; i++) {
                double rgb[3];
                for (int j = 0; j < 3; j++) rgb[j] = ink[i * 4 + j] * ink[i * 4 + 3] / 255.0;
                if (gray)
                    CHECK(fabs(p.data[i] - (0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2])) <=
                          1.6);
                for (int j = 0; j < 3 && !gray; j++) CHECK(fabs(p.data[i * 3 + j] - rgb[j]) <= 1);
            }
            free(p.data);
        }
        free(ink);
        free(data);
    }
    stk_codec_jpeg.close(state);
}

static void describes(void)
{
    static const struct {
        jpeg_make make;
        const char *detail;
    } cases[] = {{{.h = 2, .v = 2, .orientation = 6}, "YCbCr 4:2:0"},
                 {{.h = 2, .v = 1, .orientation = 8}, "YCbCr 4:2:2"},
                 {{.h = 1, .v = 2, .progressive = true}, "YCbCr 4:4:0"},
                 {{.h = 4, .v = 1}, "YCbCr 4:1:1"},
                 {{.channels = 1}, "gray"},
                 {{.channels = 4, .stored = JCS_YCCK}, "YCCK 4:4:4"},
                 {{.stored = JCS_RGB}, "RGB 4:4:4"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        jpeg_make m = cases[i].make;
        m.width = 33, m.height = 21;
        uint8_t *data;
        const size_t size = jpeg_make_file(&m, &data);
        stk_image_info info;
        CHECK(stk_codec_jpeg.match(data, size));
        CHECK_EQ(stk_codec_jpeg.probe(data, size, &info, NULL), STK_OK);
        CHECK(info.format == STK_IMAGE_JPEG && info.width == 33 && info.height == 21);
        CHECK_EQ(info.channels, m.channels ? m.channels : 3);
        CHECK_EQ(info.orientation, m.orientation ? m.orientation : 1);
        CHECK_EQ(info.progressive, m.progressive);
        CHECK(info.bits == 8 && !info.animated && !strcmp(info.detail, cases[i].detail));
        free(data);
    }
}

/* All but the last two bytes, the end marker, are needed. */
static void cut_anywhere(void)
{
    void *state = codec_state(&stk_codec_jpeg);
    for (int n = 0; n < 4; n++) {
        jpeg_make m = {.width = 40,
                       .height = 40,
                       .h = 2,
                       .v = 2,
                       .progressive = n % 2,
                       .restart = n / 2,
                       .orientation = 3};
        uint8_t *data;
        const size_t size = jpeg_make_file(&m, &data);
        for (size_t cut = 0; cut <= size; cut++) {
            uint8_t *copy = malloc(cut ? cut : 1);
            CHECK(copy);
            memcpy(copy, data, cut);
            struct pixels p = {0};
            stk_diag diag = {0};
            const stk_err err = codec_decode(&stk_codec_jpeg, state, copy, cut,
                                             (stk_window_request){.fast = n == 2}, &p, &diag);
            const bool whole = m.progressive ? cut == size : cut >= size - 2;
            if (err != (whole ? STK_OK : STK_ECORRUPT))
                fprintf(stderr, "%d: cut at %zu of %zu: %s\n", n, cut, size, diag.text);
            CHECK_EQ(err, whole ? STK_OK : STK_ECORRUPT);
            CHECK(whole || !strncmp(diag.text, "JPEG: ", 6));
            free(p.data);
            free(copy);
        }
        free(data);
    }
    stk_codec_jpeg.close(state);
}

/* Damage below the last row that is wanted does not matter; above it, it does. */
static void damage_only_where_it_matters(void)
{
    void *state = codec_state(&stk_codec_jpeg);
    uint8_t *data;
    const size_t size =
        jpeg_make_file(&(jpeg_make){.width = 160, .height = 320, .h = 2, .v = 2}, &data);
    struct pixels p = {0};
    const stk_window_request top = {.rect = {8, 8, 100, 40}}, bottom = {.rect = {8, 200, 100, 40}};
    CHECK_EQ(codec_decode(&stk_codec_jpeg, state, data, size / 2, top, &p, NULL), STK_OK);
    free(p.data);
    CHECK_EQ(codec_decode(&stk_codec_jpeg, state, data, size / 2, bottom, &p, NULL), STK_ECORRUPT);
    free(p.data);
    data[size / 2] = 0xFF; /* a marker in the middle of the scan */
    data[size / 2 + 1] = 0xD9;
    CHECK_EQ(codec_decode(&stk_codec_jpeg, state, data, size, top, &p, NULL), STK_OK);
    free(p.data);
    CHECK_EQ(codec_decode(&stk_codec_jpeg, state, data, size, bottom, &p, NULL), STK_ECORRUPT);
    free(p.data);
    free(data);
    stk_codec_jpeg.close(state);
}

/* Any single byte may change: pixels or an error, never more than that. */
static void any_byte_changed(void)
{
    void *state = codec_state(&stk_codec_jpeg);
    for (int n = 0; n < 2; n++) {
        uint8_t *data;
        const size_t size = jpeg_make_file(
            &(jpeg_make){.width = 24, .height = 24, .h = 2, .v = 2, .progressive = n}, &data);
        unsigned seed = 3;
        for (size_t at = 0; at < size; at++) {
            const uint8_t old = data[at];
            for (int i = 0; i < 4; i++) {
                data[at] = i ? (uint8_t)draw(&seed, 256) : 0xFF;
                struct pixels p = {0};
                const stk_err err = codec_decode(&stk_codec_jpeg, state, data, size,
                                                 (stk_window_request){0}, &p, NULL);
                CHECK(err == STK_OK || err == STK_ECORRUPT || err == STK_EUNSUPPORTED ||
                      err == STK_ELIMIT);
                free(p.data);
            }
            data[at] = old;
        }
        free(data);
    }
    stk_codec_jpeg.close(state);
}

static size_t find_marker(const uint8_t *data, size_t size, uint8_t marker)
{
    for (size_t i = 0; i + 1 < size; i++)
        if (data[i] == 0xFF && data[i + 1] == marker) return i;
    check_fail(__FILE__, __LINE__, "marker found");
    return 0;
}

static void limits(void)
{
    void *state = codec_state(&stk_codec_jpeg);
    uint8_t *data;
    const size_t size = jpeg_make_file(&(jpeg_make){.width = 64, .height = 48}, &data);
    uint8_t *frame = data + find_marker(data, size, 0xC0);
    stk_image_info info;
    stk_diag diag;
    const stk_image_limits few = {.max_pixels = 3071, .max_side = 100};
    CHECK_EQ(stk_codec_jpeg.begin(state, data, size, &few, &info, &diag), STK_ELIMIT);
    const stk_image_limits small = {.max_pixels = 1000000, .max_side = 63};
    CHECK_EQ(stk_codec_jpeg.begin(state, data, size, &small, &info, &diag), STK_ELIMIT);
    memset(frame + 5, 0xFF, 4); /* 65,535 x 65,535 */
    CHECK_EQ(stk_codec_jpeg.begin(state, data, size, CODEC_LIMITS, &info, &diag), STK_ELIMIT);
    memset(frame + 5, 0, 4);
    CHECK_EQ(stk_codec_jpeg.begin(state, data, size, CODEC_LIMITS, &info, &diag), STK_ECORRUPT);
    free(data);
    stk_codec_jpeg.close(state);
}

/* The last scan of a progressive file, again and again. */
static void many_scans(void)
{
    uint8_t *data;
    const size_t size = jpeg_make_file(
        &(jpeg_make){.width = 16, .height = 16, .channels = 1, .progressive = true}, &data);
    size_t scan = size - 2;
    while (data[scan] != 0xFF || data[scan + 1] != 0xDA) scan--;
    const size_t scan_size = size - 2 - scan;
    uint8_t *bomb = malloc(size + 600 * scan_size);
    CHECK(bomb);
    memcpy(bomb, data, size - 2);
    size_t n = size - 2;
    for (int i = 0; i < 600; i++, n += scan_size) memcpy(bomb + n, data + scan, scan_size);
    memcpy(bomb + n, "\xFF\xD9", 2);
    void *state = codec_state(&stk_codec_jpeg);
    struct pixels p = {0};
    stk_diag diag;
    CHECK_EQ(codec_decode(&stk_codec_jpeg, state, bomb, n + 2, (stk_window_request){0}, &p, &diag),
             STK_ELIMIT);
    CHECK(strstr(diag.text, "500 scans"));
    free(bomb);
    free(data);
    stk_codec_jpeg.close(state);
}

static void no_memory(void)
{
    uint8_t *data;
    const size_t size = jpeg_make_file(&(jpeg_make){.width = 40, .height = 40}, &data);
    check_out_of_memory(&stk_codec_jpeg, data, size);
    free(data);
}

TESTS(TEST(any_rect), TEST(rects_of_a_photograph), TEST(scales_down), TEST(planes_of_any_rect),
      TEST(inks), TEST(describes), TEST(cut_anywhere), TEST(damage_only_where_it_matters),
      TEST(any_byte_changed), TEST(limits), TEST(many_scans), TEST(no_memory))

#include <stoker/image.h>
#include <stoker/run.h>

#include "base/alloc.h"
#include "tests/jpeg_make.h"
#include "tests/tree.h"

typedef struct picture {
    stk_tensor t;
    stk_buffer *mem;
} picture;

static const uint8_t *at(const picture *p, int64_t y, int64_t x)
{
    return (const uint8_t *)p->t.data + y * p->t.strides[0] + x * p->t.strides[1];
}

static picture decode(const uint8_t *data, size_t size, stk_image_opts o, uint64_t seed)
{
    picture p;
    stk_diag diag = {0};
    if (stk_image_decode(data, size, &o, seed, &p.t, &p.mem, &diag))
        fprintf(stderr, "%s\n", diag.text);
    CHECK(p.mem && p.t.dtype == STK_UINT8 && p.t.ndim == 3 && stk_tensor_contiguous(&p.t));
    return p;
}

static void check_shape(const picture *p, int64_t height, int64_t width, int64_t channels)
{
    CHECK_EQ(p->t.shape[0], height);
    CHECK_EQ(p->t.shape[1], width);
    CHECK_EQ(p->t.shape[2], channels);
}

/* The largest difference of two pictures of one shape. */
static int difference(const picture *a, const picture *b)
{
    int most = 0;
    for (int64_t y = 0; y < a->t.shape[0]; y++)
        for (int64_t i = 0; i < a->t.strides[0]; i++) {
            const int d = abs(at(a, y, 0)[i] - at(b, y, 0)[i]);
            if (d > most) most = d;
        }
    return most;
}

/* Every orientation shows what it should, whole and resized, mirrored and not. */
static void orientations(void)
{
    enum { W = 61, H = 40 };
    jpeg_make m = {.width = W, .height = H};
    uint8_t *data;
    for (int channels = 1; channels <= 3; channels += 2)
        for (int o = 1; o <= 8; o++) {
            m.orientation = o;
            m.channels = channels;
            const size_t size = jpeg_make_file(&m, &data);
            picture stored = decode(
                data, size,
                (stk_image_opts){.quality = STK_QUALITY_EXACT, .ignore_orientation = true}, 0);
            check_shape(&stored, H, W, 3);
            for (int flip = 0; flip < 2; flip++) {
                picture seen = decode(
                    data, size, (stk_image_opts){.quality = STK_QUALITY_EXACT, .flip = flip}, 0);
                check_shape(&seen, o < 5 ? H : W, o < 5 ? W : H, 3);
                for (int y = 0; y < seen.t.shape[0]; y++)
                    for (int x = 0; x < seen.t.shape[1]; x++) {
                        const int u = flip ? (int)seen.t.shape[1] - 1 - x : x;
                        int col = o < 5 ? u : y, row = o < 5 ? y : u;
                        if (o == 2 || o == 3 || o == 7 || o == 8) col = W - 1 - col;
                        if (o == 3 || o == 4 || o == 6 || o == 7) row = H - 1 - row;
                        CHECK(!memcmp(at(&seen, y, x), at(&stored, row, col), 3));
                    }
                stk_buffer_unref(&seen.mem);
            }
            stk_buffer_unref(&stored.mem);
            free(data);
        }
}

/* A cut out of the middle is what resizing everything and cutting makes. */
static void center_is_resize_and_cut(void)
{
    uint8_t *data;
    const size_t size =
        jpeg_make_file(&(jpeg_make){.width = 320, .height = 200, .h = 2, .v = 2}, &data);
    for (int filter = STK_FILTER_BILINEAR; filter <= STK_FILTER_BOX; filter++)
        for (int resize = 64; resize <= 256; resize += 96) {
            stk_image_opts o = {.quality = STK_QUALITY_EXACT, .filter = (stk_filter)filter};
            o.width = resize * 320 / 200, o.height = resize;
            picture whole = decode(data, size, o, 0);
            o.width = 60, o.height = 50, o.crop = STK_CROP_CENTER, o.resize = resize;
            picture cut = decode(data, size, o, 0);
            check_shape(&cut, 50, 60, 3);
            const int left = (int)nearbyint((resize * 320 / 200 - 60) / 2.0);
            const int top = (int)nearbyint((resize - 50) / 2.0);
            for (int y = 0; y < 50; y++)
                for (int i = 0; i < 180; i++)
                    CHECK(abs(at(&cut, y, 0)[i] - at(&whole, top + y, left)[i]) <= 1);
            stk_buffer_unref(&whole.mem);
            stk_buffer_unref(&cut.mem);
        }
    free(data);
}

static double psnr(const picture *a, const picture *b)
{
    double sum = 0;
    const int64_t n = a->t.shape[0] * a->t.strides[0];
    for (int64_t i = 0; i < n; i++) {
        const double d = (double)at(a, 0, 0)[i] - at(b, 0, 0)[i];
        sum += d * d;
    }
    return sum > 0 ? 10 * log10(255.0 * 255.0 * (double)n / sum) : 99;
}

/* Cheaper chroma and DCT scaling are hardly seen, whatever the sampling. */
static void fast_is_close(void)
{
    static const int samplings[][2] = {{1, 1}, {2, 1}, {2, 2}, {1, 2}, {4, 1}};
    for (size_t n = 0; n < 2 * sizeof(samplings) / sizeof(samplings[0]); n++) {
        jpeg_make m = {.width = 900, .height = 700, .progressive = n % 2, .quality = 95};
        m.h = samplings[n / 2][0], m.v = samplings[n / 2][1];
        m.orientation = (int)(n % 8) + 1;
        uint8_t *data;
        const size_t size = jpeg_make_file(&m, &data);
        for (uint64_t seed = 0; seed < 12; seed++) {
            stk_image_opts o = {.width = 96, .height = 96, .flip = 0.5};
            o.crop = seed % 2 ? STK_CROP_RANDOM_RESIZED : STK_CROP_CENTER;
            if (seed % 6 == 5) o.crop = STK_CROP_NONE;
            if (seed % 5 == 4) o.color = STK_COLOR_GRAY;
            picture fast = decode(data, size, o, seed);
            o.quality = STK_QUALITY_EXACT;
            picture exact = decode(data, size, o, seed);
            const double got = psnr(&fast, &exact);
            if (got < 38) fprintf(stderr, "sampling %zu, seed %d: %.1f dB\n", n, (int)seed, got);
            CHECK(got >= 38);
            stk_buffer_unref(&fast.mem);
            stk_buffer_unref(&exact.mem);
        }
        free(data);
    }
}

static void one_channel(void)
{
    uint8_t *data;
    const size_t size =
        jpeg_make_file(&(jpeg_make){.width = 50, .height = 40, .orientation = 6}, &data);
    picture rgb = decode(data, size, (stk_image_opts){.quality = STK_QUALITY_EXACT}, 0);
    picture gray = decode(data, size, (stk_image_opts){.color = STK_COLOR_GRAY}, 0);
    check_shape(&gray, 50, 40, 1);
    picture part = decode(data, size, (stk_image_opts){.gray_parts = 1, .nearest_parts = 1}, 0);
    CHECK_EQ(difference(&part, &gray), 0);
    for (int y = 0; y < 50; y++)
        for (int x = 0; x < 40; x++) {
            const uint8_t *p = at(&rgb, y, x);
            CHECK(fabs(*at(&gray, y, x) - 0.299 * p[0] - 0.587 * p[1] - 0.114 * p[2]) <= 2.5);
        }
    stk_buffer_unref(&rgb.mem);
    stk_buffer_unref(&gray.mem);
    stk_buffer_unref(&part.mem);
    free(data);
}

static void check_error(const void *data, size_t size, const stk_image_opts *o, stk_err want,
                        const char *text)
{
    stk_tensor t;
    stk_buffer *mem;
    stk_diag diag = {0};
    CHECK_EQ(stk_image_decode(data, size, o, 0, &t, &mem, &diag), want);
    CHECK(!mem && !t.data && diag.err == want);
    if (!strstr(diag.text, text)) fprintf(stderr, "%s\n", diag.text);
    CHECK(strstr(diag.text, text));
}

static void failures(void)
{
    uint8_t *data;
    const size_t size = jpeg_make_file(&(jpeg_make){.width = 50, .height = 40}, &data);
    check_error("", 0, NULL, STK_EUNSUPPORTED, "empty");
    check_error("hello, world", 12, NULL, STK_EUNSUPPORTED, "not a JPEG");
    check_error(data, size / 2, NULL, STK_ECORRUPT, "ends after");
    check_error(data, 40, NULL, STK_ECORRUPT, "ends after");
    check_error(data, size, &(stk_image_opts){.max_pixels = 1999}, STK_ELIMIT, "1999");
    check_error(data, size, &(stk_image_opts){.max_side = 49}, STK_ELIMIT, "49");
    check_error(data, size, &(stk_image_opts){.width = 3}, STK_EINVAL, "3 x 0");
    stk_diag diag = {0};
    CHECK(!stk_op_decode_image(&(stk_image_opts){.flip = -1}, &diag));
    CHECK_EQ(diag.err, STK_EINVAL);
    stk_err err;
    TORTURE (err) {
        picture p;
        diag = (stk_diag){0};
        err = stk_image_decode(data, size, &(stk_image_opts){.width = 9, .height = 9}, 0, &p.t,
                               &p.mem, &diag);
        CHECK(err == STK_OK || (err == STK_ENOMEM && diag.err == err));
        stk_buffer_unref(&p.mem);
    }
    stk_fault_arm(-1);
    TORTURE (err) {
        diag = (stk_diag){0};
        stk_op *op = stk_op_decode_image(NULL, &diag);
        err = diag.err;
        CHECK(!op == (err == STK_ENOMEM));
        stk_op_unref(&op);
    }
    stk_fault_arm(-1);
    free(data);
}

static char *write_jpeg(const struct tree *t, const char *name, const jpeg_make *m)
{
    char *path = malloc(128);
    CHECK(path);
    snprintf(path, 128, "%s/%s", t->path, name);
    uint8_t *data;
    const size_t size = jpeg_make_file(m, &data);
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(data, 1, size, f) == size && !fclose(f));
    free(data);
    return path;
}

/* The failure is that of the file that failed. */
static void check_key(stk_run *run, const char *path)
{
    stk_failure *causes;
    size_t n;
    CHECK_EQ(stk_run_causes(run, &causes, &n), STK_OK);
    CHECK(n == 1 && !strcmp(causes[0].key, path));
    stk_failures_free(&causes, n);
}

/* Reads and decodes pairs of image and mask; gives the error of the run. */
static stk_err run_pairs(const char *image, const char *mask, stk_batch **batch, stk_diag *diag)
{
    const char *images[] = {image, image, image}, *masks[] = {mask, mask, mask};
    const char *const *paths[] = {images, masks};
    const char *names[] = {"image", "mask"};
    stk_plan *plan;
    stk_run *run = NULL;
    CHECK_EQ(stk_plan_new(&plan), STK_OK);
    stk_plan_source(
        plan,
        stk_list_source(
            &(stk_list_opts){.num_samples = 3, .num_parts = 2, .part_names = names, .paths = paths},
            NULL));
    stk_plan_pipe(plan, stk_op_read(NULL, NULL), NULL);
    stk_plan_pipe(plan,
                  stk_op_decode_image(&(stk_image_opts){.width = 32,
                                                        .height = 24,
                                                        .crop = STK_CROP_RANDOM_RESIZED,
                                                        .quality = STK_QUALITY_EXACT,
                                                        .flip = 0.5,
                                                        .gray_parts = 2},
                                      NULL),
                  NULL);
    stk_plan_batch(plan, 3, NULL);
    stk_plan_sink(plan, 2);
    *batch = NULL;
    stk_err err = stk_run_start(plan, NULL, &run, diag);
    if (!err) err = stk_run_next(run, STK_FOREVER, batch, diag);
    if (err) check_key(run, mask);
    stk_run_free(&run);
    stk_plan_free(&plan);
    return err;
}

/* The mask gets the geometry of its image; another size is an error that names the file. */
static void parts_share_their_geometry(void)
{
    struct tree t = tree_new();
    char *image = write_jpeg(&t, "image.jpg", &(jpeg_make){.width = 80, .height = 60});
    char *mask = write_jpeg(&t, "mask.jpg", &(jpeg_make){.width = 80, .height = 60, .quality = 91});
    char *other = write_jpeg(&t, "other.jpg", &(jpeg_make){.width = 60, .height = 80});
    stk_batch *batch;
    stk_diag diag = {0};
    CHECK_EQ(run_pairs(image, mask, &batch, &diag), STK_OK);
    stk_tensor x, y;
    CHECK_EQ(stk_batch_array(batch, (size_t)stk_batch_find(batch, "image"), &x, NULL), STK_OK);
    CHECK_EQ(stk_batch_array(batch, (size_t)stk_batch_find(batch, "mask"), &y, NULL), STK_OK);
    CHECK(x.shape[0] == 3 && x.shape[1] == 24 && x.shape[2] == 32 && x.shape[3] == 3);
    CHECK(y.shape[0] == 3 && y.shape[3] == 1);
    const uint8_t *rgb = x.data, *gray = y.data;
    double sum = 0;
    for (int i = 0; i < 3 * 24 * 32; i++)
        sum += fabs(0.299 * rgb[3 * i] + 0.587 * rgb[3 * i + 1] + 0.114 * rgb[3 * i + 2] - gray[i]);
    CHECK(sum / (3 * 24 * 32) < 2);
    CHECK(memcmp(rgb, rgb + 24 * 32 * 3, 24 * 32 * 3)); /* each sample its own crop */
    stk_batch_unref(&batch);

    CHECK_EQ(run_pairs(image, other, &batch, &diag), STK_EINVAL);
    CHECK(!batch && strstr(diag.text, other) && strstr(diag.text, "60 x 80"));
    CHECK_EQ(run_pairs(image, "/nowhere/mask.jpg", &batch, &diag), STK_ENOTFOUND);
    CHECK(!batch && strstr(diag.text, "sample 0: open /nowhere/mask.jpg"));
    free(image);
    free(mask);
    free(other);
    tree_free(&t);
}

TESTS(TEST(orientations), TEST(center_is_resize_and_cut), TEST(fast_is_close), TEST(one_channel),
      TEST(failures), TEST(parts_share_their_geometry))

/*
 * resample_tool: one stk_resample over raw pixels in files, for comparing with other programs.
 *
 *     resample_tool IN OUT name=value...
 *
 * IN holds src_height rows of src_width pixels; OUT gets those of the destination.  Names are the
 * fields of stk_resample_params, and kernels (scalar, avx2, neon; default: the fastest).  Only
 * rows and columns that the object says matter are passed: all else is overwritten by 0x5A.
 * Exit status: 0, or 1 with a line on standard error.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "transform/resample_impl.h"

typedef struct job {
    stk_resample_params p;
    const stk_kernels *kernels;
    stk_resample *r;
    uint8_t *src, *dst;
} job;

static int fail(const char *what, const char *detail)
{
    fprintf(stderr, "resample_tool: %s: %s\n", what, detail);
    return 1;
}

static const stk_kernels *find_kernels(const char *name)
{
    const stk_kernels *k;
    for (size_t i = 0; (k = stk_kernels_at(i)); i++)
        if (!strcmp(k->name, name)) return k;
    return NULL;
}

static bool set_size(stk_resample_params *p, const char *name, size_t len, int32_t v)
{
    const struct {
        const char *name;
        int32_t *field;
    } sizes[] = {
        {"src_width", &p->src_width},   {"src_height", &p->src_height},
        {"dst_width", &p->dst_width},   {"dst_height", &p->dst_height},
        {"full_width", &p->full_width}, {"full_height", &p->full_height},
        {"dst_x", &p->dst_x},           {"dst_y", &p->dst_y},
        {"channels", &p->channels},
    };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        if (strlen(sizes[i].name) == len && !memcmp(sizes[i].name, name, len)) {
            *sizes[i].field = v;
            return true;
        }
    return false;
}

static bool set_flag(stk_resample_params *p, const char *name, size_t len, bool v)
{
    const struct {
        const char *name;
        bool *field;
    } flags[] = {
        {"outside", &p->outside},         {"mirror", &p->mirror},
        {"upside_down", &p->upside_down}, {"from_right", &p->from_right},
        {"from_bottom", &p->from_bottom}, {"transposed", &p->transposed},
        {"ycc_to_rgb", &p->ycc_to_rgb},
    };
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        if (strlen(flags[i].name) == len && !memcmp(flags[i].name, name, len)) {
            *flags[i].field = v;
            return true;
        }
    return false;
}

static bool set(job *j, const char *arg)
{
    const char *eq = strchr(arg, '=');
    if (!eq) return false;
    const size_t len = (size_t)(eq - arg);
    if (len == 7 && !memcmp(arg, "kernels", 7)) {
        j->kernels = find_kernels(eq + 1);
        return j->kernels != NULL;
    }
    const double v = strtod(eq + 1, NULL);
    if (len == 6 && !memcmp(arg, "filter", 6)) {
        j->p.filter = (stk_filter)v;
        return true;
    }
    if (len == 2 && (arg[0] == 'x' || arg[0] == 'y') && (arg[1] == '0' || arg[1] == '1')) {
        const bool far = arg[1] == '1';
        *(arg[0] == 'x' ? far ? &j->p.x1 : &j->p.x0 : far ? &j->p.y1 : &j->p.y0) = v;
        return true;
    }
    return set_size(&j->p, arg, len, (int32_t)v) || set_flag(&j->p, arg, len, v != 0);
}

static bool read_file(const char *path, uint8_t *to, size_t size)
{
    FILE *f = fopen(path, "rb");
    if (!f) return false;
    const bool ok = fread(to, 1, size, f) == size;
    fclose(f);
    return ok;
}

static bool write_file(const char *path, const uint8_t *from, size_t size)
{
    FILE *f = fopen(path, "wb");
    if (!f) return false;
    const bool ok = fwrite(from, 1, size, f) == size;
    return fclose(f) == 0 && ok;
}

static bool feed(job *j)
{
    const size_t pixel = (size_t)j->p.channels, row = (size_t)j->p.src_width * pixel;
    int32_t first, end, left, right;
    stk_resample_rows(j->r, &first, &end);
    stk_resample_columns(j->r, &left, &right);
    stk_resample_start(j->r, j->dst, (ptrdiff_t)j->p.dst_width * j->p.channels, first);
    for (int32_t y = first; y < end; y++) {
        uint8_t *p = j->src + (size_t)y * row;
        memset(p, 0x5A, (size_t)left * pixel);
        memset(p + (size_t)right * pixel, 0x5A, row - (size_t)right * pixel);
        if (stk_resample_row(j->r, p) != (y + 1 < end)) return false;
    }
    return stk_resample_done(j->r);
}

static int run(job *j, const char *in, const char *out)
{
    const size_t pixel = (size_t)j->p.channels;
    const size_t src_size = (size_t)j->p.src_width * (size_t)j->p.src_height * pixel;
    const size_t dst_size = (size_t)j->p.dst_width * (size_t)j->p.dst_height * pixel;
    if (stk_resample_new(&j->r)) return fail("new", "no memory");
    if (j->kernels) stk_resample_use_kernels(j->r, j->kernels);
    const stk_err err = stk_resample_plan(j->r, &j->p);
    if (err) return fail("plan", stk_err_str(err));
    j->src = stk_alloc(src_size);
    j->dst = stk_alloc(dst_size);
    if (!j->src || !j->dst) return fail("pixels", "no memory");
    if (!read_file(in, j->src, src_size)) return fail(in, "cannot be read, or is too short");
    if (!feed(j)) return fail("rows", "the destination was complete too early or not at all");
    return write_file(out, j->dst, dst_size) ? 0 : fail(out, "cannot be written");
}

int main(int argc, char **argv)
{
    job j = {.p = {.channels = 3}};
    if (argc < 3) return fail("usage", "IN OUT name=value...");
    for (int i = 3; i < argc; i++)
        if (!set(&j, argv[i])) return fail("unknown argument", argv[i]);
    const int status = run(&j, argv[1], argv[2]);
    stk_free(j.src);
    stk_free(j.dst);
    stk_resample_free(&j.r);
    return status;
}

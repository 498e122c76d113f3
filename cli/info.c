/* stoker info: says what each file is, and decodes it to see whether that works. */
#include <inttypes.h>
#include <stdio.h>

#include <stoker/image.h>

#include "command.h"
#include "data.h"
#include "json.h"
#include "media.h"
#include "say.h"

typedef struct settings {
    bool json;
} settings;

static const option options[] = {
    {"json", OPTION_FLAG, NULL, offsetof(settings, json), 0, 0, "print a list of objects as JSON"},
    {0},
};

typedef struct finding {
    const char *path;
    stk_image_info info;
    data_facts data;   /* of what is no picture */
    media_facts media; /* of what FFmpeg opens */
    size_t bytes;
    bool read;     /* `bytes` is set */
    bool known;    /* `info` is filled */
    stk_diag diag; /* why it does not decode; err is STK_OK when it does */
} finding;

static void look(finding *f)
{
    stk_buffer *data = NULL, *pixels = NULL;
    stk_tensor image;
    const stk_image_opts whole = {.quality = STK_QUALITY_EXACT};
    stk_err err = data_look(f->path, &f->data, &f->diag);
    if (f->data.kind != DATA_NONE) {
        f->read = true;
        f->bytes = (size_t)f->data.bytes;
        if (!err && f->data.kind == DATA_MEDIA) err = media_look(f->path, &f->media, &f->diag);
        goto done;
    }
    err = stk_file_read(f->path, 0, &data, &f->diag);
    if (err) goto done;

    f->read = true;
    f->bytes = stk_buffer_size(data);
    err = stk_image_probe(stk_buffer_data(data), f->bytes, &f->info, &f->diag);
    if (err) goto done;
    f->known = true;
    err = stk_image_decode(stk_buffer_data(data), f->bytes, &whole, 0, &image, &pixels, &f->diag);
done:
    if (!err) f->diag = (stk_diag){0};
    stk_buffer_unref(&pixels);
    stk_buffer_unref(&data);
}

/* Else nothing is known against it. */
static bool is_broken(stk_err err)
{
    return err != STK_EUNSUPPORTED && err != STK_ELIMIT && err != STK_ETIMEOUT;
}

static void print_data(const finding *f)
{
    const media_facts *m = &f->media;
    char text[400];
    if (f->data.kind == DATA_MEDIA)
        media_text(m, text, sizeof(text));
    else
        data_text(&f->data, text, sizeof(text));
    say(stdout, "%s: %s, %zu bytes", f->path, text, f->bytes);
    if (m->ends_early)
        say(stdout, ": %s\n", f->diag.text);
    else if (f->diag.err)
        say(stdout, ": %s: %s\n", is_broken(f->diag.err) ? "is broken" : "cannot be read",
            f->diag.text);
    else
        say(stdout, ": can be read\n");
    columns_print(&f->data.columns);
    for (int32_t i = 0; i < m->num_streams && i < MEDIA_STREAMS; i++) {
        media_stream_text(&m->streams[i], text, sizeof(text));
        say(stdout, "  %" PRId32 ": %s\n", i, text);
    }
    if (m->num_streams > MEDIA_STREAMS) say(stdout, "  and more\n");
}

/* A format that FFmpeg, if there is one, does not open is no format. */
static bool has_data(const finding *f)
{
    return f->data.kind == DATA_MEDIA ? f->media.num_streams > 0 : f->data.kind != DATA_NONE;
}

static void print_line(const finding *f)
{
    const stk_image_info *i = &f->info;
    if (has_data(f)) {
        print_data(f);
        return;
    }
    if (f->known)
        say(stdout, "%s: %s %" PRId32 "x%" PRId32 ", %" PRId32 " x %" PRId32 " bit%s%s%s%s",
            f->path, stk_image_format_str(i->format), i->width, i->height, i->channels, i->bits,
            *i->detail ? ", " : "", i->detail, i->progressive ? ", progressive" : "",
            i->animated ? ", animated" : "");
    else
        say(stdout, "%s", f->path);
    if (f->known) say(stdout, ", orientation %" PRId32 ", %zu bytes", i->orientation, f->bytes);
    if (f->diag.err)
        say(stdout, ": %s: %s\n", f->read ? "does not decode" : "cannot be read", f->diag.text);
    else
        say(stdout, ": decodes\n");
}

static void print_object(json *j, const finding *f)
{
    const stk_image_info *i = &f->info;
    json_open(j, NULL, '{');
    json_string(j, "file", f->path);
    if (has_data(f) && f->data.kind == DATA_MEDIA)
        media_json(&f->media, j);
    else if (has_data(f))
        data_json(&f->data, j);
    else
        json_string(j, "format", f->known ? stk_image_format_str(i->format) : NULL);
    if (f->known) {
        json_int(j, "width", i->width);
        json_int(j, "height", i->height);
        json_int(j, "channels", i->channels);
        json_int(j, "bits", i->bits);
        json_int(j, "orientation", i->orientation);
        json_bool(j, "progressive", i->progressive);
        json_bool(j, "animated", i->animated);
        json_string(j, "detail", i->detail);
    }
    json_int(j, "bytes", (int64_t)f->bytes);
    json_bool(j, "decodes", !f->diag.err);
    json_string(j, "error", f->diag.err ? f->diag.text : NULL);
    json_close(j, '}');
}

static int run(int argc, char **argv)
{
    settings s = {0};
    json j = {.to = stdout};
    int code = EXIT_FINE;
    if (!command_parse(&info_command, &argc, &argv, &s, &code)) return code;

    if (s.json) json_open(&j, NULL, '[');
    for (int i = 0; i < argc; i++) {
        finding f = {.path = argv[i]};
        look(&f);
        if (s.json)
            print_object(&j, &f);
        else
            print_line(&f);
        if (f.diag.err) code = EXIT_FAILED;
        data_fini(&f.data);
    }
    if (s.json) json_close(&j, ']');
    return code;
}

const command info_command = {
    .name = "info",
    .args = "FILE...",
    .help = "say what files are, and whether they decode",
    .about =
        "A line for each image: format, size as stored, channels and bits, orientation, and\n"
        "whether the whole image decodes.  Of NumPy and WAV files, of tar and zip archives, and\n"
        "of what gzip or zstd packed, such as .tar.gz: what they hold, and whether their\n"
        "structure is whole.  Of Arrow and Parquet files: rows, columns and their types, which\n"
        "the pyarrow of python3 reads, or of the Python that STOKER_PYTHON names.  Of audio,\n"
        "video and other images: what FFmpeg, if it is installed, reads in them, stream by\n"
        "stream, with the turn that makes video upright, and whether the file ends early, as far\n"
        "as FFmpeg complains or its header says.\n"
        "The exit code is 1 when one does not decode, is broken or ends early, or cannot be read.",
    .min_args = 1,
    .max_args = SIZE_MAX,
    .options = options,
    .run = run,
};

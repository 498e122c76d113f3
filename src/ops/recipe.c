#include "ops/recipe.h"

#include <string.h>

#include <stoker/clip.h>

#include "ops/sound.h"

/* The bytes: this, the options, and of sound the name of the mask, with its NUL. */
enum { IMAGE = 1, VIDEO, AUDIO, WAV };

typedef struct picture {
    uint64_t kind;
    stk_image_opts o;
} picture;

typedef struct clip {
    uint64_t kind;
    stk_video_opts o;
} clip;

typedef struct sound {
    uint64_t kind;
    stk_audio_opts o; /* without the pointer */
    char mask[];
} sound;

/* Zeroed; NULL: no memory. */
static void *room(size_t size, stk_buffer **out)
{
    if (stk_buffer_new(size, out)) return NULL;
    return memset(stk_buffer_writable(*out), 0, size);
}

static bool write_picture(const stk_image_opts *o, stk_buffer **out)
{
    picture *r = room(sizeof(*r), out);
    if (r) r->kind = IMAGE, r->o = *o;
    return r;
}

static bool write_clip(const stk_video_opts *o, stk_buffer **out)
{
    clip *r = room(sizeof(*r), out);
    if (r) r->kind = VIDEO, r->o = *o;
    return r;
}

static bool write_sound(uint64_t kind, const stk_sound *s, stk_buffer **out)
{
    const char *mask = s->o.mask ? s->o.mask : "";
    sound *r = room(sizeof(*r) + strlen(mask) + 1, out);
    if (!r) return false;
    r->kind = kind;
    r->o = s->o;
    r->o.mask = NULL;
    memcpy(r->mask, mask, strlen(mask) + 1);
    return true;
}

stk_err stk_recipe_write(const stk_op *op, stk_buffer **out, stk_diag *diag)
{
    const char *name = stk_op_get_class(op)->name;
    const void *params = stk_op_params(op);
    bool written;
    *out = NULL;
    if (!strcmp(name, "decode_image"))
        written = write_picture(params, out);
    else if (!strcmp(name, "decode_video"))
        written = write_clip(params, out);
    else if (!strcmp(name, "decode_audio"))
        written = write_sound(AUDIO, params, out);
    else if (!strcmp(name, "decode_wav"))
        written = write_sound(WAV, params, out);
    else
        return stk_diag_set(diag, STK_EUNSUPPORTED,
                            "%s cannot be isolated: decode_image, decode_video, decode_audio and "
                            "decode_wav can",
                            name);
    return written ? STK_OK
                   : stk_diag_set(diag, STK_ENOMEM, "no memory for the options of %s", name);
}

static stk_op *make_sound(const void *bytes, size_t size, stk_diag *diag)
{
    sound r;
    const char *mask = (const char *)bytes + sizeof(r);
    if (size <= sizeof(r) || strnlen(mask, size - sizeof(r)) != size - sizeof(r) - 1) return NULL;
    memcpy(&r, bytes, sizeof(r));
    r.o.mask = mask;
    return r.kind == AUDIO ? stk_op_decode_audio(&r.o, diag) : stk_op_decode_wav(&r.o, diag);
}

stk_op *stk_recipe_make(const void *bytes, size_t size, stk_diag *diag)
{
    uint64_t kind = 0;
    stk_diag_set(diag, STK_EINVAL, "no options of an op");
    if (size >= sizeof(kind)) memcpy(&kind, bytes, sizeof(kind));
    if (kind == AUDIO || kind == WAV) return make_sound(bytes, size, diag);
    if (kind == IMAGE && size == sizeof(picture)) {
        picture r;
        memcpy(&r, bytes, sizeof(r));
        return stk_op_decode_image(&r.o, diag);
    }
    if (kind == VIDEO && size == sizeof(clip)) {
        clip r;
        memcpy(&r, bytes, sizeof(r));
        return stk_op_decode_video(&r.o, diag);
    }
    return NULL;
}

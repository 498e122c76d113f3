/* What the files of a folder are, by the endings of their names: pictures, video or sound. */
#ifndef STK_CLI_KIND_H
#define STK_CLI_KIND_H

#include <stdbool.h>
#include <stddef.h>

typedef enum sample_kind { KIND_IMAGE, KIND_VIDEO, KIND_AUDIO, KIND_NONE } sample_kind;

sample_kind kind_of(const char *name);

/* "image", and for video and sound "clip": one of them. */
const char *kind_noun(sample_kind kind);

/* A pattern of the names, in any case, for a source of a folder; NULL: its default, images.
 * `dst` has KIND_PATTERN_SIZE bytes. */
enum { KIND_PATTERN_SIZE = 512 };
const char *kind_pattern(sample_kind kind, char *dst);

/* What lies in `dir`: images, if there are any in it; else video or sound that does; else what the
 * first file of one of these kinds below it is; else images.  *classes: there are folders in it,
 * and none of that kind beside them.  Returns an exit_code, and has said why it is not EXIT_FINE.
 */
int kind_find(const char *dir, sample_kind *kind, bool *classes);

#endif /* STK_CLI_KIND_H */

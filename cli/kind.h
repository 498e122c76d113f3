/* What files are, by the endings of their names: pictures, video or sound; and what most are. */
#ifndef STK_CLI_KIND_H
#define STK_CLI_KIND_H

#include <stdbool.h>
#include <stddef.h>

typedef enum sample_kind { KIND_IMAGE, KIND_VIDEO, KIND_AUDIO, KIND_NONE } sample_kind;

/* The kinds in that order, as an option's choice. */
#define KIND_WORDS "image|video|audio"

/* `name` has `size` bytes. */
sample_kind kind_of(const char *name, size_t size);

/* "image", and for video and sound "clip": one of them. */
const char *kind_noun(sample_kind kind);

/* The names' endings with '|' between them, and a pattern of names with one of them, in any case;
 * NULL: a source's default, images.  `dst` has KIND_TEXT_SIZE bytes. */
enum { KIND_TEXT_SIZE = 512 };
const char *kind_endings(sample_kind kind, char *dst);
const char *kind_pattern(sample_kind kind, char *dst);

/* Files of each kind; all-zero: none. */
typedef struct kind_counts {
    size_t of[KIND_NONE];
    size_t wav; /* of the sound */
} kind_counts;

/* Counts a name, if it is of a kind. */
void kind_count(kind_counts *c, const char *name, size_t size);
size_t kind_total(const kind_counts *c);
kind_counts kind_sum(const kind_counts *a, const kind_counts *b);

/* Of as many, images come before video, and video before sound.  KIND_NONE: nothing counted. */
sample_kind kind_most(const kind_counts *c);

/* A folder's files: those in it, and those below it, of which the first 10,000 are counted. */
typedef struct kind_folder {
    kind_counts in, below;
    bool folders; /* there are folders in it */
} kind_folder;

/* Returns an exit_code, and has said why it is not EXIT_FINE. */
int kind_look(const char *dir, kind_folder *out);

#endif /* STK_CLI_KIND_H */

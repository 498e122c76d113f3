/* Archives as tests want them: each field as it should be, and then as it should not. */
#ifndef STK_TESTS_ZIP_MAKE_H
#define STK_TESTS_ZIP_MAKE_H

#include <libdeflate.h>

#include <stoker/zip.h>

#include "tests/check.h"

enum { ZIP_ROOM = 1 << 16, ZIP_ENTRIES = 32 };

struct zip_entry {
    char name[64];
    size_t name_size;
    uint16_t flags, method, made_by, disk;
    uint32_t crc, attributes;
    uint64_t compressed, size, offset;
    bool wide; /* sizes and offset in a zip64 field */
};

struct zip_file {
    uint8_t data[ZIP_ROOM];
    size_t size, directory;
    size_t prefix;
    struct zip_entry entries[ZIP_ENTRIES];
    size_t n;
};

static inline void zip_put(struct zip_file *z, const void *data, size_t size)
{
    CHECK(size <= sizeof(z->data) - z->size);
    if (size) memcpy(z->data + z->size, data, size);
    z->size += size;
}

static inline void zip_num(struct zip_file *z, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) zip_put(z, &(uint8_t){(uint8_t)(value >> 8 * i)}, 1);
}

/* Values of as many bytes each as the digits of `sizes` say. */
static inline void zip_nums(struct zip_file *z, const char *sizes, const uint64_t *values)
{
    for (; *sizes; sizes++, values++) zip_num(z, *values, *sizes - '0');
}

/* A local header and its data, and what the directory will say of it. */
static inline struct zip_entry *zip_add(struct zip_file *z, const char *name, uint16_t method,
                                        const void *data, size_t size)
{
    struct zip_entry *e = &z->entries[z->n++];
    *e = (struct zip_entry){.name_size = strlen(name), .method = method, .size = size};
    CHECK(e->name_size < sizeof(e->name));
    memcpy(e->name, name, e->name_size);
    e->crc = libdeflate_crc32(0, data, size);
    e->offset = z->size - z->prefix;
    uint8_t packed[ZIP_ROOM];
    e->compressed = size;
    if (method == STK_ZIP_DEFLATED) {
        struct libdeflate_compressor *c = libdeflate_alloc_compressor(6);
        CHECK(c);
        e->compressed = libdeflate_deflate_compress(c, data, size, packed, sizeof(packed));
        libdeflate_free_compressor(c);
        CHECK(e->compressed);
    }
    const uint64_t extra = 3; /* which the directory has not */
    zip_nums(z, "4222444422",
             (uint64_t[]){0x04034b50, 20, 0, method, 0, e->crc, e->compressed, e->size,
                          e->name_size, extra});
    zip_put(z, name, e->name_size);
    zip_put(z, "abc", 3);
    zip_put(z, method == STK_ZIP_DEFLATED ? packed : data, (size_t)e->compressed);
    return e;
}

static inline void zip_header(struct zip_file *z, const struct zip_entry *e)
{
    const bool wide = e->wide;
    zip_nums(z, "4222244442222244",
             (uint64_t[]){0x02014b50, e->made_by, 20, e->flags, e->method, 0, e->crc,
                          wide ? UINT32_MAX : e->compressed, wide ? UINT32_MAX : e->size,
                          e->name_size, wide ? 6 + 28 : 0, 0, e->disk, 0, e->attributes,
                          wide ? UINT32_MAX : e->offset});
    zip_put(z, e->name, e->name_size);
    const uint16_t nothing = 0x9999; /* a field that means nothing */
    if (wide)
        zip_nums(z, "22222888",
                 (uint64_t[]){nothing, 2, 0, 1, 24, e->size, e->compressed, e->offset});
}

/* The zip64 end and its locator; `more` bytes of data of the end's own. */
static inline void zip_end64(struct zip_file *z, size_t more)
{
    const size_t at = z->size;
    zip_nums(z, "482288888",
             (uint64_t[]){0x06064b50, 44 + more, 45, 45, 0, z->n, z->n, at - z->directory,
                          z->directory - z->prefix});
    for (size_t i = 0; i < more; i++) zip_num(z, i, 1);
    zip_nums(z, "4484", (uint64_t[]){0x07064b50, 0, at - z->prefix, 1});
}

/* The end: of what the directory is, or of what zip64 says. */
static inline void zip_end(struct zip_file *z, bool wide)
{
    const size_t size = z->size - z->directory;
    zip_nums(z, "4422442",
             (uint64_t[]){0x06054b50, 0, wide ? UINT16_MAX : z->n, wide ? UINT16_MAX : z->n,
                          wide ? UINT32_MAX : size, wide ? UINT32_MAX : z->directory - z->prefix,
                          0});
}

static inline void zip_directory(struct zip_file *z)
{
    z->directory = z->size;
    for (size_t i = 0; i < z->n; i++) zip_header(z, &z->entries[i]);
}

static inline void zip_finish(struct zip_file *z)
{
    zip_directory(z);
    zip_end(z, false);
}

static inline stk_zip_input zip_input(const struct zip_file *z)
{
    return (stk_zip_input){.data = z->data, .size = z->size};
}

#endif /* STK_TESTS_ZIP_MAKE_H */

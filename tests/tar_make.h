/* Writes tar archives, member by member, for tests. */
#ifndef STK_TESTS_TAR_MAKE_H
#define STK_TESTS_TAR_MAKE_H

#include "codec/tar_header.h"
#include "tests/check.h"

struct archive {
    uint8_t data[1 << 16];
    size_t size;
};

static struct archive ar;

static inline void sign(uint8_t *h)
{
    uint32_t sum = 0;
    memset(h + 148, ' ', 8);
    for (int i = 0; i < STK_TAR_BLOCK; i++) sum += h[i];
    snprintf((char *)h + 148, 8, "%06o", (unsigned)sum);
}

/* A header, which the caller may change and sign again. */
static inline uint8_t *put_header(const char *name, char type, uint64_t size)
{
    uint8_t *h = ar.data + ar.size;
    memset(h, 0, STK_TAR_BLOCK);
    memcpy(h, name, strnlen(name, STK_TAR_NAME));
    snprintf((char *)h + 124, 12, "%011llo", (unsigned long long)size);
    h[156] = (uint8_t)type;
    memcpy(h + 257, "ustar\00000", 8);
    sign(h);
    ar.size += STK_TAR_BLOCK;
    return h;
}

static inline void put_data(const void *data, size_t size)
{
    const size_t padded = (size + 511) / 512 * 512;
    memset(ar.data + ar.size, 0, padded);
    if (size) memcpy(ar.data + ar.size, data, size);
    ar.size += padded;
}

static inline void put_file(const char *name, const char *text)
{
    put_header(name, '0', strlen(text));
    put_data(text, strlen(text));
}

static inline void put_extension(char type, const char *text, size_t size)
{
    put_header("././@LongLink", type, size);
    put_data(text, size);
}

static inline void put_pax(char type, const char *key, const char *value)
{
    char record[512];
    int size = (int)(strlen(key) + strlen(value)) + 3, total = 0;
    while (total != size + snprintf(NULL, 0, "%d", total)) total++;
    snprintf(record, sizeof(record), "%d %s=%s\n", total, key, value);
    put_extension(type, record, strlen(record));
}

static inline void put_end(void)
{
    memset(ar.data + ar.size, 0, 1024);
    ar.size += 1024;
}

#endif /* STK_TESTS_TAR_MAKE_H */

#include "base/packet.h"

#include <string.h>

/* Wire types. */
enum { VARINT = 0, FIXED64 = 1, LENGTH = 2 };

static void put(packet *p, const void *data, size_t size)
{
    if (size > sizeof(p->bytes) - p->size) {
        p->full = true;
        return;
    }
    memcpy(p->bytes + p->size, data, size);
    p->size += size;
}

static void put_varint(packet *p, uint64_t value)
{
    uint8_t bytes[10];
    size_t n = 0;
    do {
        bytes[n] = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
        n++;
    } while (value);
    put(p, bytes, n);
}

static void put_tag(packet *p, uint32_t field, uint32_t type)
{
    put_varint(p, (uint64_t)field << 3 | type);
}

void packet_number(packet *p, uint32_t field, uint64_t value)
{
    put_tag(p, field, VARINT);
    put_varint(p, value);
}

void packet_double(packet *p, uint32_t field, double value)
{
    uint64_t bits;
    uint8_t bytes[8];
    memcpy(&bits, &value, sizeof(bits));
    for (size_t i = 0; i < sizeof(bytes); i++) bytes[i] = (uint8_t)(bits >> 8 * i);
    put_tag(p, field, FIXED64);
    put(p, bytes, sizeof(bytes));
}

void packet_bytes(packet *p, uint32_t field, const void *data, size_t size)
{
    put_tag(p, field, LENGTH);
    put_varint(p, size);
    put(p, data, size);
}

void packet_text(packet *p, uint32_t field, const char *text, size_t most)
{
    size_t n = strnlen(text, most + 1);
    if (n > most)
        for (n = most; n > 0 && ((uint8_t)text[n] & 0xc0) == 0x80; n--) {
        }
    packet_bytes(p, field, text, n);
}

void packet_nest(packet *p, uint32_t field, const packet *inner)
{
    p->full |= inner->full;
    packet_bytes(p, field, inner->bytes, inner->size);
}

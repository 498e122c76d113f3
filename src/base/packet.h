/*
 * packet: one message of protobuf's encoding, built in place.
 * https://protobuf.dev/programming-guides/encoding
 *
 * What finds no room marks the packet as full; it is then not to be used.
 */
#ifndef STK_BASE_PACKET_H
#define STK_BASE_PACKET_H

#include <stddef.h>
#include <stdint.h>

#include <stdbool.h>

#define PACKET_SIZE 512

typedef struct packet {
    uint8_t bytes[PACKET_SIZE];
    size_t size;
    bool full;
} packet;

void packet_number(packet *p, uint32_t field, uint64_t value);
void packet_double(packet *p, uint32_t field, double value);
void packet_bytes(packet *p, uint32_t field, const void *data, size_t size);

/* Up to `most` bytes of the text, cut between characters of UTF-8. */
void packet_text(packet *p, uint32_t field, const char *text, size_t most);
void packet_nest(packet *p, uint32_t field, const packet *inner);

#endif /* STK_BASE_PACKET_H */

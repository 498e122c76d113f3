/*
 * stk_permutation: a shuffle of [0, n) that is computed index by index, in O(1) memory.
 *
 * A Feistel network over the smallest power of two >= n (two halves that may differ by a bit),
 * made to fit n by cycle walking: an image that is >= n is mapped once more (Black and Rogaway:
 * "Ciphers with arbitrary finite domains", CT-RSA 2002, their method 2).  Fewer than two walks
 * are expected whatever n is.  Round keys come from Philox.
 *
 * Order: the same (n, seed, epoch, tweak) give the same shuffle in every version: tests hold
 *        fixed vectors of it.
 * Threads: a plain value; reading it needs no lock.
 */
#ifndef STK_SOURCE_PERMUTE_H
#define STK_SOURCE_PERMUTE_H

#include <stdint.h>

#define STK_PERMUTE_ROUNDS 6
#define STK_PERMUTE_MAX (INT64_C(1) << 62)

typedef struct stk_permutation {
    uint64_t keys[STK_PERMUTE_ROUNDS];
    int64_t n;
    uint32_t low_bits, high_bits; /* 2^(low_bits + high_bits) >= n */
} stk_permutation;

/* n in [1, STK_PERMUTE_MAX], epoch >= 0.  `tweak`, in [0, 2^62), separates uses of one
 * (seed, epoch). */
void stk_permutation_init(stk_permutation *p, int64_t n, uint64_t seed, int64_t epoch,
                          int64_t tweak);

/* The image of i in [0, n), and the i whose image is `image`. */
int64_t stk_permutation_at(const stk_permutation *p, int64_t i);
int64_t stk_permutation_find(const stk_permutation *p, int64_t image);

#endif /* STK_SOURCE_PERMUTE_H */

/*
 * Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random
 * numbers: as easy as 1, 2, 3", SC 2011).  The same key and counter give the same words on
 * every machine and in any order, so that no stream is ever shared between threads.
 */
#ifndef STK_BASE_RNG_H
#define STK_BASE_RNG_H

#include <stdint.h>

/* Four words for (key, counter). */
void stk_philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4]);

/* 64 well-mixed bits of x: the finaliser of splitmix64 (Steele, Lea, Flood: "Fast splittable
 * pseudorandom number generators", OOPSLA 2014).  A bijection. */
uint64_t stk_mix64(uint64_t x);

/* A word as a double in [0, 1). */
double stk_unit(uint32_t word);

#endif /* STK_BASE_RNG_H */

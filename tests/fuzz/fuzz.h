/* A fuzz target: never fails, only crashes, where something is wrong. */
#ifndef STK_TESTS_FUZZ_FUZZ_H
#define STK_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif /* STK_TESTS_FUZZ_FUZZ_H */

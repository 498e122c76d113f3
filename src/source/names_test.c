#include "source/names.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "tests/check.h"

static void check_sorted(const stk_names *names)
{
    for (uint32_t i = 1; i < names->num; i++)
        CHECK(strcmp(stk_names_get(names, i - 1), stk_names_get(names, i)) <= 0);
}

static void sorts_like_the_c_locale(void)
{
    static const char *const given[] = {"b",   "a.jpg",    "B",    "a",  "aa", "\xff",
                                        "a b", "",         "\x80", "Z",  "_",  "a0",
                                        "a1",  "\xc3\xa9", "a-1",  "10", "9"};
    static const char *const want[] = {"",   "10",  "9",    "B",        "Z",   "_",
                                       "a",  "a b", "a-1",  "a.jpg",    "a0",  "a1",
                                       "aa", "b",   "\x80", "\xc3\xa9", "\xff"};
    stk_names names = {0};
    const size_t n = sizeof(given) / sizeof(given[0]);
    for (size_t i = 0; i < n; i++)
        CHECK_EQ(stk_names_add(&names, given[i], strlen(given[i])), STK_OK);
    CHECK_EQ(stk_names_pack(&names), STK_OK);
    for (size_t i = 0; i < n; i++) CHECK(!strcmp(stk_names_get(&names, i), want[i]));
    stk_names_fini(&names);
    CHECK_EQ(stk_names_memory(&names), 0);
}

/* kind 0: random lengths and few letters; 1: a long common beginning; 2: sorted; 3: the reverse;
 * 4: many equal; 5: random bytes */
static size_t make_name(int kind, size_t i, size_t n, char *dst)
{
    const uint64_t r = stk_mix64(i * 6 + (size_t)kind);
    switch (kind) {
    case 0: {
        const size_t len = r % 30;
        for (size_t k = 0; k < len; k++) dst[k] = (char)('a' + (stk_mix64(r + k) & 1));
        return len;
    }
    case 1:
        return (size_t)snprintf(dst, 64, "the_same_beginning_of_all_%08u.jpg",
                                (unsigned)(r % 99999999));
    case 2: return (size_t)snprintf(dst, 64, "%09zu", i);
    case 3: return (size_t)snprintf(dst, 64, "%09zu", n - i);
    case 4: return (size_t)snprintf(dst, 64, "name_name_%d", (int)(r % 3));
    default:
        for (size_t k = 0; k < 12; k++) dst[k] = (char)(stk_mix64(r + k) % 255 + 1);
        return 12;
    }
}

static void sorts_all_kinds(void)
{
    for (int kind = 0; kind < 6; kind++)
        for (size_t n = 0; n < 30000; n = n * 3 + 1) {
            stk_names names = {0};
            uint64_t sum = 0;
            for (size_t i = 0; i < n; i++) {
                char name[64];
                const size_t len = make_name(kind, i, n, name);
                CHECK_EQ(stk_names_add(&names, name, len), STK_OK);
                sum += names.at[i];
            }
            CHECK_EQ(stk_names_pack(&names), STK_OK);
            CHECK_EQ(names.num, n);
            check_sorted(&names);
            for (size_t i = 0; i < n; i++) sum -= names.at[i];
            CHECK_EQ(sum, 0); /* still the same names */
            stk_names_fini(&names);
        }
}

static void survives_every_failure(void)
{
    stk_err err;
    TORTURE (err) {
        stk_names names = {0};
        err = STK_OK;
        for (int i = 0; i < 200 && !err; i++) err = stk_names_add(&names, "0123456789", 10);
        if (!err) err = stk_names_pack(&names);
        stk_names_fini(&names);
    }
    stk_fault_arm(-1);
}

TESTS(TEST(sorts_like_the_c_locale), TEST(sorts_all_kinds), TEST(survives_every_failure))

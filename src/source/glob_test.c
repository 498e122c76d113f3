#include "source/glob.h"

#include "base/alloc.h"
#include "tests/check.h"

static bool matches(const char *pattern, const char *name)
{
    stk_glob *g;
    stk_diag diag;
    CHECK_EQ(stk_glob_new(pattern, &g, &diag), STK_OK);
    const bool yes = stk_glob_match(g, name, strlen(name));
    stk_glob_free(&g);
    CHECK(g == NULL);
    return yes;
}

static void images_in_any_case(void)
{
    static const char *const yes[] = {"a.jpg",  "a.JPEG", "b.Png", ".jpg",  "x.y.webp", "\xff.jpe",
                                      "a.avif", "a.BMP",  "a.gif", "a.tif", "a.Tiff"};
    static const char *const no[] = {"a.jpg.txt", "jpg", "a.svg", "", "a.jp"};
    for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) CHECK(matches(NULL, yes[i]));
    for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++) CHECK(!matches(NULL, no[i]));
}

static void patterns_match(void)
{
    static const struct {
        const char *pattern, *name;
        bool match;
    } cases[] = {
        {"*", "", true},
        {"*", ".hidden", true},
        {"*.jpg", "a.JPG", false},
        {"*.jpg|*.png", "a.png", true},
        {"*.jpg|*.png", "a.pn", false},
        {"a?c", "abc", true},
        {"a?c", "ac", false},
        {"a*b*c", "aXbYbZc", true},
        {"a*b*c", "aXbYbZ", false},
        {"[a-c]x", "bx", true},
        {"[a-c]x", "dx", false},
        {"[!a-c]x", "dx", true},
        {"[!a-c]x", "ax", false},
        {"[]]x", "]x", true},
        {"[a-]x", "-x", true},
        {"\\*x", "*x", true},
        {"\\*x", "ax", false},
        {"\\[x", "[x", true},
        {"*[0-9].*", "img7.tif", true},
        {"*[0-9].*", "img.tif", false},
        {"?", "\xff", true},
        {"*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false},
        {"**.x", "a.x", true},
        {"img[\x80-\xff]", "img\xe9", true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        CHECK_EQ(matches(cases[i].pattern, cases[i].name), cases[i].match);
}

static void bad_patterns_are_named(void)
{
    static const char *const bad[] = {"", "|", "*.jpg|", "[abc", "*.x\\", "[]", "[!]", "\\\\[a"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        stk_glob *g;
        stk_diag diag;
        CHECK_EQ(stk_glob_new(bad[i], &g, &diag), STK_EINVAL);
        CHECK(g == NULL && strstr(diag.text, "pattern"));
    }
}

static void survives_every_failure(void)
{
    stk_err err;
    TORTURE (err) {
        stk_glob *g;
        err = stk_glob_new("*.a|*.b", &g, NULL);
        CHECK(!err == !!g);
        stk_glob_free(&g);
    }
    stk_fault_arm(-1);
}

TESTS(TEST(images_in_any_case), TEST(patterns_match), TEST(bad_patterns_are_named),
      TEST(survives_every_failure))

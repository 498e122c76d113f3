#include "source/shard.h"

#include "base/alloc.h"
#include "tests/check.h"

static const stk_shard_part parts[] = {{"image", "jpg|png"}, {"mask", "seg.png"}};
static const stk_shard_column columns[] = {{"label", "cls", false}, {"caption", "txt", true}};
static const stk_shard_spec image = {1, 0, parts, NULL};
static const stk_shard_spec labelled = {1, 2, parts, columns};
static const stk_shard_spec masked = {2, 0, parts, NULL};

/* A member's data is what it is called behind the '='. */
static stk_err read_text(void *ctx, const stk_shard_member *m, void *dst, stk_diag *diag)
{
    (void)diag;
    memcpy(dst, ctx, m->at.size);
    return STK_OK;
}

/* A number of the caller's is what happens. */
static stk_err fail_to_read(void *ctx, const stk_shard_member *m, void *dst, stk_diag *diag)
{
    (void)m, (void)dst;
    return stk_diag_set(diag, *(stk_err *)ctx, "wrong CRC-32");
}

/* Members "name" or "name=data", separated by blanks, at offsets 100, 200... */
static stk_err fill(stk_shard *s, const stk_shard_spec *spec, const char *members)
{
    char text[2000];
    stk_err err = STK_OK;
    uint64_t offset = 0;
    snprintf(text, sizeof(text), "%s", members);
    *s = (stk_shard){.path = "a.tar"};
    for (char *save, *m = strtok_r(text, " ", &save); m && !err; m = strtok_r(NULL, " ", &save)) {
        char *data = strchr(m, '=');
        if (data) *data++ = 0;
        const stk_shard_member member = {
            .name = m,
            .name_size = strlen(m),
            .at = {.offset = offset += 100, .size = data ? strlen(data) : 7},
        };
        err = stk_shard_add(s, spec, &member, read_text, data);
    }
    return err ? err : stk_shard_end(s, spec, NULL);
}

static const char *name(const stk_shard *s, size_t i)
{
    return s->pool + s->samples[i].name;
}

static const char *flaw(const stk_shard *s, size_t i)
{
    return s->pool + s->samples[i].flaw.text;
}

static void members_of_one_name_are_a_sample(void)
{
    stk_shard s;
    CHECK_EQ(fill(&s, &labelled,
                  "README index.html ._x/1.jpg d/.jpg d/01.jpg d/01.cls=4 d/01.json d/01.txt=one "
                  "d/02.txt= d/02.x.PNG d/02.cls=-9223372036854775808\n\t"),
             STK_OK);
    CHECK_EQ(s.num, 3);
    CHECK(!strcmp(name(&s, 0), "._x/1") && *flaw(&s, 0)); /* no label */
    CHECK(!strcmp(name(&s, 1), "d/01") && !*flaw(&s, 1));
    CHECK(!strcmp(name(&s, 2), "d/02") && !*flaw(&s, 2));
    CHECK_EQ(s.extents[1].offset, 500);
    CHECK_EQ(s.extents[1].size, 7);
    CHECK(!strcmp(s.pool + s.endings[1], "jpg") && !strcmp(s.pool + s.endings[2], "x.PNG"));
    CHECK_EQ(s.values[2], 4);
    CHECK_EQ(s.values[4], INT64_MIN);
    CHECK(!strcmp(s.pool + s.values[3], "one") && !strcmp(s.pool + s.values[5], ""));
    CHECK(stk_shard_memory(&s, &labelled) > sizeof(s));
    stk_shard_fini(&s);
}

static void the_first_ending_goes_before_the_last(void)
{
    stk_shard s;
    CHECK_EQ(fill(&s, &masked, "1.png 1.seg.png 2.seg.png 2.jpg"), STK_OK);
    CHECK_EQ(s.num, 2);
    CHECK_EQ(s.extents[0].offset, 100);
    CHECK_EQ(s.extents[1].offset, 200);
    CHECK_EQ(s.extents[2].offset, 400);
    CHECK_EQ(s.extents[3].offset, 300);
    CHECK(!*flaw(&s, 0) && !*flaw(&s, 1));
    stk_shard_fini(&s);
}

/* Whichever comes first; its flaws do not count, either. */
static void a_last_ending_gives_way_to_a_first(void)
{
    stk_shard s;
    CHECK_EQ(fill(&s, &labelled,
                  "1.mask.png 1.jpg 1.seg.png 1.old.cls=x 1.cls=4 1.txt=a 1.x.txt=b "
                  "2.png 2.a.png 2.b.png 2.cls=5 2.old.cls=6 2.x.txt=a 2.y.txt=b 2.txt=c "
                  "3.x.jpg 3.x.cls=7 3.x.txt=d"),
             STK_OK);
    CHECK_EQ(s.num, 3);
    for (size_t i = 0; i < 3; i++) CHECK(!*flaw(&s, i));
    CHECK_EQ(s.extents[0].offset, 200);
    CHECK(!strcmp(s.pool + s.endings[0], "jpg") && !strcmp(s.pool + s.endings[1], "png"));
    CHECK(s.values[0] == 4 && s.values[2] == 5 && s.values[4] == 7);
    CHECK(!strcmp(s.pool + s.values[1], "a") && !strcmp(s.pool + s.values[3], "c"));
    CHECK(!strcmp(s.pool + s.endings[2], "x.jpg") && !strcmp(s.pool + s.values[5], "d"));
    stk_shard_fini(&s);
}

static void flaws_are_named(void)
{
    static const struct {
        const char *members, *text;
        const stk_shard_spec *spec;
    } cases[] = {
        {"1.jpg 1.png", "a.tar/1: .png is a second member for image", &image},
        {"1.jpg 1.txt=a", "a.tar/1: there is no member for label (.cls)", &labelled},
        {"1.cls=1 1.txt=a", "a.tar/1: there is no member for image (.jpg|png)", &labelled},
        {"1.jpg 1.cls=x 1.txt=a", "a.tar/1: label is no whole number: \"x\"", &labelled},
        {"1.jpg 1.cls=1x 1.txt=a", "no whole number", &labelled},
        {"1.jpg 1.cls= 1.txt=a", "no whole number", &labelled},
        {"1.jpg 1.cls=+ 1.txt=a", "no whole number", &labelled},
        {"1.jpg 1.cls=-9223372036854775809 1.txt=a", "no whole number", &labelled},
        {"1.jpg 1.cls=99999999999999999999 1.txt=a", "no whole number", &labelled},
        {"1.jpg 1.cls=1 1.cls=1 1.txt=a", ".cls is a second member for label", &labelled},
        {"1.a.png 1.b.png 1.c.png",
         "a.tar/1: several members could be image (.jpg|png), and none has just that ending",
         &image},
        {"1.jpg 1.a.txt=a 1.b.txt=b 1.cls=1", "several members could be caption (.txt)", &labelled},
        {"1.jpg 1.a.cls=x 1.txt=a", "label is no whole number", &labelled},
        {"1.jpg", "there is no member for mask (.seg.png)", &masked},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        stk_shard s;
        CHECK_EQ(fill(&s, cases[i].spec, cases[i].members), STK_OK);
        CHECK_EQ(s.num, 1);
        if (!strstr(flaw(&s, 0), cases[i].text)) fprintf(stderr, "  %s\n", flaw(&s, 0));
        CHECK(strstr(flaw(&s, 0), cases[i].text));
        CHECK_EQ(s.samples[0].flaw.err, STK_ECORRUPT);
        stk_shard_fini(&s);
    }
}

static void values_have_a_limit(void)
{
    stk_shard s = {.path = "a.tar"};
    const stk_shard_member m = {
        .name = "1.txt", .name_size = 5, .at = {.size = STK_SHARD_MAX_VALUE + 1}};
    CHECK_EQ(stk_shard_add(&s, &labelled, &m, NULL, NULL), STK_OK);
    CHECK_EQ(stk_shard_end(&s, &labelled, NULL), STK_OK);
    CHECK(strstr(flaw(&s, 0), "caption has 65537 bytes, the limit is 65536"));
    CHECK_EQ(s.samples[0].flaw.err, STK_ELIMIT);
    stk_shard_fini(&s);
}

static void a_member_that_cannot_be_read_is_a_flaw_of_its_sample(void)
{
    stk_shard s = {.path = "a.tar"};
    const stk_shard_member picture = {.name = "1.jpg", .name_size = 5, .at = {.size = 7}};
    const stk_shard_member number = {.name = "1.cls", .name_size = 5, .at = {.size = 1}};
    stk_err what = STK_ECORRUPT;
    CHECK_EQ(stk_shard_add(&s, &labelled, &picture, NULL, NULL), STK_OK);
    CHECK_EQ(stk_shard_add(&s, &labelled, &number, fail_to_read, &what), STK_OK);
    CHECK_EQ(stk_shard_end(&s, &labelled, NULL), STK_OK);
    CHECK_EQ(s.num, 1);
    CHECK(!strcmp(flaw(&s, 0), "a.tar: wrong CRC-32"));
    CHECK_EQ(s.samples[0].flaw.err, STK_ECORRUPT);
    stk_shard_fini(&s);
    for (int i = 0; i < 2; i++) {
        s = (stk_shard){.path = "a.tar"};
        what = i ? STK_ENOMEM : STK_ECANCELLED;
        CHECK_EQ(stk_shard_add(&s, &labelled, &number, fail_to_read, &what), what);
        stk_shard_fini(&s);
    }
}

static void what_ends_a_shard_is_a_sample(void)
{
    stk_shard s = {.path = "a.tar"};
    const stk_diag why = {.err = STK_EIO, .os_error = 5, .text = "a.tar: broken"};
    CHECK_EQ(stk_shard_end(&s, &image, &why), STK_OK);
    CHECK_EQ(s.num, 1);
    CHECK(!*name(&s, 0) && !strcmp(flaw(&s, 0), "a.tar: broken"));
    CHECK_EQ(s.samples[0].flaw.err, STK_EIO);
    CHECK_EQ(s.samples[0].flaw.os_error, 5);
    stk_shard_fini(&s);
}

static void without_memory(void)
{
    stk_err err = STK_OK;
    TORTURE (err) {
        stk_shard s;
        err = fill(&s, &labelled, "1.jpg 1.cls=4 1.txt=one 2.jpg 2.txt=two 2.cls=x 3.cls=1");
        if (!err) err = stk_shard_end(&s, &labelled, &(stk_diag){.err = STK_EIO, .text = "why"});
        if (!err) CHECK_EQ(s.num, 4);
        stk_shard_fini(&s);
    }
}

TESTS(TEST(members_of_one_name_are_a_sample), TEST(the_first_ending_goes_before_the_last),
      TEST(a_last_ending_gives_way_to_a_first), TEST(flaws_are_named), TEST(values_have_a_limit),
      TEST(a_member_that_cannot_be_read_is_a_flaw_of_its_sample),
      TEST(what_ends_a_shard_is_a_sample), TEST(without_memory))

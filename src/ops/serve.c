#include "ops/serve.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/failpoint.h"
#include "ops/parts.h"
#include "ops/recipe.h"
#include "ops/wire.h"

typedef struct server {
    int socket, memory;
    stk_op *op;
    void *state; /* of the op */
    bool opened;
    stk_lone *lone;
    stk_wire_reply reply;
} server;

static stk_err send_reply(server *s, uint64_t number)
{
    s->reply.number = number;
    for (;;) {
        const ssize_t n = send(s->socket, &s->reply, sizeof(s->reply), MSG_NOSIGNAL);
        if (n == (ssize_t)sizeof(s->reply)) return STK_OK;
        if (n < 0 && errno != EINTR) return STK_EIO;
    }
}

/* Gives 0 bytes at the end of the connection. */
static stk_err receive(server *s, void *dst, size_t room, size_t *size)
{
    for (;;) {
        const ssize_t n = recv(s->socket, dst, room, MSG_TRUNC);
        if (n < 0 && errno == EINTR) continue;
        *size = n > 0 ? (size_t)n : 0;
        if (n < 0 && errno != ECONNRESET) return STK_EIO;
        return *size <= room ? STK_OK : STK_EINVAL;
    }
}

/* --- hello --- */

static stk_err make_op(server *s, const uint8_t *message, size_t size)
{
    stk_wire_hello hello;
    stk_diag *diag = &s->reply.diag;
    *diag = (stk_diag){0};
    if (size < sizeof(hello)) return stk_diag_set(diag, STK_EINVAL, "no hello");
    memcpy(&hello, message, sizeof(hello));
    if (strncmp(hello.build, STK_WIRE_BUILD, sizeof(hello.build)) ||
        hello.sizes != stk_wire_sizes())
        return stk_diag_set(diag, STK_EUNSUPPORTED,
                            "it belongs to another version of this library");
    stk_err err = stk_lone_new(&s->lone);
    if (err) return stk_diag_set(diag, err, "no memory for an item");
    s->op = stk_recipe_make(message + sizeof(hello), size - sizeof(hello), diag);
    if (s->op) *diag = (stk_diag){0};
    return s->op ? STK_OK : diag->err;
}

static stk_err greet(server *s)
{
    size_t size = 0;
    uint8_t *message = stk_alloc(STK_WIRE_MOST);
    if (!message) return STK_ENOMEM;
    stk_err err = receive(s, message, STK_WIRE_MOST, &size);
    if (!err && size) {
        (void)make_op(s, message, size);
        err = send_reply(s, 0);
    }
    stk_free(message);
    return err;
}

/* --- samples --- */

#if defined(STK_FAULTS) || defined(STK_FAILPOINTS)
/* What a test makes happen to the sample with that id. */
static void misbehave(int64_t id)
{
    char name[48];
    snprintf(name, sizeof(name), "helper.wait.%lld", (long long)id);
    (void)stk_failpoint(name);
    snprintf(name, sizeof(name), "helper.exit.%lld", (long long)id);
    if (stk_failpoint(name)) _exit(3);
    snprintf(name, sizeof(name), "helper.crash.%lld", (long long)id);
    if (!stk_failpoint(name)) return;
    (void)signal(SIGSEGV, SIG_DFL); /* a sanitizer's would exit */
    (void)raise(SIGSEGV);
}
#else
#define misbehave(id) (void)(id)
#endif

static stk_err take_bytes(server *s, const stk_wire_request *r, stk_item *item, stk_diag *diag)
{
    for (size_t i = 0; i < r->num_parts; i++) {
        uint64_t offset;
        stk_buffer *bytes;
        if (r->sizes[i] == STK_WIRE_NO_BYTES) continue;
        stk_err err = stk_wire_offset(r, i + 1, &offset); /* so the size is one, too */
        if (!err) err = stk_wire_offset(r, i, &offset);
        if (!err) err = stk_lone_memory(s->lone, (size_t)r->sizes[i], &bytes);
        if (err) return stk_diag_set(diag, err, "no memory for the bytes of a sample");
        err =
            stk_wire_get(s->memory, offset, stk_buffer_writable(bytes), (size_t)r->sizes[i], diag);
        stk_item_set_bytes(item, i, &bytes);
        if (err) return err;
    }
    return STK_OK;
}

static stk_err run_op(server *s, stk_item *item, stk_diag *diag)
{
    const stk_op_class *cls = stk_op_get_class(s->op);
    const void *params = stk_op_params(s->op);
    stk_err err = STK_OK;
    if (cls->open && !s->opened) err = cls->open(params, &s->state, diag);
    if (err) return err;
    s->opened = true;
    return cls->run(params, s->state, item, diag);
}

/* Behind the bytes of the sample, so that these stay as they are. */
static stk_err give_arrays(server *s, const stk_wire_request *r, const stk_item *item,
                           stk_diag *diag)
{
    uint64_t at;
    stk_err err = stk_wire_offset(r, r->num_parts, &at);
    if (err) return stk_diag_set(diag, err, "no room in shared memory");
    s->reply.num_parts = stk_item_num_parts(item);
    for (size_t i = 0; i < s->reply.num_parts; i++) {
        const stk_tensor t = stk_item_array(item, i);
        stk_wire_array *a = &s->reply.arrays[i];
        size_t bytes;
        *a = (stk_wire_array){.spec = stk_tensor_spec(&t), .offset = at};
        const bool stays = i < r->num_parts && !stk_op_takes(s->op, i);
        if (stays) continue;
        err = t.data ? stk_spec_bytes(&a->spec, &bytes) : STK_EINVAL;
        if (err || !stk_tensor_contiguous(&t))
            return stk_diag_set(diag, STK_EINVAL, "part %zu was not decoded to an array", i);
        err = stk_wire_put(s->memory, at, t.data, bytes, diag);
        if (err) return err;
        at += (bytes + STK_WIRE_ALIGN - 1) / STK_WIRE_ALIGN * STK_WIRE_ALIGN;
    }
    return STK_OK;
}

/* What the engine does with an op's error: see attempt() in graph/exec.c. */
static void complete(stk_err err, stk_diag *diag)
{
    if (err && (diag->err != err || !diag->text[0]))
        stk_diag_set(diag, err, "%s", stk_err_str(err));
    if (!err) *diag = (stk_diag){0};
}

static stk_err serve_one(server *s, const stk_wire_request *r)
{
    stk_diag *diag = &s->reply.diag;
    *diag = (stk_diag){0};
    s->reply.num_parts = 0;
    stk_item *item = stk_lone_begin(s->lone, &r->origin, (size_t)r->num_parts);
    stk_err err = take_bytes(s, r, item, diag);
    misbehave(r->origin.id);
    if (!err) err = run_op(s, item, diag);
    if (!err) err = give_arrays(s, r, item, diag);
    complete(err, diag);
    stk_item_clear(item);
    return send_reply(s, r->number);
}

static stk_err serve_all(server *s)
{
    for (;;) {
        stk_wire_request r;
        size_t size;
        const stk_err err = receive(s, &r, sizeof(r), &size);
        if (err || !size) return err;
        if (size != sizeof(r) || !r.num_parts || r.num_parts > STK_MAX_PARTS) return STK_EINVAL;
        const stk_err sent = serve_one(s, &r);
        if (sent) return sent;
    }
}

stk_err stk_serve(int socket, int memory)
{
    server *s = stk_alloc_zero(1, sizeof(*s));
    if (!s) return STK_ENOMEM;
    s->socket = socket;
    s->memory = memory;
    stk_err err = greet(s);
    if (!err && s->op) err = serve_all(s);
    if (s->opened && stk_op_get_class(s->op)->close) stk_op_get_class(s->op)->close(s->state);
    stk_op_unref(&s->op);
    stk_lone_free(&s->lone);
    stk_free(s);
    return err;
}

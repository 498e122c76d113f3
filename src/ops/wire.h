/*
 * What an isolated op and its helper process say to each other, one message a packet of a socket:
 *
 *     parent   hello, recipe ──►             helper
 *              ◄── reply 0                   the op was made, or why not
 *              request 1 ──►                 its bytes lie in the shared memory
 *              ◄── reply 1                   and so do its arrays; or why there are none
 *              ...
 *
 * The memory is a file without a name, which both sides read and write and neither maps: so it can
 * end or change at any time, and all that comes of it is an error.
 *
 * Both are of one build, which the hello says.  Still the parent believes nothing: the helper has
 * run a decoder over somebody's bytes.
 */
#ifndef STK_OPS_WIRE_H
#define STK_OPS_WIRE_H

#include "graph/lone.h"

#define STK_WIRE_BUILD STK_VERSION " 2" /* the number grows with every change of what crosses */
#define STK_WIRE_ALIGN 64               /* of what lies in the memory */
#define STK_WIRE_MOST 65536             /* bytes of a message */
#define STK_WIRE_NO_BYTES UINT64_MAX

typedef struct stk_wire_hello {
    char build[32];
    uint64_t sizes; /* stk_wire_sizes(): of the structs */
} stk_wire_hello;   /* and behind it the recipe */

typedef struct stk_wire_request {
    uint64_t number; /* 1, 2... */
    stk_origin origin;
    uint64_t num_parts;
    uint64_t sizes[STK_MAX_PARTS]; /* of their bytes, one behind the other in the memory */
} stk_wire_request;

typedef struct stk_wire_array {
    stk_spec spec;
    uint64_t offset; /* in the memory */
} stk_wire_array;

typedef struct stk_wire_reply {
    uint64_t number; /* of the request; 0: of the hello */
    uint64_t num_parts;
    stk_wire_array arrays[STK_MAX_PARTS];
    stk_diag diag; /* `err`: STK_OK, or why there are no arrays */
} stk_wire_reply;

uint64_t stk_wire_sizes(void);

/* Where part `i` of a request lies, or with num_parts the end; rounded up.  STK_ELIMIT: nowhere. */
STK_NODISCARD stk_err stk_wire_offset(const stk_wire_request *r, size_t i, uint64_t *out);

/* The arrays that a reply has. */
typedef struct stk_wire_expected {
    size_t num_parts;
    bool taken[STK_MAX_PARTS];     /* false: this part is no array, it stays what it was */
    stk_spec known[STK_MAX_PARTS]; /* as far as it is beforehand; dtype NONE: it is not */
} stk_wire_expected;

/* Whether a reply of `size` bytes says something of request `number` that can be believed: an
 * error of decoding, or what is expected, inside of `memory` bytes.  Ends its text.  STK_EINVAL:
 * no, with the reason. */
STK_NODISCARD stk_err stk_wire_check(stk_wire_reply *r, size_t size, uint64_t number,
                                     const stk_wire_expected *expected, uint64_t memory,
                                     stk_diag *diag);

/* All of it, at `offset` of the memory.  STK_EIO, STK_ENOMEM: no, also where the file ends. */
STK_NODISCARD stk_err stk_wire_put(int memory, uint64_t offset, const void *src, size_t size,
                                   stk_diag *diag);
STK_NODISCARD stk_err stk_wire_get(int memory, uint64_t offset, void *dst, size_t size,
                                   stk_diag *diag);

#endif /* STK_OPS_WIRE_H */

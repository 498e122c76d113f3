#include <stoker/error.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *stk_err_str(stk_err err)
{
    switch (err) {
    case STK_OK: return "success";
#define X(name, value, text) \
    case STK_##name: return text;
        STK_ERR_MAP(X)
#undef X
    }
    return "unknown error";
}

stk_err stk_diag_set(stk_diag *diag, stk_err err, const char *fmt, ...)
{
    if (!diag) return err;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(diag->text, sizeof(diag->text), fmt, ap);
    va_end(ap);
    diag->err = err;
    diag->os_error = diag->part = 0;
    diag->fatal = false;
    return err;
}

static stk_err err_of_errno(int errnum)
{
    switch (errnum) {
    case ENOMEM: return STK_ENOMEM;
    case ENOENT:
    case ENOTDIR: return STK_ENOTFOUND;
    default: return STK_EIO;
    }
}

stk_err stk_diag_errno(stk_diag *diag, int errnum, const char *fmt, ...)
{
    stk_err err = err_of_errno(errnum);
    if (!diag) return err;
    va_list ap;
    va_start(ap, fmt);
    int used = vsnprintf(diag->text, sizeof(diag->text), fmt, ap);
    va_end(ap);
    if (used >= 0 && (size_t)used < sizeof(diag->text)) {
        char why[96];
        snprintf(diag->text + used, sizeof(diag->text) - (size_t)used, ": %s",
                 strerror_r(errnum, why, sizeof(why))); /* the GNU variant: _GNU_SOURCE is on */
    }
    diag->err = err;
    diag->os_error = errnum;
    diag->part = 0;
    diag->fatal = false;
    return err;
}

void stk_diag_prefix(stk_diag *diag, const char *fmt, ...)
{
    if (!diag) return;
    char text[sizeof(diag->text)];
    va_list ap;
    va_start(ap, fmt);
    int used = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (used < 0) return;
    if ((size_t)used < sizeof(text))
        snprintf(text + used, sizeof(text) - (size_t)used, ": %.*s",
                 (int)(sizeof(text) - (size_t)used), diag->text);
    memcpy(diag->text, text, sizeof(text));
}

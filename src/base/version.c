#include <stoker/base.h>

const char *stk_version(void)
{
    return STK_VERSION;
}

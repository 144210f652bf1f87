#include "CLinux.h"

_Thread_local void *clinux_current_loop = 0;
_Bool clinux_tracing = 0;
int clinux_fork_count = 0;

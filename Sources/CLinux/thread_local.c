#include "CLinux.h"

_Thread_local void *clinux_current_loop = 0;

#include "CLinux.h"

_Thread_local void *clinux_current_loop = 0;
unsigned clinux_tracing = 0;
_Thread_local unsigned clinux_notes_handlers = 0;
int clinux_fork_count = 0;
void (*clinux_while_async_main_waits)(void) = 0;

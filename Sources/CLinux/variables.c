#include "CLinux.h"
#include <sys/mman.h>
#include <ucontext.h>

_Thread_local void *clinux_current_loop = 0;
unsigned clinux_tracing = 0;
_Thread_local unsigned clinux_notes_handlers = 0;
int clinux_fork_count = 0;
void (*clinux_in_forked_child)(void) = 0;
void (*clinux_while_async_main_waits)(void) = 0;

extern void __asan_init(void) __attribute__((weak));
extern void __tsan_init(void) __attribute__((weak));
_Bool clinux_is_sanitized(void) { return __asan_init != 0 || __tsan_init != 0; }

_Thread_local uintptr_t clinux_stack_end = 0, clinux_stack_reserve = 0;

// pthread_getattr_np(3) (GNU).
int pthread_getattr_np(pthread_t thread, pthread_attr_t *attributes);

void clinux_find_stack(void) {
    // Unknown: the stack never counts as low.
    clinux_stack_end = 0;
    clinux_stack_reserve = 1;
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
    void *end = 0;
    size_t size = 0;
    if (pthread_attr_getstack(&attributes, &end, &size) == 0 && size > 0) {
        clinux_stack_end = (uintptr_t)end;
        clinux_stack_reserve = size / 4 < 256 << 10 ? size / 4 : 256 << 10;
    }
    pthread_attr_destroy(&attributes);
}

#ifdef __GLIBC__
struct new_stack_call {
    void (*body)(void *);
    void *argument;
};

// makecontext(3) passes numbers only.
static void begin_on_new_stack(unsigned high, unsigned low) {
    const struct new_stack_call *call = (void *)((uintptr_t)high << 32 | low);
    call->body(call->argument);
}

int clinux_on_new_stack(void (*body)(void *), void *argument) {
    const size_t size = 8 << 20, guard = 64 << 10;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE;
    char *stack = mmap(0, size, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (stack == MAP_FAILED) return -1;
    struct new_stack_call call = {body, argument};
    ucontext_t here, there;
    if (mprotect(stack, guard, PROT_NONE) != 0 || getcontext(&there) != 0) {
        munmap(stack, size);
        return -1;
    }
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = size;
    there.uc_link = &here;
    uintptr_t address = (uintptr_t)&call;
    makecontext(&there, (void (*)(void))begin_on_new_stack, 2, (unsigned)(address >> 32), (unsigned)address);
    const uintptr_t end = clinux_stack_end, reserve = clinux_stack_reserve;
    clinux_stack_end = (uintptr_t)stack + guard;
    clinux_stack_reserve = 256 << 10;
    const int failure = swapcontext(&here, &there);
    clinux_stack_end = end;
    clinux_stack_reserve = reserve;
    munmap(stack, size);
    return failure;
}
#else
// musl has no contexts.
int clinux_on_new_stack(void (*body)(void *), void *argument) { return -1; }
#endif

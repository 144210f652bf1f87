// Counts the blocks that a program allocates. Preload it:
//
//     cc -O2 -shared -fPIC -o liballocations.so allocations.c
//     LD_PRELOAD=./liballocations.so program
//
// Programs look up `allocations_so_far`. It counts all threads, and the C library's own allocations through its public
// names. The calls are forwarded to glibc's allocator by its internal names, which need no lookup, and so work before
// the dynamic linker has finished.
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static _Atomic int64_t allocations;

static inline void count(void) { atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed); }

int64_t allocations_so_far(void) { return atomic_load_explicit(&allocations, memory_order_relaxed); }

void *malloc(size_t size) {
    count();
    return __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
    count();
    return __libc_calloc(number, size);
}

// Growing a block counts as an allocation.
void *realloc(void *block, size_t size) {
    count();
    return __libc_realloc(block, size);
}

void *memalign(size_t alignment, size_t size) {
    count();
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    count();
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **block, size_t alignment, size_t size) {
    if (alignment < sizeof(void *) || (alignment & (alignment - 1)) != 0) return EINVAL;
    count();
    void *fresh = __libc_memalign(alignment, size);
    if (!fresh) return ENOMEM;
    *block = fresh;
    return 0;
}

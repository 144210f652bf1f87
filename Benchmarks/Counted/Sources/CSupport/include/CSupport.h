// What the runner of workloads needs of C.
#ifndef CSUPPORT_H
#define CSUPPORT_H

#include <stdint.h>

// Stands before and after each measured stretch. Does nothing; callgrind dumps its counts when it is called
// (--dump-before=bench_mark), so that one process can count many rows.
void bench_mark(void);

// Uses what lies at an address, as far as an optimiser can tell, and costs no instruction of its own.
static inline void bench_use(const void *address) { __asm__ volatile("" : : "r"(address) : "memory"); }

// How many blocks the process has asked the allocator for, or -1 if the counting library is not preloaded.
int64_t bench_allocations(void);

// The most memory that the process has had resident so far, in KiB, or -1. (The figure of getrusage may be that of
// the process that started this one.)
int64_t bench_peak_kib(void);

// Binds the calling thread, and those that it starts from now on, to one of the processors that it may use.
// Returns 0, or an errno.
int bench_pin(void);

#endif

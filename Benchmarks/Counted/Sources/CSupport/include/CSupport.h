// C functions for the runner of workloads.
#ifndef CSUPPORT_H
#define CSUPPORT_H

#include <stdint.h>

// Called before and after each measured stretch. Does nothing; callgrind dumps its counts at each call
// (--dump-before=bench_mark), so that one process can count many rows.
void bench_mark(void);

// Uses the value at an address, as far as the optimiser can tell, without an instruction.
static inline void bench_use(const void *address) { __asm__ volatile("" : : "r"(address) : "memory"); }

// The number of blocks that the process has allocated, or -1 if the counting library is not preloaded.
int64_t bench_allocations(void);

// The peak resident memory of the process, in KiB, or -1. (The figure of getrusage may be the parent process's.)
int64_t bench_peak_kib(void);

// Binds the calling thread, and the threads that it starts from now on, to one of its allowed processors. Returns 0, or
// an errno.
int bench_pin(void);

#endif

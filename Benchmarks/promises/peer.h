// Common to the contestants in C: the protocol of `counts`, see its main.swift.
#ifndef PEER_H
#define PEER_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../Counted/Sources/CSupport/include/CSupport.h"

struct workload {
    const char *row;
    void (*prepare)(void);
    void (*run)(int64_t n);
};

static inline void require(int truth, const char *what) {
    if (truth) return;
    perror(what);
    exit(1);
}

static inline int64_t nanoseconds(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static inline void measure(const struct workload *rows, const char *row, int64_t n) {
    while (rows->row && strcmp(rows->row, row) != 0) rows++;
    if (!rows->row || n < 1) {
        fprintf(stderr, "no row %s, or not so often\n", row);
        exit(64);
    }
    if (rows->prepare) rows->prepare();
    int64_t allocations = bench_allocations();
    int64_t wall = nanoseconds(CLOCK_MONOTONIC), cpu = nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
    bench_mark();
    rows->run(n);
    bench_mark();
    cpu = nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    wall = nanoseconds(CLOCK_MONOTONIC) - wall;
    int64_t counted = bench_allocations();
    printf("%lld %lld %lld %lld\n", (long long)wall, (long long)cpu,
           (long long)(counted < 0 ? -1 : counted - allocations), (long long)bench_peak_kib());
    fflush(stdout);
}

// Without arguments: the rows. With `ROW N`: one stretch. With `-`: stretches as requested on standard input.
static inline int serve(const struct workload *rows, int count, char **arguments) {
    char row[64];
    long long n;
    if (count == 1) {
        for (; rows->row; rows++) printf("%s ", rows->row);
        puts("");
    } else if (count == 3) {
        measure(rows, arguments[1], atoll(arguments[2]));
    } else {
        while (scanf("%63s %lld", row, &n) == 2) measure(rows, row, n);
    }
    return 0;
}

#endif

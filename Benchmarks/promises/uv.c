// libuv's timers.
#include <uv.h>

#include "peer.h"

enum { crowd = 200000 };

static uv_loop_t loop;
static uv_timer_t one, *others;
static uint64_t state;
static int64_t fired;

static void on_timer(uv_timer_t *timer) {
    (void)timer;
    fired++;
}

// The same delays as in Delays.swift.
static uint64_t delay(void) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return 600000 + (state >> 33) % 600000;
}

static void prepare(void) {
    if (loop.data) return;
    require(uv_loop_init(&loop) == 0, "uv_loop_init");
    loop.data = &loop;
    uv_timer_init(&loop, &one);
}

static void prepare_crowd(void) {
    prepare();
    if (others) return;
    state = 1;
    others = calloc(crowd, sizeof *others);
    require(others != NULL, "calloc");
    for (int i = 0; i < crowd; i++) {
        uv_timer_init(&loop, &others[i]);
        uv_timer_start(&others[i], on_timer, delay(), 0);
    }
}

static void start_and_stop(int64_t n) {
    state = 1;
    fired = 0;
    for (int64_t i = 0; i < n; i++) {
        uv_timer_start(&one, on_timer, delay(), 0);
        uv_timer_stop(&one);
    }
    require(fired == 0, "a timer fired");
}

static void wait_for_timer(int64_t n) {
    fired = 0;
    for (int64_t i = 0; i < n; i++) {
        uv_timer_start(&one, on_timer, 0, 0);
        uv_run(&loop, UV_RUN_DEFAULT);
    }
    require(fired == n, "a timer did not fire");
}

int main(int count, char **arguments) {
    static const struct workload rows[] = {
        {"timer-0", prepare, start_and_stop},
        {"timer-200000", prepare_crowd, start_and_stop},
        {"hang-timer", prepare, wait_for_timer},
        {NULL, NULL, NULL},
    };
    return serve(rows, count, arguments);
}

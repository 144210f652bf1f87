// The floor of two rows: a call that is not inlined, and two threads that wake each other.
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "peer.h"

__attribute__((noinline)) static int64_t plus(int64_t value, int64_t step) {
    __asm__ volatile("" : "+r"(value));
    return value + step;
}

static void call(int64_t n) {
    int64_t sum = 0;
    for (int64_t i = 0; i < n; i++) sum = plus(sum, 1);
    require(sum == n, "call");
}

// A thread's epoll and its eventfd. Registered edge-triggered, every write is a new edge, so nothing needs to be
// read: two system calls each way are the minimum. With READS it is the usual form, which reads the value.
struct side {
    int epoll, event;
};

static struct side sides[2];

#ifdef READS
enum { is_read = 1, events = EPOLLIN };
#else
enum { is_read = 0, events = EPOLLIN | EPOLLET };
#endif

static void open_side(struct side *side) {
    side->epoll = epoll_create1(EPOLL_CLOEXEC);
    side->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    require(side->epoll >= 0 && side->event >= 0, "open");
    struct epoll_event interest = {.events = events, .data.fd = side->event};
    require(epoll_ctl(side->epoll, EPOLL_CTL_ADD, side->event, &interest) == 0, "epoll_ctl");
}

static void await(struct side *side) {
    struct epoll_event event;
    int64_t number;
    require(epoll_wait(side->epoll, &event, 1, -1) == 1, "epoll_wait");
    if (is_read) require(read(side->event, &number, sizeof number) == sizeof number, "read");
}

static void wake(struct side *side) {
    int64_t one = 1;
    require(write(side->event, &one, sizeof one) == sizeof one, "write");
}

static void *answer(void *argument) {
    for (int64_t left = *(int64_t *)argument; left > 0; left--) {
        await(&sides[1]);
        wake(&sides[0]);
    }
    return NULL;
}

static void ping_pong(int64_t n) {
    pthread_t other;
    for (int i = 0; i < 2; i++) open_side(&sides[i]);
    require(pthread_create(&other, NULL, answer, &n) == 0, "pthread_create");
    for (int64_t i = 0; i < n; i++) {
        wake(&sides[1]);
        await(&sides[0]);
    }
    pthread_join(other, NULL);
    for (int i = 0; i < 2; i++) {
        close(sides[i].epoll);
        close(sides[i].event);
    }
}

static void pin(void) {
    static int pinned;
    if (!pinned) require(bench_pin() == 0, "sched_setaffinity");
    pinned = 1;
}

int main(int count, char **arguments) {
    static const struct workload rows[] = {
        {"hang-settled", NULL, call},
        {"hop", pin, ping_pong},
        {"hop-handlers", pin, ping_pong},
        {NULL, NULL, NULL},
    };
    return serve(rows, count, arguments);
}

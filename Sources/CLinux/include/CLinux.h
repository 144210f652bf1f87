// The parts of Linux that the Swift toolchain's Glibc module leaves out.
//
// _GNU_SOURCE is not defined here on purpose: it changes the layout of types such as fd_set, and the
// debug build then sees two different definitions of one type. What needs it is declared by hand below.
#ifndef CLINUX_H
#define CLINUX_H

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <time.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

// accept4(2); hidden without _GNU_SOURCE.
int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags);

// gettid(2); hidden likewise. Equal to getpid() on the main thread and nowhere else.
pid_t gettid(void);
static inline pid_t clinux_gettid(void) { return gettid(); }

// pthread_setname_np(3); hidden likewise. At most 15 bytes and a zero.
int pthread_setname_np(pthread_t thread, const char *name);

// pipe2(2); hidden likewise.
static inline int clinux_pipe(int ends[2], int flags) { return (int)syscall(SYS_pipe2, ends, flags); }

// writev(2) which raises no SIGPIPE: the signal is blocked on this thread for the call, and one that the call has made
// pending is taken out again. One that was pending before, which it can only be if it was blocked already, stays. Nothing
// that other threads could see is changed.
static inline ssize_t clinux_writev_without_signal(int fd, const struct iovec *pieces, int count) {
    sigset_t broken_pipe, before, pending;
    sigemptyset(&broken_pipe);
    sigaddset(&broken_pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &broken_pipe, &before);
    int was_blocked = sigismember(&before, SIGPIPE);
    int was_pending = was_blocked && sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE);
    ssize_t result = writev(fd, pieces, count);
    int error = errno;
    if (result < 0 && error == EPIPE && !was_pending) {
        struct timespec none = {0, 0};
        while (sigtimedwait(&broken_pipe, NULL, &none) < 0 && errno == EINTR) {}
    }
    if (!was_blocked) pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return result;
}

// How many cores this process may run on, as sched_getaffinity(2) has it; 1 if the kernel does not say. The system call
// by itself: the functions of the C library are hidden likewise.
static inline int clinux_usable_cores(void) {
    unsigned long mask[1024 / sizeof(unsigned long)];
    long bytes = syscall(SYS_sched_getaffinity, 0, sizeof mask, mask);
    int cores = 0;
    for (long word = 0; word < bytes / (long)sizeof(unsigned long); word++) cores += __builtin_popcountl(mask[word]);
    return cores > 0 ? cores : 1;
}

// The event loop of the calling thread, or NULL. Swift has no thread-local variables of its own that are
// as cheap as one load, and this is read for every promise that is made.
extern _Thread_local void *clinux_current_loop;

static inline void *clinux_get_current_loop(void) { return clinux_current_loop; }
static inline void clinux_set_current_loop(void *loop) { clinux_current_loop = loop; }

// Whether promises are traced. Every operator asks, so it must be one load in whatever module it is inlined into; to a
// global of Swift the way leads through a function.
extern _Bool clinux_tracing;

static inline _Bool clinux_is_tracing(void) { return __atomic_load_n(&clinux_tracing, __ATOMIC_RELAXED); }
static inline void clinux_set_tracing(_Bool on) { __atomic_store_n(&clinux_tracing, on, __ATOMIC_RELAXED); }

// epoll_event.data is a union, which Swift reaches through computed accessors; two words are plainer.
static inline struct epoll_event clinux_epoll_event(uint32_t events, uint64_t data) {
    struct epoll_event event = {.events = events, .data = {.u64 = data}};
    return event;
}

#endif

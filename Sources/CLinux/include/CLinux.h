// The parts of Linux that the Swift toolchain's Glibc module omits.
//
// _GNU_SOURCE is deliberately not defined here: it changes the layout of types such as fd_set, and the debug build then
// sees two different definitions of one type. The functions that need it are declared below.
#ifndef CLINUX_H
#define CLINUX_H

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <time.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

// accept4(2); hidden without _GNU_SOURCE.
int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags);

// gettid(2); hidden without _GNU_SOURCE. Equal to getpid() on the main thread and nowhere else.
pid_t gettid(void);
static inline pid_t clinux_gettid(void) { return gettid(); }

// The calling thread as a number, which pthread_t is in glibc and a pointer in musl.
static inline uintptr_t clinux_this_thread(void) { return (uintptr_t)pthread_self(); }

// pthread_setname_np(3); hidden without _GNU_SOURCE. At most 15 bytes and a zero.
int pthread_setname_np(pthread_t thread, const char *name);
int pthread_getname_np(pthread_t thread, char *name, size_t size);

// ioctl(2): the number of unread bytes, or else of those sent and not acknowledged; see tcp(7).
int clinux_waiting_bytes(int fd, _Bool unread, int *count);

// getsockopt(2) of TCP_INFO: the milliseconds since the last data, received or sent.
int clinux_tcp_quiet_time(int fd, unsigned *milliseconds);

// Constants of socket(2) and epoll_ctl(2): some are members of enumerations in glibc and macros in musl, and Swift imports
// these as different types.
enum {
    clinux_SOCK_STREAM = SOCK_STREAM,
    clinux_SOCK_DGRAM = SOCK_DGRAM,
    clinux_SOCK_NONBLOCK = SOCK_NONBLOCK,
    clinux_SOCK_CLOEXEC = SOCK_CLOEXEC,
};
enum {
    clinux_EPOLLIN = EPOLLIN,
    clinux_EPOLLOUT = EPOLLOUT,
    clinux_EPOLLERR = EPOLLERR,
    clinux_EPOLLHUP = EPOLLHUP,
    clinux_EPOLLRDHUP = EPOLLRDHUP,
    clinux_EPOLLET = EPOLLET,
};

// The mask of the access mode in the flags of a descriptor, which Swift cannot import from musl: a macro of other
// macros.
enum { clinux_O_ACCMODE = O_ACCMODE };

// Sets the handler of a sigaction(2): the field is a macro, which differs between glibc and musl.
static inline void clinux_set_handler(struct sigaction *action, void (*handler)(int)) { action->sa_handler = handler; }
static inline _Bool clinux_has_same_handler(const struct sigaction *one, const struct sigaction *other) {
    return one->sa_handler == other->sa_handler;
}

// mallopt(3) and malloc_trim(3); without effect in musl, which lacks them.
int mallopt(int parameter, int value) __attribute__((weak));
int malloc_trim(size_t kept) __attribute__((weak));
// M_TRIM_THRESHOLD and M_TOP_PAD.
static inline void clinux_keep_freed_memory(int most, int step) {
    if (mallopt) mallopt(-1, most), mallopt(-2, step);
}
static inline void clinux_return_freed_memory(void) {
    if (malloc_trim) malloc_trim(0);
}

// Sends this process a signal that a handler has taken: to the calling thread, by raise(3); or, if that thread blocks it
// or `elsewhere`, to whichever thread the kernel chooses.
static inline void clinux_raise_again(int signal, _Bool elsewhere) {
    sigset_t blocked;
    sigemptyset(&blocked);
    pthread_sigmask(SIG_BLOCK, 0, &blocked);
    if (elsewhere || sigismember(&blocked, signal)) kill(getpid(), signal);
    else raise(signal);
}

// flock(2), which Swift confuses with the structure of fcntl(2).
static inline int clinux_lock(int fd) { return flock(fd, LOCK_EX | LOCK_NB); }

// The reference count of a Swift object. The runtime exports the function, but its header is not public.
size_t swift_retainCount(void *object);
static inline long clinux_reference_count(void *object) { return (long)swift_retainCount(object); }

// pipe2(2); hidden without _GNU_SOURCE.
static inline int clinux_pipe(int ends[2], int flags) { return (int)syscall(SYS_pipe2, ends, flags); }

// Blocks SIGPIPE on this thread for one call, and consumes the signal if the call made it pending. One that was pending
// before (so it was blocked) stays pending. Other threads are not affected.
struct clinux_sigpipe_guard {
    sigset_t broken_pipe, before;
    int was_blocked, was_pending;
};
static inline struct clinux_sigpipe_guard clinux_begin_without_signal(void) {
    struct clinux_sigpipe_guard guard;
    sigset_t pending;
    sigemptyset(&guard.broken_pipe);
    sigaddset(&guard.broken_pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &guard.broken_pipe, &guard.before);
    guard.was_blocked = sigismember(&guard.before, SIGPIPE);
    guard.was_pending = guard.was_blocked && sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE);
    return guard;
}
static inline ssize_t clinux_end_without_signal(const struct clinux_sigpipe_guard *guard, ssize_t result) {
    int error = errno;
    if (result < 0 && error == EPIPE && !guard->was_pending) {
        struct timespec none = {0, 0};
        while (sigtimedwait(&guard->broken_pipe, NULL, &none) < 0 && errno == EINTR) {}
    }
    if (!guard->was_blocked) pthread_sigmask(SIG_SETMASK, &guard->before, NULL);
    errno = error;
    return result;
}

// writev(2) without SIGPIPE. With nonzero flags it is pwritev2(2), of Linux 4.6, by its number.
static inline ssize_t clinux_writev_with_flags(int fd, const struct iovec *pieces, int count, int flags) {
    struct clinux_sigpipe_guard guard = clinux_begin_without_signal();
    ssize_t result = flags ? syscall(SYS_pwritev2, fd, pieces, (long)count, -1L, -1L, flags) : writev(fd, pieces, count);
    return clinux_end_without_signal(&guard, result);
}
static inline ssize_t clinux_writev_without_signal(int fd, const struct iovec *pieces, int count) {
    return clinux_writev_with_flags(fd, pieces, count, 0);
}

// sendfile(2) from an offset, without SIGPIPE: it has no MSG_NOSIGNAL.
static inline ssize_t clinux_sendfile_without_signal(int fd, int file, off_t offset, size_t count) {
    struct clinux_sigpipe_guard guard = clinux_begin_without_signal();
    return clinux_end_without_signal(&guard, sendfile(fd, file, &offset, count));
}

// pread(2) that fails with EAGAIN instead of waiting for the disk: preadv2(2) with RWF_NOWAIT, of Linux 4.14, by its
// number, since the function is hidden without _GNU_SOURCE.
static inline ssize_t clinux_read_cached(int fd, void *bytes, size_t count, int64_t offset) {
    struct iovec piece = {bytes, count};
    return syscall(SYS_preadv2, fd, &piece, 1L, (long)offset, (long)(offset >> 32), 8 /* RWF_NOWAIT */);
}

// open(2) that fails with EAGAIN instead of asking the disk for a name: openat2(2) with RESOLVE_CACHED, of Linux 5.12,
// by its number, which is the same on every architecture. Older kernels refuse it.
static inline int clinux_open_cached(const char *path, int flags) {
    struct { uint64_t flags, mode, resolve; } how = {(uint64_t)(unsigned)flags, 0, 0x20 /* RESOLVE_CACHED */};
    return (int)syscall(437, AT_FDCWD, path, &how, sizeof how);
}

// Returns a new descriptor, or -1, unchanged, unless it has the number of a standard stream: then it is moved to a
// higher number, and the closed standard streams lead to /dev/null. Otherwise printed text would go to whatever has
// their numbers.
int clinux_moved_above_standard(int fd);
static inline int clinux_above_standard(int fd) { return fd < 0 || fd > 2 ? fd : clinux_moved_above_standard(fd); }

// Opens the terminal `fd` again, without blocking, as an open file of this process; -1 if it is no terminal, or cannot
// be opened. The flags of `fd` belong to an open file that other processes share.
int clinux_open_terminal(int fd);

// Writes a short line to any kind of standard error, without blocking, SIGPIPE, or a change to the descriptor's flags,
// which other processes share. `terminal` is an earlier result of clinux_open_terminal. -1 if the write would block.
ssize_t clinux_write_at_once(int fd, int terminal, const void *bytes, size_t count);

// memmem(3), hidden without _GNU_SOURCE.
void *memmem(const void *bytes, size_t count, const void *part, size_t part_count);

// The number of cores that this process may run on, by sched_getaffinity(2); 1 if that fails. The raw system call: the
// functions of the C library are hidden without _GNU_SOURCE.
static inline int clinux_usable_cores(void) {
    unsigned long mask[1024 / sizeof(unsigned long)];
    long bytes = syscall(SYS_sched_getaffinity, 0, sizeof mask, mask);
    int cores = 0;
    for (long word = 0; word < bytes / (long)sizeof(unsigned long); word++) cores += __builtin_popcountl(mask[word]);
    return cores > 0 ? cores : 1;
}

// Actions of a spawned child: change the directory, close all descriptors from `first` on. The C library has them since
// 2.29 and 2.34; with older ones these return ENOSYS.
int posix_spawn_file_actions_addchdir_np(posix_spawn_file_actions_t *actions, const char *path)
    __attribute__((weak));
int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int first) __attribute__((weak));

static inline int clinux_spawn_in(posix_spawn_file_actions_t *actions, const char *path) {
    return posix_spawn_file_actions_addchdir_np ? posix_spawn_file_actions_addchdir_np(actions, path) : ENOSYS;
}
static inline int clinux_spawn_without(posix_spawn_file_actions_t *actions, int first) {
    return posix_spawn_file_actions_addclosefrom_np ? posix_spawn_file_actions_addclosefrom_np(actions, first) : ENOSYS;
}

// A variable of the C library, which Swift does not read, since it is shared mutable state.
extern char **environ;
static inline char **clinux_environment(void) { return environ; }

// pidfd_open(2) and pidfd_send_signal(2), of Linux 5.3 and 5.1. The numbers are the same on every architecture.
static inline int clinux_pidfd_open(pid_t pid) { return (int)syscall(434, pid, 0); }
static inline int clinux_pidfd_send_signal(int fd, int signal) { return (int)syscall(424, fd, signal, 0, 0); }

// waitid(2) for the end of one child, by its pidfd (P_PIDFD is 3) or its number, without waiting. 1: it has ended, by
// itself (CLD_EXITED in `code`) or by a signal; 0: not yet; below zero: -errno. The child is reaped, or stays a zombie.
// Some fields of siginfo_t are macros, which Swift does not import.
static inline int clinux_wait(int by_pidfd, int id, int keeps_zombie, int *code, int *status) {
    siginfo_t info;
    info.si_pid = 0;
    int options = WEXITED | WNOHANG | (keeps_zombie ? WNOWAIT : 0);
    if (waitid(by_pidfd ? (idtype_t)3 : P_PID, (id_t)id, &info, options) != 0) return -errno;
    if (info.si_pid == 0) return 0;
    *code = info.si_code;
    *status = info.si_status;
    return 1;
}

// The event loop of the calling thread, or NULL. Swift has no thread-local variables as cheap as one load, and this one
// is read whenever a promise is created.
//
// The initial-exec model: two instructions, also in code that may become a shared library, where the default model takes
// three and a call that the linker removes, around which the compiler saves its registers. A library loaded by dlopen(3)
// takes these few bytes from the reserve that the C library keeps for that.
extern _Thread_local void *clinux_current_loop __attribute__((tls_model("initial-exec")));

static inline void *clinux_get_current_loop(void) { return clinux_current_loop; }
static inline void clinux_set_current_loop(void *loop) { clinux_current_loop = loop; }

// True if the program was built with the address or the thread sanitizer: their functions are weak references,
// otherwise null.
_Bool clinux_is_sanitized(void);

// The end of the calling thread's stack, and the reserve to be left; zero until first needed.
extern _Thread_local uintptr_t clinux_stack_end, clinux_stack_reserve;
void clinux_find_stack(void);

// True if less of the stack remains than 256 KiB, or than a quarter of it if that is less. Uses the frame's address,
// since a sanitizer may keep variables elsewhere. False on a stack that is not the thread's, such as a signal
// handler's.
static inline _Bool clinux_stack_is_low(void) {
    if (clinux_stack_reserve == 0) clinux_find_stack();
    return (uintptr_t)__builtin_frame_address(0) - clinux_stack_end < clinux_stack_reserve;
}

// Calls `body` on a new stack of 8 MiB, whose pages the kernel provides on first use, and returns to the present one
// when `body` does. -1 if no stack can be allocated: `body` has not been called.
int clinux_on_new_stack(void (*body)(void *), void *argument);

// True if operators are recorded: `clinux_tracing`, on all threads, when promises are traced; `clinux_notes_handlers`,
// on the calling thread, when its loop may never be driven. Every operator checks both, so this must be two loads and
// one branch in any module it is inlined into; a Swift global is reached through a function. The second is thread-local
// so that one thread's loop costs the others nothing.
extern unsigned clinux_tracing;
extern _Thread_local unsigned clinux_notes_handlers __attribute__((tls_model("initial-exec")));

static inline _Bool clinux_is_tracing(void) { return __atomic_load_n(&clinux_tracing, __ATOMIC_RELAXED) != 0; }
static inline void clinux_set_tracing(_Bool on) { __atomic_store_n(&clinux_tracing, on, __ATOMIC_RELAXED); }
static inline _Bool clinux_is_noting_handlers(void) { return clinux_notes_handlers != 0; }
static inline void clinux_set_noting_handlers(_Bool on) { clinux_notes_handlers = on; }
static inline _Bool clinux_records_operators(void) {
    return (__atomic_load_n(&clinux_tracing, __ATOMIC_RELAXED) | clinux_notes_handlers) != 0;
}

// struct mmsghdr and its two calls, recvmmsg(2) and sendmmsg(2), hidden without _GNU_SOURCE. These are the raw system
// calls.
struct clinux_mmsghdr {
    struct msghdr header;
    unsigned int count;
};

static inline long clinux_recvmmsg(int fd, struct clinux_mmsghdr *messages, unsigned int count, int flags) {
    return syscall(SYS_recvmmsg, fd, messages, count, flags, (void *)0);
}

static inline long clinux_sendmmsg(int fd, struct clinux_mmsghdr *messages, unsigned int count, int flags) {
    return syscall(SYS_sendmmsg, fd, messages, count, flags);
}

// The number of forks between this process and the first one. Read in each turn; a Swift global is reached through a
// function.
extern int clinux_fork_count;

static inline int clinux_forks(void) { return __atomic_load_n(&clinux_fork_count, __ATOMIC_RELAXED); }
extern void (*clinux_in_forked_child)(void);
// Sets the function that a forked child calls first, besides counting.
static inline void clinux_set_in_forked_child(void (*body)(void)) {
    __atomic_store_n(&clinux_in_forked_child, body, __ATOMIC_RELEASE);
}
static inline void clinux_begin_in_forked_child(void) {
    void (*body)(void) = __atomic_load_n(&clinux_in_forked_child, __ATOMIC_ACQUIRE);
    if (body) body();
}
static inline void clinux_note_fork(void) { __atomic_add_fetch(&clinux_fork_count, 1, __ATOMIC_RELAXED); }

// epoll_event.data is a union, which Swift reads through computed accessors; two words are simpler.
static inline struct epoll_event clinux_epoll_event(uint32_t events, uint64_t data) {
    struct epoll_event event = {.events = events, .data = {.u64 = data}};
    return event;
}

// The queue of the main actor. Swift gives its jobs to libdispatch's main queue, for which libdispatch offers run loops an
// eventfd and a function: CoreFoundation's uses these two, under names that have not changed since 2014. Weak: a program
// without libdispatch has no such queue.
int _dispatch_get_main_queue_handle_4CF(void) __attribute__((weak));
void _dispatch_main_queue_callback_4CF(void *message) __attribute__((weak));

// True if this program has libdispatch.
static inline _Bool clinux_has_main_queue(void) {
    return _dispatch_get_main_queue_handle_4CF && _dispatch_main_queue_callback_4CF;
}
// An eventfd that is written when there are jobs. Created by the first call or the first job, and owned by libdispatch
// forever. If it cannot be created, libdispatch traps.
static inline int clinux_main_queue(void) { return _dispatch_get_main_queue_handle_4CF(); }
// Runs the queued jobs. On the main thread only: libdispatch traps elsewhere. Does nothing inside one of the jobs.
static inline void clinux_run_main_queue(void) { _dispatch_main_queue_callback_4CF(0); }

// The hook for the first suspension of an async main: Swift's runtime calls it, if set, on the main thread in place of
// dispatch_main(3), which would end the thread. It must not return, except by calling `original`.
typedef __attribute__((swiftcall)) void (*clinux_drain)(void);
typedef __attribute__((swiftcall)) void (*clinux_drain_hook)(clinux_drain original, clinux_drain override);
extern clinux_drain_hook swift_task_asyncMainDrainQueue_hook __attribute__((weak));
extern void (*clinux_while_async_main_waits)(void);

__attribute__((swiftcall)) static void clinux_drain_async_main(clinux_drain original, clinux_drain override) {
    (void)override;
    clinux_while_async_main_waits();
    original();
}
// Sets the hook: it calls `body`, and the runtime's own function if that returns. False if this runtime has no such
// hook.
static inline _Bool clinux_set_while_async_main_waits(void (*body)(void)) {
    if (!&swift_task_asyncMainDrainQueue_hook) return 0;
    clinux_while_async_main_waits = body;
    swift_task_asyncMainDrainQueue_hook = clinux_drain_async_main;
    return 1;
}

// The flags of a job of Swift's runtime. The runtime declares the function for tasks, which are jobs; it reads a field that
// every job has at the same place, as the compiler knows too ("swift.job").
__attribute__((swiftcall)) size_t swift_task_getJobFlags(void *job) __attribute__((weak));

// True if a job processes a default actor: the kinds 192 to 194 of the runtime's enum JobKind (DefaultActorInline,
// DefaultActorSeparate, DefaultActorOverride), of which Swift 6.3 uses the second. False if this runtime has no such
// function.
static inline _Bool clinux_processes_default_actor(void *job) {
    if (!swift_task_getJobFlags) return 0;
    size_t kind = swift_task_getJobFlags(job) & 0xff;
    return kind >= 192 && kind <= 194;
}

#endif

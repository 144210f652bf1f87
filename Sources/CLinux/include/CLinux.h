// The parts of Linux that the Swift toolchain's Glibc module omits.
//
// Does not define _GNU_SOURCE, which changes the layout of types such as fd_set, so that a debug build sees two
// definitions of one type. The functions that need it are declared below, marked (GNU).
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

// accept4(2) (GNU).
int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags);

// gettid(2) (GNU). Equal to getpid() on the main thread only.
pid_t gettid(void);
static inline pid_t clinux_gettid(void) { return gettid(); }

// The calling thread as a number. pthread_t is a number in glibc and a pointer in musl.
static inline uintptr_t clinux_this_thread(void) { return (uintptr_t)pthread_self(); }

// pthread_setname_np(3) (GNU). At most 15 bytes and a zero.
int pthread_setname_np(pthread_t thread, const char *name);
int pthread_getname_np(pthread_t thread, char *name, size_t size);

// ioctl(2): the unread bytes, or the sent but unacknowledged bytes; see tcp(7).
int clinux_waiting_bytes(int fd, _Bool unread, int *count);

// getsockopt(2) of TCP_INFO: the milliseconds since data was last received or sent.
int clinux_tcp_quiet_time(int fd, unsigned *milliseconds);

// Constants of socket(2) and epoll_ctl(2). Some are enumerators in glibc and macros in musl, which Swift imports as
// different types.
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

// The access mode in a descriptor's flags. In musl a macro of macros, which Swift cannot import.
enum { clinux_O_ACCMODE = O_ACCMODE };

// Sets the handler of a sigaction(2), a macro that differs between glibc and musl.
static inline void clinux_set_handler(struct sigaction *action, void (*handler)(int)) { action->sa_handler = handler; }
static inline _Bool clinux_has_same_handler(const struct sigaction *one, const struct sigaction *other) {
    return one->sa_handler == other->sa_handler;
}

// mallopt(3) and malloc_trim(3), which musl lacks.
int mallopt(int parameter, int value) __attribute__((weak));
int malloc_trim(size_t kept) __attribute__((weak));
// M_TRIM_THRESHOLD and M_TOP_PAD.
static inline void clinux_keep_freed_memory(int most, int step) {
    if (mallopt) mallopt(-1, most), mallopt(-2, step);
}
static inline void clinux_return_freed_memory(void) {
    if (malloc_trim) malloc_trim(0);
}

// Sends this process a signal that a handler took: to the calling thread, by raise(3), or if the thread blocks it or
// `elsewhere`, to a thread of the kernel's choice.
static inline void clinux_raise_again(int signal, _Bool elsewhere) {
    sigset_t blocked;
    sigemptyset(&blocked);
    pthread_sigmask(SIG_BLOCK, 0, &blocked);
    if (elsewhere || sigismember(&blocked, signal)) kill(getpid(), signal);
    else raise(signal);
}

// flock(2), which Swift confuses with fcntl(2)'s structure.
static inline int clinux_lock(int fd) { return flock(fd, LOCK_EX | LOCK_NB); }

// A Swift object's reference count. The runtime exports the function without a public header.
size_t swift_retainCount(void *object);
static inline long clinux_reference_count(void *object) { return (long)swift_retainCount(object); }

// pipe2(2) (GNU).
static inline int clinux_pipe(int ends[2], int flags) { return (int)syscall(SYS_pipe2, ends, flags); }

// Blocks SIGPIPE on this thread for one call, and consumes the signal if the call made it pending. A signal that was
// pending before stays so. Other threads are not affected.
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

// writev(2) without SIGPIPE. With flags, pwritev2(2) of Linux 4.6, by its number.
static inline ssize_t clinux_writev_with_flags(int fd, const struct iovec *pieces, int count, int flags) {
    struct clinux_sigpipe_guard guard = clinux_begin_without_signal();
    ssize_t result = flags ? syscall(SYS_pwritev2, fd, pieces, (long)count, -1L, -1L, flags) : writev(fd, pieces, count);
    return clinux_end_without_signal(&guard, result);
}
static inline ssize_t clinux_writev_without_signal(int fd, const struct iovec *pieces, int count) {
    return clinux_writev_with_flags(fd, pieces, count, 0);
}

// sendfile(2) from an offset, without SIGPIPE, since it has no MSG_NOSIGNAL.
static inline ssize_t clinux_sendfile_without_signal(int fd, int file, off_t offset, size_t count) {
    struct clinux_sigpipe_guard guard = clinux_begin_without_signal();
    return clinux_end_without_signal(&guard, sendfile(fd, file, &offset, count));
}

// pread(2) that fails with EAGAIN instead of waiting for the disk: preadv2(2) (GNU) with RWF_NOWAIT, of Linux 4.14, by
// its number.
static inline ssize_t clinux_read_cached(int fd, void *bytes, size_t count, int64_t offset) {
    struct iovec piece = {bytes, count};
    return syscall(SYS_preadv2, fd, &piece, 1L, (long)offset, (long)(offset >> 32), 8 /* RWF_NOWAIT */);
}

// open(2) that fails with EAGAIN instead of asking the disk for a name: openat2(2) with RESOLVE_CACHED, of Linux 5.12,
// by its number on every architecture. Older kernels refuse it.
static inline int clinux_open_cached(const char *path, int flags) {
    struct { uint64_t flags, mode, resolve; } how = {(uint64_t)(unsigned)flags, 0, 0x20 /* RESOLVE_CACHED */};
    return (int)syscall(437, AT_FDCWD, path, &how, sizeof how);
}

// Returns a new descriptor, or -1, unchanged, unless it has a standard stream's number. Then moves it to a higher
// number, and opens /dev/null for the closed standard streams. Printed text would otherwise go to any file with their
// numbers.
int clinux_moved_above_standard(int fd);
static inline int clinux_above_standard(int fd) { return fd < 0 || fd > 2 ? fd : clinux_moved_above_standard(fd); }

// Opens the terminal `fd` again as this process's own open file, without blocking; -1 if it is no terminal, or cannot
// be opened. Other processes share the flags of `fd`.
int clinux_open_terminal(int fd);

// Writes a short line to any kind of standard error, without blocking, SIGPIPE, or changing the descriptor's shared
// flags. `terminal` is an earlier result of clinux_open_terminal. -1 if the write would block.
ssize_t clinux_write_at_once(int fd, int terminal, const void *bytes, size_t count);

// memmem(3) (GNU).
void *memmem(const void *bytes, size_t count, const void *part, size_t part_count);

// The cores that this process may run on, by sched_getaffinity(2), as a raw system call since the C library's functions
// are (GNU); 1 if that fails.
static inline int clinux_usable_cores(void) {
    unsigned long mask[1024 / sizeof(unsigned long)];
    long bytes = syscall(SYS_sched_getaffinity, 0, sizeof mask, mask);
    int cores = 0;
    for (long word = 0; word < bytes / (long)sizeof(unsigned long); word++) cores += __builtin_popcountl(mask[word]);
    return cores > 0 ? cores : 1;
}

// Actions of a spawned child: change the directory, and close all descriptors from `first` on. In the C library since
// 2.29 and 2.34; older ones return ENOSYS.
int posix_spawn_file_actions_addchdir_np(posix_spawn_file_actions_t *actions, const char *path)
    __attribute__((weak));
int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int first) __attribute__((weak));

static inline int clinux_spawn_in(posix_spawn_file_actions_t *actions, const char *path) {
    return posix_spawn_file_actions_addchdir_np ? posix_spawn_file_actions_addchdir_np(actions, path) : ENOSYS;
}
static inline int clinux_spawn_without(posix_spawn_file_actions_t *actions, int first) {
    return posix_spawn_file_actions_addclosefrom_np ? posix_spawn_file_actions_addclosefrom_np(actions, first) : ENOSYS;
}

// A variable of the C library, which Swift refuses as shared mutable state.
extern char **environ;
static inline char **clinux_environment(void) { return environ; }

// pidfd_open(2) and pidfd_send_signal(2), of Linux 5.3 and 5.1, by their numbers on every architecture.
static inline int clinux_pidfd_open(pid_t pid) { return (int)syscall(434, pid, 0); }
static inline int clinux_pidfd_send_signal(int fd, int signal) { return (int)syscall(424, fd, signal, 0, 0); }

// waitid(2) for the end of one child, by its pidfd (P_PIDFD is 3) or number, without waiting. 1: it has ended, by
// itself (CLD_EXITED in `code`) or by a signal; 0: not yet; negative: -errno. Reaps the child or leaves a zombie. Some
// fields of siginfo_t are macros, which Swift does not import.
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

// The calling thread's event loop, or NULL. Read for each new promise, by one load; Swift's thread-local variables cost
// more.
//
// The initial-exec model takes two instructions, even in code for a shared library. There the default model takes three
// and a call that the linker removes, around which the compiler saves its registers. A library loaded by dlopen(3)
// takes these few bytes from the C library's reserve.
extern _Thread_local void *clinux_current_loop __attribute__((tls_model("initial-exec")));

static inline void *clinux_get_current_loop(void) { return clinux_current_loop; }
static inline void clinux_set_current_loop(void *loop) { clinux_current_loop = loop; }

// True if the program has the address or thread sanitizer, whose functions are weak references here.
_Bool clinux_is_sanitized(void);

// The end of the calling thread's stack, and the reserve; zero until first needed.
extern _Thread_local uintptr_t clinux_stack_end, clinux_stack_reserve;
void clinux_find_stack(void);

// True if less than 256 KiB of the stack remains, or less than a quarter of a smaller stack. Uses the frame's address,
// since a sanitizer may keep variables elsewhere. False on another stack, such as a signal handler's.
static inline _Bool clinux_stack_is_low(void) {
    if (clinux_stack_reserve == 0) clinux_find_stack();
    return (uintptr_t)__builtin_frame_address(0) - clinux_stack_end < clinux_stack_reserve;
}

// Calls `body` on a new stack of 8 MiB, whose pages the kernel provides on first use, and returns when `body` does. -1
// if no stack can be allocated; `body` is then not called.
int clinux_on_new_stack(void (*body)(void *), void *argument);

// True if operators are recorded: on all threads by `clinux_tracing`, when promises are traced; on the calling thread
// by `clinux_notes_handlers`, when its loop may never be driven. Every operator checks both, so this must be two loads
// and one branch in any module; a Swift global needs a call. The second is thread-local, so one thread's loop costs the
// others nothing.
extern unsigned clinux_tracing;
extern _Thread_local unsigned clinux_notes_handlers __attribute__((tls_model("initial-exec")));

static inline _Bool clinux_is_tracing(void) { return __atomic_load_n(&clinux_tracing, __ATOMIC_RELAXED) != 0; }
static inline void clinux_set_tracing(_Bool on) { __atomic_store_n(&clinux_tracing, on, __ATOMIC_RELAXED); }
static inline _Bool clinux_is_noting_handlers(void) { return clinux_notes_handlers != 0; }
static inline void clinux_set_noting_handlers(_Bool on) { clinux_notes_handlers = on; }
static inline _Bool clinux_records_operators(void) {
    return (__atomic_load_n(&clinux_tracing, __ATOMIC_RELAXED) | clinux_notes_handlers) != 0;
}

// struct mmsghdr, recvmmsg(2) and sendmmsg(2) (GNU), as raw system calls.
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

// The forks between this process and the first one. Read in each turn; a Swift global needs a call.
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

// epoll_event.data is a union, which Swift reads by computed accessors; two words are simpler.
static inline struct epoll_event clinux_epoll_event(uint32_t events, uint64_t data) {
    struct epoll_event event = {.events = events, .data = {.u64 = data}};
    return event;
}

// The main actor's queue. Swift puts its jobs into libdispatch's main queue, which offers run loops an eventfd and a
// function. CoreFoundation uses these two, under names unchanged since 2014. Weak, since a program without libdispatch
// has no such queue.
int _dispatch_get_main_queue_handle_4CF(void) __attribute__((weak));
void _dispatch_main_queue_callback_4CF(void *message) __attribute__((weak));

// True if this program has libdispatch.
static inline _Bool clinux_has_main_queue(void) {
    return _dispatch_get_main_queue_handle_4CF && _dispatch_main_queue_callback_4CF;
}
// An eventfd, written when there are jobs. Created by the first call or job, owned by libdispatch forever. libdispatch
// traps if it cannot be created.
static inline int clinux_main_queue(void) { return _dispatch_get_main_queue_handle_4CF(); }
// Runs the queued jobs. On the main thread only; libdispatch traps elsewhere. Does nothing inside one of the jobs.
static inline void clinux_run_main_queue(void) { _dispatch_main_queue_callback_4CF(0); }

// The hook for an async main's first suspension. Swift's runtime calls it on the main thread in place of
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
// Sets the hook, which calls `body`, and the runtime's own function if that returns. False if this runtime has no hook.
static inline _Bool clinux_set_while_async_main_waits(void (*body)(void)) {
    if (!&swift_task_asyncMainDrainQueue_hook) return 0;
    clinux_while_async_main_waits = body;
    swift_task_asyncMainDrainQueue_hook = clinux_drain_async_main;
    return 1;
}

// A job's flags in Swift's runtime. Declared there for tasks, but reads a field that every job has at the same place,
// as the compiler knows too ("swift.job").
__attribute__((swiftcall)) size_t swift_task_getJobFlags(void *job) __attribute__((weak));

// True if a job processes a default actor: the kinds 192 to 194 of the runtime's enum JobKind (DefaultActorInline,
// DefaultActorSeparate, DefaultActorOverride), of which Swift 6.3 uses the second. False if this runtime lacks the
// function.
static inline _Bool clinux_processes_default_actor(void *job) {
    if (!swift_task_getJobFlags) return 0;
    size_t kind = swift_task_getJobFlags(job) & 0xff;
    return kind >= 192 && kind <= 194;
}

#endif

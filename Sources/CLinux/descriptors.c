// Descriptors above the standard streams, and lines written to these.

#define _GNU_SOURCE  // ttyname_r; in musl also struct tcp_info
#include "CLinux.h"
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
// In CLinux.h it would hide SOCK_DGRAM from the Glibc module.
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
pid_t tcgetsid(int fd);
pid_t getsid(pid_t process);

int clinux_moved_above_standard(int fd) {
    const int moved = fcntl(fd, F_DUPFD_CLOEXEC, 3), error = errno;
    // The kernel returns the lowest free number, so these fill the closed standard streams; the last is above them.
    int filler;
    do filler = open("/dev/null", O_RDWR);
    while (filler >= 0 && filler <= 2);
    // Atomically: another thread's write reaches either the new descriptor or nothing.
    if (filler < 0 || dup2(filler, fd) < 0) close(fd);
    if (filler >= 0) close(filler);
    errno = error;
    return moved;
}

int clinux_open_terminal(int fd) {
    const int flags = O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    unsigned number;
    // The master of a pair, which would open another pair.
    if (!isatty(fd) || ioctl(fd, TIOCGPTN, &number) == 0) return -1;
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int own = open(path, flags);
    // Without /proc the terminal still has a name. After su(1) it belongs to another user, but /dev/tty opens.
    if (own < 0 && ttyname_r(fd, path, sizeof path) == 0) own = open(path, flags);
    if (own < 0 && tcgetsid(fd) == getsid(0)) own = open("/dev/tty", flags);
    return clinux_above_standard(own);
}

int clinux_waiting_bytes(int fd, _Bool unread, int *count) { return ioctl(fd, unread ? FIONREAD : TIOCOUTQ, count); }

int clinux_tcp_quiet_time(int fd, unsigned *milliseconds) {
    struct tcp_info info;
    socklen_t length = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return -1;
    *milliseconds = info.tcpi_last_data_recv < info.tcpi_last_data_sent ? info.tcpi_last_data_recv : info.tcpi_last_data_sent;
    return 0;
}

static _Bool is_same_file(int one, int other) {
    struct stat first, second;
    return fstat(one, &first) == 0 && fstat(other, &second) == 0 && first.st_dev == second.st_dev
        && first.st_ino == second.st_ino;
}

static ssize_t write_to_terminal(int fd, int own, const void *bytes, size_t count) {
    if (own >= 0 && is_same_file(fd, own)) {
        ssize_t result = write(own, bytes, count);
        // That terminal has hung up, and another has its name now.
        if (result >= 0 || errno != EIO) return result;
    }
    own = clinux_open_terminal(fd);
    if (own < 0) return -1;
    ssize_t result = write(own, bytes, count);
    close(own);
    return result;
}

ssize_t clinux_write_at_once(int fd, int terminal, const void *bytes, size_t count) {
    ssize_t result = send(fd, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (result >= 0 || errno != ENOTSOCK) return result;
    struct iovec piece = {.iov_base = (void *)bytes, .iov_len = count};
    struct stat status;
    if (fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode)) {
        // RWF_NOWAIT, for pipes since Linux 6.5, because another process may fill the pipe between poll and write.
        do result = clinux_writev_with_flags(fd, &piece, 1, 8);
        while (result < 0 && errno == EINTR);
        if (result >= 0 || (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL && errno != ESPIPE)) return result;
    }
    // A terminal with any room polls as writable, and the write then blocks for more.
    if (isatty(fd)) return write_to_terminal(fd, terminal, bytes, count);
    // A file always polls as writable.
    struct pollfd entry = {.fd = fd, .events = POLLOUT};
    int ready;
    do ready = poll(&entry, 1, 0);
    while (ready < 0 && errno == EINTR);
    if (ready != 1 || !(entry.revents & POLLOUT)) return -1;
    do result = clinux_writev_without_signal(fd, &piece, 1);
    while (result < 0 && errno == EINTR);
    return result;
}

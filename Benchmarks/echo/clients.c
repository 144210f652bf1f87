// Clients for loads other than messages in flight, which load.c has:
//
//     clients connects HOST PORT COUNT      connect, one message, close; 64 at a time
//     clients idle HOST PORT COUNT BYTES    connect, a message of BYTES if above 0, then stay idle until standard input ends
//     clients ping HOST PORT SECONDS        a message of 64 bytes every 2 ms, each awaited
//     clients flood HOST PORT SECONDS       send and read back as much as possible
//
// Each prints one line of JSON; `idle` prints it when all are connected. All have a time limit.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MESSAGE = 64, ABREAST = 64, LIMIT_SECONDS = 120, LARGEST = 1 << 16 };

static struct sockaddr_in server;
static unsigned char outgoing[LARGEST], incoming[LARGEST];

static _Noreturn void die(const char *what) {
    perror(what);
    exit(3);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int connect_blocking(void) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) die("socket");
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(fd, (struct sockaddr *)&server, sizeof server) < 0) die("connect");
    return fd;
}

static void exchange(int fd, size_t count) {
    if (send(fd, outgoing, count, MSG_NOSIGNAL) != (ssize_t)count) die("send");
    for (size_t received = 0; received < count;) {
        ssize_t result = recv(fd, incoming, count - received, 0);
        if (result <= 0) die("recv");
        received += (size_t)result;
    }
}

// One round trip for each connection, and then its end; then the next one begins.

enum step { CONNECTING, READING };

static void begin(int epoll, enum step *steps) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) die("socket");
    if (connect(fd, (struct sockaddr *)&server, sizeof server) < 0 && errno != EINPROGRESS) die("connect");
    steps[fd] = CONNECTING;
    struct epoll_event event = {.events = EPOLLOUT, .data.fd = fd};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0) die("epoll_ctl");
}

static int connects(int count) {
    static enum step steps[LARGEST];
    int epoll = epoll_create1(EPOLL_CLOEXEC), begun = 0, ended = 0;
    double start = now();
    while (begun < count && begun < ABREAST) begin(epoll, steps), begun++;
    while (ended < count) {
        struct epoll_event events[ABREAST];
        int ready = epoll_wait(epoll, events, ABREAST, 1000);
        if (ready < 0 && errno != EINTR) die("epoll_wait");
        for (int i = 0; i < ready; i++) {
            int fd = events[i].data.fd;
            if (steps[fd] == CONNECTING) {
                if (send(fd, outgoing, MESSAGE, MSG_NOSIGNAL) != MESSAGE) die("send");
                steps[fd] = READING;
                struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
                if (epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event) < 0) die("epoll_ctl");
                continue;
            }
            // On loopback 64 bytes come in one piece.
            if (recv(fd, incoming, MESSAGE, 0) != MESSAGE) die("recv");
            close(fd);
            ended++;
            if (begun < count) begin(epoll, steps), begun++;
        }
    }
    printf("{\"connections\": %d, \"seconds\": %.6f}\n", ended, now() - start);
    return 0;
}

static int idle(int count, size_t bytes) {
    for (int i = 0; i < count; i++) {
        int fd = connect_blocking();
        if (bytes > 0) exchange(fd, bytes);
    }
    printf("{\"connections\": %d}\n", count);
    fflush(stdout);
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    poll(&input, 1, LIMIT_SECONDS * 1000);
    return 0;
}

static int compare(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static int ping(double seconds) {
    static double times[1 << 20];
    int count = 0, fd = connect_blocking();
    double end = now() + seconds;
    while (now() < end && count < 1 << 20) {
        double start = now();
        exchange(fd, MESSAGE);
        times[count++] = (now() - start) * 1e6;
        struct timespec pause = {.tv_nsec = 2000000};
        nanosleep(&pause, NULL);
    }
    qsort(times, (size_t)count, sizeof *times, compare);
    printf("{\"pings\": %d, \"p50_us\": %.1f, \"p99_us\": %.1f, \"worst_us\": %.1f}\n", count, times[count / 2],
           times[count * 99 / 100], times[count - 1]);
    return 0;
}

static int flood(double seconds) {
    int fd = connect_blocking();
    double end = now() + seconds;
    uint64_t sent = 0, received = 0;
    while (now() < end) {
        struct pollfd both = {.fd = fd, .events = POLLIN | POLLOUT};
        poll(&both, 1, 100);
        if (both.revents & POLLOUT) {
            ssize_t result = send(fd, outgoing, sizeof outgoing, MSG_NOSIGNAL | MSG_DONTWAIT);
            if (result < 0 && errno != EAGAIN) die("send");
            if (result > 0) sent += (uint64_t)result;
        }
        if (both.revents & POLLIN) {
            ssize_t result = recv(fd, incoming, sizeof incoming, MSG_DONTWAIT);
            if (result == 0 || (result < 0 && errno != EAGAIN)) die("recv");
            if (result > 0) received += (uint64_t)result;
        }
    }
    printf("{\"sent\": %llu, \"received\": %llu}\n", (unsigned long long)sent, (unsigned long long)received);
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 5) {
        fprintf(stderr, "usage: clients connects|idle|ping|flood HOST PORT COUNT|SECONDS [BYTES]\n");
        return 2;
    }
    alarm(LIMIT_SECONDS);
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    server.sin_family = AF_INET;
    server.sin_port = htons((uint16_t)atoi(argv[3]));
    if (inet_pton(AF_INET, argv[2], &server.sin_addr) != 1) return 2;
    for (size_t i = 0; i < sizeof outgoing; i++) outgoing[i] = (unsigned char)(i * 31 + 7);
    double number = atof(argv[4]);
    size_t bytes = argc > 5 ? (size_t)atoi(argv[5]) : 0;
    if (bytes > sizeof outgoing) return 2;
    if (strcmp(argv[1], "connects") == 0) return connects((int)number);
    if (strcmp(argv[1], "idle") == 0) return idle((int)number, bytes);
    if (strcmp(argv[1], "ping") == 0) return ping(number);
    if (strcmp(argv[1], "flood") == 0) return flood(number);
    return 2;
}

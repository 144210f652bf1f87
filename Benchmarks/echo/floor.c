// The floor: about as little as an epoll echo server can do per message.
// One thread, level-triggered epoll, one read and one send per readiness
// event, one buffer shared by all connections.
//
// With --until-empty it reads a connection until nothing is left, as edge-triggered servers without a budget do: less
// work a byte, and a client that never pauses has it for itself.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BUFFER_BYTES = 64 * 1024, MAX_EVENTS = 256 };

// What a send could not take. Exists only while a connection is blocked.
struct unsent {
    size_t offset, length;
    unsigned char bytes[];
};

static unsigned char buffer[BUFFER_BYTES];
static struct unsent **unsent_by_fd;
static size_t unsent_capacity;
static int epoll_fd;
static bool until_empty;

static _Noreturn void die(const char *what) {
    perror(what);
    exit(1);
}

static void on_terminate(int signal_number) {
    (void)signal_number;
    _exit(0);
}

static void watch(int operation, int fd, uint32_t events) {
    struct epoll_event event = {.events = events, .data.fd = fd};
    if (epoll_ctl(epoll_fd, operation, fd, &event) < 0) die("epoll_ctl");
}

static void drop(int fd) {
    if ((size_t)fd < unsent_capacity) {
        free(unsent_by_fd[fd]);
        unsent_by_fd[fd] = NULL;
    }
    close(fd);
}

static void keep_unsent(int fd, const unsigned char *bytes, size_t length) {
    if ((size_t)fd >= unsent_capacity) {
        size_t capacity = (size_t)fd * 2 + 64;
        unsent_by_fd = realloc(unsent_by_fd, capacity * sizeof *unsent_by_fd);
        if (!unsent_by_fd) die("realloc");
        memset(unsent_by_fd + unsent_capacity, 0,
               (capacity - unsent_capacity) * sizeof *unsent_by_fd);
        unsent_capacity = capacity;
    }
    struct unsent *rest = malloc(sizeof *rest + length);
    if (!rest) die("malloc");
    rest->offset = 0;
    rest->length = length;
    memcpy(rest->bytes, bytes, length);
    unsent_by_fd[fd] = rest;
    // No more reading until the rest is out: that keeps the order and bounds
    // what a peer that does not read can make us hold.
    watch(EPOLL_CTL_MOD, fd, EPOLLOUT);
}

// Answers whether all of it could be sent.
static bool on_readable(int fd) {
    ssize_t received = read(fd, buffer, sizeof buffer);
    if (received <= 0) {
        if (received < 0 && (errno == EAGAIN || errno == EINTR)) return false;
        drop(fd);
        return false;
    }
    ssize_t sent = send(fd, buffer, (size_t)received, MSG_NOSIGNAL);
    if (sent == received) return true;
    if (sent < 0) {
        if (errno != EAGAIN && errno != EINTR) {
            drop(fd);
            return false;
        }
        sent = 0;
    }
    keep_unsent(fd, buffer + sent, (size_t)(received - sent));
    return false;
}

static void on_writable(int fd) {
    struct unsent *rest = unsent_by_fd[fd];
    ssize_t sent = send(fd, rest->bytes + rest->offset, rest->length - rest->offset, MSG_NOSIGNAL);
    if (sent < 0) {
        if (errno != EAGAIN && errno != EINTR) drop(fd);
        return;
    }
    rest->offset += (size_t)sent;
    if (rest->offset < rest->length) return;
    free(rest);
    unsent_by_fd[fd] = NULL;
    watch(EPOLL_CTL_MOD, fd, EPOLLIN);
}

static void on_acceptable(int listener) {
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno == EAGAIN) return;
            if (errno == EINTR || errno == ECONNABORTED) continue;
            die("accept4");
        }
        int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        watch(EPOLL_CTL_ADD, fd, EPOLLIN);
    }
}

static int listen_on(const char *host, int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1) {
        fprintf(stderr, "floor: not an IPv4 address: %s\n", host);
        exit(2);
    }
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) die("socket");
    int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0) die("bind");
    if (listen(fd, 4096) < 0) die("listen");
    socklen_t length = sizeof address;
    if (getsockname(fd, (struct sockaddr *)&address, &length) < 0) die("getsockname");
    printf("listening on %s:%d\n", host, ntohs(address.sin_port));
    fflush(stdout);
    return fd;
}

int main(int argc, char **argv) {
    char host[64];
    int port;
    char end;
    if (argc > 1 && strcmp(argv[1], "--until-empty") == 0) {
        until_empty = true;
        argc--, argv++;
    }
    if (argc != 3 || strcmp(argv[1], "--listen") != 0 ||
        sscanf(argv[2], "%63[^:]:%d%c", host, &port, &end) != 2 || port < 0 || port > 65535) {
        fprintf(stderr, "usage: floor [--until-empty] --listen ADDRESS:PORT\n");
        return 2;
    }
    signal(SIGTERM, on_terminate);
    signal(SIGINT, on_terminate);

    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }

    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd < 0) die("epoll_create1");
    int listener = listen_on(host, port);
    watch(EPOLL_CTL_ADD, listener, EPOLLIN);

    struct epoll_event events[MAX_EVENTS];
    for (;;) {
        int count = epoll_wait(epoll_fd, events, MAX_EVENTS, -1);
        if (count < 0 && errno != EINTR) die("epoll_wait");
        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;
            if (fd == listener)
                on_acceptable(fd);
            else if (events[i].events & EPOLLIN)
                while (on_readable(fd) && until_empty) continue;
            else if (events[i].events & EPOLLOUT)
                on_writable(fd);
            else
                drop(fd);
        }
    }
}

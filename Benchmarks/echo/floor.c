// The floor: roughly the minimum work of an epoll echo server per message.
// One thread, level-triggered epoll, one read and one send per readiness
// event, one buffer shared by all connections.
//
// With --until-empty it reads a connection until nothing is left, as edge-triggered servers without a budget do: less
// work per byte, but a client that never pauses monopolizes it.
//
// With --answer TEXT it is the floor of HTTP: it sends TEXT for each empty line, and parses nothing else.
//
// With --web-socket it is the floor of a WebSocket echo: it takes any request for a handshake, and assumes whole, short frames.
//
// With --threads N above 1 the first thread only accepts, and hands the connections to N others in turn: a list per thread, and an
// eventfd for one that sleeps. It is the floor of handing connections over.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BUFFER_BYTES = 64 * 1024, MAX_EVENTS = 256, MAX_THREADS = 16 };

// The rest of a partial send. Exists only while a connection is blocked.
struct unsent {
    size_t offset, length;
    unsigned char bytes[];
};

// A connection on its way to another thread.
struct handed {
    struct handed *next;
    int fd;
};

struct worker {
    int epoll, wake;
    // The newest connection, or `asleep`.
    _Atomic(struct handed *) mail;
};

static _Thread_local unsigned char buffer[BUFFER_BYTES];
static _Thread_local struct unsent **unsent_by_fd;
static _Thread_local size_t unsent_capacity;
static _Thread_local int epoll_fd;
static bool until_empty;
static const char *answer;
static bool speaks_web_socket;
static struct worker workers[MAX_THREADS];
static int worker_count;
static struct handed asleep;

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
    // No more reading until the rest is sent: that keeps the order and bounds
    // the memory for a peer that does not read.
    watch(EPOLL_CTL_MOD, fd, EPOLLOUT);
}

// Replaces the input by the answers.
static size_t answer_all(size_t received) {
    const unsigned char *end = buffer + received;
    size_t requests = 0, length = strlen(answer);
    for (const unsigned char *at = buffer; (at = memmem(at, (size_t)(end - at), "\r\n\r\n", 4)); at += 4) requests++;
    if (requests * length > sizeof buffer) die("too many requests at once");
    for (size_t i = 0; i < requests; i++) memcpy(buffer + i * length, answer, length);
    return requests * length;
}

// Replaces the input by its echoes.
static size_t echo_frames(size_t received) {
    static const char handshake[] = "HTTP/1.1 101 Switching Protocols\r\n\r\n";
    if (received > 4 && memcmp(buffer, "GET ", 4) == 0) {
        memcpy(buffer, handshake, sizeof handshake - 1);
        return sizeof handshake - 1;
    }
    unsigned char *to = buffer;
    for (const unsigned char *at = buffer, *end = buffer + received; at < end;) {
        size_t length = end - at < 6 ? 0 : at[1] & 0x7f;
        if (length == 0 || length > 125 || (size_t)(end - at) < 6 + length) die("a frame that is cut, empty or long");
        unsigned char mask[4];
        memcpy(mask, at + 2, 4);
        *to++ = at[0];
        *to++ = (unsigned char)length;
        for (size_t i = 0; i < length; i++) *to++ = at[6 + i] ^ mask[i % 4];
        at += 6 + length;
    }
    return (size_t)(to - buffer);
}

// Returns true if all of it was sent.
static bool on_readable(int fd) {
    ssize_t received = read(fd, buffer, sizeof buffer);
    if (received <= 0) {
        if (received < 0 && (errno == EAGAIN || errno == EINTR)) return false;
        drop(fd);
        return false;
    }
    if (answer) received = (ssize_t)answer_all((size_t)received);
    if (speaks_web_socket) received = (ssize_t)echo_frames((size_t)received);
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

static void begin(int fd) {
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    watch(EPOLL_CTL_ADD, fd, EPOLLIN);
}

static void hand_over(int fd) {
    static unsigned turn;
    struct worker *worker = &workers[turn++ % (unsigned)worker_count];
    struct handed *handed = malloc(sizeof *handed), *before = atomic_load(&worker->mail);
    if (!handed) die("malloc");
    handed->fd = fd;
    do handed->next = before == &asleep ? NULL : before;
    while (!atomic_compare_exchange_weak(&worker->mail, &before, handed));
    if (before == &asleep && write(worker->wake, &(uint64_t){1}, sizeof(uint64_t)) < 0) die("write");
}

static void take_mail(struct worker *worker) {
    struct handed *handed = atomic_exchange(&worker->mail, NULL);
    while (handed && handed != &asleep) {
        struct handed *next = handed->next;
        begin(handed->fd);
        free(handed);
        handed = next;
    }
}

static void on_acceptable(int listener) {
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno == EAGAIN) return;
            if (errno == EINTR || errno == ECONNABORTED) continue;
            die("accept4");
        }
        if (worker_count > 0)
            hand_over(fd);
        else
            begin(fd);
    }
}

// `worker` is NULL in the accepting thread.
static _Noreturn void run(int listener, struct worker *worker) {
    struct epoll_event events[MAX_EVENTS];
    for (;;) {
        int patience = -1;
        if (worker && !atomic_compare_exchange_strong(&worker->mail, &(struct handed *){NULL}, &asleep)) patience = 0;
        int count = epoll_wait(epoll_fd, events, MAX_EVENTS, patience);
        if (count < 0 && errno != EINTR) die("epoll_wait");
        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;
            if (fd == listener)
                on_acceptable(fd);
            // It only ends the wait.
            else if (worker && fd == worker->wake)
                continue;
            else if (events[i].events & EPOLLIN)
                while (on_readable(fd) && until_empty) continue;
            else if (events[i].events & EPOLLOUT)
                on_writable(fd);
            else
                drop(fd);
        }
        if (worker) take_mail(worker);
    }
}

static void *work(void *worker) {
    epoll_fd = ((struct worker *)worker)->epoll;
    run(-1, worker);
}

static void start(struct worker *worker) {
    worker->epoll = epoll_create1(EPOLL_CLOEXEC);
    worker->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (worker->epoll < 0 || worker->wake < 0) die("epoll_create1, eventfd");
    // Edge-triggered: nobody reads it.
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.fd = worker->wake};
    if (epoll_ctl(worker->epoll, EPOLL_CTL_ADD, worker->wake, &event) < 0) die("epoll_ctl");
    pthread_t thread;
    if ((errno = pthread_create(&thread, NULL, work, worker))) die("pthread_create");
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
    int threads = 1;
    if (argc > 1 && strcmp(argv[1], "--until-empty") == 0) {
        until_empty = true;
        argc--, argv++;
    } else if (argc > 1 && strcmp(argv[1], "--web-socket") == 0) {
        speaks_web_socket = true;
        argc--, argv++;
    } else if (argc > 2 && strcmp(argv[1], "--answer") == 0) {
        answer = argv[2];
        argc -= 2, argv += 2;
    } else if (argc > 2 && strcmp(argv[1], "--threads") == 0) {
        threads = atoi(argv[2]);
        argc -= 2, argv += 2;
    }
    if (argc != 3 || strcmp(argv[1], "--listen") != 0 || threads < 1 || threads > MAX_THREADS ||
        sscanf(argv[2], "%63[^:]:%d%c", host, &port, &end) != 2 || port < 0 || port > 65535) {
        fprintf(stderr, "usage: floor [--until-empty | --answer TEXT | --web-socket | --threads N] --listen ADDRESS:PORT\n");
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

    worker_count = threads > 1 ? threads : 0;
    for (int i = 0; i < worker_count; i++) start(&workers[i]);
    run(listener, NULL);
}

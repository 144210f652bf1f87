// A closed-loop load generator for echo servers: every connection keeps DEPTH
// messages in flight and sends a new one for each echo. Echoes that arrive
// together are answered with one send.
//
// Every byte is compared with the byte that was sent, and at the end nothing
// may be missing. The result is one line of JSON.

#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
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

enum { BUFFER_BYTES = 64 * 1024, MAX_EVENTS = 256 };
enum { CONNECT_SECONDS = 15, DRAIN_SECONDS = 5, SPARE_SECONDS = 5 };

static const uint64_t SECOND = 1000000000u;

struct connection {
    int fd;
    bool waits_for_room;
    uint64_t allowed;   // bytes of the stream that may be sent by now
    uint64_t sent;
    uint64_t received;
    uint64_t done;      // whole messages received
    uint64_t salt;      // where in the pattern this connection's stream begins
    uint64_t *started;  // per message in flight, when it became sendable
};

enum phase { WARMUP, MEASURE, DRAIN };

static enum phase phase = WARMUP;
static struct connection *connections;
static int connection_count, open_count, drained_count;
static uint64_t message_bytes, depth;
static uint64_t messages, receives, errors;
static int epoll_fd;
static unsigned char buffer[BUFFER_BYTES];

static _Noreturn void die(const char *what) {
    perror(what);
    exit(3);
}

static void on_alarm(int signal_number) {
    (void)signal_number;
    static const char text[] = "load: out of time\n";
    ssize_t ignored = write(STDERR_FILENO, text, sizeof text - 1);
    (void)ignored;
    _exit(3);
}

static uint64_t clock_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

static uint64_t now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }

// MARK: - The pattern

// Byte p of a connection's stream is pattern[(salt + p) % PERIOD]. The period
// is prime, so no message or buffer size lines up with it: a lost, repeated
// or misdirected piece is noticed. The pattern is stored with a
// tail so that any piece up to BUFFER_BYTES long is contiguous in memory.
enum { PERIOD = 65521 };
static unsigned char pattern[PERIOD + BUFFER_BYTES];

static void fill_pattern(void) {
    uint32_t state = 2463534242u;
    for (size_t i = 0; i < PERIOD; i++) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        pattern[i] = (unsigned char)(state >> 24);
    }
    memcpy(pattern + PERIOD, pattern, PERIOD);
    memcpy(pattern + 2 * PERIOD, pattern, sizeof pattern - 2 * PERIOD);
}

static const unsigned char *expected(const struct connection *connection, uint64_t position) {
    return pattern + (connection->salt + position) % PERIOD;
}

// MARK: - Latencies

// Log-linear buckets, 64 to each power of two: at most 1.6 % off.
enum { SUB_BITS = 6, SUB = 1 << SUB_BITS };
static uint64_t histogram[64 * SUB];

static void record_latency(uint64_t ns) {
    if (ns < SUB) {
        histogram[ns]++;
        return;
    }
    int shift = 63 - __builtin_clzll(ns) - SUB_BITS;
    histogram[(shift + 1) * SUB + (int)((ns >> shift) - SUB)]++;
}

static double percentile_us(double fraction) {
    uint64_t wanted = (uint64_t)((double)messages * fraction), seen = 0;
    for (int i = 0; i < 64 * SUB; i++) {
        seen += histogram[i];
        if (seen > wanted) {
            if (i < SUB) return (double)i / 1000;
            int shift = i / SUB - 1;
            return ((double)(i % SUB + SUB) + 0.5) * (double)(1ull << shift) / 1000;
        }
    }
    return 0;
}

// MARK: - The server's CPU time

// The scheduler's total for the server's threads. Read here, not by the
// program's parent, so that it covers exactly the time in which messages are
// counted.
static uint64_t cpu_ns_of(long pid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/task", pid);
    DIR *tasks = opendir(path);
    if (!tasks) die(path);
    uint64_t sum = 0;
    for (struct dirent *entry; (entry = readdir(tasks));) {
        if (entry->d_name[0] == '.') continue;
        char file[sizeof path + sizeof entry->d_name + 16];
        snprintf(file, sizeof file, "%s/%s/schedstat", path, entry->d_name);
        FILE *stat = fopen(file, "r");
        if (!stat) continue;  // a thread that has just ended
        unsigned long long on_cpu = 0;
        if (fscanf(stat, "%llu", &on_cpu) == 1) sum += on_cpu;
        fclose(stat);
    }
    closedir(tasks);
    return sum;
}

// MARK: - Connections

static void fail(struct connection *connection, const char *what) {
    if (errors++ == 0)
        fprintf(stderr, "load: connection %ld: %s (%llu bytes sent, %llu received)\n",
                (long)(connection - connections), what, (unsigned long long)connection->sent,
                (unsigned long long)connection->received);
    if (connection->fd >= 0) {
        close(connection->fd);
        connection->fd = -1;
        open_count--;
    }
}

static void watch(int operation, struct connection *connection, uint32_t events) {
    struct epoll_event event = {.events = events, .data.ptr = connection};
    if (epoll_ctl(epoll_fd, operation, connection->fd, &event) < 0) die("epoll_ctl");
}

static void send_allowed(struct connection *connection) {
    bool full = false;
    while (connection->sent < connection->allowed) {
        uint64_t length = connection->allowed - connection->sent;
        if (length > BUFFER_BYTES) length = BUFFER_BYTES;
        ssize_t sent = send(connection->fd, expected(connection, connection->sent), length,
                            MSG_NOSIGNAL);
        if (sent < 0) {
            if (errno == EINTR) continue;
            if (errno != EAGAIN) {
                fail(connection, strerror(errno));
                return;
            }
            full = true;
            break;
        }
        connection->sent += (uint64_t)sent;
    }
    if (full != connection->waits_for_room) {
        connection->waits_for_room = full;
        watch(EPOLL_CTL_MOD, connection, full ? EPOLLIN | EPOLLOUT : EPOLLIN);
    }
}

static void receive(struct connection *connection) {
    ssize_t received = recv(connection->fd, buffer, sizeof buffer, 0);
    if (received < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (received <= 0) {
        fail(connection, received == 0 ? "closed by the server" : strerror(errno));
        return;
    }
    if (connection->received + (uint64_t)received > connection->sent) {
        fail(connection, "more bytes came back than were sent");
        return;
    }
    if (memcmp(buffer, expected(connection, connection->received), (size_t)received) != 0) {
        fail(connection, "wrong bytes came back");
        return;
    }
    connection->received += (uint64_t)received;
    if (phase == MEASURE) receives++;
    uint64_t now = now_ns();
    while ((connection->done + 1) * message_bytes <= connection->received) {
        uint64_t *started = &connection->started[connection->done % depth];
        if (phase == MEASURE) {
            messages++;
            record_latency(now - *started);
        }
        connection->done++;
        if (phase != DRAIN) {
            *started = now;
            connection->allowed += message_bytes;
        }
    }
    if (connection->received == connection->allowed)
        drained_count++;  // happens in DRAIN only: before, the window is always refilled
    else
        send_allowed(connection);
}

static void open_connection(struct connection *connection, const struct addrinfo *address) {
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) die("socket");
    struct timeval limit = {.tv_sec = 5};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);  // bounds connect
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(fd, address->ai_addr, address->ai_addrlen) < 0) die("connect");
    if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0) die("fcntl");
    connection->fd = fd;
    open_count++;
    watch(EPOLL_CTL_ADD, connection, EPOLLIN);
}

static void turn(uint64_t until) {
    uint64_t now = now_ns();
    int timeout = now < until ? (int)((until - now + 999999) / 1000000) : 0;
    struct epoll_event events[MAX_EVENTS];
    int count = epoll_wait(epoll_fd, events, MAX_EVENTS, timeout);
    if (count < 0 && errno != EINTR) die("epoll_wait");
    for (int i = 0; i < count; i++) {
        struct connection *connection = events[i].data.ptr;
        if (events[i].events & ~(uint32_t)EPOLLOUT) receive(connection);
        if (connection->fd >= 0 && events[i].events & EPOLLOUT) send_allowed(connection);
    }
}

static void run_until(uint64_t end) {
    while (open_count > 0 && now_ns() < end) turn(end);
}

static double number(const char *text, double low, double high) {
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= low && value <= high)) {
        fprintf(stderr, "load: not a number between %g and %g: %s\n", low, high, text);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv) {
    long pid = 0;
    if (argc > 2 && strcmp(argv[1], "--cpu-of") == 0) {
        pid = (long)number(argv[2], 1, 1 << 30);
        argv += 2;
        argc -= 2;
    }
    if (argc != 7 && argc != 8) {
        fprintf(stderr, "usage: load [--cpu-of PID] HOST PORT CONNECTIONS BYTES DEPTH SECONDS"
                        " [WARMUP_SECONDS]\n");
        return 2;
    }
    connection_count = (int)number(argv[3], 1, 100000);
    message_bytes = (uint64_t)number(argv[4], 1, 1 << 26);
    depth = (uint64_t)number(argv[5], 1, 1 << 16);
    double seconds = number(argv[6], 0.001, 3600);
    double warmup = argc == 8 ? number(argv[7], 0, 3600) : 0.5;

    // The final time limit, whatever happens below.
    signal(SIGALRM, on_alarm);
    alarm((unsigned)(CONNECT_SECONDS + warmup + seconds + DRAIN_SECONDS + SPARE_SECONDS));

    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }

    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *address;
    int failure = getaddrinfo(argv[1], argv[2], &hints, &address);
    if (failure) {
        fprintf(stderr, "load: %s: %s\n", argv[1], gai_strerror(failure));
        return 2;
    }
    fill_pattern();
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd < 0) die("epoll_create1");
    connections = calloc((size_t)connection_count, sizeof *connections);
    uint64_t *started = calloc((size_t)connection_count * depth, sizeof *started);
    if (!connections || !started) die("calloc");

    uint64_t connect_end = now_ns() + CONNECT_SECONDS * SECOND;
    for (int i = 0; i < connection_count; i++) {
        struct connection *connection = &connections[i];
        connection->salt = (uint64_t)i * 7919;
        connection->started = started + (uint64_t)i * depth;
        open_connection(connection, address);
        if (now_ns() > connect_end) {
            fprintf(stderr, "load: only %d connections in %d s\n", i + 1, CONNECT_SECONDS);
            return 3;
        }
    }
    freeaddrinfo(address);

    for (int i = 0; i < connection_count; i++) {
        struct connection *connection = &connections[i];
        uint64_t now = now_ns();
        for (uint64_t m = 0; m < depth; m++) connection->started[m] = now;
        connection->allowed = depth * message_bytes;
        send_allowed(connection);
    }
    run_until(now_ns() + (uint64_t)(warmup * 1e9));

    phase = MEASURE;
    uint64_t server_cpu = pid ? cpu_ns_of(pid) : 0;
    uint64_t own_cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    uint64_t begin = now_ns();
    run_until(begin + (uint64_t)(seconds * 1e9));
    uint64_t end = now_ns();
    own_cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - own_cpu;
    server_cpu = pid ? cpu_ns_of(pid) - server_cpu : 0;

    phase = DRAIN;
    uint64_t drain_end = now_ns() + DRAIN_SECONDS * SECOND;
    while (drained_count < open_count && now_ns() < drain_end) turn(drain_end);
    for (int i = 0; i < connection_count; i++)
        if (connections[i].fd >= 0 && connections[i].received != connections[i].allowed)
            fail(&connections[i], "bytes missing at the end");

    double elapsed = (double)(end - begin) / 1e9;
    printf("{\"connections\": %d, \"bytes\": %llu, \"depth\": %llu, \"messages\": %llu, "
           "\"seconds\": %.6f, \"messages_per_second\": %.0f, \"p50_us\": %.1f, "
           "\"p99_us\": %.1f, \"messages_per_receive\": %.3f, \"load_cpu_ns\": %llu, ",
           connection_count, (unsigned long long)message_bytes, (unsigned long long)depth,
           (unsigned long long)messages, elapsed, (double)messages / elapsed,
           percentile_us(0.50), percentile_us(0.99),
           receives ? (double)messages / (double)receives : 0, (unsigned long long)own_cpu);
    if (pid) printf("\"server_cpu_ns\": %llu, ", (unsigned long long)server_cpu);
    printf("\"errors\": %llu}\n", (unsigned long long)errors);
    return errors ? 1 : 0;
}

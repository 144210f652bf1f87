// Texts of 32 bytes to a WebSocket echo on 127.0.0.1, on several connections: each sends a batch, and the next one when
// all echoes have arrived.
//
//     websocket PORT CONNECTIONS AT_ONCE SECONDS
//
// Prints RESULT, the number of messages, and their nanoseconds.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { payload = 32, sent_size = 6 + payload, echo_size = 2 + payload, most = 1024 };

static long at_once;
static char request[most * sent_size], echo[most * echo_size];

struct client {
    int fd;
    long received;
};

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static long long nanoseconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void make_frames(void) {
    const unsigned char mask[4] = {0x5a, 0x13, 0xc7, 0x2e};
    for (long index = 0; index < at_once; index++) {
        char *sent = request + index * sent_size, *back = echo + index * echo_size;
        sent[0] = back[0] = (char)0x81;
        sent[1] = (char)(0x80 | payload);
        back[1] = payload;
        memcpy(sent + 2, mask, 4);
        for (int place = 0; place < payload; place++) {
            back[2 + place] = (char)('a' + (index + place) % 26);
            sent[6 + place] = (char)(back[2 + place] ^ mask[place % 4]);
        }
    }
}

static void send_all(int fd, const char *bytes, size_t count) {
    // The messages in flight fit into the sockets' buffers: no send is partial.
    if (send(fd, bytes, count, MSG_NOSIGNAL) != (ssize_t)count) fail("send");
}

static int open_socket(int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0) fail("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    static const char upgrade[] = "GET /socket HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                                  "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAECAwQFBgcICQoLDA0ODw==\r\n\r\n";
    send_all(fd, upgrade, sizeof upgrade - 1);
    char answer[2048];
    size_t count = 0;
    while (!memmem(answer, count, "\r\n\r\n", 4)) {
        ssize_t got = recv(fd, answer + count, sizeof answer - count, 0);
        if (got <= 0) fail("recv of the handshake");
        count += got;
    }
    if (memcmp(answer, "HTTP/1.1 101 ", 13) != 0) {
        fprintf(stderr, "%.*s\n", (int)count, answer);
        exit(1);
    }
    return fd;
}

// True if all echoes have arrived. They must be correct.
static int receive(struct client *client) {
    static char bytes[sizeof echo];
    long missing = at_once * echo_size - client->received;
    ssize_t got = recv(client->fd, bytes, missing, 0);
    if (got <= 0) fail("recv");
    if (memcmp(bytes, echo + client->received, got) != 0) {
        fprintf(stderr, "an echo differs\n");
        exit(1);
    }
    client->received = got == missing ? 0 : client->received + got;
    return got == missing;
}

int main(int count, char **arguments) {
    if (count != 5) return 2;
    int port = atoi(arguments[1]), connections = atoi(arguments[2]);
    at_once = atol(arguments[3]);
    if (connections < 1 || at_once < 1 || at_once > most) return 2;
    make_frames();
    struct client *clients = calloc(connections, sizeof *clients);
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    for (int index = 0; index < connections; index++) {
        clients[index].fd = open_socket(port);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &clients[index]};
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, clients[index].fd, &event) != 0) fail("epoll_ctl");
    }
    long long begin = nanoseconds(), end = begin + atoll(arguments[4]) * 1000000000LL;
    long messages = 0, open = connections;
    for (int index = 0; index < connections; index++) send_all(clients[index].fd, request, at_once * sent_size);
    while (open > 0) {
        struct epoll_event events[256];
        int ready = epoll_wait(epoll, events, 256, 10000);
        if (ready <= 0) fail("epoll_wait");
        int is_over = nanoseconds() >= end;
        for (int index = 0; index < ready; index++) {
            struct client *client = events[index].data.ptr;
            if (!receive(client)) continue;
            messages += at_once;
            if (is_over) {
                open--;
            } else {
                send_all(client->fd, request, at_once * sent_size);
            }
        }
    }
    printf("RESULT %ld %lld\n", messages, nanoseconds() - begin);
    return 0;
}

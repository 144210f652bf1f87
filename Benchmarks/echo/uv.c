// The same server on libuv: one buffer for all reads, and an immediate write. The rest that the kernel does not take is
// copied, and reading stops until it is sent.

#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <uv.h>

static char buffer[64 * 1024];
static uv_loop_t loop;

static _Noreturn void die(const char *what, int code) {
    fprintf(stderr, "uv: %s: %s\n", what, uv_strerror(code));
    exit(1);
}

static void on_signal(uv_signal_t *handle, int number) {
    (void)handle;
    (void)number;
    exit(0);
}

static void on_closed(uv_handle_t *handle) { free(handle); }

static void drop(uv_stream_t *stream) {
    if (!uv_is_closing((uv_handle_t *)stream)) uv_close((uv_handle_t *)stream, on_closed);
}

static void lend(uv_handle_t *handle, size_t suggested, uv_buf_t *out) {
    (void)handle;
    (void)suggested;
    *out = uv_buf_init(buffer, sizeof buffer);
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *bytes);

struct rest {
    uv_write_t request;
    char bytes[];
};

static void on_written(uv_write_t *request, int status) {
    uv_stream_t *stream = request->handle;
    free(request);
    if (status < 0 || uv_is_closing((uv_handle_t *)stream)) return drop(stream);
    if (uv_read_start(stream, lend, on_read) < 0) drop(stream);
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *bytes) {
    if (count == 0) return;
    if (count < 0) return drop(stream);
    uv_buf_t whole = uv_buf_init(bytes->base, (unsigned)count);
    int sent = uv_try_write(stream, &whole, 1);
    if (sent == count) return;
    if (sent < 0 && sent != UV_EAGAIN) return drop(stream);
    if (sent < 0) sent = 0;
    size_t left = (size_t)count - (size_t)sent;
    struct rest *rest = malloc(sizeof *rest + left);
    if (!rest) die("malloc", UV_ENOMEM);
    memcpy(rest->bytes, bytes->base + sent, left);
    uv_buf_t buf = uv_buf_init(rest->bytes, (unsigned)left);
    uv_read_stop(stream);
    if (uv_write(&rest->request, stream, &buf, 1, on_written) < 0) {
        free(rest);
        drop(stream);
    }
}

static void on_connection(uv_stream_t *listener, int status) {
    if (status < 0) return;
    uv_tcp_t *client = malloc(sizeof *client);
    if (!client) die("malloc", UV_ENOMEM);
    uv_tcp_init(&loop, client);
    if (uv_accept(listener, (uv_stream_t *)client) < 0) return drop((uv_stream_t *)client);
    uv_tcp_nodelay(client, 1);
    if (uv_read_start((uv_stream_t *)client, lend, on_read) < 0) drop((uv_stream_t *)client);
}

int main(int argc, char **argv) {
    char host[64];
    int port;
    if (argc != 3 || strcmp(argv[1], "--listen") != 0 || sscanf(argv[2], "%63[^:]:%d", host, &port) != 2) {
        fprintf(stderr, "usage: uv --listen ADDRESS:PORT\n");
        return 2;
    }
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    uv_loop_init(&loop);
    uv_signal_t terminate;
    uv_signal_init(&loop, &terminate);
    uv_signal_start(&terminate, on_signal, SIGTERM);
    uv_tcp_t listener;
    uv_tcp_init(&loop, &listener);
    struct sockaddr_in address;
    int code = uv_ip4_addr(host, port, &address);
    if (code == 0) code = uv_tcp_bind(&listener, (struct sockaddr *)&address, 0);
    if (code == 0) code = uv_listen((uv_stream_t *)&listener, 4096, on_connection);
    int length = sizeof address;
    if (code == 0) code = uv_tcp_getsockname(&listener, (struct sockaddr *)&address, &length);
    if (code < 0) die("listen", code);
    printf("listening on %s:%d\n", host, ntohs(address.sin_port));
    fflush(stdout);
    return uv_run(&loop, UV_RUN_DEFAULT);
}

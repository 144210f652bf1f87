#!/usr/bin/env python3
"""Runs the http-server with its options, signals and real clients: http-server-tests.py [PATH-OF-HTTP-SERVER]

ReactorHTTPTests has the protocol, byte by byte.

With http.client, and with curl, wrk and the package websockets where they are installed.
"""
import email.utils
import http.client
import re
import signal
import socket
import subprocess
import time

from servers import PATIENCE, Client, Server, check, is_refused, program, run, skip, wait_until
from websocket_cases import websocket_client, websocket_flood, websocket_frames

HELLO = b"Hello, world!\n"
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
SLOW = b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n"


def echo(body, length=None):
    """A request to send a body back, with its length or another one."""
    length = len(body) if length is None else length
    return b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (length, body)


def read_through(client, end):
    """The bytes up to and with `end`, which must arrive before the connection ends; those behind it stay unread."""
    data = b""
    while not data.endswith(end):
        here = client.socket.recv(65_536, socket.MSG_PEEK)
        check(here, f"the connection ends inside of an answer: {data!r}")
        found = (data + here).find(end)
        data += client.read(len(here) if found < 0 else found + len(end) - len(data))
    return data


class Answer:
    """One answer, read from a client as far as it goes and no further."""

    def __init__(self, client, to_head=False):
        head = read_through(client, b"\r\n\r\n")
        first, *lines = head[:-4].decode().split("\r\n")
        found = re.fullmatch(r"HTTP/1\.1 (\d{3}) [A-Za-z ]+", first)
        check(found, f"the first line of an answer: {first!r}")
        self.status = int(found.group(1))
        self.fields = {}
        for line in lines:
            name, value = line.split(": ", 1)
            check(name not in self.fields, f"a field that occurs twice: {name}")
            self.fields[name] = value
        self.ends = self.fields.get("Connection") == "close"
        self.chunks = []
        if to_head or self.status == 100:
            self.body = b""
        elif self.fields.get("Transfer-Encoding") == "chunked":
            check("Content-Length" not in self.fields, "an answer has one length")
            self.body = b"".join(self.read_chunks(client))
        else:
            count = int(self.fields["Content-Length"])
            self.body = client.read(count)
            check(len(self.body) == count, f"{count} bytes of a body: {self.body!r}")

    def read_chunks(self, client):
        """The parts of a body in chunks, without the last, empty one."""
        while True:
            size = int(read_through(client, b"\r\n"), 16)
            data = client.read(size + 2)
            check(len(data) == size + 2 and data.endswith(b"\r\n"), f"a chunk of {size} bytes: {data!r}")
            if size == 0:
                return
            self.chunks.append(data[:-2])
            yield data[:-2]


def ask(client, sent, to_head=False):
    """Sends one request and reads its answer."""
    client.send(sent)
    return Answer(client, to_head)


def routes(path):
    """each route has its answers, and names the methods that it allows"""
    with Server(path, "--slowness", "0.01") as server, server.connect() as client:
        for sent, status, body, allowed in (
                (b"GET / ", 200, HELLO, None), (b"HEAD /none ", 404, b"", None), (b"GET /slow ", 200, b"At last\n", None),
                (b"POST / ", 405, None, "GET, HEAD"), (b"DELETE /slow ", 405, None, "GET, HEAD"), (b"GET /echo ", 405, None, "POST")):
            answer = ask(client, sent + b"HTTP/1.1\r\nHost: x\r\n\r\n", to_head=sent.startswith(b"HEAD"))
            check(answer.status == status and body in (None, answer.body), f"{sent}: {answer.status} {answer.body}")
            check(answer.fields.get("Allow") == allowed, f"{sent}: {answer.fields}")
        answer = ask(client, echo(b"hello"))
        check((answer.status, answer.body) == (200, b"hello"), f"{answer.status} {answer.body}")
        first = ask(client, GET).fields["Date"]
        date = email.utils.parsedate_to_datetime(first).timestamp()
        check(first.endswith(" GMT") and abs(date - time.time()) < PATIENCE, first)
        wait_until(lambda: ask(client, GET).fields["Date"] != first, "the date advances")


def options(path):
    """each option has its effect"""
    for option, value, sent, status in (
            ("--max-body", "16", echo(b"a" * 17), 413), ("--head-timeout", "0.2", GET[:9], 408),
            ("--body-timeout", "0.2", echo(b"", length=5), 408), ("--idle-timeout", "0.2", b"", None)):
        with Server(path, option, value) as server, server.connect() as client:
            check(ask(client, GET + sent).status == 200, "the request before")
            check(status is None or Answer(client).status == status, f"{option}: {status}")
            check(client.is_ended(), f"{option}: the end")


def gone(path):
    """a client that disconnects while its answer is prepared causes no further work"""
    with Server(path, "--slowness", "60") as server:
        for leave in (lambda client: client.socket.close(), lambda client: client.reset(), lambda client: client.end()):
            with server.connect() as client:
                client.send_apart(GET + SLOW)
                check(Answer(client).status == 200, "the request before")
                leave(client)
        server.signal(signal.SIGTERM)
        check(server.exit_code() == 0, "nothing waits for the answers")


def drain(path):
    """after SIGTERM requests under way are finished, with Connection: close, and the process ends"""
    with Server(path, "--slowness", "2") as server:
        idle, busy, waiting = (server.connect() for _ in range(3))
        check(ask(idle, GET).status == 200, "the loop has turned")
        busy.send_apart(GET[:9])
        waiting.send_apart(SLOW)
        check(ask(idle, GET).status == 200, "the loop has turned")
        server.signal(signal.SIGTERM)
        check(idle.is_ended(), "an idle client sees the end")
        wait_until(lambda: is_refused(server.port), "new clients are refused")
        busy.send(GET[9:] + GET)
        for client in (busy, waiting):
            answer = Answer(client)
            check(answer.status == 200 and answer.ends and client.is_ended(), f"{answer.status} {answer.fields}")
        for client in (idle, busy, waiting):
            client.socket.close()
        check(server.exit_code() == 0, "the exit code")


def drain_timeout(path):
    """a drain ends at its time-out, and at once at a second signal"""
    for second, code in ((False, 0), (True, 128 + signal.SIGTERM)):
        options = ["--drain-timeout", "0.3"] if not second else []
        with Server(path, *options) as server, server.connect() as busy, server.connect() as idle:
            busy.send_apart(GET[:9])
            check(ask(idle, GET).status == 200, "the loop has turned")
            server.signal(signal.SIGINT)
            check(idle.is_ended(), "the drain has begun")
            idle.socket.close()
            if second:
                time.sleep(0.1)  # until then a second signal counts as a copy of the first
                server.signal(signal.SIGTERM)
            check(server.exit_code() == code, "the exit code")


def command_line(path):
    """a used address and unknown options each end with one line on standard error"""
    with Server(path) as server:
        for options, code in ((["--listen", f"127.0.0.1:{server.port}"], 71), (["--bogus", "x"], 64), (["--listen"], 64),
                              (["--max-body", "x"], 64), (["--head-timeout", "nan"], 64)):
            done = subprocess.run([path, *options], capture_output=True, text=True, timeout=PATIENCE)
            check(done.returncode == code and done.stderr.startswith("http-server: ") and done.stderr.count("\n") == 1,
                  f"{options}: {done}")


def closed_streams(path):
    """without standard streams it serves, and nothing that is printed reaches a client"""
    for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            port = unused.getsockname()[1]
        command = ["sh", "-c", f'exec "$0" "$@" {closed}', path, "--listen", f"127.0.0.1:{port}"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_until(lambda: process.poll() is not None or not is_refused(port), "it serves")
            check(process.poll() is None, f"{closed}: it ends with {process.returncode}")
            with Client(port) as client:
                client.send(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
                check(client.read_to_end()[0].startswith(b"HTTP/1.1 200 OK\r\n"), closed)
            process.send_signal(signal.SIGTERM)
            check(process.wait(PATIENCE) == 0, f"{closed}: {process.returncode}")
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


def no_proc(path):
    """without /proc, where Swift reads the command line, it does not listen anywhere else"""
    hide = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc && exec "$0" "$@"']
    if subprocess.run([*hide, "true"], capture_output=True, timeout=PATIENCE).returncode:
        skip("mounting is not allowed")
        return
    done = subprocess.run([*hide, path, "--listen", "127.0.0.1:0"], capture_output=True, text=True, timeout=PATIENCE)
    check(done.returncode == 71 and "/proc" in done.stderr and done.stderr.count("\n") == 1, f"{done}")


def python_client(path):
    """http.client works"""
    with Server(path, "--slowness", "0.01") as server:
        client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        for method, target, body, wanted in (
                ("GET", "/", None, (200, HELLO)), ("HEAD", "/", None, (200, b"")), ("POST", "/echo", b"hello", (200, b"hello")),
                ("POST", "/echo", iter([b"hel", b"lo"]), (200, b"hello")), ("GET", "/slow", None, (200, b"At last\n")),
                ("GET", "/none", None, (404, b"Not found\n"))):
            client.request(method, target, body)
            used = client.sock
            with client.getresponse() as answer:
                got = (answer.status, answer.read())
            check(got == wanted and client.sock is used, f"{method} {target}: {got}")
        client.close()


def curl(path):
    """curl works"""
    curl = program("curl")
    if not curl:
        return
    body = bytes(range(256)) * 4000
    with Server(path) as server:
        url = f"http://127.0.0.1:{server.port}"
        for options, given, wanted in (
                (["/"], b"", HELLO), (["/echo", "--data-binary", "@-"], body, body),
                (["/echo", "-X", "POST", "-T", "-"], body, body),
                (["/echo", "-X", "POST", "-T", "-", "-H", "Expect: 100-continue"], body, body),
                (["-0", "/"], b"", HELLO)):
            command = [curl, "--silent", "--show-error", "--fail", "--max-time", str(PATIENCE)]
            command += [url + option if option.startswith("/") else option for option in options]
            done = subprocess.run(command, input=given, capture_output=True, timeout=PATIENCE)
            check(done.returncode == 0 and done.stdout == wanted, f"{options}: {done.returncode} {done.stderr}")


def wrk(path):
    """wrk meets no error"""
    wrk = program("wrk")
    if not wrk:
        return
    with Server(path) as server:
        done = subprocess.run([wrk, "-t1", "-c20", "-d1", f"http://127.0.0.1:{server.port}/"], capture_output=True, text=True,
                              timeout=PATIENCE)
        check(done.returncode == 0 and "Requests/sec" in done.stdout, f"{done}")
        check("errors" not in done.stdout and "Non-2xx" not in done.stdout, done.stdout)


run("http-server", [
    routes, options, gone, drain, drain_timeout, command_line, closed_streams, no_proc, websocket_frames, websocket_flood,
    websocket_client, python_client, curl, wrk,
])

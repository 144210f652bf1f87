#!/usr/bin/env python3
"""Makes the system calls of a running echo server fail, one errno after the other: faults.py PATH-OF-ECHO-SERVER

strace(1) attaches to a server that is up, replaces the result of one system call by an error (now and then, or every time),
and detaches, while clients talk to the server. Afterwards no client may have received a byte that it did not send, or lack an
answer and an end; the server must serve again, with its descriptors as before; it must not have spun or filled its log, and must
exit on SIGTERM with 0, or have exited with the code that is documented for the fault.

Tries every errno of the man pages, with one thread and with two, at the start, and with SIGTERM while the call fails. The errors
that a busy machine or a peer can really cause come first; --seconds N skips those that have not begun by then. --only CALL is for
experiments.

A call that strace makes fail is not made: an error injected into close(2) leaves a descriptor open, which is counted, not treated
as a leak of the server.
"""
import argparse
import concurrent.futures
import ctypes
import errno
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

PATIENCE = 10
# A test needs fewer than 400. A loop that spins makes some thousands a second, even under strace.
MOST_CALLS = 2500
# Lines on standard error; a condition that lasts as long as a fault may log one per episode.
MOST_LINES = 12
NOW_AND_THEN, ALWAYS = "2+3", "1+"

# Errors by call, from the man pages: first those that a busy machine or a peer can really cause, then those that only a bug or a
# security module would.
CALLS = {
    "accept4": (
        "EMFILE ENFILE ENOBUFS ENOMEM ECONNABORTED EINTR EPERM EPROTO EBADF",
        "EAGAIN EINVAL ENOTSOCK EOPNOTSUPP EFAULT ENETDOWN ENOPROTOOPT EHOSTDOWN ENONET EHOSTUNREACH ENETUNREACH "
        "ETIMEDOUT ENOSR ESOCKTNOSUPPORT EPROTONOSUPPORT ENOSYS"),
    "recvfrom": (
        "ECONNRESET ETIMEDOUT ENOMEM EINTR EAGAIN",
        "EBADF ECONNREFUSED EFAULT EINVAL ENOTCONN ENOTSOCK EHOSTUNREACH ENETDOWN ENOBUFS EIO"),
    "sendto": (
        "EPIPE ECONNRESET ENOBUFS ENOMEM EINTR EAGAIN",
        "EACCES EALREADY EBADF EDESTADDRREQ EFAULT EINVAL EISCONN EMSGSIZE ENOTCONN ENOTSOCK EOPNOTSUPP ETIMEDOUT "
        "EHOSTUNREACH ENETUNREACH ENETDOWN EPERM"),
    "epoll_ctl": ("ENOMEM ENOSPC", "EBADF EEXIST EINVAL ELOOP ENOENT EPERM"),
    "epoll_wait": ("EINTR EINVAL", "EBADF EFAULT"),
    "shutdown": ("ENOTCONN", "EBADF EINVAL ENOTSOCK"),
    "close": ("EIO EINTR", "EBADF ENOSPC EDQUOT"),
    "setsockopt": ("EINVAL ENOMEM", "EBADF EFAULT ENOPROTOOPT ENOTSOCK EPERM EDOM"),
    "timerfd_settime": ("EINVAL", "EBADF EFAULT ECANCELED"),
    "writev": ("EPIPE ENOSPC EAGAIN", "EBADF EDQUOT EFAULT EFBIG EINTR EINVAL EIO EPERM"),
    "poll": ("ENOMEM", "EFAULT EINTR EINVAL"),
}
# The required exit of a server that is still starting. A server that has no timerfd waits in milliseconds.
STARTUP = {
    "socket": ("EMFILE ENFILE ENOBUFS ENOMEM EACCES EAFNOSUPPORT EPROTONOSUPPORT EINVAL", 71),
    "bind": ("EACCES EINVAL ENOMEM ENOTSOCK", 71),
    "bind ": ("EADDRINUSE EADDRNOTAVAIL", 69),
    "listen": ("ENOTSOCK EOPNOTSUPP", 71),
    "listen ": ("EADDRINUSE", 69),
    "getsockname": ("ENOBUFS", 71),
    "setsockopt": ("ENOMEM ENOPROTOOPT EACCES", 71),
    "epoll_create1": ("EMFILE ENFILE ENOMEM", 71),
    "eventfd2": ("EMFILE ENFILE ENODEV ENOMEM", 71),
    "timerfd_create": ("EMFILE ENFILE ENOMEM ENODEV ENOSYS EPERM", 0),
    "epoll_ctl": ("ENOMEM ENOSPC", 0),
}
# Faults that may end the server, with code 71: "a listener that broke", and a loop that cannot wait any more.
FATAL = {
    "accept4": "EBADF EINVAL ENOTSOCK EOPNOTSUPP", "epoll_wait": "EBADF EFAULT EINVAL", "timerfd_settime": "EBADF EINVAL"}
# The options that make the server call at all: one that prints statistics has a timer to set.
OPTIONS = {"timerfd_settime": ["--stats", "0.05"]}
# These are calls for the server's output.
OUTPUT = ("writev", "poll")
# A call that returns "not yet" or "again" every time contradicts epoll_wait, or never lets the caller continue.
NEVER_ALWAYS = {"EINTR", "EAGAIN"}


class Violation(Exception):
    """A requirement that did not hold."""


def check(truth, what):
    if not truth:
        raise Violation(what)


def wait_until(condition, what, patience=PATIENCE):
    limit = time.monotonic() + patience
    while not condition():
        check(time.monotonic() < limit, what)
        time.sleep(0.005)


def read(path):
    with open(path, errors="replace") as file:
        return file.read()


def allow_any_tracer():
    # Yama's ptrace_scope of 1 lets only ancestors attach, and strace is not one of the server: PR_SET_PTRACER, any.
    ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0)


class Server:
    """An echo server in a separate process, with its output in files, and the strace that is attached to it."""

    def __init__(self, path, *options, trace=()):
        self.folder = tempfile.TemporaryDirectory()
        self.output, self.errors, self.log = (f"{self.folder.name}/{name}" for name in ("output", "errors", "trace"))
        self.tracer, trace = None, [word.format(log=self.log) for word in trace]
        with open(self.output, "wb") as output, open(self.errors, "wb") as errors:
            self.process = subprocess.Popen(
                [*trace, path, "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", *options],
                stdin=subprocess.DEVNULL, stdout=output, stderr=errors, preexec_fn=allow_any_tracer)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in filter(None, (self.tracer, self.process)):
            if process.poll() is None:
                for child in children(process.pid):  # of a strace that has started it
                    os.kill(child, signal.SIGKILL)
                process.kill()
            process.wait()
        self.folder.cleanup()

    @property
    def lines(self):
        # Slowness, which strace causes, is no error.
        return [line for line in read(self.errors).splitlines() if " held the loop for " not in line]

    @property
    def has_ended(self):
        return self.process.poll() is not None

    def await_ports(self):
        def ports():
            check(not self.has_ended, f"the server did not start: {self.lines}")
            return re.search(r"^listening on 127\.0\.0\.1:(\d+)\n(?s:.*)^metrics on 127\.0\.0\.1:(\d+)\n", read(self.output), re.M)

        wait_until(ports, "the server does not say where it listens")
        self.port, self.metrics_port = map(int, ports().groups())

    @property
    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    @property
    def ticks(self):
        return sum(map(int, read(f"/proc/{self.process.pid}/stat").rsplit(")", 1)[1].split()[11:13]))

    def has_clients(self):
        with socket.create_connection(("127.0.0.1", self.metrics_port), PATIENCE) as client:
            client.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            text = b"".join(iter(lambda: client.recv(65536), b"")).decode()
        check(text.startswith("HTTP/1.1 200 OK\r\n"), f"the metrics are answered with {text[:40]!r}")
        return re.search(r"^echo_open_connections 0$", text, re.M) is None

    def attach(self, call, code, when):
        """Makes `call` fail with `code` as often as `when` says."""
        # Only writes to standard output, not the ones that wake the loop.
        only = ["-P", self.output] if call in OUTPUT else []
        counted = "" if only else ",epoll_wait"
        self.tracer = attached(
            self.process.pid, "-f", "-s", "0", "-o", self.log, "-e", f"trace={call}{counted}", "-e", "signal=none", *only,
            "-e", f"inject={call}:error={code}:when={when}")

    def detach(self):
        """Returns the number of failed calls."""
        if self.tracer.poll() is None:
            self.tracer.send_signal(signal.SIGINT)
        try:
            self.tracer.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            # It may wait for ever for a thread of a process that has ended meanwhile.
            self.tracer.kill()
            self.tracer.wait()
            wait_until(lambda: self.has_ended, "strace does not detach")
        lines = read(self.log).splitlines()
        check(len(lines) <= MOST_CALLS, f"it spins: {len(lines)} calls")
        return sum("(INJECTED)" in line for line in lines)


def children(pid):
    try:
        return [int(child) for child in read(f"/proc/{pid}/task/{pid}/children").split()]
    except OSError:
        return []


def attached(pid, *options):
    """A strace that has attached to a process."""
    tracer = subprocess.Popen(
        ["strace", *options, "-p", str(pid)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    limit = threading.Timer(PATIENCE, tracer.kill)
    limit.start()
    line = tracer.stderr.readline()
    limit.cancel()
    # strace reports threads on standard error, and must not block there.
    threading.Thread(target=tracer.stderr.read, daemon=True).start()
    check(" attached" in line, f"strace: {line.strip()}")
    return tracer


class Client(threading.Thread):
    """Sends unique bytes, and keeps the echo. One that floods does not wait for it, so that the server's buffers fill."""

    def __init__(self, port, seed, messages=4, size=20_000, floods=False):
        super().__init__(daemon=True)
        dice = random.Random(seed)
        self.port, self.floods = port, floods
        self.pieces = [dice.randbytes(dice.randint(1, size)) for _ in range(messages)]
        self.received, self.has_end, self.error = bytearray(), False, None
        self.start()

    def run(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), PATIENCE) as connection:
                if self.floods:
                    sender = threading.Thread(target=self.send, args=(connection,), daemon=True)
                    sender.start()
                    time.sleep(0.05)  # so that there is something to be full
                else:
                    self.send(connection)
                while self.receive(connection):
                    pass
                if self.floods:
                    sender.join(PATIENCE)
        except OSError as error:
            self.error = error

    def send(self, connection):
        total = 0
        try:
            for piece in self.pieces:
                connection.sendall(piece)
                total += len(piece)
                while not self.floods and len(self.received) < total:
                    if not self.receive(connection):
                        return
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            if not self.floods:
                raise

    def receive(self, connection):
        piece = connection.recv(65536)
        self.received += piece
        self.has_end = not piece
        return piece

    def verify(self):
        check(b"".join(self.pieces).startswith(self.received), "a client received what it had not sent")

    def is_served(self):
        self.join(PATIENCE)
        return self.has_end and b"".join(self.pieces) == bytes(self.received)


def talk(server, seed):
    return [*(Client(server.port, seed + index) for index in range(5)), Client(server.port, seed + 5, 24, 100_000, floods=True)]


def fault(path, call, code, when, *options):
    """One server, one call, one errno. Returns how often the call failed."""
    with Server(path, "--drain-timeout", "2", *OPTIONS.get(call, []), *options) as server:
        server.await_ports()
        # The first connection's allocations stay: memory, no descriptors.
        check(Client(server.port, 0, 1, 100).is_served(), "it does not serve before anything fails")
        wait_until(lambda: not server.has_clients(), "its first client does not go")
        time.sleep(0.02)
        baseline = server.descriptors
        server.attach(call, code, when)
        clients = talk(server, hash((call, code, when)) & 0xFFFF)
        if call in OUTPUT:
            for _ in range(6):
                server.process.send_signal(signal.SIGUSR1)
                time.sleep(0.03)
        limit = time.monotonic() + 0.7
        for client in clients:
            client.join(max(limit - time.monotonic(), 0))
        injected = server.detach()
        for client in clients:
            client.join(PATIENCE)
        judge(server, clients, baseline + (injected if call == "close" else 0), call, code)
        return injected


def judge(server, clients, allowed, call, code):
    for client in clients:
        client.verify()
    lines = server.lines
    check(len(lines) <= MOST_LINES, f"{len(lines)} lines on standard error, such as {lines[-1:]}")
    fatal = code in FATAL.get(call, "").split()
    if fatal:  # It may end by itself shortly after.
        try:
            server.process.wait(0.5)
        except subprocess.TimeoutExpired:
            pass
    if server.has_ended:
        check(fatal and server.process.returncode == 71, f"it ended with {server.process.returncode}: {lines}")
        check(sum(line.startswith("echo-server: ") for line in lines) == 1, f"it says why in one line: {lines}")
        return
    check(not any(isinstance(client.error, TimeoutError) for client in clients), "a client has neither an answer nor an end")
    for client in [Client(server.port, 77 + index) for index in range(3)]:
        check(client.is_served(), f"it does not serve any more: {client.error} {lines}")
    wait_until(lambda: server.descriptors <= allowed, f"descriptors leak: {server.descriptors}, {allowed} are allowed")
    if not any("metrics are no longer served" in line for line in lines):
        wait_until(lambda: not server.has_clients(), "the metrics count clients that have gone")
    before = server.ticks
    time.sleep(0.2)
    check(server.ticks - before <= 5, f"it spins when all is over: {server.ticks - before} ticks in 200 ms")
    check(server.descriptors <= allowed, f"descriptors leak: {server.descriptors}, {allowed} are allowed")
    server.process.send_signal(signal.SIGTERM)
    wait_until(lambda: server.has_ended, "it does not end on SIGTERM")
    check(server.process.returncode == 0, f"SIGTERM ends it with {server.process.returncode}: {lines}")
    check(call in OUTPUT or "\ntotals: 0 open" in read(server.output), "it ends without totals")


def drain(path, call, code):
    """SIGTERM while the call fails every time, with an idle and a busy client."""
    with Server(path, "--drain-timeout", "0.5", *OPTIONS.get(call, [])) as server:
        server.await_ports()
        with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as idle:
            idle.sendall(b"x")
            check(idle.recv(1) == b"x", "it does not serve before anything fails")
            server.attach(call, code, ALWAYS)
            clients = talk(server, 1)
            server.process.send_signal(signal.SIGTERM)
            wait_until(lambda: server.has_ended, "it does not end on SIGTERM while the call fails", 8)
            injected, exit_code = server.detach(), server.process.returncode
            # The default action, if the listener has failed just before the signal.
            failed = (71, -signal.SIGTERM) if code in FATAL.get(call, "").split() else ()
            check(exit_code in (0, *failed),
                  f"SIGTERM ends it with {exit_code}: {server.lines}")
            for client in clients:
                client.join(PATIENCE)
                client.verify()
            return injected


def startup(path, call, code, expected):
    """The first such call after the loader's own fails, and later ones do not."""
    trace = ["strace", "-f", "-qq", "-o", "{log}", "-e", f"trace={call}", "-e", f"inject={call}:error={code}:when=1"]
    with Server(path, trace=trace) as server:
        if expected == 0:
            server.await_ports()
            check(Client(server.port, 1).is_served(), "it does not serve")
            for child in children(server.process.pid):
                os.kill(child, signal.SIGTERM)
        wait_until(lambda: server.has_ended, "it does not end")
        lines = server.lines
        check(server.process.returncode == expected, f"it ends with {server.process.returncode}: {lines}")
        if expected:
            check(not read(server.output), "it says that it is up before it ends")
            number = getattr(errno, code)
            names = [f"({name})" for name in dir(errno) if getattr(errno, name) == number] + [f"(errno {number})"]
            check(len(lines) == 1 and lines[0].startswith("echo-server: ") and any(name in lines[0] for name in names),
                  f"it says what failed in one line: {lines}")
        return read(server.log).count("(INJECTED)")


def cases(real):
    """Functions of the path, by kind, call and errno: for errors that can really happen, or for the others."""
    for call, errors in CALLS.items():
        for code in errors[0 if real else 1].split():
            yield ("now and then", call, code), fault, (call, code, NOW_AND_THEN)
            if call not in OUTPUT:
                yield ("two threads", call, code), fault, (call, code, NOW_AND_THEN, "--threads", "2")
            if code not in NEVER_ALWAYS:
                yield ("every time", call, code), fault, (call, code, ALWAYS)
                if call != "epoll_wait":
                    yield ("SIGTERM", call, code), drain, (call, code)
    for call, (codes, expected) in STARTUP.items():
        for code in codes.split():
            if real == (code in ("EMFILE", "ENOMEM", "EADDRINUSE")):
                yield ("at the start", call.strip(), code), startup, (call.strip(), code, expected)


def why_not():
    """The reason why strace cannot attach on this machine; nothing if it can."""
    if not shutil.which("strace"):
        return "there is no strace"
    sleeper = subprocess.Popen(["sleep", "60"], preexec_fn=allow_any_tracer)
    try:
        probe = attached(sleeper.pid, "-o", "/dev/null", "-e", "inject=kill:error=EPERM")
        probe.send_signal(signal.SIGINT)
        probe.wait(PATIENCE)
    except Violation as violation:
        return str(violation)
    except subprocess.TimeoutExpired:
        probe.kill()
        return "strace does not detach"
    finally:
        sleeper.kill()
        sleeper.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("path")
    parser.add_argument("--only")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    arguments = parser.parse_args()
    if reason := why_not():
        print(f"skipped: {reason}", flush=True)
        return 0
    started = time.monotonic()

    def run(case):
        """How often the call failed, and the violation; nothing if there was no time."""
        _, body, parameters = case
        if time.monotonic() - started > arguments.seconds:
            return None
        try:
            return body(arguments.path, *parameters), None
        except (Violation, OSError, subprocess.SubprocessError) as error:
            return 1, str(error) or repr(error)

    chosen = [case for case in [*cases(True), *cases(False)] if not arguments.only or case[0][1] in arguments.only.split(",")]
    begun, not_called, failures = 0, [], 0
    with concurrent.futures.ThreadPoolExecutor(2 * (os.cpu_count() or 1)) as pool:
        for (name, _, _), result in zip(chosen, pool.map(run, chosen)):
            if result is None:
                continue
            begun += 1
            if result[0] == 0:
                not_called.append(" ".join(name))
            if result[1]:
                failures += 1
                print(f"FAILED {' '.join(name)}: {result[1]}", flush=True)
    if not_called:
        print("never called, so nothing failed: " + ", ".join(not_called))
    print(f"{begun} faults in {time.monotonic() - started:.0f} s, {failures} of them broke something", flush=True)
    if begun < len(chosen):
        print(f"{len(chosen) - begun} rarer ones were left out after {arguments.seconds:.0f} s", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

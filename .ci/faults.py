#!/usr/bin/env python3
"""Makes the system calls of a running echo server fail, one errno after the other: faults.py PATH-OF-ECHO-SERVER

strace(1) attaches to a server that is up, replaces the result of one system call by an error (now and then, or every time),
and detaches, while clients talk to the server. Afterwards no client may have received a byte that it did not send, or lack an
answer and an end; the server must serve again, with its descriptors as before; it must not have spun or filled its log, and must
exit on SIGTERM with 0, or have exited with the code that is documented for the fault.

Tries every errno of the man pages, with one thread and with two, at the start, and with SIGTERM while the call fails; about a
minute. The errors that a busy machine or a peer can really cause come first; --seconds N skips those that have not begun by then.
--only CALL is for experiments. Exit code 0, or 1 with the violations.

The server under test listens on free ports of 127.0.0.1. A call that strace makes fail is not made: an error injected
into close(2) leaves a descriptor open, which is counted, not treated as a leak of the server.
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
CLIENTS = 5
MESSAGES = 4
# A test needs fewer than 400. A loop that spins makes some thousands a second, even under strace.
MOST_CALLS = 2500
# Lines on standard error; a condition that lasts as long as a fault may log one per episode.
MOST_LINES = 12

NOW_AND_THEN = "2+3"
ALWAYS = "1+"

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
    "socket": {"EMFILE": 71, "ENFILE": 71, "ENOBUFS": 71, "ENOMEM": 71, "EACCES": 71, "EAFNOSUPPORT": 71,
               "EPROTONOSUPPORT": 71, "EINVAL": 71},
    "bind": {"EADDRINUSE": 69, "EADDRNOTAVAIL": 69, "EACCES": 71, "EINVAL": 71, "ENOMEM": 71, "ENOTSOCK": 71},
    "listen": {"EADDRINUSE": 69, "ENOTSOCK": 71, "EOPNOTSUPP": 71},
    "getsockname": {"ENOBUFS": 71},
    "setsockopt": {"ENOMEM": 71, "ENOPROTOOPT": 71, "EACCES": 71},
    "epoll_create1": {"EMFILE": 71, "ENFILE": 71, "ENOMEM": 71},
    "eventfd2": {"EMFILE": 71, "ENFILE": 71, "ENODEV": 71, "ENOMEM": 71},
    "timerfd_create": {"EMFILE": 0, "ENFILE": 0, "ENOMEM": 0, "ENODEV": 0, "ENOSYS": 0, "EPERM": 0},
    "epoll_ctl": {"ENOMEM": 0, "ENOSPC": 0},
}

# Faults that may end the server, with code 71: "a listener that broke", and a loop that cannot wait any more.
FATAL = {
    "accept4": "EBADF EINVAL ENOTSOCK EOPNOTSUPP",
    "epoll_wait": "EBADF EFAULT EINVAL",
    "timerfd_settime": "EBADF EINVAL",
}

# The options that make the server call at all: one that prints statistics has a timer to set.
OPTIONS = {"timerfd_settime": ["--stats", "0.05"]}

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


def first_line(process):
    """The first line of strace on standard error; nothing if it does not come in time and strace is killed."""
    limit = threading.Timer(PATIENCE, process.kill)
    limit.start()
    try:
        return process.stderr.readline()
    finally:
        limit.cancel()


def allow_any_tracer():
    # Yama's ptrace_scope of 1 lets only ancestors attach, and strace is not one of the server: PR_SET_PTRACER, any.
    ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0)


class Server:
    """An echo server in a separate process, with its output in files."""

    def __init__(self, path, folder, *options, trace=()):
        self.output = os.path.join(folder, "output")
        self.errors = os.path.join(folder, "errors")
        command = [*trace, path, "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", *options]
        with open(self.output, "wb") as output, open(self.errors, "wb") as errors:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, preexec_fn=allow_any_tracer)

    def read(self, path):
        with open(path, errors="replace") as file:
            return file.read()

    @property
    def error_lines(self):
        # Slowness, which strace causes, is no error.
        return [line for line in self.read(self.errors).splitlines() if " held the loop for " not in line]

    @property
    def has_ended(self):
        return self.process.poll() is not None

    def await_ports(self):
        def found():
            check(not self.has_ended, f"the server did not start: {self.error_lines}")
            return re.search(r"^metrics on .*\n", self.read(self.output), re.MULTILINE)

        wait_until(found, "the server does not say where it listens")
        text = self.read(self.output)
        self.port = int(re.search(r"^listening on 127\.0\.0\.1:(\d+)$", text, re.MULTILINE).group(1))
        self.metrics_port = int(re.search(r"^metrics on 127\.0\.0\.1:(\d+)$", text, re.MULTILINE).group(1))

    @property
    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    @property
    def ticks(self):
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])

    def metrics(self):
        with socket.create_connection(("127.0.0.1", self.metrics_port), PATIENCE) as client:
            client.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            text = b"".join(iter(lambda: client.recv(65536), b"")).decode()
        check(text.startswith("HTTP/1.1 200 OK\r\n"), f"the metrics are answered with {text[:40]!r}")
        return dict(re.findall(r"^(echo_\w+) (\S+)$", text, re.MULTILINE))

    def end(self):
        if not self.has_ended:
            self.process.kill()
        self.process.wait()


class Tracer:
    """strace, attached to a server. Makes `call` fail with `code` as often as `when` says."""

    def __init__(self, server, folder, call, code, when):
        self.log = os.path.join(folder, "trace")
        # Only writes to standard output, not the ones that wake the loop.
        only = ["-P", server.output] if call in ("writev", "poll") else []
        counted = "" if only else ",epoll_wait"
        self.process = subprocess.Popen(
            ["strace", "-f", "-s", "0", "-o", self.log, "-e", f"trace={call}{counted}", "-e", "signal=none", *only,
             "-e", f"inject={call}:error={code}:when={when}", "-p", str(server.process.pid)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        line = first_line(self.process)
        check(" attached" in line, f"strace: {line.strip()}")
        # strace reports threads on standard error, and must not block there.
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def detach(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise Violation("strace does not detach") from None
        with open(self.log, errors="replace") as file:
            lines = file.read().splitlines()
        self.calls = len(lines)
        self.injected = sum("(INJECTED)" in line for line in lines)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Client:
    """Sends unique bytes, and compares the echo, on its own thread."""

    def __init__(self, port, seed, messages, size):
        dice = random.Random(seed)
        self.pieces = [dice.randbytes(dice.randint(1, size)) for _ in range(messages)]
        self.sent = b"".join(self.pieces)
        self.received = bytearray()
        self.error = None
        self.ended = False
        self.thread = threading.Thread(target=self.run, args=(port,), daemon=True)
        self.thread.start()

    def run(self, port):
        try:
            with socket.create_connection(("127.0.0.1", port), PATIENCE) as self.socket:
                self.talk(self.socket)
        except OSError as error:
            self.error = error

    def talk(self, connection):
        total = 0
        for piece in self.pieces:
            connection.sendall(piece)
            total += len(piece)
            while len(self.received) < total:
                if not self.receive(connection):
                    return
        connection.shutdown(socket.SHUT_WR)
        while self.receive(connection):
            pass

    def receive(self, connection):
        bytes = connection.recv(65536)
        self.received += bytes
        self.ended = not bytes
        return bytes

    def join(self, patience):
        self.thread.join(patience)
        return not self.thread.is_alive()

    @property
    def is_stalled(self):
        return isinstance(self.error, TimeoutError)

    @property
    def is_exact(self):
        return self.sent == bytes(self.received) and self.ended

    def verify(self):
        check(self.sent.startswith(self.received), "a client received what it had not sent")


class Flood(Client):
    """Sends without waiting, so that the server's buffers fill."""

    def talk(self, connection):
        def send():
            try:
                for piece in self.pieces:
                    connection.sendall(piece)
                connection.shutdown(socket.SHUT_WR)
            except OSError:
                pass

        sender = threading.Thread(target=send, daemon=True)
        sender.start()
        time.sleep(0.05)  # so that there is something to be full
        while self.receive(connection):
            pass
        sender.join(PATIENCE)


def talk(server, seed):
    clients = [Client(server.port, seed + index, MESSAGES, 20_000) for index in range(CLIENTS)]
    return clients + [Flood(server.port, seed + CLIENTS, 24, 100_000)]


def fault(path, call, code, when, *options):
    """One server, one call, one errno. Returns how often the call failed."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(path, folder, "--drain-timeout", "2", *OPTIONS.get(call, []), *options)
        tracer = None
        try:
            server.await_ports()
            # The first connection's allocations stay: memory, no descriptors.
            first = Client(server.port, 0, 1, 100)
            check(first.join(PATIENCE) and first.is_exact, "it does not serve before anything fails")
            wait_until(lambda: server.metrics()["echo_open_connections"] == "0", "its first client does not go")
            time.sleep(0.02)
            baseline = server.descriptors
            tracer = Tracer(server, folder, call, code, when)
            clients = talk(server, hash((call, code, when)) & 0xFFFF)
            if call in ("writev", "poll"):
                for _ in range(6):
                    server.process.send_signal(signal.SIGUSR1)
                    time.sleep(0.03)
            limit = time.monotonic() + 0.7
            waited = [client for client in clients if not client.join(max(limit - time.monotonic(), 0))]
            tracer.detach()
            for client in waited:
                client.join(PATIENCE)
            return judge(server, tracer, clients, baseline, call, code)
        finally:
            if tracer:
                tracer.kill()
            server.end()


def judge(server, tracer, clients, baseline, call, code):
    for client in clients:
        client.verify()
    check(tracer.calls <= MOST_CALLS, f"it spins: {tracer.calls} calls")
    lines = server.error_lines
    check(len(lines) <= MOST_LINES, f"{len(lines)} lines on standard error, such as {lines[-1:]}")
    if server.has_ended or code in FATAL.get(call, "").split() and ended_by(server):
        check(code in FATAL.get(call, "").split(), f"it ended with {server.process.poll()}: {lines}")
        check(server.process.poll() == 71, f"it ended with {server.process.poll()}, not with 71: {lines}")
        check(sum(line.startswith("echo-server: ") for line in lines) == 1, f"it says why in one line: {lines}")
        return tracer.injected
    check(not any(client.is_stalled for client in clients), "a client has neither an answer nor an end")
    after = [Client(server.port, 77 + index, MESSAGES, 20_000) for index in range(3)]
    for client in after:
        check(client.join(PATIENCE) and client.is_exact, f"it does not serve any more: {client.error} {lines}")
    allowed = baseline + (tracer.injected if call == "close" else 0)
    wait_until(lambda: server.descriptors <= allowed,
               f"descriptors leak: {server.descriptors} after {baseline}, {tracer.injected} injected")
    metrics_broke = any("metrics are no longer served" in line for line in lines)
    if not metrics_broke:
        wait_until(lambda: server.metrics()["echo_open_connections"] == "0", "the metrics count clients that have gone")
    before = server.ticks
    time.sleep(0.2)
    check(server.ticks - before <= 5, f"it spins when all is over: {server.ticks - before} ticks in 200 ms")
    check(server.descriptors <= allowed, f"descriptors leak: {server.descriptors} after {baseline}")
    server.process.send_signal(signal.SIGTERM)
    wait_until(lambda: server.has_ended, "it does not end on SIGTERM")
    check(server.process.returncode == 0, f"SIGTERM ends it with {server.process.returncode}: {lines}")
    if call not in ("writev", "poll"):
        check("\ntotals: 0 open" in server.read(server.output), "it ends without totals")
    return tracer.injected


def ended_by(server):
    """True if the server ends by itself, as it may shortly after a fault that ends it."""
    try:
        server.process.wait(0.5)
        return True
    except subprocess.TimeoutExpired:
        return False


def drain(path, call, code, *options):
    """SIGTERM while the call fails every time, with an idle and a busy client."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(path, folder, "--drain-timeout", "0.5", *OPTIONS.get(call, []), *options)
        tracer = None
        try:
            server.await_ports()
            with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as idle:
                idle.sendall(b"x")
                check(idle.recv(1) == b"x", "it does not serve before anything fails")
                tracer = Tracer(server, folder, call, code, ALWAYS)
                clients = talk(server, 1)
                server.process.send_signal(signal.SIGTERM)
                wait_until(lambda: server.has_ended, "it does not end on SIGTERM while the call fails", 8)
                tracer.detach()
                code_of_exit = server.process.returncode
                fatal = code in FATAL.get(call, "").split()
                check(code_of_exit == 0 or code_of_exit == 71 and fatal,
                      f"SIGTERM ends it with {code_of_exit}: {server.error_lines}")
                check(tracer.calls <= MOST_CALLS, f"it spins: {tracer.calls} calls")
                for client in clients:
                    client.join(PATIENCE)
                    client.verify()
                return tracer.injected
        finally:
            if tracer:
                tracer.kill()
            server.end()


def startup(path, call, code, expected):
    """The first such call after the loader's own fails, and later ones do not."""
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "trace")
        trace = ["strace", "-f", "-qq", "-o", log, "-e", f"trace={call}", "-e", f"inject={call}:error={code}:when=1"]
        server = Server(path, folder, trace=trace)
        try:
            if expected == 0:
                server.await_ports()
                client = Client(server.port, 1, MESSAGES, 20_000)
                check(client.join(PATIENCE) and client.is_exact, "it does not serve")
                # strace passes the signal on to its only child.
                with open(f"/proc/{server.process.pid}/task/{server.process.pid}/children") as file:
                    os.kill(int(file.read().split()[0]), signal.SIGTERM)
            wait_until(lambda: server.has_ended, "it does not end")
            lines = server.error_lines
            check(server.process.returncode == expected, f"it ends with {server.process.returncode}: {lines}")
            if expected:
                said = server.read(server.output)
                check(not said, f"it says that it is up before it ends: {said}")
                names = [name for name in dir(errno) if getattr(errno, name) == getattr(errno, code)]
                named = any(f"({name})" in lines[0] for name in names + [f"errno {getattr(errno, code)}"]) if lines else False
                check(len(lines) == 1 and lines[0].startswith("echo-server: ") and named,
                      f"it says what failed in one line: {lines}")
            with open(log) as file:
                return file.read().count("(INJECTED)")
        finally:
            if not server.has_ended:
                # Not only strace, which would leave its tracee running.
                with open(f"/proc/{server.process.pid}/task/{server.process.pid}/children") as file:
                    for child in file.read().split():
                        os.kill(int(child), signal.SIGKILL)
            server.end()


def cases(real):
    """Kind, call and errno as functions of the path: for errors that can really happen, or for the others."""
    for call, errors in CALLS.items():
        for code in errors[0 if real else 1].split():
            yield "now and then", call, code, lambda path, call=call, code=code: fault(path, call, code, NOW_AND_THEN)
            if call not in ("writev", "poll"):
                yield ("two threads", call, code,
                       lambda path, call=call, code=code: fault(path, call, code, NOW_AND_THEN, "--threads", "2"))
            if code not in NEVER_ALWAYS:
                yield "every time", call, code, lambda path, call=call, code=code: fault(path, call, code, ALWAYS)
                if call != "epoll_wait":
                    yield "SIGTERM", call, code, lambda path, call=call, code=code: drain(path, call, code)
    for call, codes in STARTUP.items():
        for code, expected in codes.items():
            if real == (code in ("EMFILE", "ENOMEM", "EADDRINUSE")):
                yield ("at the start", call, code,
                       lambda path, call=call, code=code, expected=expected: startup(path, call, code, expected))


def why_not():
    """The reason why strace cannot attach on this machine; nothing if it can."""
    if not shutil.which("strace"):
        return "there is no strace"
    sleeper = subprocess.Popen(["sleep", "60"], preexec_fn=allow_any_tracer)
    try:
        probe = subprocess.Popen(
            ["strace", "-o", "/dev/null", "-e", "inject=kill:error=EPERM", "-p", str(sleeper.pid)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        line = first_line(probe)
        probe.send_signal(signal.SIGINT)
        probe.stderr.close()
        try:
            probe.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            probe.kill()
            probe.wait()
            return "strace does not detach"
        return None if " attached" in line else f"strace cannot attach: {line.strip()}"
    finally:
        sleeper.kill()
        sleeper.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("path")
    parser.add_argument("--only")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    arguments = parser.parse_args()
    reason = why_not()
    if reason:
        print(f"skipped: {reason}", flush=True)
        return 0
    started = time.monotonic()
    begun, not_called, failures = 0, [], []

    def run(case):
        kind, call, code, body = case
        if time.monotonic() - started > arguments.seconds:
            return case, None, None
        try:
            return case, body(arguments.path) > 0, None
        except Violation as violation:
            return case, True, str(violation)
        except (OSError, subprocess.SubprocessError) as error:
            return case, True, repr(error)

    chosen = [case for case in [*cases(True), *cases(False)] if not arguments.only or case[1] in arguments.only.split(",")]
    with concurrent.futures.ThreadPoolExecutor(2 * (os.cpu_count() or 1)) as pool:
        for (kind, call, code, _), injected, violation in pool.map(run, chosen):
            if injected is None:
                continue
            begun += 1
            if not injected:
                not_called.append(f"{call} {code} {kind}")
            if violation:
                failures.append(f"{call} {code} {kind}: {violation}")
                print(f"FAILED {failures[-1]}", flush=True)
    if not_called:
        print("never called, so nothing failed: " + ", ".join(not_called))
    print(f"{begun} faults in {time.monotonic() - started:.0f} s, {len(failures)} of them broke something", flush=True)
    if begun < len(chosen):
        print(f"{len(chosen) - begun} rarer ones were left out after {arguments.seconds:.0f} s", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

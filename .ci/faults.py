#!/usr/bin/env python3
"""Makes the system calls of a running echo server fail, one errno after the other: faults.py PATH-OF-ECHO-SERVER [SECONDS [CALL]]

strace(1) attaches to a server that is up, replaces the result of one system call by an error (now and then, or every time),
and detaches, while clients talk to the server. Afterwards no client may have received a byte that it did not send, or lack an
answer and an end; the server must serve again, with its descriptors as before; it must not have spun or filled its log, and must
exit on SIGTERM with 0, or have exited with the code that is documented for the fault.

Tries every errno of the man pages, with one thread and with two, at the start, and with SIGTERM while the call fails. The errors
that a busy machine or a peer can really cause come first; those that have not begun after SECONDS are skipped. With CALL, only that
one fails.

A call that strace makes fail is not made: an error injected into close(2) leaves a descriptor open, which is counted, not treated
as a leak of the server.
"""
import asyncio
import contextlib
import ctypes
import errno
import os
import random
import re
import signal
import sys
import tempfile
import time
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path

PATIENCE = 10
# A test needs fewer than 400. A loop that spins makes some thousands a second, even under strace.
MOST_CALLS = 2500
# Lines on standard error; a condition that lasts as long as a fault may log one per episode.
MOST_LINES = 12
NOW_AND_THEN, ALWAYS = "2+3", "1+"

# Errors by call, from the man pages: first those that a busy machine or a peer can really cause, then those that only a bug or a
# security module would.
CALLS = {
    "accept4": "EMFILE ENFILE ENOBUFS ENOMEM ECONNABORTED EINTR EPERM EPROTO EBADF | EAGAIN EINVAL ENOTSOCK EOPNOTSUPP EFAULT ENETDOWN "
               "ENOPROTOOPT EHOSTDOWN ENONET EHOSTUNREACH ENETUNREACH ETIMEDOUT ENOSR ESOCKTNOSUPPORT EPROTONOSUPPORT ENOSYS",
    "recvfrom": "ECONNRESET ETIMEDOUT ENOMEM EINTR EAGAIN | EBADF ECONNREFUSED EFAULT EINVAL ENOTCONN ENOTSOCK EHOSTUNREACH ENETDOWN "
                "ENOBUFS EIO",
    "sendto": "EPIPE ECONNRESET ENOBUFS ENOMEM EINTR EAGAIN | EACCES EALREADY EBADF EDESTADDRREQ EFAULT EINVAL EISCONN EMSGSIZE "
              "ENOTCONN ENOTSOCK EOPNOTSUPP ETIMEDOUT EHOSTUNREACH ENETUNREACH ENETDOWN EPERM",
    "epoll_ctl": "ENOMEM ENOSPC | EBADF EEXIST EINVAL ELOOP ENOENT EPERM",
    "epoll_wait": "EINTR EINVAL | EBADF EFAULT",
    "shutdown": "ENOTCONN | EBADF EINVAL ENOTSOCK",
    "close": "EIO EINTR | EBADF ENOSPC EDQUOT",
    "setsockopt": "EINVAL ENOMEM | EBADF EFAULT ENOPROTOOPT ENOTSOCK EPERM EDOM",
    "timerfd_settime": "EINVAL | EBADF EFAULT ECANCELED",
    "writev": "EPIPE ENOSPC EAGAIN | EBADF EDQUOT EFAULT EFBIG EINTR EINVAL EIO EPERM",
    "poll": "ENOMEM | EFAULT EINTR EINVAL",
}
# The required exit of a server that is still starting. A server that has no timerfd waits in milliseconds.
STARTUP = [
    ("socket", 71, "EMFILE ENFILE ENOBUFS ENOMEM EACCES EAFNOSUPPORT EPROTONOSUPPORT EINVAL"),
    ("bind", 71, "EACCES EINVAL ENOMEM ENOTSOCK"),
    ("bind", 69, "EADDRINUSE EADDRNOTAVAIL"),
    ("listen", 71, "ENOTSOCK EOPNOTSUPP"),
    ("listen", 69, "EADDRINUSE"),
    ("getsockname", 71, "ENOBUFS"),
    ("setsockopt", 71, "ENOMEM ENOPROTOOPT EACCES"),
    ("epoll_create1", 71, "EMFILE ENFILE ENOMEM"),
    ("eventfd2", 71, "EMFILE ENFILE ENODEV ENOMEM"),
    ("timerfd_create", 0, "EMFILE ENFILE ENOMEM ENODEV ENOSYS EPERM"),
    ("epoll_ctl", 0, "ENOMEM ENOSPC"),
]
# Faults that may end the server, with code 71: "a listener that broke", and a loop that cannot wait any more.
FATAL = {
    "accept4": "EBADF EINVAL ENOTSOCK EOPNOTSUPP", "epoll_wait": "EBADF EFAULT EINVAL", "timerfd_settime": "EBADF EINVAL"}
# The options that make the server call at all: one that prints statistics has a timer to set.
OPTIONS = {"timerfd_settime": ["--stats", "0.05"]}
# These are calls for the server's output.
OUTPUT = ("writev", "poll")
# A call that returns "not yet" or "again" every time contradicts epoll_wait, or never lets the caller continue.
NEVER_ALWAYS = {"EINTR", "EAGAIN"}


def check(truth, what):
    if not truth:
        raise AssertionError(what)


async def wait_until(condition, what):
    limit = time.monotonic() + PATIENCE
    while not condition():
        check(time.monotonic() < limit, what)
        await asyncio.sleep(0.005)


@contextlib.asynccontextmanager
async def connection(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    with contextlib.closing(writer):
        yield reader, writer


def allow_any_tracer():
    # Yama's ptrace_scope of 1 lets only ancestors attach, and strace is not one of the server: PR_SET_PTRACER, any.
    ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0)


class Server:
    """An echo server, with its output in files, and the strace that is attached to it."""

    def __init__(self, folder):
        self.output, self.errors, self.log = (Path(folder, name) for name in ("output", "errors", "trace"))
        self.process = self.tracer = None

    @property
    def lines(self):
        # Slowness, which strace causes, is no error.
        return [line for line in self.errors.read_text(errors="replace").splitlines() if " held the loop for " not in line]

    @property
    def has_ended(self):
        return self.process.returncode is not None

    def signal(self, number, process=None):
        # Process.send_signal would take the exit code away from whom waits for it.
        with contextlib.suppress(ProcessLookupError):
            os.kill((process or self.process).pid, number)

    @property
    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    @property
    def ticks(self):
        return sum(map(int, Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]))

    @property
    def failures(self):
        return self.log.read_text().count("(INJECTED)")

    async def await_ports(self):
        await wait_until(lambda: "\nmetrics on " in self.output.read_text() or self.has_ended, "the server does not start")
        check(not self.has_ended, f"the server did not start: {self.lines}")
        self.port, self.metrics_port = re.findall(r" on 127\.0\.0\.1:(\d+)\n", self.output.read_text())

    async def await_no_clients(self, what):
        limit = time.monotonic() + PATIENCE
        text = ""
        while not re.search(r"^echo_open_connections 0$", text, re.M):
            check(time.monotonic() < limit, what)
            async with asyncio.timeout(PATIENCE), connection(self.metrics_port) as (reader, writer):
                writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
                text = (await reader.read()).decode()
            check(text.startswith("HTTP/1.1 200 OK\r\n"), f"the metrics are answered with {text[:40]!r}")

    async def attach(self, call, code, when):
        """Makes `call` fail with `code` as often as `when` says."""
        # Only writes to standard output, not the ones that wake the loop.
        only = ["-e", f"trace={call}", "-P", self.output] if call in OUTPUT else ["-e", f"trace={call},epoll_wait"]
        self.tracer = await asyncio.create_subprocess_exec(
            "strace", "-f", "-s", "0", "-o", self.log, *only, "-e", "signal=none", "-e", f"inject={call}:error={code}:when={when}",
            "-p", str(self.process.pid), stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE)
        line = await asyncio.wait_for(self.tracer.stderr.readline(), PATIENCE)
        check(b" attached" in line, f"strace: {line}")

    async def detach(self):
        if self.tracer.returncode is None:
            self.signal(signal.SIGINT, self.tracer)
        try:
            await asyncio.wait_for(self.tracer.wait(), PATIENCE)
        except TimeoutError:
            # It may wait for ever for a thread of a process that has ended meanwhile.
            self.signal(signal.SIGKILL, self.tracer)
            await wait_until(lambda: self.has_ended, "strace does not detach")
        calls = self.log.read_text().count("\n")
        check(calls <= MOST_CALLS, f"it spins: {calls} calls")


@contextlib.asynccontextmanager
async def running(path, *options, trace=(), is_served=True):
    """A server, which has served a client; unless it is to end before."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(folder)
        with open(server.output, "wb") as output, open(server.errors, "wb") as errors:
            server.process = await asyncio.create_subprocess_exec(
                *(word.format(log=server.log) for word in trace), path, "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", *options,
                stdin=DEVNULL, stdout=output, stderr=errors, preexec_fn=allow_any_tracer)
        try:
            if is_served:
                await server.await_ports()
                # The first connection's allocations stay: memory, no descriptors.
                check(await Client(server, 0, 1, 100).is_served(), "it does not serve before anything fails")
            yield server
        finally:
            for process in filter(None, (server.tracer, server.process)):
                if process.returncode is None:
                    server.signal(signal.SIGKILL, process)
                await process.wait()


class Client:
    """Sends unique bytes, and keeps the echo. One that floods does not wait for it, so that the server's buffers fill."""

    def __init__(self, server, seed, messages=4, size=20_000, floods=False):
        dice = random.Random(seed)
        self.port, self.floods = server.port, floods
        pieces = [dice.randbytes(dice.randint(1, size)) for _ in range(messages)]
        # In one write: asyncio prints a line for each write to a connection that was reset.
        self.pieces = [b"".join(pieces)] if floods else pieces
        self.received, self.has_end, self.error = b"", False, None
        self.task = asyncio.create_task(self.run())

    async def run(self):
        sent = 0
        try:
            async with asyncio.timeout(PATIENCE), connection(self.port) as (reader, writer):
                for piece in self.pieces:
                    writer.write(piece)
                    sent += len(piece)
                    while not self.floods and len(self.received) < sent and (more := await reader.read(65536)):
                        self.received += more
                    if reader.at_eof():
                        break
                if self.floods:
                    await asyncio.sleep(0.05)  # so that there is something to be full
                writer.write_eof()
                while more := await reader.read(65536):
                    self.received += more
                self.has_end = True
        except OSError as error:
            self.error = error

    async def verify(self):
        await self.task
        check(b"".join(self.pieces).startswith(self.received), "a client received what it had not sent")

    async def is_served(self):
        await self.verify()
        return self.has_end and b"".join(self.pieces) == self.received


def talk(server):
    return [*(Client(server, index) for index in range(5)), Client(server, 5, 24, 100_000, floods=True)]


async def fault(path, call, code, when, *options):
    """One server, one call, one errno. Returns how often the call failed, as do the other tests."""
    async with running(path, "--drain-timeout", "2", *OPTIONS.get(call, []), *options) as server:
        await server.await_no_clients("its first client does not go")
        await asyncio.sleep(0.02)
        allowed = server.descriptors
        await server.attach(call, code, when)
        clients = talk(server)
        if call in OUTPUT:
            for _ in range(6):
                server.signal(signal.SIGUSR1)
                await asyncio.sleep(0.03)
        await asyncio.wait([client.task for client in clients], timeout=0.7)
        await server.detach()
        await judge(server, clients, allowed + (server.failures if call == "close" else 0), call, code)
        return server.failures


async def judge(server, clients, allowed, call, code):
    for client in clients:
        await client.verify()
    lines = server.lines
    check(len(lines) <= MOST_LINES, f"{len(lines)} lines on standard error, such as {lines[-1:]}")
    fatal = code in FATAL.get(call, "").split()
    if fatal:  # It may end by itself shortly after.
        await asyncio.wait([asyncio.create_task(server.process.wait())], timeout=0.5)
    if server.has_ended:
        lines = server.lines  # It may have ended since the last reading.
        check(fatal and server.process.returncode == 71, f"it ended with {server.process.returncode}: {lines}")
        check(sum(line.startswith("echo-server: ") for line in lines) == 1, f"it says why in one line: {lines}")
        return
    check(not any(isinstance(client.error, TimeoutError) for client in clients), "a client has neither an answer nor an end")
    for client in [Client(server, 77 + index) for index in range(3)]:
        check(await client.is_served(), f"it does not serve any more: {client.error} {lines}")
    await wait_until(lambda: server.descriptors <= allowed, f"descriptors leak: {allowed} are allowed")
    if not any("metrics are no longer served" in line for line in lines):
        await server.await_no_clients("the metrics count clients that have gone")
    before = server.ticks
    await asyncio.sleep(0.2)
    check(server.ticks - before <= 5, f"it spins when all is over: {server.ticks - before} ticks in 200 ms")
    check(server.descriptors <= allowed, f"descriptors leak: {server.descriptors}, {allowed} are allowed")
    server.signal(signal.SIGTERM)
    await wait_until(lambda: server.has_ended, "it does not end on SIGTERM")
    check(server.process.returncode == 0, f"SIGTERM ends it with {server.process.returncode}: {lines}")
    check(call in OUTPUT or "\ntotals: 0 open" in server.output.read_text(), "it ends without totals")


async def drain(path, call, code):
    """SIGTERM while the call fails every time, with an idle and a busy client."""
    async with running(path, "--drain-timeout", "0.5", *OPTIONS.get(call, [])) as server:
        async with connection(server.port):
            await server.attach(call, code, ALWAYS)
            clients = talk(server)
            await asyncio.sleep(0.01)
            server.signal(signal.SIGTERM)
            await wait_until(lambda: server.has_ended, "it does not end on SIGTERM while the call fails")
            await server.detach()
        # The default action, if the listener has failed just before the signal.
        failed = (71, -signal.SIGTERM) if code in FATAL.get(call, "").split() else ()
        check(server.process.returncode in (0, *failed), f"SIGTERM ends it with {server.process.returncode}: {server.lines}")
        for client in clients:
            await client.verify()
        return server.failures


async def startup(path, call, code, expected):
    """The first such call after the loader's own fails, and later ones do not."""
    # With -D, the server is this process's child, not strace's.
    trace = ["strace", "-D", "-f", "-qq", "-o", "{log}", "-e", f"trace={call}", "-e", f"inject={call}:error={code}:when=1"]
    async with running(path, trace=trace, is_served=expected == 0) as server:
        if expected == 0:
            server.signal(signal.SIGTERM)
        await wait_until(lambda: server.has_ended, "it does not end")
        lines = server.lines
        check(server.process.returncode == expected, f"it ends with {server.process.returncode}: {lines}")
        if expected:
            check(not server.output.read_text(), "it says that it is up before it ends")
            name = errno.errorcode[getattr(errno, code)]  # of two names of a number, the server's too
            check(len(lines) == 1 and lines[0].startswith("echo-server: ") and f"({name})" in lines[0],
                  f"it says what failed in one line: {lines}")
        return server.failures


def cases(real):
    """Tests, each by its name, its function and what that needs beside the path: for errors that can really happen, or for the others."""
    for call, errors in CALLS.items():
        for code in errors.split("|")[0 if real else 1].split():
            yield f"now and then {call} {code}", fault, (call, code, NOW_AND_THEN)
            if call not in OUTPUT:
                yield f"two threads {call} {code}", fault, (call, code, NOW_AND_THEN, "--threads", "2")
            if code not in NEVER_ALWAYS:
                yield f"every time {call} {code}", fault, (call, code, ALWAYS)
                if call != "epoll_wait":
                    yield f"SIGTERM {call} {code}", drain, (call, code)
    for call, expected, codes in STARTUP:
        for code in codes.split():
            if real == (code in ("EMFILE", "ENOMEM", "EADDRINUSE")):
                yield f"at the start {call} {code}", startup, (call, code, expected)


async def main(path, seconds=float("inf"), only=""):
    started, not_called, results = time.monotonic(), [], []
    places = asyncio.Semaphore(2 * (os.cpu_count() or 1))

    async def run(name, body, parameters):
        async with places:
            if time.monotonic() - started > float(seconds):
                return
            try:
                if await asyncio.wait_for(body(path, *parameters), 60) == 0:
                    not_called.append(name)
                results.append(True)
            except (AssertionError, OSError) as error:
                results.append(False)
                print(f"FAILED {name}: {str(error) or repr(error)}", flush=True)

    chosen = [case for case in [*cases(True), *cases(False)] if only in ("", case[2][0])]
    await asyncio.gather(*(run(*case) for case in chosen))
    if not_called:
        print("never called, so nothing failed: " + ", ".join(not_called))
    print(f"{len(results)} faults in {time.monotonic() - started:.0f} s, {results.count(False)} of them broke something")
    if len(results) < len(chosen):
        print(f"{len(chosen) - len(results)} rarer ones were left out after {seconds} s")
    return 0 if all(results) else 1


sys.exit(asyncio.run(main(*sys.argv[1:])))

#!/usr/bin/env python3
"""Runs check-addresses against real sockets: check-addresses-tests.py [PATH-OF-CHECK-ADDRESSES]"""
import contextlib
import os
import pty
import re
import signal
import socket
import struct
import subprocess

from servers import PATIENCE, check, run, wait_until

OK = r"{}: ok \d+ ms"
# For attempts that must not reach their time limit, however busy the machine is.
FOREVER = ("--timeout", "3600")


@contextlib.contextmanager
def listening():
    """The address of a socket whose clients the kernel accepts."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        yield "127.0.0.1:%d" % listener.getsockname()[1]


@contextlib.contextmanager
def closed():
    """An address without a listener, reserved so that no other process can bind it during the test."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield "127.0.0.1:%d" % bound.getsockname()[1]


@contextlib.contextmanager
def blackhole():
    """The address of a listener whose backlog is full: the kernel drops further SYN packets."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        def is_full():
            # Of a listener, tcpi_unacked and tcpi_sacked are what waits in the backlog, and its size: see tcp_get_info().
            waiting, size = struct.unpack_from("II", listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 32), 24)
            return waiting > size

        # One client fits into a backlog of zero.
        with socket.create_connection(listener.getsockname(), PATIENCE):
            wait_until(is_full, "the backlog is full")
            yield "127.0.0.1:%d" % listener.getsockname()[1]


class Terminal:
    """A pseudo-terminal and what was written to it."""

    def __enter__(self):
        self.reader, self.writer = pty.openpty()
        os.set_blocking(self.reader, False)
        self.text = b""
        return self

    def __exit__(self, *_):
        os.close(self.reader)
        os.close(self.writer)

    def read(self):
        with contextlib.suppress(BlockingIOError):
            while piece := os.read(self.reader, 1 << 16):
                self.text += piece
        return self.text

    def wait_for(self, text):
        wait_until(lambda: text in self.read(), f"{text} is on the terminal")


@contextlib.contextmanager
def running(*command, stderr=None):
    """The running program, which is killed at the end if it has not exited."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def finish(path, *arguments, lines=""):
    """Runs the program to its end, with these lines as standard input."""
    return subprocess.run([path, *FOREVER, *arguments], input=lines, capture_output=True, text=True, timeout=PATIENCE)


def expect(done, code, *patterns, stderr=""):
    """The exit code, a line of standard output for each pattern, and all of standard error."""
    lines = done.stdout.splitlines()
    check(done.returncode == code and len(lines) == len(patterns) and done.stderr == stderr, f"{done}")
    for line, pattern in zip(lines, patterns):
        check(re.fullmatch(pattern, line), f"{line!r} instead of {pattern!r}")


def all_answer(path):
    """addresses that all answer: a line each, exit code 0, nothing on standard error"""
    with listening() as one, listening() as two:
        expect(finish(path, one, two, one), 0, OK.format(one), OK.format(two), OK.format(one))


def reasons(path):
    """a closed port, an invalid name and a full backlog are reported with their reasons in the order of the input, and the exit code is 1"""
    with listening() as open_port, closed() as closed_port, blackhole() as silent:
        expect(finish(path, closed_port, open_port, "a+b:80"), 1, f"{closed_port}: Connection refused",
               OK.format(open_port), r"a\+b:80: .* is neither an IPv4 nor an IPv6 address.*")
        expect(finish(path, "--timeout", "0.3", silent, "--retries", "1", silent), 1, *[f"{silent}: timed out"] * 2)


def standard_input(path):
    """addresses from a pipe, one a line, with empty lines between them"""
    with listening() as one, closed() as two:
        expect(finish(path, lines=f"{one}\n\n  {two}\r\n{one}"), 1,
               OK.format(one), f"{two}: Connection refused", OK.format(one))


def many(path):
    """a thousand addresses, a few at a time, with fewer descriptors than addresses"""
    with listening() as one, closed() as two:
        command = ["sh", "-c", 'ulimit -n 64 && exec "$0" --timeout 3600 --concurrently 8', path]
        done = subprocess.run(command, input=f"{two}\n" * 1000, capture_output=True, text=True, timeout=PATIENCE)
        expect(done, 1, *[f"{two}: Connection refused"] * 1000)
        expect(finish(path, "--concurrently", "1", *[one] * 20), 0, *[OK.format(one)] * 20)


def retries(path):
    """a further attempt finds a server that has started after the first attempt"""
    with socket.socket() as late:
        late.bind(("127.0.0.1", 0))
        address = "127.0.0.1:%d" % late.getsockname()[1]
        with closed() as other:
            # Both first attempts are made before a line is printed.
            with running(path, *FOREVER, "--concurrently", "2", "--retries", "100", "x+y:1", address) as process:
                check(process.stdout.readline().startswith("x+y:1: "), "the first line")
                late.listen()
                check(re.fullmatch(OK.format(address) + "\n", process.stdout.read()), "the second line")
                check(process.wait(PATIENCE) == 1, "the exit code")
            expect(finish(path, "--retries", "2", other), 1, f"{other}: Connection refused")


def progress(path):
    """on a terminal the progress is one line, which is erased at the end"""
    with listening() as one, closed() as two, Terminal() as terminal:
        done = subprocess.run([path, *FOREVER, one, two, one], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=terminal.writer, text=True, timeout=PATIENCE)
        terminal.read()
        check(done.returncode == 1 and done.stdout.count("\n") == 3, f"{done}")
        check(terminal.text.startswith(b"\r\x1b[K0 of 3 checked, 0 failed"), f"{terminal.text}")
        check(b"\r\x1b[K3 of 3 checked, 1 failed" in terminal.text, f"{terminal.text}")
        check(terminal.text.endswith(b"\r\x1b[K") and b"\n" not in terminal.text, f"{terminal.text}")


def interrupted(path):
    """SIGINT stops the checks, the known results are printed, and the exit code is 130"""
    with listening() as one, closed() as two, blackhole() as silent, Terminal() as terminal:
        with running(path, *FOREVER, one, silent, two, silent, one, stderr=terminal.writer) as process:
            terminal.wait_for(b"3 of 5 checked, 1 failed")
            process.send_signal(signal.SIGINT)
            check(process.wait(PATIENCE) == 130, f"the exit code is {process.returncode}")
            lines = process.stdout.read().splitlines()
        terminal.wait_for(b"\r\x1b[Kcheck-addresses: 2 of 5 were not checked\r\n")
        for line, pattern in zip(lines, (OK.format(one), f"{two}: Connection refused", OK.format(one)), strict=True):
            check(re.fullmatch(pattern, line), f"{lines}")


def lost_output(path):
    """a standard output that fails ends the program with an error"""
    with listening() as one, open("/dev/full", "w") as full:
        done = subprocess.run([path, *FOREVER, one], stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, text=True,
                              timeout=PATIENCE)
        check(done.returncode == 71 and "No space left" in done.stderr, f"{done}")


def command_line(path):
    """unknown options, invalid addresses and no address at all exit with 64 and one line on standard error"""
    for arguments, lines in ((["--bogus", "1"], ""), (["--timeout"], ""), (["--timeout", "0", "a:1"], ""),
                             (["--retries", "-1", "a:1"], ""), (["--concurrently", "0", "a:1"], ""),
                             (["127.0.0.1"], ""), (["unix:/tmp/x:1"], ""), (["a:70000"], ""), ([], ""), ([], "\n \n"),
                             ([], "127.0.0.1:1\n\x1b[31m:1\n")):
        done = finish(path, *arguments, lines=lines)
        check(done.returncode == 64 and not done.stdout and done.stderr.startswith("check-addresses: ")
              and done.stderr.count("\n") == 1 and "\x1b" not in done.stderr, f"{arguments}: {done}")


run("check-addresses", [
    all_answer, reasons, standard_input, many, retries, progress, interrupted, lost_output, command_line,
])

"""What the tests of all examples need: a server that is ended whatever happens, clients, and a limit of the whole.

Ports are ephemeral, servers are ended by their process ids, every wait has a limit, and nothing sleeps for a fixed time
in the hope that something has happened by then.
"""
import fcntl
import os
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import termios
import time

# For one wait. Generous: the machine may be busy.
PATIENCE = 30
# For a whole run.
LIMIT = 180


def check(truth, what):
    """Fails the test with this text unless `truth` holds."""
    if not truth:
        raise AssertionError(what)


def skip(why):
    """Prints that something is left out."""
    print(f"skipped: {why}", flush=True)


def program(name, *names):
    """The path of an installed program; without it a line is printed and the answer is None."""
    path = shutil.which(name)
    if path is None:
        skip(f"{name} is not installed{': ' if names else ''}{', '.join(names)}")
    return path


class Server:
    """A running server: use it with `with`."""

    def __init__(self, path, *options):
        command = [path, *options, "--listen", "127.0.0.1:0"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        found = re.fullmatch(r"listening on 127\.0\.0\.1:(\d+)\n", line)
        if not found:
            self.end()
            raise AssertionError(f"the server says {line!r}")
        self.port = int(found.group(1))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        """Kills the process if it runs still."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()

    def signal(self, number):
        self.process.send_signal(number)

    def exit_code(self):
        """Waits until the process ends."""
        return self.process.wait(PATIENCE)

    def connect(self, receive_buffer=None):
        return Client(self.port, receive_buffer)


class Client:
    """A raw socket."""

    def __init__(self, port, receive_buffer=None):
        self.socket = socket.socket()
        self.socket.settimeout(PATIENCE)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.connect(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def send_apart(self, data):
        """Sends, and waits until the server's kernel has all of it."""
        self.send(data)
        wait_until(lambda: self.unacknowledged() == 0, "the server's kernel takes the bytes")

    def unacknowledged(self):
        """The number of bytes that the server's kernel has not taken. See SIOCOUTQ in tcp(7)."""
        return struct.unpack("i", fcntl.ioctl(self.socket, termios.TIOCOUTQ, b"\0" * 4))[0]

    def end(self):
        """Half-closes."""
        self.socket.shutdown(socket.SHUT_WR)

    def reset(self):
        """Closes with a reset instead of an end."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def read(self, count):
        """As many bytes, or fewer if the connection ends before."""
        data = b""
        while len(data) < count:
            piece = self.socket.recv(count - len(data))
            if not piece:
                break
            data += piece
        return data

    def read_to_end(self):
        """All bytes that arrive, and whether the connection ended in order, not with a reset."""
        data = bytearray()
        while True:
            try:
                piece = self.socket.recv(1 << 16)
            except ConnectionResetError:
                return bytes(data), False
            if not piece:
                return bytes(data), True
            data += piece

    def has_input(self, seconds):
        """Whether bytes or the end arrive within that time."""
        return bool(select.select([self.socket], [], [], seconds)[0])

    def is_ended(self):
        """Whether the server ends the connection in order, without sending more."""
        return self.read_to_end() == (b"", True)


def wait_until(condition, what):
    """Waits until the condition is true; fails the test if that takes too long."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"in vain: {what}")
        time.sleep(0.005)


def is_refused(port):
    """Whether no process listens at this port."""
    try:
        socket.create_connection(("127.0.0.1", port), PATIENCE).close()
    except ConnectionRefusedError:
        return True
    return False


def run(name, tests):
    """Runs the tests, given the server's path as the only argument, or else finds the release build; exits with 1 if any failed."""
    path = sys.argv[1] if len(sys.argv) > 1 else os.path.join(
        os.path.dirname(__file__), "..", ".build", "release", name)
    if not os.access(path, os.X_OK):
        sys.exit(f"there is no {path}; run: swift build -c release --package-path Examples")
    signal.signal(signal.SIGALRM, lambda *_: sys.exit(f"not done within {LIMIT} seconds"))
    signal.alarm(LIMIT)
    failed = 0
    for test in tests:
        started = time.monotonic()
        try:
            test(path)
        except (AssertionError, OSError, subprocess.SubprocessError) as error:
            failed += 1
            print(f"FAILED: {test.__doc__}: {type(error).__name__}: {error}", flush=True)
        else:
            print(f"ok: {test.__doc__} ({time.monotonic() - started:.2f} s)", flush=True)
    print(f"{name}: {len(tests) - failed} of {len(tests)} tests passed", flush=True)
    sys.exit(1 if failed else 0)

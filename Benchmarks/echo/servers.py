"""Building, placing and running the servers and clients of the races."""

import os
import re
import resource
import select
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = HERE / ".build"

FLOOR = "floor"
START_SECONDS = 10
STOP_SECONDS = 3


class RaceError(Exception):
    pass


# Building


def build(name, *libraries):
    source, program = HERE / f"{name}.c", BUILD / name
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        BUILD.mkdir(exist_ok=True)
        command = [os.environ.get("CC", "cc"), "-std=c11", "-O2", "-Wall", "-Wextra", "-pthread"]
        try:
            subprocess.run(command + ["-o", str(program), str(source), *libraries], check=True, timeout=120)
        except (OSError, subprocess.SubprocessError) as error:
            raise RaceError(f"cannot build {source.name}: {error}")
    return str(program)


def find_product(name, package=ROOT, *flags):
    """An existing release build."""
    try:
        answer = subprocess.run(
            ["swift", "build", "-c", "release", "--show-bin-path", *flags],
            cwd=package, check=True, timeout=120, stdout=subprocess.PIPE, text=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise RaceError(f"cannot find the release build: {error}")
    program = Path(answer.stdout.strip().splitlines()[-1]) / name
    return str(program) if program.exists() else None


def contestants(only_default=False):
    """The contestants: name -> command. Missing ones are skipped with a line."""
    found = {FLOOR: shlex.quote(build(FLOOR))}

    def add(name, program, how):
        if program:
            found[name] = shlex.quote(program)
        else:
            print(f"without {name}: {how}", file=sys.stderr)

    add("swift-reactor", find_product("echo-server"), "swift build -c release --product echo-server")
    if only_default:
        return found
    for name, product in (("chunks", "chunk-echo"), ("SwiftNIO", "nio-echo")):
        add(name, find_product(product, ROOT / "Benchmarks"),
            f"swift build --package-path Benchmarks -c release --product {product}")
    try:
        add("libuv", build("uv", "-luv"), "")
    except RaceError:
        print("without libuv: install libuv1-dev", file=sys.stderr)
    return found


# A race as a program


def run(name, main):
    """Runs `main` and exits with the status that it returns; with 2 if there was no race."""
    # So that the servers are ended in this case too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(main())
    except RaceError as error:
        print(f"{name}: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


def raise_file_limit(needed):
    """Raises it to the maximum; servers and clients inherit it."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise RaceError(f"{needed} open files are needed, and {hard} allowed")


# CPUs


def cpus_of_core(cpu):
    """The CPUs that share a core with this one, itself included."""
    try:
        text = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").read_text()
        cpus = set()
        for part in text.strip().split(","):
            first, _, last = part.partition("-")
            cpus.update(range(int(first), int(last or first) + 1))
        return cpus
    except (OSError, ValueError):
        return {cpu}


def choose_cpus():
    """One CPU for the server and one for the load, on two cores if possible."""
    available = sorted(os.sched_getaffinity(0))
    if len(available) < 2:
        return None, None
    server = available[-1]
    others = [cpu for cpu in available if cpu != server]
    apart = [cpu for cpu in others if cpu not in cpus_of_core(server)]
    return server, (apart or others)[0]


def pinning(cpu):
    # Before exec, so that threads the program starts inherit it.
    return None if cpu is None else lambda: os.sched_setaffinity(0, {cpu})


# Servers


class Server:
    """A running server. Use it with `with`, which ends it in any case."""

    def __init__(self, name, command, cpu):
        self.name = name
        self.output = tempfile.TemporaryFile()
        arguments = shlex.split(command) + self.options()
        try:
            self.process = subprocess.Popen(
                arguments, stdin=subprocess.DEVNULL, stdout=self.output,
                stderr=subprocess.STDOUT, preexec_fn=pinning(cpu))
        except (OSError, subprocess.SubprocessError) as error:
            self.output.close()
            raise RaceError(f"{name}: cannot start: {error}")
        try:
            self.port = self.wait_for_port()
            self.check_owner()
        except BaseException:
            self.stop()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def options(self):
        """The options that make the server listen on a free port."""
        return ["--listen", "127.0.0.1:0"]

    def read_output(self):
        size = os.fstat(self.output.fileno()).st_size
        return os.pread(self.output.fileno(), min(size, 4096), 0).decode(errors="replace")

    def wait_for_port(self):
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            ended = self.process.poll() is not None
            match = re.search(r"^listening on 127\.0\.0\.1:(\d+)\s*\n", self.read_output(), re.M)
            if match and not ended:
                return int(match.group(1))
            if ended:
                raise RaceError(f"{self.name}: ended at once: {self.read_output().strip()!r}")
            time.sleep(0.01)
        raise RaceError(f"{self.name}: did not say where it listens: {self.read_output()!r}")

    def check_owner(self):
        """The listening socket must belong to the process whose CPU time is
        measured, not to another program or to a child of a wrapper script."""
        address = f"0100007F:{self.port:04X}" if sys.byteorder == "little" else f"7F000001:{self.port:04X}"
        inodes = set()
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[1] == address and fields[3] == "0A":
                inodes.add(f"socket:[{fields[9]}]")
        directory = f"/proc/{self.process.pid}/fd"
        for fd in os.listdir(directory):
            try:
                if os.readlink(f"{directory}/{fd}") in inodes:
                    return
            except OSError:
                pass
        raise RaceError(f"{self.name}: port {self.port} is not listened on by process {self.process.pid}")

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                print(f"{self.name}: did not end on SIGTERM, killed", file=sys.stderr)
                self.process.kill()
                self.process.wait()
        elif self.process.returncode != 0:
            print(f"{self.name}: ended by itself with {self.process.returncode}: "
                  f"{self.read_output().strip()!r}", file=sys.stderr)
        self.output.close()


def check_echo(name, command, cpu, total=24 << 20):
    """One big transfer by a client that reads only when nothing more can be
    written, so that the server has partial writes. All bytes must come back,
    then the end of the stream."""
    data = (b"".join(i.to_bytes(4, "little") for i in range(1 << 16)) * (total // (1 << 18) + 1))[:total]
    with Server(name, command, cpu) as server, socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 10)
        client.settimeout(5)
        client.connect(("127.0.0.1", server.port))
        client.setblocking(False)
        sent, received, reading, ended = 0, bytearray(), False, False
        view = memoryview(data)
        deadline = time.monotonic() + 30
        try:
            while not ended:
                if time.monotonic() > deadline:
                    raise RaceError(f"{name}: {len(received)} of {total} bytes came back in 30 s")
                readable, writable, _ = select.select(
                    [client] if reading else [], [client] if sent < total else [], [], 0.2)
                if writable:
                    sent += client.send(view[sent:sent + (1 << 20)])
                    if sent == total:
                        client.shutdown(socket.SHUT_WR)
                else:
                    reading = True
                if readable:
                    piece = client.recv(1 << 20)
                    received += piece
                    ended = not piece
        except OSError as error:
            raise RaceError(f"{name}: connection lost after {len(received)} of {total} bytes: {error}")
        if received != data:
            raise RaceError(f"{name}: does not echo: {len(received)} of {total} bytes came back"
                            + (", altered" if len(received) == total else ""))



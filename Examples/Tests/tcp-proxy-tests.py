#!/usr/bin/env python3
"""Runs the tcp-proxy between clients and servers that are plain sockets: tcp-proxy-tests.py [PATH-OF-TCP-PROXY]

With the http-server beside it as backend, and with wrk where it is installed.
"""
import os
import re
import select
import signal
import socket
import struct
import subprocess
import threading
import time

from servers import PATIENCE, Server, check, is_refused, program, run, wait_until

# Nothing that a test does not want to happen happens within its time.
CALM = ["--check-interval", "3600"]


class Backend:
    """A listening socket, and `serve` with each of its connections on a thread."""

    def __init__(self, serve, port=0, backlog=128, receive_buffer=None):
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if receive_buffer:
            self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.listener.bind(("127.0.0.1", port))
        self.listener.listen(backlog)
        self.port = self.listener.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self.option = ["--backend", self.address]
        self.accepted = 0
        self.serve = serve
        if serve:
            threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.accepted += 1
            connection.settimeout(PATIENCE)
            threading.Thread(target=self.run, args=(connection,), daemon=True).start()

    def run(self, connection):
        try:
            with connection:
                self.serve(connection)
        except OSError:
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # An accept that waits does not see a close, but a shutdown.
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()


def unused_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def echo(connection):
    while data := connection.recv(1 << 16):
        connection.sendall(data)


def named(name):
    """Answers every byte with its name."""
    def serve(connection):
        while data := connection.recv(1 << 16):
            connection.sendall(name * len(data))
    return serve


def reset(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def lines(proxy):
    """The lines that the proxy prints after the first, as they are printed."""
    found = []

    def read():
        for line in proxy.process.stdout:
            found.append(line.rstrip("\n"))
    threading.Thread(target=read, daemon=True).start()
    return found


def ask(client, question=b"?"):
    client.send(question)
    return client.read(1)


# What passes.

def passes(path):
    """bytes and ends of stream pass unchanged in both directions"""
    def count(connection):
        length = 0
        while data := connection.recv(1 << 16):
            length += len(data)
        connection.sendall(b"%d" % length)

    blob = os.urandom(1 << 22)
    with Backend(echo) as echoing, Server(path, *echoing.option, *CALM) as proxy, proxy.connect() as client:
        sender = threading.Thread(target=lambda: (client.send(blob), client.end()))
        sender.start()
        check(client.read_to_end() == (blob, True), "four mebibytes return as they were sent")
        sender.join()
    with Backend(count) as counting, Server(path, *counting.option, *CALM) as proxy, proxy.connect() as client:
        client.send(b"x" * 100_000)
        client.end()
        check(client.read_to_end() == (b"100000", True), "the answer arrives that the client's end has caused")


def backend_speaks_first(path):
    """a backend may speak first, and end first"""
    def greet(connection):
        connection.sendall(b"220 hello\r\n")
        connection.shutdown(socket.SHUT_WR)
        check(connection.recv(100) == b"late", "the client may still send")
        check(connection.recv(100) == b"", "and end")
        done.set()

    done = threading.Event()
    with Backend(greet) as greeting, Server(path, *greeting.option, *CALM) as proxy, proxy.connect() as client:
        check(client.read_to_end() == (b"220 hello\r\n", True), "the greeting and the end")
        client.send(b"late")
        client.end()
        check(done.wait(PATIENCE), "the backend has seen all")


def resets(path):
    """a reset passes in both directions, and a part of an answer does not look like a whole one"""
    def half(connection):
        connection.recv(100)
        connection.sendall(b"half")
        if connection.recv(100) == b"go on":
            reset(connection)

    with Backend(half) as backend, Server(path, *backend.option, *CALM) as proxy, proxy.connect() as client:
        client.send(b"?")
        check(client.read(4) == b"half", "the first half")
        client.send(b"go on")
        check(client.read_to_end() == (b"", False), "the client is reset")

    def note(connection):
        connection.recv(100)
        connection.sendall(b"!")
        try:
            outcomes.append(connection.recv(100))
        except ConnectionResetError:
            outcomes.append("reset")

    outcomes = []
    with Backend(note) as backend, Server(path, *backend.option, *CALM) as proxy:
        client = proxy.connect()
        check(ask(client) == b"!", "an answer")
        client.reset()
        wait_until(lambda: outcomes == ["reset"], f"the backend is reset: {outcomes}")


def backpressure(path):
    """a backend or a client that does not read slows the other side down, and the proxy's memory stays bounded"""
    def memory():
        status = open(f"/proc/{proxy.process.pid}/status").read()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1))

    def fill(*connections):
        """Sends to all until none takes anything for a while, and returns how much each took."""
        sent = dict.fromkeys(connections, 0)
        for connection in connections:
            connection.setblocking(False)
        while ready := select.select([], connections, [], 0.3)[1]:
            for connection in ready:
                try:
                    sent[connection] += connection.send(b"x" * 65_536)
                except BlockingIOError:
                    pass
        for connection in connections:
            connection.settimeout(PATIENCE)
        return list(sent.values())

    def late(connection):
        if connection.recv(1) == b"f":
            filled.extend(fill(connection))
            filling.set()
            connection.shutdown(socket.SHUT_WR)
            return
        reading.wait(PATIENCE)
        length = 1
        while data := connection.recv(1 << 16):
            length += len(data)
        connection.sendall(b"%d" % length)

    reading, filling, filled = threading.Event(), threading.Event(), []
    with Backend(late, receive_buffer=8192) as backend, Server(path, *backend.option, *CALM) as proxy:
        clients = [proxy.connect() for _ in range(8)]
        before = memory()
        sent = fill(*[client.socket for client in clients])
        growth = memory() - before
        check(growth < 8 * 1024, f"eight clients have sent {sum(sent)} bytes; the proxy has grown by {growth} KiB")
        reading.set()
        for client, count in zip(clients, sent):
            client.end()
            check(client.read_to_end() == (b"%d" % count, True), "every byte arrives")
        with proxy.connect(receive_buffer=8192) as client:
            before = memory()
            client.send(b"f")
            check(filling.wait(PATIENCE), "the backend's writes stop")
            growth = memory() - before
            check(growth < 2 * 1024, f"the backend has sent {filled} bytes; the proxy has grown by {growth} KiB")
            check(len(client.read_to_end()[0]) == filled[0], "every byte arrives")


# Where it goes.

def balancing(path):
    """least connections and round robin choose as they say"""
    with Backend(named(b"a")) as a, Backend(named(b"b")) as b:
        with Server(path, *a.option, *b.option, *CALM) as proxy:
            clients = [proxy.connect() for _ in range(6)]
            names = [ask(client) for client in clients]
            check(sorted(names) == [b"a"] * 3 + [b"b"] * 3, f"three each: {names}")
            for client, name in zip(clients, names):
                if name == b"a":
                    client.end()
                    check(client.is_ended(), "the client ends")
            # The proxy notes the end of a connection in the turn in which it passes that on.
            again = [proxy.connect() for _ in range(3)]
            check([ask(client) for client in again] == [b"a"] * 3, "those that are free")
        with Server(path, *a.option, *b.option, "--balance", "round-robin", *CALM) as proxy:
            names = []
            for _ in range(6):
                with proxy.connect() as client:
                    names.append(ask(client))
            check(names in ([b"a", b"b"] * 3, [b"b", b"a"] * 3), f"in turn: {names}")


def dead_backend(path):
    """a backend that refuses fails no client, is down after three failures, and up after two successful checks"""
    port = unused_port()
    options = ["--backend", f"127.0.0.1:{port}", "--check-interval", "0.05", "--balance", "round-robin"]
    with Backend(named(b"b")) as b, Server(path, *options, *b.option) as proxy:
        printed = lines(proxy)
        for _ in range(10):
            with proxy.connect() as client:
                check(ask(client) == b"b", "the other one answers")
        down = f"backend 127.0.0.1:{port} is down: "
        wait_until(lambda: printed and printed[0].startswith(down), f"the proxy says {down}: {printed}")
        with Backend(named(b"a"), port):
            wait_until(lambda: printed[1:] == [f"backend 127.0.0.1:{port} is up"], f"and that it is up again: {printed}")
            names = set()
            for _ in range(2):
                with proxy.connect() as client:
                    names.add(ask(client))
            check(names == {b"a", b"b"}, f"both serve: {names}")


def all_dead(path):
    """without a backend clients are reset; they are served again as soon as one is back, checked or not"""
    port = unused_port()
    with Server(path, "--backend", f"127.0.0.1:{port}", *CALM) as proxy:
        for _ in range(5):
            try:
                with proxy.connect() as client:
                    check(client.read_to_end() == (b"", False), "the client is reset")
            except ConnectionResetError:
                pass  # A reset may arrive while the socket is still connecting.
        with Backend(named(b"a"), port), proxy.connect() as client:
            check(ask(client) == b"a", "a backend that counts as down is tried when no other is left")


def unsent(path):
    """a client that has sent nothing is connected to the next backend when the first resets or ends"""
    def leave(connection):
        if leaving.accepted % 2:
            reset(connection)

    with Backend(leave) as leaving, Backend(named(b"b")) as b:
        with Server(path, *leaving.option, *b.option, "--balance", "round-robin", "--fall", "100", *CALM) as proxy:
            clients = []
            while leaving.accepted < 4:
                clients.append(proxy.connect())
                wait_until(lambda: leaving.accepted + b.accepted >= len(clients), "each is passed on")
            wait_until(lambda: b.accepted == len(clients), f"all of them to the one that stays: {b.accepted}")
            check([ask(client) for client in clients] == [b"b"] * len(clients), "which serves them")


def clients_at_fault(path):
    """clients that reset, stay silent or are ended by the drain do not count against a backend"""
    def wait(connection):
        try:
            connection.recv(1)
        finally:
            ended.append(1)

    for way, options in ("reset", []), ("silence", ["--idle-timeout", "0.2"]), ("drain", []):
        ended = []
        with Backend(wait) as backend, Server(path, *backend.option, *options, *CALM) as proxy:
            clients = [proxy.connect() for _ in range(3)]
            wait_until(lambda: backend.accepted == 3, "each has a connection to the backend")
            if way == "reset":
                for client in clients:
                    client.reset()
            if way != "drain":
                wait_until(lambda: len(ended) == 3, "they are ended")
            proxy.signal(signal.SIGTERM)
            check(proxy.exit_code() == 0, "the exit code")
            printed = proxy.process.stdout.read()
            check(printed == "", f"{way}: the backend stays up: {printed}")


def slow_connect(path):
    """a backend that does not accept is replaced after the time-out, and the next one gets the client's bytes"""
    with Backend(None, backlog=0) as hole, Backend(named(b"b")) as b:
        fillers = [socket.create_connection(("127.0.0.1", hole.port), PATIENCE) for _ in range(1)]
        options = ["--connect-timeout", "0.2", "--balance", "round-robin"]
        with Server(path, *hole.option, *b.option, *options, *CALM) as proxy:
            for _ in range(4):
                with proxy.connect() as client:
                    check(ask(client) == b"b", "the other one answers")
        for filler in fillers:
            filler.close()


def idle_timeout(path):
    """a connection that is silent is ended, and one that speaks in one direction is not"""
    def ticks(connection):
        kind = connection.recv(1)
        if kind != b"t":
            connection.recv(1)
            return
        while not stopping.wait(0.05):
            connection.sendall(b".")
        connection.sendall(b"!")

    stopping = threading.Event()
    with Backend(ticks) as backend, Server(path, *backend.option, "--idle-timeout", "1.2", *CALM) as proxy:
        # The client that receives is the first to send its last byte.
        with proxy.connect() as client, proxy.connect() as silent, proxy.connect() as mute:
            client.send(b"t")
            check(client.read(1) == b".", "the first tick")
            silent.send(b"s")
            silent.read_to_end()
            mute.read_to_end()
            stopping.set()
            ticked, is_ended = client.read_to_end()
            check(ticked.endswith(b".!") and is_ended, "the ticks outlast the others")


def gone_while_connecting(path):
    """a client that leaves cancels the connect to its backend"""
    with Backend(None, backlog=0) as hole:
        filler = socket.create_connection(("127.0.0.1", hole.port), PATIENCE)
        with Server(path, *hole.option, "--connect-timeout", "20", *CALM) as proxy:
            folder = f"/proc/{proxy.process.pid}/fd"

            def sockets():
                found = 0
                for name in os.listdir(folder):
                    try:
                        found += os.readlink(f"{folder}/{name}").startswith("socket:")
                    except FileNotFoundError:
                        pass
                return found

            before = sockets()
            client = proxy.connect()
            wait_until(lambda: sockets() == before + 2, "client and connect")
            client.reset()
            wait_until(lambda: sockets() == before, "neither is left")
        filler.close()


# The end.

def drain(path):
    """SIGTERM ends clients that have sent nothing, lets a conversation finish, and refuses new ones"""
    with Backend(echo) as backend, Server(path, *backend.option, *CALM) as proxy:
        with proxy.connect() as client, proxy.connect() as silent:
            check(ask(client) == b"?", "an answer")
            wait_until(lambda: backend.accepted == 2, "the silent one is connected, too")
            proxy.signal(signal.SIGTERM)
            check(silent.is_ended(), "the silent one ends")
            wait_until(lambda: is_refused(proxy.port), "a new one is refused")
            check(ask(client, b"!") == b"!", "the conversation goes on")
            client.end()
            check(client.is_ended(), "until the client ends it")
        check(proxy.exit_code() == 0, "the exit code")


def drain_timeout(path):
    """remaining connections are reset at the drain's deadline, or at once by a second signal"""
    for options, signals in (["--drain-timeout", "0.2"], 1), (["--drain-timeout", "3600"], 2):
        with Backend(echo) as backend, Server(path, *backend.option, *options, *CALM) as proxy:
            with proxy.connect() as client:
                check(ask(client) == b"?", "an answer")
                proxy.signal(signal.SIGTERM)
                wait_until(lambda: is_refused(proxy.port), "the drain has begun")
                if signals == 2:
                    time.sleep(0.1)  # until then a second signal counts as a copy of the first
                    proxy.signal(signal.SIGTERM)
                check(client.read_to_end() == (b"", False), "the client is reset")
            check(proxy.exit_code() == 0, "the exit code")


def command_line(path):
    """a wrong command line is refused with 64 and one line"""
    for options in ([], ["--backend", "nowhere"], ["--backend", "127.0.0.1:1", "--balance", "best"],
                    ["--backend", "127.0.0.1:1", "--fall", "0"], ["--backend"], ["--what", "1"]):
        done = subprocess.run([path, *options], capture_output=True, text=True, timeout=PATIENCE)
        check(done.returncode == 64 and done.stderr.startswith("tcp-proxy: ") and done.stderr.count("\n") == 1,
              f"{options}: {done.returncode} {done.stderr!r}")


# Under load.

def http_server(path):
    """The http-server that was built beside the proxy."""
    return os.path.join(os.path.dirname(path), "http-server")


class Load:
    """Clients that make a request each with a connection of its own, one after the other."""

    def __init__(self, port, threads=8):
        self.port, self.threads = port, []
        self.answered, self.lost, self.stopping = [], [], False
        for _ in range(threads):
            self.threads.append(threading.Thread(target=self.run))
            self.threads[-1].start()

    def run(self):
        while not self.stopping:
            begun = time.monotonic()
            try:
                with socket.create_connection(("127.0.0.1", self.port), PATIENCE) as client:
                    client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                    answer = b""
                    while data := client.recv(1 << 16):
                        answer += data
                whole = answer.startswith(b"HTTP/1.1 200 ") and answer.endswith(b"Hello, world!\n")
                (self.answered if whole else self.lost).append(begun)
            except OSError:
                self.lost.append(begun)

    def stop(self):
        self.stopping = True
        for thread in self.threads:
            thread.join(PATIENCE)


def killed(path):
    """when a backend is killed under load, only requests that were already sent to it are lost"""
    with Server(http_server(path)) as stays, Server(http_server(path)) as dies:
        backends = ["--backend", f"127.0.0.1:{dies.port}", "--backend", f"127.0.0.1:{stays.port}"]
        with Server(path, *backends, *CALM) as proxy:
            load = Load(proxy.port)
            wait_until(lambda: len(load.answered) > 500, "requests are answered")
            before = len(load.answered)
            dies.signal(signal.SIGKILL)
            dies.exit_code()
            dead = time.monotonic()
            wait_until(lambda: len(load.answered) > before + 1000, "requests are answered after the kill")
            load.stop()
            late = [begun for begun in load.lost if begun > dead]
            check(not late, f"{len(late)} requests that began after the backend's end are lost")
            check(len(load.lost) <= 2 * len(load.threads), f"{len(load.lost)} are lost, more than were under way")
            print(f"    killed: {len(load.answered)} requests answered, {len(load.lost)} lost that the backend had been sent",
                  flush=True)


def wrk(path):
    """wrk through the proxy sees no error, and after a kill only errors of connections to the dead backend"""
    wrk = program("wrk")
    if not wrk:
        return
    for kills in False, True:
        with Server(http_server(path)) as stays, Server(http_server(path)) as dies:
            backends = ["--backend", f"127.0.0.1:{dies.port}", "--backend", f"127.0.0.1:{stays.port}"]
            with Server(path, *backends, *CALM) as proxy:
                command = [wrk, "-t1", "-c20", "-d2", f"http://127.0.0.1:{proxy.port}/"]
                running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
                if kills:
                    descriptors = f"/proc/{dies.process.pid}/fd"
                    wait_until(lambda: len(os.listdir(descriptors)) >= 15, "the backend has its half of the clients")
                    dies.signal(signal.SIGKILL)
                output = running.communicate(timeout=PATIENCE)[0]
        check(running.returncode == 0 and "Requests/sec" in output and "Non-2xx" not in output, output)
        check(kills or "errors" not in output, output)
        found = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", output)
        connect, read, write, timeout = map(int, found.groups()) if found else (0, 0, 0, 0)
        check(connect == 0 and timeout == 0 and read + write <= 20, output)
        requests = re.search(r"(\d+) requests in", output).group(1)
        print(f"    wrk{', killed' if kills else ''}: {requests} requests answered, {read + write} connections lost", flush=True)


run("tcp-proxy", [
    passes, backend_speaks_first, resets, backpressure, balancing, dead_backend, all_dead, unsent, clients_at_fault, slow_connect,
    idle_timeout, gone_while_connecting, drain, drain_timeout, command_line, killed, wrk,
])

#!/usr/bin/env python3
"""Runs an echo server and talks to it as its users would: smoke.py PATH-OF-ECHO-SERVER

netcat for a line, asyncio streams for 20 connections of 1 MB each that half-close, the signals, the exit code.
The server listens on a free port, is ended by its own process id, and everything has a time limit.
"""
import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
import threading

CONNECTIONS = 20
SIZE = 1_000_000
PATIENCE = 30


def check(truth, what):
    if not truth:
        raise AssertionError(what)
    print(f"ok: {what}", flush=True)


def netcat(port):
    path = shutil.which("nc")
    usage = subprocess.run([path, "-h"], capture_output=True, text=True).stderr if path else ""
    if "OpenBSD" not in usage:
        print("skipped: nc is not OpenBSD's netcat, which alone ends its side with -N", flush=True)
        return
    reply = subprocess.run(
        [path, "-N", "127.0.0.1", str(port)], input=b"hello\n", capture_output=True, timeout=PATIENCE, check=True)
    check(reply.stdout == b"hello\n", "nc gets its line back")


async def one_connection(port):
    sent = os.urandom(SIZE)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)

    async def send():
        writer.write(sent)
        await writer.drain()
        writer.write_eof()

    _, received = await asyncio.gather(send(), reader.read())
    writer.close()
    await writer.wait_closed()
    return sent == received


async def streams(port):
    same = await asyncio.wait_for(
        asyncio.gather(*(one_connection(port) for _ in range(CONNECTIONS))), PATIENCE)
    check(all(same), f"{CONNECTIONS} connections get {SIZE} bytes each back, and then the end")


def ends(server, how):
    server.send_signal(how)
    return server.wait(PATIENCE)


def start(path, *options):
    return subprocess.Popen(
        [path, "--listen", "127.0.0.1:0", *options],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def port_of(server):
    line = server.stdout.readline().strip()
    found = re.fullmatch(r"listening on 127\.0\.0\.1:(\d+)", line)
    check(found, f"the server says '{line}'")
    return int(found.group(1))


def serves_and_drains(server):
    port = port_of(server)
    netcat(port)
    asyncio.run(streams(port))
    check(ends(server, signal.SIGTERM) == 0, "SIGTERM drains and ends with 0")
    rest = server.stdout.read()
    check(re.search(r"^totals: 0 open, \d+ connections \(peak \d+, 0 failed\), \d+ bytes", rest, re.MULTILINE),
          f"the last line is '{rest.strip()}'")
    errors = server.stderr.read()
    check(errors == "", f"nothing on standard error {errors!r}")


def taken_port(path, server):
    port = port_of(server)
    second = subprocess.run([path, "--listen", f"127.0.0.1:{port}"], capture_output=True, timeout=PATIENCE)
    check(second.returncode == 69, "a port that is taken ends with 69")
    usage = subprocess.run([path, "--bogus"], capture_output=True, timeout=PATIENCE)
    check(usage.returncode == 64, "an unknown option ends with 64")
    check(ends(server, signal.SIGINT) == 0, "SIGINT without connections ends with 0")


def libraries(path):
    loaded = subprocess.run(["ldd", path], capture_output=True, text=True, timeout=PATIENCE).stdout
    check("Foundation" not in loaded, "nothing of Foundation is loaded")


def with_server(path, body):
    server = start(path)
    # Whatever happens, reading from the server ends.
    guard = threading.Timer(2 * PATIENCE, server.kill)
    guard.start()
    try:
        body(server)
    finally:
        guard.cancel()
        if server.poll() is None:
            server.kill()
            server.wait()


def main():
    path = sys.argv[1]
    with_server(path, serves_and_drains)
    with_server(path, lambda server: taken_port(path, server))
    libraries(path)


if __name__ == "__main__":
    main()

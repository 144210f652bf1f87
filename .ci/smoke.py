#!/usr/bin/env python3
"""Runs an echo server and talks to it as its users would: smoke.py PATH-OF-ECHO-SERVER

asyncio streams for 20 connections of 1 MB each that half-close, the signals, the exit code; a Unix socket, the metrics by Python's
HTTP client. The server listens on a free port, is ended by its own process id, and everything has a time limit.
"""
import asyncio
import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading

CONNECTIONS = 20
SIZE = 1_000_000
PATIENCE = 30


def check(truth, what):
    if not truth:
        raise AssertionError(what)
    print(f"ok: {what}", flush=True)


async def one_connection(place):
    sent = os.urandom(SIZE)
    if isinstance(place, str):
        reader, writer = await asyncio.open_unix_connection(place)
    else:
        reader, writer = await asyncio.open_connection("127.0.0.1", place)

    async def send():
        writer.write(sent)
        await writer.drain()
        writer.write_eof()

    _, received = await asyncio.gather(send(), reader.read())
    writer.close()
    await writer.wait_closed()
    return sent == received


async def streams(place):
    same = await asyncio.wait_for(
        asyncio.gather(*(one_connection(place) for _ in range(CONNECTIONS))), PATIENCE)
    check(all(same), f"{CONNECTIONS} connections get {SIZE} bytes each back, and then the end")


def ends(server, how):
    server.send_signal(how)
    return server.wait(PATIENCE)


def errors_of(server):
    """Its error output, without reports of a slow machine."""
    return [line for line in server.stderr.read().splitlines() if " held the loop for " not in line]


def start(command):
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def port_of(server, what="listening on"):
    line = server.stdout.readline().strip()
    found = re.fullmatch(what + r" 127\.0\.0\.1:(\d+)", line)
    check(found, f"the server says '{line}'")
    return int(found.group(1))


def serves_and_drains(server):
    port = port_of(server)
    asyncio.run(streams(port))
    check(ends(server, signal.SIGTERM) == 0, "SIGTERM drains and ends with 0")
    rest = server.stdout.read()
    check(re.search(r"^totals: 0 open, \d+ connections \(peak \d+, 0 failed\), \d+ bytes", rest, re.MULTILINE),
          f"the last line is '{rest.strip()}'")
    errors = errors_of(server)
    check(errors == [], f"nothing on standard error {errors!r}")


def unix_and_metrics(folder, server):
    path = os.path.join(folder, "echo.sock")
    check(server.stdout.readline() == f"listening on unix:{path}\n", "the server listens on a Unix socket")
    port = port_of(server, "metrics on")
    asyncio.run(streams(path))
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request("GET", "/metrics")
    answer = connection.getresponse()
    text = answer.read().decode()
    check(answer.status == 200 and "version=0.0.4" in answer.getheader("Content-Type"), "the metrics are answered")
    check(f"\necho_received_bytes_total {CONNECTIONS * SIZE}\n" in text, "they count every byte")
    connection.request("GET", "/")
    check(connection.getresponse().status == 404, "what else is asked for is not found")
    check(ends(server, signal.SIGTERM) == 0 and not os.path.exists(path), "the path goes with the server")
    check(errors_of(server) == [], "nothing on standard error")


def with_server(begin, body):
    server = begin()
    # Ends reading from the server in any case.
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
    with_server(lambda: start([path, "--listen", "127.0.0.1:0"]), serves_and_drains)
    with tempfile.TemporaryDirectory() as folder:
        place = "unix:" + os.path.join(folder, "echo.sock")
        with_server(lambda: start([path, "--listen", place, "--metrics", "127.0.0.1:0"]),
                    lambda server: unix_and_metrics(folder, server))


if __name__ == "__main__":
    main()

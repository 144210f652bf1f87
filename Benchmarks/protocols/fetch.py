#!/usr/bin/env python3
"""Races the HTTP client against curl's library and AsyncHTTPClient: the CPU time of the client's process for one GET.

    swift build -c release --package-path Benchmarks --product fetch-loop
    swift build -c release --package-path Benchmarks --product ahc-fetch
    Benchmarks/protocols/fetch.py

The server is nginx, on another processor. In each round all clients run, one right after the other; every other round takes them
in the reversed order. Ratios are of one round; printed are their median and range. Needs nginx and libcurl4-openssl-dev. The exit
status is 0 if all was measured or if something is not installed, 1 if a target is missed, and 2 if there was no race.
"""
import argparse
import shlex
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measuring import RaceError, are_installed, choose_cpus, columns, pinning, product_command, ratio_text, run

OURS, CURL, AHC = "fetch-loop", "curl", "ahc-fetch"
# The maximum CPU time, as a fraction of theirs.
TARGETS = {CURL: 1.3, AHC: 0.6}
CONFIGURATION = """
daemon off; master_process off; pid {folder}/pid; error_log {folder}/log;
events {{}}
http {{
  access_log off; keepalive_requests 1000000000;
  client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
  uwsgi_temp_path {folder}; scgi_temp_path {folder};
  server {{ listen 127.0.0.1:{port}; location = / {{ default_type text/plain; return 200 "Hello, world!\\n"; }} }}
}}
"""


def start_server(folder, cpu):
    """nginx, and the port on which it listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "conf").write_text(CONFIGURATION.format(folder=folder, port=port))
    server = subprocess.Popen(["nginx", "-p", folder, "-c", folder / "conf", "-e", folder / "log"], preexec_fn=pinning(cpu))
    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.1", port), 10).close()
            return server, port
        except OSError:
            time.sleep(0.05)
    server.kill()
    raise RaceError(f"nginx does not listen: {(folder / 'log').read_text()}")


def measure(command, port, requests, concurrency, cpu):
    """Microseconds of CPU time for one request, and requests per second."""
    done = subprocess.run(shlex.split(command) + [f"http://127.0.0.1:{port}/", str(requests), str(concurrency)],
                          capture_output=True, text=True, timeout=300, preexec_fn=pinning(cpu))
    words = done.stdout.split()
    if done.returncode != 0 or words[:1] != ["RESULT"]:
        raise RaceError(f"{command}: {(done.stdout + done.stderr).strip()[-400:]!r}")
    count, used, wall = map(int, words[1:])
    return used / count / 1000, count / wall * 1e9


def compile_curl(folder):
    source = Path(__file__).resolve().with_name("curl.c")
    done = subprocess.run(["cc", "-O2", "-o", folder / "curl", source, "-lcurl"], capture_output=True, text=True)
    if done.returncode != 0:
        print(f"skipped: curl's library does not compile: {done.stderr.splitlines()[:1]}")
        return {}
    return {CURL: shlex.quote(str(folder / "curl"))}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--concurrency", type=lambda text: [int(number) for number in text.split(",")], default=[1, 16])
    parser.add_argument("--no-pin", action="store_true", help="do not bind the server and the clients to processors")
    arguments = parser.parse_args()
    if not are_installed("nginx", "cc"):
        return 0
    server_cpu, client_cpu = (None, None) if arguments.no_pin else choose_cpus()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        clients = {OURS: product_command(OURS, "Benchmarks"), AHC: product_command(AHC, "Benchmarks")} | compile_curl(folder)
        samples = {(client, number): [] for client in clients for number in arguments.concurrency}
        server, port = start_server(folder, server_cpu)
        try:
            for number in range(arguments.rounds):
                for concurrency in arguments.concurrency:
                    for client in list(clients) if number % 2 == 0 else list(reversed(clients)):
                        samples[client, concurrency].append(
                            measure(clients[client], port, arguments.requests, concurrency, client_cpu))
                print(f"round {number + 1} of {arguments.rounds}", file=sys.stderr)
        finally:
            server.kill()
            server.wait()
    print(f"{'at once':>7} {'beside':<10} {'CPU µs ours':>12} {'theirs':>8} {'ratio':>19}  {'requests/s':>10} {'theirs':>8}")
    misses = 0
    for concurrency in arguments.concurrency:
        for client in clients:
            if client == OURS:
                continue
            mine, theirs = samples[OURS, concurrency], samples[client, concurrency]
            cpu, their_cpu, ratios = columns(mine, theirs, 0)
            rate, their_rate, _ = columns(mine, theirs, 1)
            verdict = "OK" if statistics.median(ratios) <= TARGETS[client] else "MISS"
            misses += verdict == "MISS"
            print(f"{concurrency:>7} {client:<10} {cpu:>12.2f} {their_cpu:>8.2f} {ratio_text(ratios):>19}  {rate:>10.0f} "
                  f"{their_rate:>8.0f}  CPU {verdict} ({TARGETS[client]})")
    return min(misses, 1)


if __name__ == "__main__":
    run("fetch.py", main)

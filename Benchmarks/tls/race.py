#!/usr/bin/env python3
"""Races http-server with TLS beside nginx, both with one thread, one certificate and one cipher.

    race.py [--rounds 5] [--seconds 3] [--key ecdsa|rsa] [--server PATH-OF-HTTP-SERVER]

Needs nginx, openssl and wrk. Each round runs both servers one after the other, in an order that alternates, and each of
them with three loads:

    full      two openssl s_time -new: a connection for each request, with a whole handshake
    resumed   two openssl s_time -reuse: the same with a resumed session
    requests  wrk: requests over 16 connections that stay open

Printed are the ratios of http-server to nginx within a round: median, lowest, highest. The server has its own
processor, if there are several and other programs leave it free. The rate of a load depends on other work on the machine, and, if a
client takes longer than the server, on the client; the server's processor time per connection or request depends on neither.
"""
import argparse
import os
import re
import signal
import socket
import statistics
import subprocess
import tempfile
import time

CONFIGURATION = """
daemon off;
worker_processes 1;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_body_temp_path {folder};
    proxy_temp_path {folder};
    fastcgi_temp_path {folder};
    uwsgi_temp_path {folder};
    scgi_temp_path {folder};
    keepalive_requests 100000000;
    server {{
        listen 127.0.0.1:{port} ssl backlog=1024;
        ssl_certificate {folder}/server.pem;
        ssl_certificate_key {folder}/server.key;
        ssl_protocols TLSv1.2 TLSv1.3;
        ssl_ciphers {cipher};
        ssl_session_tickets on;
        location / {{ default_type text/plain; return 200 "Hello, world!\\n"; }}
    }}
}}
"""
TICKS = os.sysconf("SC_CLK_TCK")
CIPHERS = {"1.2": "ECDHE-{}-AES256-GCM-SHA384", "1.3": "TLS_AES_256_GCM_SHA384"}
PROCESSORS = sorted(os.sched_getaffinity(0))


def make_certificate(folder, kind):
    key = ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"] if kind == "ecdsa" else ["rsa:2048"]
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", *key, "-nodes", "-keyout", f"{folder}/server.key", "-out",
         f"{folder}/server.pem", "-days", "2", "-subj", "/CN=localhost"],
        check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def cipher(version, key):
    return CIPHERS[version].format(key.upper())


def start(name, folder, options):
    """Starts a server on the first processor, and returns its process and port when it accepts connections."""
    port = free_port()
    if name == "nginx":
        with open(f"{folder}/nginx.conf", "w") as file:
            file.write(CONFIGURATION.format(folder=folder, port=port, cipher=cipher("1.2", options.key)))
        command = ["nginx", "-c", f"{folder}/nginx.conf", "-p", folder]
    else:
        command = [options.server, "--listen", f"127.0.0.1:{port}", "--certificate", f"{folder}/server.pem", "--key",
                   f"{folder}/server.key"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.sched_setaffinity(process.pid, PROCESSORS[:1])
    limit = time.monotonic() + 30
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return process, port
        except OSError:
            if time.monotonic() > limit or process.poll() is not None:
                process.kill()
                raise SystemExit(f"{name} does not listen")
            time.sleep(0.05)


def processor_seconds(process):
    fields = open(f"/proc/{process.pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def check_cipher(port, version, key):
    """Both servers must use the cipher of the race."""
    text = subprocess.run(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", f"-tls{version.replace('.', '_')}"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60).stdout
    if f"Cipher is {cipher(version, key)}" not in text:
        raise SystemExit(f"not {cipher(version, key)}: {text}")


def handshakes(port, seconds, mode, version):
    command = ["openssl", "s_time", "-connect", f"127.0.0.1:{port}", mode, f"-tls{version.replace('.', '_')}", "-www",
               "/", "-time", str(seconds)]
    begin = time.monotonic()
    clients = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for _ in range(2)]
    texts = [client.communicate(timeout=seconds * 10 + 60)[0] for client in clients]
    # It counts whole seconds itself.
    elapsed = time.monotonic() - begin
    return sum(int(re.findall(r"(\d+) connections in \d+ real seconds", text)[-1]) for text in texts), elapsed


def requests(port, seconds):
    text = subprocess.run(
        ["wrk", "-t1", "-c16", f"-d{seconds}s", f"https://127.0.0.1:{port}/"], stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=seconds * 10 + 60).stdout
    found = re.search(r"(\d+) requests in ([\d.]+)s", text)
    if not found or "Non-2xx" in text:
        raise SystemExit(f"wrk says {text}")
    return int(found.group(1)), float(found.group(2))


def measure(name, folder, options):
    process, port = start(name, folder, options)
    found = {}
    try:
        loads = [(f"{load} {version}", lambda mode=mode, version=version: handshakes(
                     port, options.seconds, mode, version))
                 for version in ("1.2", "1.3") for load, mode in (("full", "-new"), ("resumed", "-reuse"))]
        loads.append(("requests", lambda: requests(port, options.seconds)))
        for version in CIPHERS:
            check_cipher(port, version, options.key)
        for load, run in loads:
            before = processor_seconds(process)
            count, seconds = run()
            spent = processor_seconds(process) - before
            found[load] = (count / seconds, spent / count * 1e6)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    return found


def main():
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3, help="of each load")
    parser.add_argument("--key", choices=["ecdsa", "rsa"], default="ecdsa")
    parser.add_argument("--server", default=f"{root}/Examples/.build/release/http-server")
    options = parser.parse_args()
    results = {"http-server": [], "nginx": []}
    # The loads inherit the remaining processors.
    if len(PROCESSORS) > 1:
        os.sched_setaffinity(0, PROCESSORS[1:])
    with tempfile.TemporaryDirectory(prefix="reactor-tls-race-") as folder:
        make_certificate(folder, options.key)
        for number in range(options.rounds):
            names = list(results)
            for name in names if number % 2 == 0 else reversed(names):
                results[name].append(measure(name, folder, options))
    print(f"{options.rounds} rounds of {options.seconds} s, {options.key}: medians; ratios of http-server to nginx")
    print(f"{'load':14} {'ours/s':>9} {'nginx/s':>9} {'ratio (range)':>22}   {'ours µs':>8} {'nginx µs':>8} {'ratio (range)':>22}")
    for load in results["nginx"][0]:
        line = f"{load:14}"
        for part in (0, 1):
            pairs = [(a[load][part], b[load][part]) for a, b in zip(results["http-server"], results["nginx"])]
            ours, nginx = (statistics.median(pair[side] for pair in pairs) for side in (0, 1))
            ratios = sorted(a / b for a, b in pairs if b)
            middle = statistics.median(ratios) if ratios else float("nan")
            width = 9 if part == 0 else 8
            text = f"{middle:.2f} ({ratios[0]:.2f}–{ratios[-1]:.2f})" if ratios else "–"
            line += f" {ours:{width}.1f} {nginx:{width}.1f} {text:>22}  "
        print(line)


if __name__ == "__main__":
    main()

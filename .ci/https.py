#!/usr/bin/env python3
"""Talks HTTPS to the example http-server and to https-hello: https.py HTTP-SERVER HTTPS-HELLO"""
import http.client
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "Examples/Tests"))
from servers import PATIENCE, Server, check, wait_until  # noqa: E402

HELLO = b"Hello, world!\n"


def make_certificate(folder, name):
    """A self-signed certificate, in the files that the server reads."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
         f"{folder}/key.pem", "-out", f"{folder}/certificate.pem", "-days", "2", "-subj", f"/CN={name}",
         "-addext", "subjectAltName=DNS:localhost"],
        check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def connect(port, folder):
    """A client that trusts the certificate currently in the folder."""
    context = ssl.create_default_context(cafile=f"{folder}/certificate.pem")
    client = http.client.HTTPSConnection("localhost", port, timeout=PATIENCE, context=context)
    client.connect()
    return client


def get(client):
    client.request("GET", "/")
    answer = client.getresponse()
    body = answer.read()
    check(answer.status == 200 and body == HELLO, f"the answer {answer.status} {body!r}")


def subject(client):
    return dict(pair[0] for pair in client.sock.getpeercert()["subject"])["commonName"]


def test_http_server(path, folder):
    make_certificate(folder, "first")
    with Server(path, "--certificate", f"{folder}/certificate.pem", "--key", f"{folder}/key.pem") as server:
        first = connect(server.port, folder)
        get(first)
        get(first)
        check(subject(first) == "first", "the certificate")
        check(first.sock.version() == "TLSv1.3", "the version")
        with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as plain:
            plain.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            try:
                while plain.recv(100):
                    pass
            except ConnectionResetError:
                pass
        make_certificate(folder, "second")
        server.signal(signal.SIGHUP)

        def is_reloaded():
            try:
                return subject(connect(server.port, folder)) == "second"
            except ssl.SSLError:
                return False

        wait_until(is_reloaded, "the server has read the new certificate")
        get(first)
        server.signal(signal.SIGTERM)
        check(server.exit_code() == 0, "the exit code")
    for options in (["--certificate", "/nowhere"], ["--certificate", "/nowhere", "--key", "/nowhere"]):
        code = subprocess.run([path, *options], stderr=subprocess.DEVNULL, timeout=PATIENCE).returncode
        check(code in (64, 71), f"the exit code {code} of {options}")


def test_requests(port, folder):
    """The requests are answered in order; the connection ends when the client asks for it, and after a refusal."""
    get_twice = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 2
    last = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    for head, wanted in ((b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Keep-Alive\r\n", 4),
                         (b"GET / HTTP/1.1\r\nHost: x\r\nCONNECTION: x, Close\r\n", 1),
                         (b"GET / HTTP/1.0\r\n", 1), (b"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n", 4),
                         (b"HEAD / HTTP/1.1\r\nHost: x\r\n", 4),
                         (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n" % len(get_twice), 2),
                         (b"GET / HTTP/1.1\r\nHost: x\r\nA: b\nTransfer-Encoding : chunked\r\n", 0)):
        client = connect(port, folder)
        client.sock.sendall(head + b"\r\n" + get_twice + last)
        answers = b""
        while part := client.sock.recv(65_536):
            answers += part
        count = answers.count(b"HTTP/1.1 200 OK\r\n")
        check(count == wanted and answers.count(b"Connection: close\r\n") == 1, f"{head}: {answers}")


def test_https_hello(path, folder):
    make_certificate(folder, "hello")
    process = subprocess.Popen(
        [path, f"{folder}/certificate.pem", f"{folder}/key.pem", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True)
    try:
        log = []
        for line in process.stderr:
            log.append(line)
            found = re.search(r"listening on 127\.0\.0\.1:(\d+)", line)
            if found:
                break
        port = int(found.group(1))
        test_requests(port, folder)
        client = connect(port, folder)
        get(client)
        get(client)
        make_certificate(folder, "renewed")
        process.send_signal(signal.SIGHUP)
        log.append(process.stderr.readline())
        check("read again" in log[-1], f"the log {log[-1]}")
        check(subject(connect(int(found.group(1)), folder)) == "renewed", "the certificate")
        get(client)
        process.send_signal(signal.SIGTERM)
        log += process.stderr.readlines()
        check(process.wait(PATIENCE) == 0, "the exit code; it logs " + "".join(log))
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stderr.close()


with tempfile.TemporaryDirectory(prefix="reactor-https-tests-") as found:
    os.environ.pop("SSL_CERT_FILE", None)
    test_http_server(sys.argv[1], found)
    print("http-server: passed", flush=True)
    test_https_hello(sys.argv[2], found)
    print("https-hello: passed", flush=True)

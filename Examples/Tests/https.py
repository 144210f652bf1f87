#!/usr/bin/env python3
"""Talks HTTPS to the example http-server and to https-hello: https.py HTTP-SERVER HTTPS-HELLO"""
import http.client
import re
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PATIENCE = 30


def make_certificate(name):
    """A self-signed certificate, in the files that the server reads."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", KEY,
         "-out", CERTIFICATE, "-days", "2", "-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost"],
        check=True, capture_output=True)


def connect(port):
    """A client that trusts only the certificate in the file."""
    context = ssl.create_default_context(cafile=CERTIFICATE)
    client = http.client.HTTPSConnection("localhost", port, timeout=PATIENCE, context=context)
    client.connect()
    return client


def get(client):
    client.request("GET", "/")
    answer = client.getresponse()
    assert (answer.status, answer.read()) == (200, b"Hello, world!\n"), answer.status


def test(*command):
    """Requests on one connection, a client without TLS, a certificate that is replaced at SIGHUP, and the end at SIGTERM."""
    make_certificate("first")
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        port = next(int(found[1]) for line in server.stdout if (found := re.search(r"listening on 127\.0\.0\.1:(\d+)", line)))
        first = connect(port)
        assert first.sock.version() == "TLSv1.3"
        get(first)
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as plain:
            plain.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            try:
                assert not plain.recv(100).startswith(b"HTTP")
            except ConnectionResetError:
                pass
        make_certificate("second")
        server.send_signal(signal.SIGHUP)
        limit = time.monotonic() + PATIENCE
        while True:
            try:
                get(connect(port))
                break
            except ssl.SSLError:
                assert time.monotonic() < limit, "the server does not read the new certificate"
        get(first)
        server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE) == 0, server.returncode
    finally:
        server.kill()
        server.wait()
    print(f"{Path(command[0]).name}: passed", flush=True)


with tempfile.TemporaryDirectory(prefix="reactor-https-tests-") as folder:
    CERTIFICATE, KEY = f"{folder}/certificate.pem", f"{folder}/key.pem"
    test(sys.argv[1], "--listen", "127.0.0.1:0", "--certificate", CERTIFICATE, "--key", KEY)
    test(sys.argv[2], CERTIFICATE, KEY, "127.0.0.1:0")
    for options, code in ((["--certificate", CERTIFICATE], 64), (["--certificate", "/nowhere", "--key", "/nowhere"], 71)):
        ended = subprocess.run([sys.argv[1], *options], stderr=subprocess.DEVNULL, timeout=PATIENCE).returncode
        assert ended == code, f"{options} end with {ended}"

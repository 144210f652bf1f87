#!/usr/bin/env python3
"""Runs deployed-service as a container and as systemd would: deployed-service-tests.py [PATH-OF-DEPLOYED-SERVICE]"""
import os
import re
import signal
import socket
import subprocess
import tempfile

from servers import PATIENCE, Server, check, program, run, wait_until


class Service(Server):
    """The service, with settings, and a socket for its notifications."""

    def __init__(self, command, **environment):
        self.folder = tempfile.TemporaryDirectory()
        self.notifications = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notifications.bind(f"{self.folder.name}/notify")
        self.notifications.settimeout(PATIENCE)
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "LISTEN": "127.0.0.1:0", "NOTIFY_SOCKET": f"{self.folder.name}/notify", **environment})

    def listens(self):
        """Reads the line with the address."""
        line = self.process.stderr.readline()
        found = re.fullmatch(r"deployed-service: listening on 127\.0\.0\.1:(\d+)\n", line)
        check(found, f"the service says {line!r}")
        self.port = int(found.group(1))
        check(self.notifications.recv(100) == b"READY=1", "it says that it is ready")

    def end(self):
        super().end()
        self.notifications.close()
        self.folder.cleanup()

    def status(self, path):
        with self.connect() as client:
            client.send(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
            return client.socket.makefile("rb").readline().split()[1]


def stop(path):
    """at SIGTERM it says that it stops, drains and ends well"""
    with Service([path], LAME_DUCK="0.1") as service:
        service.listens()
        check(service.status("/") == b"200" and service.status("/health/ready") == b"200", "it serves")
        service.signal(signal.SIGTERM)
        check(service.notifications.recv(100) == b"STOPPING=1", "it says that it stops")
        check(service.exit_code() == 0, "the exit code")
        check("ended: idle 0, finished 0, aborted 0" in service.process.stderr.read(), "its last line")


def settings(path):
    """a wrong setting ends it with 78"""
    with Service([path], DRAIN="10s") as service:
        check(service.exit_code() == 78, "the exit code")
        check("DRAIN: '10s' is not a number" in service.process.stderr.read(), "the line names the variable")


def activation(path):
    """it serves on the socket of systemd"""
    activate = program("systemd-socket-activate")
    if not activate:
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with Service(
            [activate, "-l", f"127.0.0.1:{port}", "-E", "LAME_DUCK=0", "-E", "NOTIFY_SOCKET", path]) as service:
        service.port = port

        def connects():
            try:
                return service.status("/") == b"200"                # the first client starts it
            except ConnectionRefusedError:
                return False

        wait_until(connects, "the socket is open")
        service.signal(signal.SIGTERM)
        check(service.exit_code() == 0, "it ends well")


run("deployed-service", [stop, settings, activation])

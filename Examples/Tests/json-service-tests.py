#!/usr/bin/env python3
"""Runs the json-service and calls it with curl, as its page does: json-service-tests.py [PATH-OF-JSON-SERVICE]"""
import json
import os
import re
import signal
import subprocess
import tempfile

from servers import PATIENCE, Server, check, program, run


class Service(Server):
    """The service, with a folder of its own."""

    def __init__(self, path):
        self.folder = tempfile.TemporaryDirectory()
        self.process = subprocess.Popen(
            [path, "127.0.0.1:0", self.folder.name], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        found = re.fullmatch(r"listening on 127\.0\.0\.1:(\d+)\n", line)
        if not found:
            self.end()
            raise AssertionError(f"the service says {line!r}")
        self.port = int(found.group(1))

    def end(self):
        super().end()
        self.folder.cleanup()

    def curl(self, path, *options):
        """The status, the fields and the body of an answer."""
        command = ["curl", "-s", "-i", *options, f"http://127.0.0.1:{self.port}{path}"]
        output = subprocess.run(command, stdout=subprocess.PIPE, timeout=PATIENCE, check=True).stdout
        while output.startswith(b"HTTP/1.1 100"):
            output = output.partition(b"\r\n\r\n")[2]
        head, _, body = output.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        return int(first.split()[1]), dict(line.lower().split(": ", 1) for line in lines), body


def expect_problem(answer, status):
    code, fields, body = answer
    check(code == status and fields["content-type"] == "application/problem+json", f"{status}: {answer}")
    check(json.loads(body)["status"] == status, f"{body}")


JSON = ("-H", "Content-Type: application/json")


def notes(path):
    """notes are added, found, removed, and forgotten"""
    with Service(path) as service:
        code, fields, body = service.curl("/notes", *JSON, "-d", '{"text": "milk"}')
        check(code == 201 and fields["location"] == "/notes/1" and fields["cache-control"] == "no-store", f"{fields}")
        check(json.loads(body) == {"id": 1, "text": "milk"}, f"{body}")
        service.curl("/notes", *JSON, "-d", '{"text": "two words"}')
        code, _, body = service.curl("/notes?word=two+words")
        check(code == 200 and json.loads(body) == [{"id": 2, "text": "two words"}], f"{body}")
        code, fields, body = service.curl("/notes/1", "-I")
        check(code == 200 and body == b"" and int(fields["content-length"]) > 0, f"{fields}")
        check(service.curl("/notes/1", "-X", "DELETE")[0] == 204, "removed")
        expect_problem(service.curl("/notes/1"), 404)
        service.curl("/notes", *JSON, "-d", '{"text": "soon", "seconds": 0.05}')
        while service.curl("/notes/3")[0] == 200:
            pass


def refusals(path):
    """what is wrong is answered with a problem"""
    with Service(path) as service:
        expect_problem(service.curl("/none"), 404)
        expect_problem(service.curl("/notes/one"), 404)
        expect_problem(service.curl("/notes", "-d", "text=milk"), 415)
        expect_problem(service.curl("/notes", *JSON, "-d", "{"), 400)
        expect_problem(service.curl("/notes", *JSON, "-d", '{"text": ""}'), 422)
        answer = service.curl("/notes/1", "-X", "PATCH")
        expect_problem(answer, 405)
        check(answer[1]["allow"] == "delete, get, head", f"{answer[1]}")


def files(path):
    """a file is uploaded as it is, and sent again"""
    with Service(path) as service, tempfile.NamedTemporaryFile() as file:
        content = os.urandom(5_000_000)
        file.write(content)
        file.flush()
        code, _, body = service.curl("/files/photo.jpg", "-T", file.name)
        check(code == 201 and json.loads(body) == {"bytes": len(content)}, f"{body}")
        code, fields, body = service.curl("/files/photo.jpg")
        check(code == 200 and body == content and fields["content-type"] == "image/jpeg", f"{fields}")
        check(os.listdir(service.folder.name) == ["photo.jpg"], "nothing else is there")
        expect_problem(service.curl("/files/.hidden", "-T", file.name), 400)


def stop(path):
    """SIGTERM ends it, and a used address is one line"""
    with Service(path) as service:
        other = subprocess.run(
            [path, f"127.0.0.1:{service.port}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE, text=True)
        check(other.returncode == 71 and other.stderr.count("\n") == 1 and other.stdout == "", f"{other}")
        service.signal(signal.SIGTERM)
        check(service.exit_code() == 0, "it ends")


run("json-service", [notes, refusals, files, stop] if program("curl", "the tests of json-service") else [stop])

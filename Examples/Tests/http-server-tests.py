#!/usr/bin/env python3
"""Runs the http-server and talks to it byte by byte: http-server-tests.py [PATH-OF-HTTP-SERVER]

With http.client, and with curl, wrk and the package websockets where they are installed.
"""
import email.utils
import http.client
import os
import re
import signal
import socket
import subprocess
import threading
import time

from servers import PATIENCE, Client, Server, check, is_refused, program, run, skip, wait_until
from websocket_cases import websocket_client, websocket_flood, websocket_frames

HELLO = b"Hello, world!\n"
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
SLOW = b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n"


def echo(body, fields=b"", length=None):
    """A request to send a body back, with its length or another one."""
    length = len(body) if length is None else length
    return b"POST /echo HTTP/1.1\r\nHost: x\r\n%sContent-Length: %d\r\n\r\n%s" % (fields, length, body)


def chunked(body, fields=b""):
    """A request to send a body back, which is given in chunks."""
    return b"POST /echo HTTP/1.1\r\nHost: x\r\n%sTransfer-Encoding: chunked\r\n\r\n%s" % (fields, body)


def read_through(client, end):
    """The bytes up to and with `end`, which must arrive before the connection ends; those behind it stay unread."""
    data = b""
    while not data.endswith(end):
        here = client.socket.recv(65_536, socket.MSG_PEEK)
        check(here, f"the connection ends inside of an answer: {data!r}")
        found = (data + here).find(end)
        data += client.read(len(here) if found < 0 else found + len(end) - len(data))
    return data


class Answer:
    """One answer, read from a client as far as it goes and no further."""

    def __init__(self, client, to_head=False):
        head = read_through(client, b"\r\n\r\n")
        first, *lines = head[:-4].decode().split("\r\n")
        found = re.fullmatch(r"HTTP/1\.1 (\d{3}) [A-Za-z ]+", first)
        check(found, f"the first line of an answer: {first!r}")
        self.status = int(found.group(1))
        self.fields = {}
        for line in lines:
            name, value = line.split(": ", 1)
            check(name not in self.fields, f"a field that occurs twice: {name}")
            self.fields[name] = value
        self.ends = self.fields.get("Connection") == "close"
        self.chunks = []
        if to_head or self.status == 100:
            self.body = b""
        elif self.fields.get("Transfer-Encoding") == "chunked":
            check("Content-Length" not in self.fields, "an answer has one length")
            self.body = b"".join(self.read_chunks(client))
        else:
            count = int(self.fields["Content-Length"])
            self.body = client.read(count)
            check(len(self.body) == count, f"{count} bytes of a body: {self.body!r}")

    def read_chunks(self, client):
        """The parts of a body in chunks, without the last, empty one."""
        while True:
            size = int(read_through(client, b"\r\n"), 16)
            data = client.read(size + 2)
            check(len(data) == size + 2 and data.endswith(b"\r\n"), f"a chunk of {size} bytes: {data!r}")
            if size == 0:
                return
            self.chunks.append(data[:-2])
            yield data[:-2]


def ask(client, sent, to_head=False):
    """Sends one request and reads its answer."""
    client.send(sent)
    return Answer(client, to_head)


def conversation(server, sent, to_head=False):
    """All answers to what is sent, and whether the last one says that the connection ends, which it then does."""
    with server.connect() as client:
        client.send(sent)
        client.end()
        answers = []
        while client.has_input(PATIENCE) and client.socket.recv(1, socket.MSG_PEEK):
            answers.append(Answer(client, to_head))
        return answers


def expect_refusal(server, sent, status):
    """The last answer has this status, says that the connection ends, and the server ends it though the client does not."""
    with server.connect() as client:
        client.send(sent)
        answer = Answer(client)
        while not answer.ends:
            answer = Answer(client)
        what = f"{sent[:100]!r} is answered by {answer.status} {answer.fields}, not by {status}"
        check(answer.status == status, what)
        check(client.is_ended(), f"{sent[:100]!r}: the connection ends behind the answer")


def expect(server, sent, *wanted, to_head=False):
    """These statuses, each with its body if that is given; the connection is kept until the client ends its side."""
    answers = conversation(server, sent, to_head)
    got = [(answer.status, answer.body) for answer in answers]
    same = len(got) == len(wanted) and all(
        one == two if isinstance(two, tuple) else one[0] == two for one, two in zip(got, wanted))
    check(same, f"{sent[:100]!r} is answered by {str(got)[:200]}, not by {str(wanted)[:200]}")
    return answers


# Requests and what they are answered.

ANSWERS = [
    (GET, (200, HELLO)),
    (b"GET /?query=/echo HTTP/1.1\r\nHost:x:80\r\n\r\n", (200, HELLO)),
    (b"GET http://x/ HTTP/1.1\r\nHost: x\r\n\r\n", (200, HELLO)),
    (b"GET HTTP://x HTTP/1.1\r\nHost: x\r\n\r\n", (200, HELLO)),
    (b"GET http://x?a/b HTTP/1.1\r\nHost: x\r\n\r\n", (200, HELLO)),
    (b"GET / HTTP/1.1\r\nHOST: [::1]:8080 \t\r\nX: a\tb\xff\r\nEmpty:\r\n\r\n", (200, HELLO)),
    (b"GET / HTTP/1.7\r\nHost: x\r\n\r\n", (200, HELLO)),
    (b"\r\n\r\n" + GET, (200, HELLO)),
    (b"GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n", 404),
    (b"GET // HTTP/1.1\r\nHost: x\r\n\r\n", 404),
    (b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", 404),
    (b"POST / HTTP/1.1\r\nHost: x\r\n\r\n", 405),
    (b"get / HTTP/1.1\r\nHost: x\r\n\r\n", 405),
    (b"GET /echo HTTP/1.1\r\nHost: x\r\n\r\n", 405),
    (b"BREW /slow HTTP/1.1\r\nHost: x\r\n\r\n", 405),
    (b"POST /echo HTTP/1.1\r\nHost: x\r\n\r\n", (200, b"")),
    (echo(b"hello") + b"\r\n" + GET, (200, b"hello"), (200, HELLO)),
    (echo(b""), (200, b"")),
    (echo(b"a" * 70_000), (200, b"a" * 70_000)),
    (chunked(b"5\r\nhello\r\n0\r\n\r\n") + GET, (200, b"hello"), (200, HELLO)),
    (chunked(b"0\r\n\r\n") + GET, (200, b""), (200, HELLO)),
    (chunked(b'005;a=b;c="d"\r\nhello\r\n00\r\nTrailer: x\r\nOther: y\r\n\r\n') + GET, (200, b"hello"), (200, HELLO)),
    (chunked(b"A \t;x\r\n0123456789\r\n0;y\r\n\r\n"), (200, b"0123456789")),
    (b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked \r\n\r\n1\r\na\r\n0\r\n\r\n", (200, b"a")),
] + [
    (b"GET / HTTP/1.1\r\nHost: " + host + b"\r\n\r\n", (200, HELLO))
    for host in (b"x:", b"x:80", b"a.b-c_d~%20", b"1.2.3.4:5", b"[::1]", b"[::1]:", b"[fe80::1:A]:80", b"[::1.2.3.4]")
] + [
    # Bodies that mean nothing to the route.
    (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello" + GET, (200, HELLO), (200, HELLO)),
    (b"PUT /none HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n" + GET, 404, (200, HELLO)),
]

# Requests, and the status with which the connection ends.
BAD, TOO_LARGE, FIELDS = 400, 413, 431
REFUSALS = [
    (b"\x16\x03\x01\x02\x00\r\n", BAD),
    (b"GET\r\n", BAD), (b"GET /\r\n", BAD), (b"GET  / HTTP/1.1\r\n", BAD), (b"GET / HTTP/1.1 \r\n", BAD),
    (b" GET / HTTP/1.1\r\n", BAD), (b"G\x00T / HTTP/1.1\r\n", BAD), (b"G(T / HTTP/1.1\r\n", BAD),
    (b"GET /\x7f HTTP/1.1\r\n", BAD), (b"GET /\xff HTTP/1.1\r\n", BAD), (b"GET a HTTP/1.1\r\n", BAD),
    (b"GET / http/1.1\r\n", BAD), (b"GET / HTTP/1\r\n", BAD), (b"GET / HTTP/1.x\r\n", BAD), (b"GET / HTTP/11\r\n", BAD),
    (b"GET /#a HTTP/1.1\r\nHost: x\r\n\r\n", BAD), (b"GET http:///a HTTP/1.1\r\nHost: x\r\n\r\n", BAD),
    (b"GET http://a@x/ HTTP/1.1\r\nHost: x\r\n\r\n", BAD),
    (b"CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n", BAD),
    (b"GET / HTTP/2.0\r\n", 505), (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505), (b"GET / HTTP/0.9\r\n", 505),
    # Ends of lines.
    (b"GET / HTTP/1.1\nHost: x\n\n", BAD), (b"GET / HTTP/1.1\r\nHost: x\n\r\n", BAD),
    (b"GET / HTTP/1.1\r\nHost: x\r\nA: b\rC: d\r\n\r\n", BAD), (b"GET / HTTP/1.1\r\r\nHost: x\r\n\r\n", BAD),
    (b"GET / HTTP/1.1\r\nHost: x\r\n\n", BAD), (b"\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", BAD),
    # Fields.
    (b"GET / HTTP/1.1\r\nHost: x\r\nA\r\n", BAD), (b"GET / HTTP/1.1\r\nHost: x\r\n: b\r\n", BAD),
    (b"GET / HTTP/1.1\r\nHost: x\r\nA : b\r\n", BAD), (b"GET / HTTP/1.1\r\nHost: x\r\nA: b\x00\r\n", BAD),
    (b"GET / HTTP/1.1\r\nHost: x\r\n folded: b\r\n", BAD), (b"GET / HTTP/1.1\r\n Host: x\r\n", BAD),
    (b"GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n\tfolded\r\n", BAD), (b"GET / HTTP/1.1\r\nHost: x\r\n(A): b\r\n", BAD),
    # Host.
    (b"GET / HTTP/1.1\r\n\r\n", BAD), (b"GET / HTTP/1.1\r\nHost: x\r\nhost: x\r\n\r\n", BAD),
    (b"GET / HTTP/1.0\r\nHost: x\r\nHost: y\r\n\r\n", BAD), (b"GET / HTTP/1.1\r\nHost: x/y\r\n\r\n", BAD),
    (b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", BAD), (b"GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", BAD),
] + [
    (b"GET / HTTP/1.1\r\nHost: " + host + b"\r\n\r\n", BAD)
    for host in (b"", b":80", b"h:x", b"h:-1", b"h:80:80", b"[", b"]", b"[]", b"[::1", b"::1", b"[::1]x", b"[::1]80", b"[::1]:x", b"[h]", b"h[]", b"[[::1]]")
] + [
    # Lengths that may be read in two ways.
    (echo(b"hello", b"Content-Length: 5\r\n"), BAD), (echo(b"hello", b"Content-Length: 6\r\n"), BAD), (echo(b"hello", b"Transfer-Encoding: chunked\r\n"), BAD),
    (chunked(b"0\r\n\r\n", b"Content-Length: 5\r\n"), BAD), (chunked(b"0\r\n\r\n", b"Transfer-Encoding: chunked\r\n"), BAD),
    (b"POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", BAD),
    (echo(b"", b"Transfer-Encoding:\r\n"), BAD),
] + [
    (b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length:" + value + b"\r\n\r\nhello", BAD)
    for value in (b"", b" ", b"+5", b"-5", b"5, 5", b"0x5", b"5 5", b"5.0", b"\xb2", b"5;", b"-0")
] + [
    (b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: " + value + b"\r\n\r\n", TOO_LARGE)
    for value in (b"1048577", b"18446744073709551621", b"9" * 200)
] + [
    (b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: " + value + b"\r\n\r\n", status)
    for value, status in ((b"gzip", 501), (b"gzip, chunked", 501), (b"identity", 501), (b"xchunked", 501),
                          (b"chunked;q=1", 501), (b"chunked, gzip", BAD), (b"chunked, chunked", BAD),
                          (b"\x0bchunked", BAD), (b"", BAD), (b",", BAD), (b",chunked", BAD), (b"chunked,", BAD), (b", , chunked", BAD))
] + [
    (b"POST /echo HTTP/1.1\r\nHost: x\r\nExpect: miracles\r\nContent-Length: 5\r\n\r\n", 417),
    # Limits of a head.
    (b"GET /" + b"a" * 16_384, 414), (b"GET /" + b"a" * 16_384 + b" HTTP/1.1\r\n", 414),
    (b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 16_384, FIELDS),
    (b"GET / HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 100, FIELDS),
    (b"\r\n" * 8_193, 414),
    (GET + GET + b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n" + GET, BAD),
    # Chunks.
] + [
    (chunked(body), status) for body, status in (
        (b"x\r\n", BAD), (b"\r\n", BAD), (b"-1\r\n", BAD), (b"+1\r\n", BAD), (b"0x1\r\n", BAD), (b"1 1\r\na", BAD),
        (b" 1\r\na", BAD), (b" 3;x\r\nabc", BAD), (b"\t3;x\r\nabc", BAD), (b"1 \r\na", BAD), (b"1\na", BAD), (b";\r\n", BAD), (b"1;\x00\r\n", BAD),
        (b"\xef\xbc\x91\r\n", BAD), (b"5;" + b"a" * 300, BAD), (b"1\r\naX\r\n", BAD), (b"1\r\na\n0\r\n\r\n", BAD),
        (b"1\r\nab\r\n", BAD), (b"0\r\nA : b\r\n\r\n", BAD), (b"0\r\n folded\r\n\r\n", BAD), (b"0\r\nA\r\n\r\n", BAD),
        (b"0\r\n\n", BAD),
        (b"100001\r\n", TOO_LARGE), (b"fffffffffffffffff\r\n", TOO_LARGE),
        (b"1\r\na\r\n100000\r\n", TOO_LARGE), (b"0\r\n" + b"A: %s\r\n" % (b"a" * 8_000) * 3, FIELDS))
]


def answers(path):
    """requests are answered, and the connection is kept"""
    with Server(path) as server:
        for sent, *wanted in ANSWERS:
            expect(server, sent, *wanted)


def refusals(path):
    """requests that are malformed, ambiguous or too large are refused, and the connection ends"""
    with Server(path) as server:
        for sent, status in REFUSALS:
            expect_refusal(server, sent, status)


def fields(path):
    """an answer has its fields: the date, the allowed methods, the length"""
    with Server(path) as server:
        answer = expect(server, GET, 200)[0]
        check(set(answer.fields) == {"Date", "Content-Type", "Content-Length"}, f"{answer.fields}")
        date = email.utils.parsedate_to_datetime(answer.fields["Date"]).timestamp()
        check(answer.fields["Date"].endswith(" GMT") and abs(date - time.time()) < PATIENCE, f"{answer.fields}")
        wait_until(lambda: expect(server, GET, 200)[0].fields["Date"] != answer.fields["Date"], "the date advances")
        for sent, allowed in ((b"POST / ", "GET, HEAD"), (b"DELETE /slow ", "GET, HEAD"), (b"HEAD /echo ", "POST")):
            answer = expect(server, sent + b"HTTP/1.1\r\nHost: x\r\n\r\n", 405, to_head=sent.startswith(b"HEAD"))[0]
            check(answer.fields["Allow"] == allowed, f"{sent}: {answer.fields}")


def head(path):
    """HEAD is answered like GET, without the body"""
    with Server(path) as server:
        for target, length in ((b"/", 14), (b"/none", 10)):
            sent = b"HEAD %s HTTP/1.1\r\nHost: x\r\n\r\n" % target
            for answer in expect(server, sent * 2, *[404 if length == 10 else 200] * 2, to_head=True):
                check(answer.fields["Content-Length"] == str(length), f"{target}: {answer.fields}")


def connection_option(path):
    """HTTP/1.0 and the field Connection decide whether the connection is kept"""
    first = b"GET / HTTP/1.%d\r\nHost: x\r\n%s\r\n"
    with Server(path) as server:
        for version, field, kept in (
                (1, b"", True), (1, b"Connection: close\r\n", False), (1, b"Connection: keep-alive\r\n", True),
                (1, b"Connection: a, CLOSE ,b\r\n", False), (1, b"Connection: a\r\nConnection: close\r\n", False),
                (1, b"Connection: close, keep-alive\r\n", False), (1, b"Connection: closed\r\n", True),
                (0, b"", False), (0, b"Connection: Keep-Alive\r\n", True), (0, b"Connection: close\r\n", False)):
            with server.connect() as client:
                answer = ask(client, first % (version, field) + GET)
                check(answer.status == 200 and answer.ends != kept, f"{version} {field}: {answer.fields}")
                stated = answer.fields.get("Connection")
                check(stated == (("keep-alive" if version == 0 else None) if kept else "close"), f"{field}: {stated}")
                check(Answer(client).status == 200 if kept else client.is_ended(), f"{version} {field}: {kept}")
        expect(server, b"GET / HTTP/1.0\r\n\r\n", (200, HELLO))
        expect(server, b"POST /echo HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello", (200, b"hello"))


def split_anywhere(path):
    """requests get the right answer at whatever byte they are split"""
    sent = b"\r\n" + GET + echo(b"hello") + chunked(b"3;x\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\nA: b\r\n\r\n") + GET
    wanted = [(200, HELLO), (200, b"hello"), (200, b"abc0123456789abcdef"), (200, HELLO)]
    with Server(path) as server:
        for index in range(1, len(sent)):
            with server.connect() as client:
                client.send_apart(sent[:index])
                client.send(sent[index:])
                got = [(answer.status, answer.body) for answer in (Answer(client) for _ in wanted)]
                check(got == wanted, f"split at {index}: {got}")
        with server.connect() as client:
            for byte in sent:
                client.send_apart(bytes([byte]))
            got = [(answer.status, answer.body) for answer in (Answer(client) for _ in wanted)]
            check(got == wanted, f"byte by byte: {got}")
        # A mistake is answered as soon as it has arrived, wherever it is split.
        for sent, status in ((b"GET / HTTP/1.1\r\nHost: x\r\nA: b\n", 400), (chunked(b"1\r\na\n"), None)):
            for index in range(1, len(sent)):
                with server.connect() as client:
                    client.send_apart(sent[:index])
                    client.send(sent[index:])
                    data, in_order = client.read_to_end()
                    refused = data.startswith(b"HTTP/1.1 400 ")
                    # With an answer under way the end of the connection shows the mistake.
                    check(in_order and (refused or status is None and not data.endswith(b"0\r\n\r\n")), f"{index}: {data}")


def pipelined(path):
    """requests that arrive together are answered together, in their order"""
    with Server(path) as server:
        expect(server, GET * 16, *[(200, HELLO)] * 16)
        several = (GET + echo(b"%04d" % 1) + chunked(b"2\r\nab\r\n0\r\n\r\n") + b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n") * 4
        expect(server, several, *[(200, HELLO), (200, b"0001"), (200, b"ab"), 404] * 4)
        expect(server, GET * 5_000, *[(200, HELLO)] * 5_000)
        with server.connect() as client:
            client.send(GET * 16)
            wait_until(lambda: len(client.socket.recv(65_536, socket.MSG_PEEK)) >= 16 * 100, "all answers are here")


def never_reads(path):
    """a client that asks and never reads is paused, and others are served"""
    with Server(path) as server, server.connect(receive_buffer=4096) as client:
        client.socket.setblocking(False)
        sent, last = 0, time.monotonic()
        while time.monotonic() - last < 0.5:
            try:
                sent += client.socket.send(GET * 1000)
                last = time.monotonic()
            except BlockingIOError:
                time.sleep(0.01)
        check(sent < 64 << 20, f"{sent} bytes of requests are taken")
        expect(server, GET, (200, HELLO))


def streamed(path):
    """a body is sent back while it arrives, and ends early where the client makes a mistake"""
    with Server(path) as server:
        with server.connect() as client:
            client.send(chunked(b"5\r\nhello\r\n"))
            read_through(client, b"5\r\nhello\r\n")
            client.send(b"3\r\nyou\r\n")
            check(client.read(8) == b"3\r\nyou\r\n", "the second chunk")
            client.send(b"x\r\n")
            check(client.is_ended(), "without the last chunk")
        for sent in (chunked(b"5\r\nhel"), chunked(b"5\r\nhello\r\n0\r\n"), echo(b"hel", length=5), GET[:-1], GET[:5]):
            with server.connect() as client:
                client.send(sent)
                client.end()
                data, in_order = client.read_to_end()
                check(in_order and not data.endswith(b"0\r\n\r\n"), f"{sent}: {data}")
        expect(server, GET, (200, HELLO))


def large(path):
    """bodies up to the limit are sent back, however they are sent"""
    body = os.urandom(1 << 20)
    with Server(path) as server:
        for sent in (echo(body), chunked(b"100000\r\n" + body + b"\r\n0\r\n\r\n"),
                     chunked(b"".join(b"400\r\n" + body[i:i + 1024] + b"\r\n" for i in range(0, len(body), 1024))
                             + b"0\r\n\r\n")):
            with server.connect() as client:
                sender = threading.Thread(target=client.send, args=(sent,))
                sender.start()
                answer = Answer(client)
                sender.join(PATIENCE)
                check((answer.status, answer.body) == (200, body), f"{answer.status}, {len(answer.body)} bytes")
    with Server(path, "--max-body", "16") as server:
        expect(server, echo(b"a" * 16), (200, b"a" * 16))
        expect_refusal(server, echo(b"a" * 17), 413)
        expect_refusal(server, chunked(b"8\r\n01234567\r\n9\r\n"), 413)


def expect_continue(path):
    """100 Continue is sent when the client waits for it, and only then"""
    field = b"Expect: 100-Continue\r\n"
    with Server(path) as server:
        with server.connect() as client:
            check(ask(client, echo(b"", field, length=5)).status == 100, "100 for a length")
            answer = ask(client, b"hello")
            check((answer.status, answer.body) == (200, b"hello"), f"{answer.status} {answer.body}")
            check(ask(client, chunked(b"", field)).status == 100, "100 for chunks")
            answer = ask(client, b"1\r\na\r\n0\r\n\r\n" + GET)
            check((answer.status, answer.body) == (200, b"a"), f"{answer.status} {answer.body}")
            check(Answer(client).status == 200, "the request behind it")
        # Nothing to wait for: the body is here, is empty, or is not wanted.
        expect(server, echo(b"hello", field), (200, b"hello"))
        expect(server, echo(b"", field), (200, b""))
        expect(server, echo(b"hello", field).replace(b"HTTP/1.1", b"HTTP/1.0"), (200, b"hello"))
        expect_refusal(server, echo(b"", field, length=2 << 20), 413)
        expect_refusal(server, echo(b"", field, length=5).replace(b"/echo", b"/none"), 404)
        expect_refusal(server, echo(b"", field, length=5).replace(b"POST", b"PUT"), 405)


def head_timeout(path):
    """a head that does not end is answered 408, however often a byte arrives"""
    with Server(path, "--head-timeout", "0.2") as server:
        for count in (1, len(GET) // 2, len(GET) - 1):
            with server.connect() as idle, server.connect() as client:
                check(ask(idle, GET).status == 200, "an idle client")
                check(ask(client, GET + GET[:count]).status == 200, "the request before")
                answer = Answer(client)
                check(answer.status == 408 and answer.ends and client.is_ended(), f"{count}: {answer.status}")
                check(ask(idle, GET).status == 200, "between two requests there is no such limit")
        # An empty line behind a body, in one piece or in two, precedes the next head, and begins its time.
        for pieces in ((b"\r\n",), (b"\r", b"\n")):
            with server.connect() as client:
                check(ask(client, echo(b"a") + pieces[0]).status == 200, "a body with an empty line behind it")
                for piece in pieces[1:]:
                    client.send(piece)
                check(client.is_ended(), "an end without an answer that nobody has asked for")
        with server.connect() as client:
            begin = time.monotonic()
            client.send(b"GET / HTTP/1.1\r\nHost: x\r\nSlow: ")
            while not client.has_input(0.02):
                client.send(b"a")
                check(time.monotonic() - begin < PATIENCE, "a byte now and then gains no time")
            check(Answer(client).status == 408, "the answer to it")
    with Server(path, "--head-timeout", "1") as server, server.connect() as client:
        for _ in range(4):
            client.send_apart(GET[:9])
            client.send(GET[9:])
            check(Answer(client).status == 200, "the limit begins anew with each head")
            check(not client.has_input(0.3), "between two requests there is no such limit")


def body_timeout(path):
    """a body that does not end is answered 408, or ends the answer that has begun"""
    with Server(path, "--body-timeout", "0.2") as server:
        expect_refusal(server, echo(b"", length=5), 408)
        expect_refusal(server, chunked(b""), 408)
        # What is wrong with the head is answered at once. Then the rest of the body is waited for, so that the connection may be kept.
        with server.connect() as client:
            check(ask(client, echo(b"hel", length=5).replace(b"/echo", b"/none")).status == 404, "404 at once")
            check(client.is_ended(), "the end, since the body does not come")
        with server.connect() as client:
            client.send(chunked(b"1\r\na\r\n"))
            data, in_order = client.read_to_end()
            check(in_order and data.endswith(b"1\r\na\r\n"), f"{data}")
        with server.connect() as client:
            check(ask(client, echo(b"", b"Expect: 100-continue\r\n", length=5)).status == 100, "100")
            check(Answer(client).status == 408 and client.is_ended(), "408 instead of the body")


def idle_timeout(path):
    """a client that is silent between two requests sees the end, and one that waits for its answer does not"""
    with Server(path, "--idle-timeout", "0.2", "--slowness", "0.6") as server, server.connect() as client:
        check(ask(client, SLOW).status == 200, "a slow answer is no silence")
        check(client.is_ended(), "the end")


def open_sockets(server):
    """How many sockets the server has open."""
    directory, count = f"/proc/{server.process.pid}/fd", 0
    for fd in os.listdir(directory):
        try:
            count += os.readlink(f"{directory}/{fd}").startswith("socket:")
        except FileNotFoundError:
            pass
    return count


def slow(path):
    """a slow answer is sent, and those behind it in order"""
    with Server(path, "--slowness", "0.3") as server:
        begin = time.monotonic()
        with server.connect() as client:
            client.send(SLOW + GET + echo(b"hello"))
            got = [(answer.status, answer.body) for answer in (Answer(client) for _ in range(3))]
            check(got == [(200, b"At last\n"), (200, HELLO), (200, b"hello")], f"{got}")
            check(time.monotonic() - begin >= 0.3, "it is slow")
            client.send_apart(SLOW)
            client.send(GET * 5_000)
            got = [Answer(client).status for _ in range(5_001)]
            check(got == [200] * 5_001, "behind it, more requests than are read at once")


def gone(path):
    """a client that disconnects while its answer is prepared causes no further work"""
    with Server(path, "--slowness", "60") as server:
        before = open_sockets(server)
        for leave in (lambda client: client.socket.close(), lambda client: client.reset(), lambda client: client.end()):
            for sent in (SLOW, SLOW + GET, SLOW + GET[:5], SLOW + GET * 3_000):
                with server.connect() as client:
                    client.send_apart(GET + sent)
                    check(Answer(client).status == 200, "the request before")
                    leave(client)
                    wait_until(lambda: open_sockets(server) == before, "the connection is closed")
        server.signal(signal.SIGTERM)
        check(server.exit_code() == 0, "nothing waits for the answers")


def drain(path):
    """after SIGTERM requests under way are finished, with Connection: close, and the process ends"""
    requests = {"head": GET, "body": echo(b"hello"), "chunks": chunked(b"5\r\nhello\r\n0\r\n\r\n")}
    with Server(path, "--slowness", "2") as server:
        idle = server.connect()
        check(ask(idle, GET).status == 200, "the loop has turned")
        fresh = server.connect()
        busy = [(name, index, server.connect()) for name, sent in requests.items() for index in range(1, len(sent), 3)]
        for name, index, client in busy:
            client.send_apart(requests[name][:index])
        waiting = server.connect()
        waiting.send_apart(SLOW)
        check(ask(idle, GET).status == 200, "the loop has turned")
        server.signal(signal.SIGTERM)
        check(idle.is_ended() and fresh.is_ended(), "idle clients see the end")
        wait_until(lambda: is_refused(server.port), "new clients are refused")
        for name, index, client in busy:
            client.send(requests[name][index:] + GET)
            answer = Answer(client)
            check(answer.status == 200, f"{name} {index}: {answer.status}")
            # A head that left before the signal, with the first bytes of the body, could not say so.
            had_begun = b"\r\n\r\n" in requests[name][:index - 1]
            check(answer.ends or had_begun, f"{name} {index}: {answer.fields}")
            check(client.is_ended(), f"{name} {index}: the end")
        answer = Answer(waiting)
        check(answer.status == 200 and answer.ends and waiting.is_ended(), f"the slow answer: {answer.fields}")
        for client in [idle, fresh, waiting] + [client for _, _, client in busy]:
            client.socket.close()
        check(server.exit_code() == 0, "the exit code")


def drain_timeout(path):
    """a drain ends at its time-out, and at once at a second signal"""
    for second, code in ((False, 0), (True, 128 + signal.SIGTERM)):
        options = ["--drain-timeout", "0.3"] if not second else []
        with Server(path, *options) as server, server.connect() as busy, server.connect() as idle:
            busy.send_apart(GET[:9])
            check(ask(idle, GET).status == 200, "the loop has turned")
            server.signal(signal.SIGINT)
            check(idle.is_ended(), "the drain has begun")
            idle.socket.close()
            if second:
                time.sleep(0.1)  # until then a second signal counts as a copy of the first
                server.signal(signal.SIGTERM)
            check(server.exit_code() == code, "the exit code")


def command_line(path):
    """a used address and unknown options each end with one line on standard error"""
    with Server(path) as server:
        for options, code in ((["--listen", f"127.0.0.1:{server.port}"], 71), (["--bogus", "x"], 64), (["--listen"], 64),
                              (["--max-body", "x"], 64), (["--head-timeout", "nan"], 64)):
            done = subprocess.run([path, *options], capture_output=True, text=True, timeout=PATIENCE)
            check(done.returncode == code and done.stderr.startswith("http-server: ") and done.stderr.count("\n") == 1,
                  f"{options}: {done}")


def closed_streams(path):
    """without standard streams it serves, and nothing that is printed reaches a client"""
    for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            port = unused.getsockname()[1]
        command = ["sh", "-c", f'exec "$0" "$@" {closed}', path, "--listen", f"127.0.0.1:{port}"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_until(lambda: process.poll() is not None or not is_refused(port), "it serves")
            check(process.poll() is None, f"{closed}: it ends with {process.returncode}")
            with Client(port) as client:
                client.send(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
                check(client.read_to_end()[0].startswith(b"HTTP/1.1 200 OK\r\n"), closed)
            process.send_signal(signal.SIGTERM)
            check(process.wait(PATIENCE) == 0, f"{closed}: {process.returncode}")
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


def no_proc(path):
    """without /proc, where Swift reads the command line, it does not listen anywhere else"""
    hide = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc && exec "$0" "$@"']
    if subprocess.run([*hide, "true"], capture_output=True, timeout=PATIENCE).returncode:
        skip("mounting is not allowed")
        return
    done = subprocess.run([*hide, path, "--listen", "127.0.0.1:0"], capture_output=True, text=True, timeout=PATIENCE)
    check(done.returncode == 71 and "/proc" in done.stderr and done.stderr.count("\n") == 1, f"{done}")


def python_client(path):
    """http.client works"""
    with Server(path, "--slowness", "0.01") as server:
        client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        for method, target, body, wanted in (
                ("GET", "/", None, (200, HELLO)), ("HEAD", "/", None, (200, b"")), ("POST", "/echo", b"hello", (200, b"hello")),
                ("POST", "/echo", iter([b"hel", b"lo"]), (200, b"hello")), ("GET", "/slow", None, (200, b"At last\n")),
                ("GET", "/none", None, (404, b"Not found\n"))):
            client.request(method, target, body)
            used = client.sock
            with client.getresponse() as answer:
                got = (answer.status, answer.read())
            check(got == wanted and client.sock is used, f"{method} {target}: {got}")
        client.close()


def curl(path):
    """curl works"""
    curl = program("curl")
    if not curl:
        return
    body = bytes(range(256)) * 4000
    with Server(path) as server:
        url = f"http://127.0.0.1:{server.port}"
        for options, given, wanted in (
                (["/"], b"", HELLO), (["/echo", "--data-binary", "@-"], body, body),
                (["/echo", "-X", "POST", "-T", "-"], body, body),
                (["/echo", "-X", "POST", "-T", "-", "-H", "Expect: 100-continue"], body, body),
                (["-0", "/"], b"", HELLO)):
            command = [curl, "--silent", "--show-error", "--fail", "--max-time", str(PATIENCE)]
            command += [url + option if option.startswith("/") else option for option in options]
            done = subprocess.run(command, input=given, capture_output=True, timeout=PATIENCE)
            check(done.returncode == 0 and done.stdout == wanted, f"{options}: {done.returncode} {done.stderr}")


def wrk(path):
    """wrk meets no error"""
    wrk = program("wrk")
    if not wrk:
        return
    with Server(path) as server:
        done = subprocess.run([wrk, "-t1", "-c20", "-d1", f"http://127.0.0.1:{server.port}/"], capture_output=True, text=True,
                              timeout=PATIENCE)
        check(done.returncode == 0 and "Requests/sec" in done.stdout, f"{done}")
        check("errors" not in done.stdout and "Non-2xx" not in done.stdout, done.stdout)


run("http-server", [
    answers, refusals, fields, head, connection_option, split_anywhere, pipelined, never_reads, streamed, large,
    expect_continue, head_timeout, body_timeout, idle_timeout, slow, gone, drain, drain_timeout, command_line, closed_streams, no_proc,
    websocket_frames, websocket_flood, websocket_client, python_client, curl, wrk,
])

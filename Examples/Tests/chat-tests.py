#!/usr/bin/env python3
"""Runs the chat server and talks to it: chat-tests.py [PATH-OF-CHAT]"""
import signal
import subprocess

from servers import PATIENCE, Server, check, is_refused, run, wait_until


class Guest:
    """A client that has been welcomed and has seen itself join."""

    def __init__(self, server, name=None):
        self.client = server.connect()
        self.buffer = b""
        words = self.line().split()
        check(words[:3] == ["*", "you", "are"], f"the welcome is {words}")
        self.name = words[3]
        self.expect(f"* {self.name} has joined lobby")
        if name:
            self.send(f"/nick {name}")
            self.expect(f"* {self.name} is now {name}")
            self.name = name

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.socket.close()

    def send(self, line):
        self.client.send(line.encode() + b"\n")

    def line(self):
        while b"\n" not in self.buffer:
            piece = self.client.socket.recv(1 << 16)
            check(piece, f"the connection has ended after {self.buffer!r}")
            self.buffer += piece
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line.decode()

    def expect(self, *lines):
        for wanted in lines:
            got = self.line()
            check(got == wanted, f"{got!r} instead of {wanted!r}")

    def rest(self):
        """The lines until the end, and whether it is in order."""
        data, in_order = self.client.read_to_end()
        return (self.buffer + data).decode().splitlines(), in_order


def names(path):
    """clients on both loops get each other's lines, and each client has a name of its own"""
    with Server(path) as server, Guest(server, "ada") as ada, Guest(server) as bob, Guest(server) as eve:
        # Each loop has some of them.
        ada.expect(f"* {bob.name} has joined lobby", f"* {eve.name} has joined lobby")
        bob.expect(f"* {eve.name} has joined lobby")
        bob.send("/nick ada")
        bob.expect("* ada is taken")
        bob.send("/nick bob")
        for guest in (ada, bob, eve):
            guest.expect(f"* {bob.name} is now bob")
        ada.send("hello")
        for guest in (ada, bob, eve):
            guest.expect("ada: hello")
        ada.send("/nick carl")
        bob.expect("* ada is now carl")
        bob.send("/nick ada")
        bob.expect("* bob is now ada")
        for line, answer in (("/nick " + "x" * 21, "* a name has 1 to 20 letters and digits"),
                             ("/nick a-b", "* a name has 1 to 20 letters and digits"),
                             ("/nick", "* /nick NAME, /join ROOM, /quit"),
                             ("/dance", "* /nick NAME, /join ROOM, /quit"),
                             ("/join a/b", "* a room has 1 to 20 letters and digits")):
            bob.send(line)
            bob.expect(answer)


def rooms(path):
    """a line is sent to the clients of its room only"""
    with Server(path) as server, Guest(server, "ada") as ada, Guest(server, "bob") as bob, Guest(server, "eve") as eve:
        ada.expect("* guest2 has joined lobby", "* guest2 is now bob", "* guest3 has joined lobby",
                   "* guest3 is now eve")
        bob.expect("* guest3 has joined lobby", "* guest3 is now eve")
        ada.send("/join tea")
        ada.expect("* ada has joined tea")
        for guest in (bob, eve):
            guest.expect("* ada has left lobby")
        bob.send("/join tea")
        for guest in (ada, bob):
            guest.expect("* bob has joined tea")
        eve.expect("* bob has left lobby")
        eve.send("alone?")
        eve.expect("eve: alone?")
        bob.send("sugar?")
        for guest in (ada, bob):
            guest.expect("bob: sugar?")
        bob.send("/join lobby")
        bob.expect("* bob has joined lobby")
        eve.expect("* bob has joined lobby")
        ada.expect("* bob has left tea")


def leaving(path):
    """when a client quits, ends, resets or sends a line that is too long or no UTF-8, its room is told and its name becomes free"""
    with Server(path) as server, Guest(server, "ada") as ada:
        for number, how in enumerate(("quit", "end", "reset", "endless", "binary"), 2):
            with Guest(server, "bob") as bob:
                if how == "quit":
                    bob.send("/quit")
                elif how == "end":
                    bob.client.end()
                elif how == "reset":
                    bob.client.reset()
                else:
                    bob.client.send(b"x" * 2000 if how == "endless" else b"\xff\n")
                ada.expect(f"* guest{number} has joined lobby", f"* guest{number} is now bob", "* bob has left lobby")
                if how != "reset":
                    word = [] if how in ("quit", "end") else ["* a line has at most 1024 bytes of UTF-8; bye"]
                    got = bob.rest()
                    check(got == (word, True), f"after {how}: {got}")


def escape_sequences(path):
    """control characters do not reach the terminals of others"""
    with Server(path) as server, Guest(server, "ada") as ada:
        for sent, heard in (("\x1b[2Jboo\x07", "\ufffd[2Jboo\ufffd"), ("\x9b31m\x7f\x00\ra: b\r", "\ufffd31m\ufffd\ufffd\ufffda: b"),
                            ("a\tb \u00e9 \U0001f469\u200d\U0001f680", "a\tb \u00e9 \U0001f469\u200d\U0001f680")):
            ada.send(sent)
            ada.expect(f"ada: {heard}")


def one_order(path):
    """all clients get the lines of twenty clients in one order"""
    with Server(path) as server:
        guests = [Guest(server) for _ in range(20)]
        for count in range(20):
            for guest in guests:
                guest.send(f"line {count}")
        heard = []
        for index, guest in enumerate(guests):
            # Those that came later have been announced first.
            guest.expect(*(f"* guest{number} has joined lobby" for number in range(index + 2, 21)))
            heard.append([guest.line() for _ in range(20 * 20)])
        check(len(set(heard[0])) == 400, "every line")
        check(all(lines == heard[0] for lines in heard), "in one order")
        for guest in guests:
            guest.client.socket.close()


def slow_reader(path):
    """a client that never reads is disconnected, and the others do not wait for it"""
    with Server(path, "--queue-limit", "65536") as server, Guest(server, "ada") as ada:
        slow = server.connect(receive_buffer=4096)
        ada.expect("* guest2 has joined lobby")
        # More than the kernel keeps for both sides, and the limit.
        for count in range(20_000):
            ada.send(f"{count} " + "x" * 1000)
            line = ada.line()
            if line == "* guest2 has left lobby":
                break
            check(line.startswith("ada: "), line)
        else:
            raise AssertionError("the client is never disconnected")
        check(not slow.read_to_end()[1], "it is reset")
        slow.socket.close()


def idle_timeout(path):
    """a client that neither sends nor receives anything is disconnected"""
    with Server(path, "--idle-timeout", "0.2") as server, Guest(server) as guest:
        check(guest.rest() == ([], True), "the end")


def drain(path):
    """SIGTERM closes all connections in order, and then the process exits"""
    with Server(path) as server:
        guests = [Guest(server) for _ in range(6)]
        # Half a line: it may be completed.
        guests[-1].client.send_apart(b"/qu")
        server.signal(signal.SIGTERM)
        for guest in guests[:-1]:
            check(guest.rest()[1], "the end")
        wait_until(lambda: is_refused(server.port), "new clients are refused")
        guests[-1].client.send(b"it\n")
        check(guests[-1].rest()[1], "the end of the last")
        for guest in guests:
            guest.client.socket.close()
        check(server.exit_code() == 0, "the exit code")


def second_signal(path):
    """a second signal resets the remaining connections"""
    with Server(path) as server, Guest(server) as busy, Guest(server) as idle:
        busy.client.send_apart(b"half a line")
        server.signal(signal.SIGINT)
        check(idle.rest()[1], "the drain has begun")
        server.signal(signal.SIGTERM)
        check(not busy.rest()[1], "the reset")
        check(server.exit_code() == 0, "the exit code")


def command_line(path):
    """a used address and unknown options each end with one line on standard error"""
    with Server(path) as server:
        for options, code in ((["--listen", f"127.0.0.1:{server.port}"], 71), (["--bogus", "x"], 64), (["--listen"], 64)):
            done = subprocess.run([path, *options], capture_output=True, text=True, timeout=PATIENCE)
            check(done.returncode == code and done.stderr.startswith("chat: ") and done.stderr.count("\n") == 1,
                  f"{options}: {done}")


run("chat", [
    names, rooms, leaving, escape_sequences, one_order, slow_reader, idle_timeout, drain, second_signal, command_line,
])

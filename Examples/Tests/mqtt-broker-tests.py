#!/usr/bin/env python3
"""Runs the MQTT broker and talks to it: mqtt-broker-tests.py [PATH-OF-MQTT-BROKER]"""
import signal
import struct
import subprocess

from servers import PATIENCE, Server, check, is_refused, program, run, wait_until


def text(value):
    data = value if isinstance(value, bytes) else value.encode()
    return struct.pack(">H", len(data)) + data


def packet(first, body=b""):
    length, rest = b"", len(body)
    while True:
        length += bytes([rest % 128 | (128 if rest > 127 else 0)])
        rest //= 128
        if not rest:
            return bytes([first]) + length + body


class Client:
    """A raw client that has connected."""

    def __init__(self, server, name="", keep_alive=0, will=None, receive_buffer=None):
        self.client = server.connect(receive_buffer)
        flags = 2 | (4 if will else 0)
        self.send(0x10, text("MQTT") + bytes([4, flags]) + struct.pack(">H", keep_alive) + text(name)
                  + b"".join(map(text, will or ())))
        check(self.packet() == (0x20, b"\0\0"), "the connection is accepted")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.socket.close()

    def send(self, first, body=b""):
        self.client.send(packet(first, body))

    def packet(self):
        first, length, shift = self.client.read(1), 0, 0
        while first:
            byte = self.client.read(1)[0]
            length |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return first[0], self.client.read(length)
        return None

    def expect(self, first, body=b""):
        got = self.packet()
        check(got == (first, body), f"{got} instead of {(first, body)}")

    def subscribe(self, topic, quality=0):
        self.send(0x82, b"\0\7" + text(topic) + bytes([quality]))
        self.expect(0x90, bytes([0, 7, quality]))

    def publish(self, topic, payload, retained=False):
        self.send(0x30 | retained, text(topic) + payload.encode())

    def ping(self):
        self.send(0xC0)
        self.expect(0xD0)


def topics(path):
    """a message is sent to those whose filters match, on both loops, and to none after UNSUBSCRIBE"""
    with Server(path) as server, Client(server) as one, Client(server) as two, Client(server) as third:
        one.subscribe("a/+/c")
        two.subscribe("a/#")
        third.subscribe("#")
        for topic, readers in (("a/b/c", (one, two, third)), ("a", (two, third)), ("a/b", (two, third)), ("$x", ()),
                               ("a//c", (one, two, third)), ("b/b/c", (third,))):
            one.publish(topic, "x")
            for reader in readers:
                reader.expect(0x30, text(topic) + b"x")
        two.send(0xA2, b"\0\x08" + text("a/#"))
        two.expect(0xB0, b"\0\x08")
        one.publish("a/b/c", "y")
        one.expect(0x30, text("a/b/c") + b"y")
        two.ping()


def retained(path):
    """the last retained message of a topic is sent to new subscribers, until an empty one removes it"""
    with Server(path) as server, Client(server) as one:
        one.publish("t", "old", retained=True)
        one.publish("t", "new", retained=True)
        one.subscribe("t")
        one.expect(0x31, text("t") + b"new")
        one.publish("t", "live", retained=True)
        one.expect(0x30, text("t") + b"live")
        one.publish("t", "", retained=True)
        one.expect(0x30, text("t"))
        with Client(server) as two:
            two.subscribe("t")
            two.ping()


def acknowledged(path):
    """quality 1 is acknowledged on both sides, and limited by that of the subscription"""
    with Server(path) as server, Client(server) as one, Client(server) as two:
        one.subscribe("t", 1)
        two.subscribe("t", 0)
        for number in (1, 2):
            two.send(0x32, text("t") + b"\0\x09" + b"x")
            check({two.packet(), two.packet()} == {(0x40, b"\0\x09"), (0x30, text("t") + b"x")}, "both packets")
            one.expect(0x32, text("t") + bytes([0, number]) + b"x")
            one.send(0x40, bytes([0, number]))
        one.ping()


def wills(path):
    """the will of a client is published when it leaves without a word, is reset, silent or replaced, and not otherwise"""
    with Server(path) as server, Client(server) as watcher:
        watcher.subscribe("will")
        for how in ("word", "end", "reset", "silence", "other", "garbage", "short body"):
            with Client(server, "ada", 1 if how == "silence" else 0, ("will", how)) as ada:
                if how == "word":
                    ada.send(0xE0)
                    check(ada.client.is_ended(), "the end")
                    watcher.ping()
                    continue
                if how == "end":
                    ada.client.end()
                elif how == "reset":
                    ada.client.reset()
                elif how == "garbage":
                    ada.client.send(b"\xff\0")
                elif how == "short body":
                    # Its length says that it is complete: further bytes would not help.
                    ada.send(0x30, b"\0\x09t")
                elif how == "other":
                    with Client(server, "ada"):
                        pass
                watcher.expect(0x30, text("will") + how.encode())


def one_order(path):
    """all clients get the messages of ten clients in one order"""
    with Server(path) as server:
        clients = [Client(server) for _ in range(10)]
        for client in clients:
            client.subscribe("t")
        for count in range(20):
            for index, client in enumerate(clients):
                client.publish("t", f"{index} {count}")
        heard = [[client.packet() for _ in range(200)] for client in clients]
        check(len(set(heard[0])) == 200, "every message")
        check(all(messages == heard[0] for messages in heard), "in one order")
        for client in clients:
            client.client.socket.close()


def other_texts(path):
    """texts are equal if their bytes are: none is normalized, and a combining mark joins nothing"""
    composed, decomposed, mark = "caf\u00e9", "cafe\u0301", "\u0301"
    with Server(path) as server, Client(server, composed) as one, Client(server, decomposed) as two:
        one.subscribe(composed)
        two.subscribe("x/+")
        two.subscribe("#")
        one.publish(decomposed, "1")
        two.expect(0x30, text(decomposed) + b"1")
        one.publish(composed, "2")
        one.expect(0x30, text(composed) + b"2")
        two.expect(0x30, text(composed) + b"2")
        with Client(server) as third:
            third.subscribe("x/+")
            one.publish(f"x/{mark}y", "3")
            for reader in (two, third):
                reader.expect(0x30, text(f"x/{mark}y") + b"3")
        # One of the broker's own topics, whatever follows the dollar sign.
        one.publish(f"${mark}SYS", "4")
        for topic in ("+" + mark, "#" + mark, "a/#" + mark):
            one.publish("t", "5")
            one.send(0x30, text(topic) + b"x")
            check(one.client.is_ended(), "a wildcard is one before a mark too")
            two.expect(0x30, text("t") + b"5")
            one = Client(server, composed)
        two.ping()
        one.client.socket.close()


MQTT = text("MQTT")


def malformed(path):
    """what MQTT calls malformed ends the connection, with the answer that it asks for, and reaches no other client"""
    def connect(flags, *rest, name="n", protocol=MQTT, version=4):
        return packet(0x10, protocol + bytes([version, flags, 0, 9]) + text(name) + b"".join(map(text, rest)))

    at_connect = {
        "the reserved flag": connect(3), "a will of quality 3": connect(0x1E, "t", "w"),
        "the quality of no will": connect(0xA), "the retention of no will": connect(0x22),
        "a password without a name": connect(0x42, "p"), "a zero in the name": connect(2, name="a\0b"),
        "a zero in the will's topic": connect(6, "a\0b", "w"), "a wildcard in the will's topic": connect(6, "a/#", "w"),
        "a will without a topic": connect(6, "", "w"), "another protocol": connect(2, protocol=text("MQTU")),
        "a name that is no UTF-8": connect(2, name=b"\xc0\x80"), "a surrogate": connect(2, name=b"\xed\xa0\x80"),
        "a body that is too long": packet(0x10, MQTT + b"\4\2\0\0" + text("n") + b"x"), "flags": b"\x11\0",
        "no CONNECT": packet(0x30, text("t")),
    }
    answered = {
        "version 3": (connect(2, version=3), 1), "version 3.1": (connect(2, protocol=text("MQIsdp"), version=3), 1),
        "version 5": (connect(2, version=5), 1), "no name and a session to keep": (connect(0, name=""), 2),
    }
    later = {
        "a PUBLISH with the number 0": packet(0x32, text("t") + b"\0\0x"), "quality 3": packet(0x36, text("t") + b"\0\1x"),
        "a copy of quality 0": packet(0x38, text("t") + b"x"), "a zero": packet(0x30, text("a\0b") + b"x"),
        "a topic without bytes": packet(0x30, text("") + b"x"), "a wildcard": packet(0x30, text("a/+") + b"x"),
        "no UTF-8": packet(0x30, text(b"a\xff") + b"x"),
        "a SUBSCRIBE with the number 0": packet(0x82, b"\0\0" + text("t") + b"\0"),
        "a SUBSCRIBE of quality 3": packet(0x82, b"\0\1" + text("t") + b"\3"),
        "a SUBSCRIBE with reserved bits": packet(0x82, b"\0\1" + text("t") + b"\4"), "no filter": packet(0x82, b"\0\1"),
        "a SUBSCRIBE with flags": packet(0x80, b"\0\1" + text("t") + b"\0"),
        "a filter without bytes": packet(0x82, b"\0\1" + text("") + b"\0"),
        "a filter with a zero": packet(0x82, b"\0\1" + text("a\0") + b"\0"),
        "a filter with a wildcard inside": packet(0x82, b"\0\1" + text("a+/b") + b"\0"),
        "a filter with an early #": packet(0x82, b"\0\1" + text("#/b") + b"\0"),
        "an UNSUBSCRIBE with the number 0": packet(0xA2, b"\0\0" + text("t")),
        "a PUBACK with the number 0": packet(0x40, b"\0\0"), "a second CONNECT": connect(2), "a kind of no use": b"\xf0\0",
        "a PING with a body": packet(0xC0, b"x"),
    }
    with Server(path) as server, Client(server) as watcher:
        watcher.subscribe("#")
        for what, data in at_connect.items():
            with server.connect() as client:
                client.send(data)
                check(client.read_to_end()[0] == b"", what)
        for what, (data, code) in answered.items():
            with server.connect() as client:
                client.send(data)
                got = client.read_to_end()
                check(got == (bytes([0x20, 2, 0, code]), True), f"{what}: {got}")
        for what, data in later.items():
            with Client(server) as client:
                client.client.send(data)
                check(client.client.read_to_end()[0] == b"", what)
        watcher.ping()
        # What is legal, next to it.
        for data in (connect(2), connect(0xC6, "t", "w", "user", "password"), connect(2, name=""), connect(0x36, "t", "w")):
            with server.connect() as client:
                client.send(data)
                check(client.read(4) == b"\x20\2\0\0", "a CONNECT that is right")
                client.send(packet(0xE0))
                check(client.is_ended(), "the end")


def limits(path):
    """beyond the limits a subscription is refused, and who sends too much or lets too much be retained is disconnected"""
    with Server(path, "--max-subscriptions", "2", "--max-packet", "1000", "--retained-limit", "2000") as server:
        with Client(server) as one, Client(server) as two:
            one.subscribe("a")
            one.subscribe("b")
            one.send(0x82, b"\0\7" + text("c") + b"\0" + text("a") + b"\1")
            one.expect(0x90, b"\0\7\x80\1")
            two.publish("c", "x")
            one.ping()
            one.send(0xA2, b"\0\x08" + text("b"))
            one.expect(0xB0, b"\0\x08")
            one.subscribe("c")
            # Replaced, and removed, it does not count twice.
            for size in (900, 800, 900, 0, 900):
                two.publish("t", "x" * size, retained=True)
            two.publish("u", "x" * 900, retained=True)
            check(two.client.read_to_end()[0] == b"", "no more is retained")
            with Client(server) as third:
                third.subscribe("#")
                third.expect(0x31, text("t") + b"x" * 900)
                third.send(0x30, text("t") + b"x" * 1000)
                check(third.client.read_to_end()[0] == b"", "the packet is too large")


def slow_reader(path):
    """a subscriber that never reads is disconnected, and the others do not wait for it"""
    with Server(path, "--queue-limit", "65536") as server, Client(server) as watcher:
        watcher.subscribe("#")
        slow = Client(server, will=("will", "slow"), receive_buffer=4096)
        slow.subscribe("t")
        for _ in range(20_000):
            watcher.publish("t", "x" * 1000)
            if watcher.packet() == (0x30, text("will") + b"slow"):
                break
        else:
            raise AssertionError("the client is never disconnected")
        check(not slow.client.read_to_end()[1], "it is reset")
        slow.client.socket.close()


def drain(path):
    """SIGTERM closes the connections between two packets, and then the process exits"""
    with Server(path) as server:
        clients = [Client(server) for _ in range(6)]
        clients[-1].client.send_apart(b"\xc0")
        server.signal(signal.SIGTERM)
        for client in clients[:-1]:
            check(client.client.is_ended(), "the end")
        wait_until(lambda: is_refused(server.port), "new clients are refused")
        clients[-1].client.send(b"\0")
        check(clients[-1].client.read_to_end() == (b"\xd0\0", True), "the answer and the end of the last")
        for client in clients:
            client.client.socket.close()
        check(server.exit_code() == 0, "the exit code")


def mosquitto(path):
    """mosquitto's clients publish and subscribe, with retained messages, wills and quality 1"""
    names = program("mosquitto_pub", "its clients") and program("mosquitto_sub", "its clients")
    if not names:
        return
    with Server(path) as server:
        def command(name, *options):
            return [name, "-h", "127.0.0.1", "-p", str(server.port), *options]

        def publish(*options):
            subprocess.run(command("mosquitto_pub", *options), check=True, timeout=PATIENCE)

        publish("-t", "home/a", "-m", "warm", "-r", "-q", "1")
        # Its own retained message says that it has subscribed.
        with subprocess.Popen(command("mosquitto_sub", "-t", "home/#", "-t", "will", "-q", "1", "-C", "4", "-F", "%t %p %q %r"),
                              stdout=subprocess.PIPE, text=True) as reader:
            check(reader.stdout.readline() == "home/a warm 1 1\n", "the retained message")
            publish("-t", "home/b", "-m", "x" * 50_000, "-q", "1")
            check(reader.stdout.readline() == f"home/b {'x' * 50_000} 1 0\n", "a large message")
            publish("-t", "home/c", "-m", "cold")
            check(reader.stdout.readline() == "home/c cold 0 0\n", "a message")
            dying = subprocess.Popen(command("mosquitto_sub", "-t", "home/a", "--will-topic", "will", "--will-payload", "gone"),
                                     stdout=subprocess.PIPE)
            dying.stdout.readline()
            dying.kill()
            dying.communicate()
            check(reader.stdout.readline() == "will gone 0 0\n", "the will")
            check(reader.wait(PATIENCE) == 0, "its exit code")


def command_line(path):
    """a used address and unknown options each end with one line on standard error"""
    with Server(path) as server:
        for options, code in ((["--listen", f"127.0.0.1:{server.port}"], 71), (["--bogus", "x"], 64), (["--listen"], 64)):
            done = subprocess.run([path, *options], capture_output=True, text=True, timeout=PATIENCE)
            check(done.returncode == code and done.stderr.startswith("mqtt-broker: ") and done.stderr.count("\n") == 1,
                  f"{options}: {done}")


run("mqtt-broker", [
    topics, retained, acknowledged, wills, one_order, other_texts, malformed, limits, slow_reader, drain, mosquitto,
    command_line,
])

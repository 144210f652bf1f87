#!/usr/bin/env python3
"""Races Examples/mqtt-broker against mosquitto: messages of 74 bytes to ten subscribers, quality 0.

    swift build -c release --package-path Examples --product mqtt-broker
    Benchmarks/protocols/mqtt.py

measuring.py describes the comparison; a request is a delivered message. A batch of messages, of the size in column P, is
published at once, and the next one when each subscriber has received it. The exit status is that of redis.py.
"""
import os
import socket
import struct
import time

from measuring import RaceError, Server, are_installed, cpu_nanoseconds, options, other_builds, product_command, race, report, run
from redis import RedisServer

OURS, MOSQUITTO = "mqtt-broker", "mosquitto"
# See `report`.
TARGETS = {1: (1.0, None), 20: (1.0, None)}
TOPIC = b"race"
SUBSCRIBERS = 10


class Mosquitto(RedisServer):
    """mosquitto without a configuration, which listens only on loopback and does not accept port 0."""

    OPTIONS = "-p"


def text(value):
    return struct.pack(">H", len(value)) + value


def client(server, *requests):
    """A connected client whose requests have all been answered."""
    peer = socket.create_connection(("127.0.0.1", server.port), 10)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    name = os.urandom(6).hex().encode()
    connect = b"\x10" + bytes([12 + len(name)]) + text(b"MQTT") + b"\4\2\0\0" + text(name)
    for request, answer in ((connect, 4), *requests):
        peer.sendall(request)
        receive(peer, answer)
    return peer


def receive(peer, count):
    while count > 0:
        got = len(peer.recv(min(count, 1 << 16)))
        if got == 0:
            raise RaceError("the broker has ended a connection")
        count -= got


def measure(server, cell, cpu, arguments):
    if cpu is not None:
        os.sched_setaffinity(0, {cpu})
    subscribe = b"\x82" + bytes([5 + len(TOPIC)]) + b"\0\1" + text(TOPIC) + b"\0"
    subscribers = [client(server, (subscribe, 5)) for _ in range(SUBSCRIBERS)]
    publisher = client(server)
    body = text(TOPIC) + b"x" * (72 - len(text(TOPIC)))
    batch = (b"\x30" + bytes([len(body)]) + body) * cell[1]
    rounds = arguments.messages // cell[1]
    before, began = cpu_nanoseconds(server.process.pid), time.monotonic()
    for _ in range(rounds):
        publisher.sendall(batch)
        for subscriber in subscribers:
            receive(subscriber, len(batch))
    used, seconds = (cpu_nanoseconds(server.process.pid) - before) / 1000, time.monotonic() - began
    for peer in (*subscribers, publisher):
        peer.close()
    delivered = rounds * cell[1] * SUBSCRIBERS
    return used / delivered, delivered / seconds


def main():
    parser = options(__doc__)
    parser.add_argument("--messages", type=int, default=20_000, help="messages that are published in a run")
    parser.set_defaults(pipelines=[1, 20])
    arguments = parser.parse_args()
    if not are_installed(MOSQUITTO):
        return 0
    contestants = {OURS: (Server, product_command(OURS, "Examples"))} | other_builds(arguments)
    contestants[MOSQUITTO] = (Mosquitto, MOSQUITTO)
    cells = [("send", pipeline) for pipeline in arguments.pipelines]
    samples = race(contestants, cells, lambda server, cell, cpu: measure(server, cell, cpu, arguments), arguments)
    return report(samples, cells, MOSQUITTO, TARGETS)


if __name__ == "__main__":
    run("mqtt.py", main)

"""The frames of RFC 6455, sent to a server that sends messages back; and the package `websockets`, where it is installed."""
import asyncio
import os
import socket
import struct
import time

from servers import PATIENCE, Server, check

HANDSHAKE = (
    b"GET /socket HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
LIMIT = 1 << 20
TEXT, BYTES, CLOSE, PING, PONG = 1, 2, 8, 9, 10


def frame(opcode, payload=b"", last=True, reserved=0, masked=True):
    """A frame of a client; of a server if it is not masked."""
    first = last << 7 | reserved << 4 | opcode
    count = len(payload)
    short, more = (count, b"") if count < 126 else (126, struct.pack(">H", count)) if count < 65_536 else (127, struct.pack(">Q", count))
    if not masked:
        return bytes([first, short]) + more + payload
    mask = os.urandom(4)
    pad = (mask * (count // 4 + 1))[:count]
    mixed = (int.from_bytes(payload, "big") ^ int.from_bytes(pad, "big")).to_bytes(count, "big")
    return bytes([first, short | 0x80]) + more + mask + mixed


def answer(opcode, payload=b""):
    return frame(opcode, payload, masked=False)


def closed(code):
    return answer(CLOSE, struct.pack(">H", code))


def message(opcode, payload, *lengths):
    """A message in fragments of these lengths, and one of the rest."""
    frames, start = [], 0
    for count in lengths:
        frames.append(frame(opcode if start == 0 and not frames else 0, payload[start:start + count], last=False))
        start += count
    return b"".join(frames) + frame(0 if frames else opcode, payload[start:])


BYE, GOODBYE = frame(CLOSE, struct.pack(">H", 1000)), closed(1000)
WORDS = "Hello, \N{GREEK SMALL LETTER MU}\N{EURO SIGN}\U0001F600!".encode()

# Section 5: what is sent, and what is answered before the connection ends.
CASES = [(frame(kind, data) + BYE, answer(kind, data) + GOODBYE)
         for kind in (TEXT, BYTES) for data in (b"*" * n for n in (0, 1, 125, 126, 127, 128, 65_535, 65_536, LIMIT))]
CASES += [(message(kind, b"*" * LIMIT, *[size] * (LIMIT // size - 1)) + BYE, answer(kind, b"*" * LIMIT) + GOODBYE)
          for kind in (TEXT, BYTES) for size in (1024, 65_536)]
CASES += [
    # Control frames: pings have the same payload, pongs mean nothing.
    (frame(PING) + BYE, answer(PONG) + GOODBYE),
    (frame(PING, b"a" * 125) + BYE, answer(PONG, b"a" * 125) + GOODBYE),
    (frame(PING, b"\xff\x00") * 10 + BYE, answer(PONG, b"\xff\x00") * 10 + GOODBYE),
    (frame(PING, b"a" * 126), closed(1002)),
    (frame(PONG) + frame(PONG, b"x") + frame(PING, b"y") + BYE, answer(PONG, b"y") + GOODBYE),
    (frame(PING, b"a", last=False), closed(1002)), (frame(PONG, b"a", last=False), closed(1002)),
    # Reserved bits and opcodes, and a frame without a mask.
    *[(frame(TEXT, b"a") + frame(TEXT, b"b", reserved=bits), answer(TEXT, b"a") + closed(1002)) for bits in range(1, 8)],
    *[(frame(PING, b"a", reserved=bits), closed(1002)) for bits in range(1, 8)],
    *[(frame(TEXT, b"a") + frame(code, b"b"), answer(TEXT, b"a") + closed(1002)) for code in (3, 4, 5, 6, 7, 11, 12, 13, 14, 15)],
    (frame(TEXT, b"a", masked=False), closed(1002)),
    # Lengths in more bytes than needed, and one that no message has.
    (b"\x82\xfe\x00\x05abcdabcde", closed(1002)), (b"\x82\xff" + struct.pack(">Q", 65_535), closed(1002)),
    (b"\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff", closed(1009)),
    # Fragments, with control frames between them.
    (message(TEXT, WORDS, 3) + BYE, answer(TEXT, WORDS) + GOODBYE),
    (message(TEXT, WORDS, *[1] * (len(WORDS) - 1)) + BYE, answer(TEXT, WORDS) + GOODBYE),
    (message(BYTES, b"ab", 0, 0, 1, 0) + BYE, answer(BYTES, b"ab") + GOODBYE),
    (message(TEXT, b"", 0, 0) + BYE, answer(TEXT) + GOODBYE),
    (frame(TEXT, b"a", last=False) + frame(PING, b"p") + frame(PONG) + frame(0, b"b") + BYE, answer(PONG, b"p") + answer(TEXT, b"ab") + GOODBYE),
    (frame(TEXT, b"a", last=False) + BYE, GOODBYE),
    (frame(0, b"a"), closed(1002)), (frame(0, b"a", last=False), closed(1002)),
    (frame(TEXT, b"a", last=False) + frame(TEXT, b"b"), closed(1002)),
    (frame(TEXT, b"a", last=False) + frame(0, b"b") + frame(0, b"c"), answer(TEXT, b"ab") + closed(1002)),
    # Limits.
    (frame(BYTES, b"*" * (LIMIT + 1)), closed(1009)),
    (message(BYTES, b"*" * (LIMIT + 1), LIMIT // 2), closed(1009)),
    # Section 5.5.1: closes.
    (frame(CLOSE), answer(CLOSE)), (frame(CLOSE, b"\x03"), closed(1002)), (frame(CLOSE, b"\x03\xe8" + b"a" * 124), closed(1002)),
    (frame(CLOSE, b"\x03\xe8" + b"a" * 123), GOODBYE), (frame(CLOSE, b"\x03\xe8bye \xc3\xa9"), GOODBYE),
    (frame(CLOSE, b"\x03\xe8\xc3\x28"), closed(1007)),
    (BYE + frame(TEXT, b"late") + frame(PING), GOODBYE),
    *[(frame(CLOSE, struct.pack(">H", code)), closed(code))
      for code in (1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999)],
    *[(frame(CLOSE, struct.pack(">H", code)), closed(1002))
      for code in (0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535)],
]
# Section 8.1: texts are UTF-8, of the shortest form, up to U+10FFFF, without surrogates.
GOOD = [b"\x7f", b"\xc2\x80", b"\xdf\xbf", b"\xe0\xa0\x80", b"\xed\x9f\xbf", b"\xee\x80\x80", b"\xef\xbf\xbf", b"\xf0\x90\x80\x80",
        b"\xf4\x8f\xbf\xbf", b"\x00", b"\xef\xbb\xbf"]
POOR = [b"\x80", b"\xbf", b"\xc0\x80", b"\xc1\xbf", b"\xc2", b"\xe0\x9f\xbf", b"\xe2\x82", b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xf0\x8f\xbf\xbf",
        b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xf8\x88\x80\x80\x80", b"\xfe", b"\xff", b"a\xc3("]
CASES += [(message(TEXT, text, *cut) + BYE, answer(TEXT, text) + GOODBYE) for text in GOOD for cut in ([], [1])]
CASES += [(message(TEXT, text, *cut) + BYE, closed(1007)) for text in POOR for cut in ([], [1])]


def converse(server, pieces):
    """What is answered to a handshake and these pieces, until the connection ends."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            for piece in pieces:
                client.sendall(piece)
        except OSError:
            # It has refused the first of it.
            pass
        data = b""
        while more := client.recv(1 << 16):
            data += more
    head, _, rest = data.partition(b"\r\n\r\n")
    check(head.startswith(b"HTTP/1.1 101 ") and b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in head, f"{head!r}")
    return rest


def websocket_frames(path):
    """the frames of a WebSocket are answered or refused as RFC 6455 says"""
    with Server(path) as server:
        for sent, wanted in CASES:
            # At once behind the handshake; and byte by byte if that does not take long.
            for pieces in [[HANDSHAKE + sent]] + [[HANDSHAKE] + [sent[i:i + 1] for i in range(len(sent))]] * (len(sent) < 300):
                got = converse(server, pieces)
                check(got == wanted, f"{sent[:60]!r} is answered by {got[:60]!r}, not by {wanted[:60]!r}")


def websocket_flood(path):
    """a client that sends pings and never reads is paused, and others are served"""
    with Server(path) as server, server.connect(receive_buffer=4096) as client:
        client.send(HANDSHAKE)
        client.socket.setblocking(False)
        pings, sent, last = frame(PING, b"p") * 10_000, 0, time.monotonic()
        while time.monotonic() - last < 0.5:
            try:
                sent += client.socket.send(pings[sent % len(pings):])
                last = time.monotonic()
            except BlockingIOError:
                time.sleep(0.01)
        check(sent < 64 << 20, f"{sent} bytes of pings are taken")
        check(converse(server, [HANDSHAKE + BYE]) == GOODBYE, "another client is served")


def websocket_client(path):
    """the client of the package websockets works"""
    try:
        from websockets.asyncio.client import connect
    except ImportError:
        return
    with Server(path) as server:

        async def talk():
            async with connect(f"ws://127.0.0.1:{server.port}/socket", max_size=None, compression="deflate") as client:
                for sent in ("", "Hello, \N{GREEK SMALL LETTER MU}", b"", bytes(range(256)) * 4096, "x" * LIMIT):
                    await client.send(sent)
                    check(await client.recv() == sent, f"{sent[:20]!r} comes back")
                await client.send(["one ", "message ", "in ", "parts"])
                check(await client.recv() == "one message in parts", "parts are joined")
                await asyncio.wait_for(await client.ping(), PATIENCE)
                await client.close(4000, "done")
                check(client.close_code == 4000, f"{client.close_code}")

        asyncio.run(asyncio.wait_for(talk(), PATIENCE))

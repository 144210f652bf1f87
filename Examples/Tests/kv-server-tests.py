#!/usr/bin/env python3
"""Runs the kv-server and talks to it byte by byte: kv-server-tests.py [PATH-OF-KV-SERVER]

With redis-cli, redis-benchmark and redis-server, where they are installed: their clients, and each answer beside redis's.
"""
import resource
import signal
import socket
import subprocess
import time

from servers import PATIENCE, Server, check, is_refused, program, run, wait_until


def command(*words):
    """A request of these words."""
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def commands(text):
    """A command a line, its words between blanks."""
    return b"".join(command(*line.split()) for line in text.strip().splitlines())


def conversation(server, sent):
    """What the server says until it closes, when the client has sent all and then its end."""
    with server.connect() as client:
        client.send(sent)
        client.end()
        return client.read_to_end()


def read_line(client):
    """One line of an answer, without its end."""
    line = b""
    while not line.endswith(b"\r\n"):
        byte = client.read(1)
        check(byte, f"an answer: the connection has ended behind {line}")
        line += byte
    return line[:-2]


def ask(client, *words):
    """One command, and the one line of its answer."""
    client.send(command(*words))
    return read_line(client)


def statistic(client, name):
    """A number of the answer to INFO."""
    length = int(ask(client, "INFO")[1:])
    text = client.read(length + 2).decode()
    return int(dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)[name])


def expect(server, sent, answer):
    """This is the whole answer to what is sent, and the connection ends in order."""
    check_answer(sent, conversation(server, sent), (answer, True))


def check_answer(sent, got, wanted):
    """Compares two pairs: the bytes of an answer, and whether the connection ended in order."""
    check(got == wanted, f"{sent[:80]!r} is answered by {got[0][:200]!r}, in order: {got[1]}, not by {wanted[0][:200]!r}")


# What is answered. The answers are redis's, which `beside_redis` holds them against where it is installed.

COMMANDS = [
    ("PING\nPING hello\nECHO hello\nSELECT 0",
     b"+PONG\r\n$5\r\nhello\r\n$5\r\nhello\r\n+OK\r\n"),
    ("SET a 1\nGET a\nINCR a\nINCRBY a -5\nGET a\nINCR none\nGET nothing\nDEL a a none\nEXISTS a none none",
     b"+OK\r\n$1\r\n1\r\n:2\r\n:-3\r\n$2\r\n-3\r\n:1\r\n$-1\r\n:2\r\n:0\r\n"),
    ("SET k v EX 100\nTTL k\nSET k v\nTTL k\nTTL none\nPTTL none\nEXPIRE k 50\nTTL k\nPEXPIRE k -1\nGET k\nEXPIRE k 1",
     b"+OK\r\n:100\r\n+OK\r\n:-1\r\n:-2\r\n:-2\r\n:1\r\n:50\r\n:1\r\n$-1\r\n:0\r\n"),
    ("SET a 9 EX 100\nINCR a\nINCR a\nGET a\nTTL a\nSET a 07 GET\nGET a\nSET a -7\nINCRBY a 0\nGET a",
     b"+OK\r\n:10\r\n:11\r\n$2\r\n11\r\n:100\r\n$2\r\n11\r\n$2\r\n07\r\n+OK\r\n:-7\r\n$2\r\n-7\r\n"),
    ("SET n 1 NX\nset n 2 nx\nGET n\nSET n 3 XX px 100000\nGET n\nSET m 1 XX",
     b"+OK\r\n$-1\r\n$1\r\n1\r\n+OK\r\n$1\r\n3\r\n$-1\r\n"),
    ("LPUSH l a b c\nLRANGE l 0 -1\nLRANGE l -2 100\nLRANGE l 5 9\nLRANGE l -9 -3\nLLEN l\nLLEN none",
     b":3\r\n*3\r\n$1\r\nc\r\n$1\r\nb\r\n$1\r\na\r\n*2\r\n$1\r\nb\r\n$1\r\na\r\n*0\r\n*1\r\n$1\r\nc\r\n:3\r\n:0\r\n"),
    ("CONFIG GET save\nCONFIG GET nothing\nPUBLISH nowhere x\nFLUSHALL\nDBSIZE\nSET a b\nDBSIZE",
     b"*2\r\n$4\r\nsave\r\n$0\r\n\r\n*0\r\n:0\r\n+OK\r\n:0\r\n+OK\r\n:1\r\n"),
    ("SUBSCRIBE x y\nPING\nPING m\nUNSUBSCRIBE x\nUNSUBSCRIBE\nUNSUBSCRIBE\nPING",
     b"*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\ny\r\n:2\r\n"
     b"*2\r\n$4\r\npong\r\n$0\r\n\r\n*2\r\n$4\r\npong\r\n$1\r\nm\r\n"
     b"*3\r\n$11\r\nunsubscribe\r\n$1\r\nx\r\n:1\r\n*3\r\n$11\r\nunsubscribe\r\n$1\r\ny\r\n:0\r\n"
     b"*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n+PONG\r\n"),
    ("SET k a\nSET k b GET\nSET k c NX GET\nGET k\nSET none c XX GET\nSET none c NX GET\nGET none\nLPUSH l x\nSET l y GET",
     b"+OK\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nb\r\n$-1\r\n$-1\r\n$1\r\nc\r\n:1\r\n"
     b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"),
    ("SET k a EX 100\nSET k b KEEPTTL\nTTL k\nSET k c\nTTL k\nSET k d EXAT 99999999999\nGET k\nSET k e PXAT 1\nGET k",
     b"+OK\r\n+OK\r\n:100\r\n+OK\r\n:-1\r\n+OK\r\n$1\r\nd\r\n+OK\r\n$-1\r\n"),
    ("SET k a\nEXPIRE k 10 XX\nEXPIRE k 10 GT\nEXPIRE k 10 LT\nEXPIRE k 20 NX\nEXPIRE k 20 LT\nEXPIRE k 20 gt\nTTL k\n"
     "EXPIRE k 30 XX GT\nTTL k\nEXPIRE k -1 LT\nGET k\nEXPIRE k 10 NX",
     b"+OK\r\n:0\r\n:0\r\n:1\r\n:0\r\n:0\r\n:1\r\n:20\r\n:1\r\n:30\r\n:1\r\n$-1\r\n:0\r\n"),
    ("SUBSCRIBE x\nRESET\nPING\nPUBLISH x y\nFLUSHALL SYNC\nFLUSHALL async", b"*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n"
     b"+RESET\r\n+PONG\r\n:0\r\n+OK\r\n+OK\r\n"),
    # A request of HTTP; see `http`.
    ("POST / HTTP/1.1\nSET a b", b""), ("hOsT: x\nSET a b", b""),
    ("QUIT\nPING", b"+OK\r\n"),
]

# Commands that are refused, each with the text behind "-".
REFUSALS = [
    ("SET s abc\nINCR s", "ERR value is not an integer or out of range"),
    ("SET s 01\nINCR s", "ERR value is not an integer or out of range"),
    ("SET s 9223372036854775807\nINCR s", "ERR increment or decrement would overflow"),
    ("SET s 9223372036854775806\nINCR s\nINCR s", "ERR increment or decrement would overflow"),
    ("DEL s\nINCR s\nLPUSH s 1", "WRONGTYPE Operation against a key holding the wrong kind of value"),
    ("DEL s\nLPUSH s 1\nINCR s", "WRONGTYPE Operation against a key holding the wrong kind of value"),
    ("SET s x\nLPUSH s 1", "WRONGTYPE Operation against a key holding the wrong kind of value"),
    ("SET s x\nLRANGE s 0 1", "WRONGTYPE Operation against a key holding the wrong kind of value"),
    ("DEL l\nLPUSH l x\nGET l", "WRONGTYPE Operation against a key holding the wrong kind of value"),
    ("GET", "ERR wrong number of arguments for 'get' command"),
    ("get a b", "ERR wrong number of arguments for 'get' command"),
    ("SET a", "ERR wrong number of arguments for 'set' command"),
    ("SET a b EX", "ERR syntax error"),
    ("SET a b NX XX", "ERR syntax error"),
    ("SET a b EX 1 PX 1", "ERR syntax error"),
    ("SET a b later", "ERR syntax error"),
    ("SET a b \u212aEEPTTL", "ERR syntax error"),
    ("SET a b EX soon", "ERR value is not an integer or out of range"),
    ("SET a b EX 0", "ERR invalid expire time in 'set' command"),
    ("SET a b EX 9223372036854775807", "ERR invalid expire time in 'set' command"),
    ("EXPIRE a 9223372036854775807", "ERR invalid expire time in 'expire' command"),
    ("SET a b EX 1 KEEPTTL", "ERR syntax error"),
    ("SET a b GE", "ERR syntax error"),
    ("SET a b PXAT", "ERR syntax error"),
    ("SET a b EXAT 9223372036854775807", "ERR invalid expire time in 'set' command"),
    ("EXPIRE a 1 NX XX", "ERR NX and XX, GT or LT options at the same time are not compatible"),
    ("EXPIRE a 1 GT LT", "ERR GT and LT options at the same time are not compatible"),
    ("EXPIRE a 1 AB", "ERR Unsupported option AB"),
    ("FLUSHALL NOW", "ERR syntax error"),
    ("HELLO 4", "NOPROTO unsupported protocol version"),
    ("HELLO x", "ERR Protocol version is not an integer or out of range"),
    ("HELLO 2 SETNAME", "ERR Syntax error in HELLO option 'SETNAME'"),
    ("HELLO 2 AUTH x y", "WRONGPASS invalid username-password pair or user is disabled."),
    ("SELECT 99", "ERR DB index is out of range"),
    ("CONFIG GET", "ERR wrong number of arguments for 'config|get' command"),
    ("CONFIG FOO", "ERR unknown subcommand 'FOO'. Try CONFIG HELP."),
    ("DANCE a b", "ERR unknown command 'DANCE', with args beginning with: 'a' 'b' "),
    ("SUBSCRIBE x\nGET a", "ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are "
     "allowed in this context"),
]

# Bytes, and the whole answer: after a protocol error the connection is closed.
BYTES = [
    (b"PING\r\nping\n", b"+PONG\r\n+PONG\r\n"),
    (b"  SET  a b \r\nGET a\r\n", b"+OK\r\n$1\r\nb\r\n"),
    (b'set a "b \\x41\\n\\"" \r\nget a\r\nset \'\' \'c\\\'d\\n\'\r\nget ""\r\necho a"b c"\r\n',
     b"+OK\r\n$5\r\nb A\n\"\r\n+OK\r\n$5\r\nc'd\\n\r\n$4\r\nab c\r\n"),
    (b'set a "b\r\nPING\r\n', b"-ERR Protocol error: unbalanced quotes in request\r\n"),
    (b"set a 'b'c\r\n", b"-ERR Protocol error: unbalanced quotes in request\r\n"),
    (b'"\r\n', b"-ERR Protocol error: unbalanced quotes in request\r\n"),
    (b"set a 'b\\\r\n", b"-ERR Protocol error: unbalanced quotes in request\r\n"),
    (b"\r\n\n*0\r\n*-1\r\nPING\r\n", b"+PONG\r\n"),
    (command("SET", b"\0\r\n\xff", b"") + command("GET", b"\0\r\n\xff"), b"+OK\r\n$0\r\n\r\n"),
    (b"*x\r\nPING\r\n", b"-ERR Protocol error: invalid multibulk length\r\n"),
    (b"*99999999999\r\n", b"-ERR Protocol error: invalid multibulk length\r\n"),
    (b"*01\r\n$4\r\nPING\r\n", b"-ERR Protocol error: invalid multibulk length\r\n"),
    (b"*1\r\nPING\r\n", b"-ERR Protocol error: expected '$', got 'P'\r\n"),
    (b"*1\r\n$x\r\n", b"-ERR Protocol error: invalid bulk length\r\n"),
    (b"*1\r\n$-1\r\n", b"-ERR Protocol error: invalid bulk length\r\n"),
    (b"PING\r\n*1\r\n$99999999999\r\n", b"+PONG\r\n-ERR Protocol error: invalid bulk length\r\n"),
    (b"x" * 70_000, b"-ERR Protocol error: too big inline request\r\n"),
    (b"*1\r\n$" + b"1" * 70_000, b"-ERR Protocol error: too big bulk count string\r\n"),
    (b"*1\r\n$0\r\n\r\n", b"-ERR unknown command '', with args beginning with: \r\n"),
]


def answers(path):
    """commands, refusals and bytes are answered as redis answers them"""
    with Server(path) as server:
        for text, answer in COMMANDS:
            expect(server, commands(text), answer)
        for text, error in REFUSALS:
            got = conversation(server, commands(text))
            check(got[0].endswith(f"-{error}\r\n".encode()) and got[1], f"{text!r} is answered by {got}")
        for sent, answer in BYTES:
            expect(server, sent, answer)


def beside_redis(path):
    """redis itself gives the answers that the tests expect"""
    redis = program("redis-server", "the answers are not held against it")
    if redis is None:
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--daemonize", "no"]
    process = subprocess.Popen([redis, *options], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        wait_until(lambda: not is_refused(port), "redis-server listens")
        with Server(path) as ours:
            theirs = type("Redis", (), {"port": port, "connect": Server.connect})()
            for text, _ in COMMANDS + REFUSALS:
                check_answer(commands(text), conversation(ours, commands(text)), conversation(theirs, commands(text)))
            for sent, _ in BYTES:
                check_answer(sent, conversation(ours, sent), conversation(theirs, sent))
    finally:
        process.kill()
        process.wait()


# How it arrives


def split_anywhere(path):
    """requests get the right answer at whatever byte they are split"""
    sent = command("SET", "key", "a\r\nb") + b"PING\r\n" + command("GET", "key") + command("INCR", "n")
    with Server(path) as server, server.connect() as other:
        for index in range(1, len(sent)):
            with server.connect() as client:
                client.send_apart(sent[:index])
                # The loop has turned once more, and has therefore read what had arrived before.
                check(ask(other, "PING") == b"+PONG", "another client is answered meanwhile")
                client.send(sent[index:])
                answer = b"+OK\r\n+PONG\r\n$4\r\na\r\nb\r\n" + b":%d\r\n" % index
                got = client.read(len(answer))
                check(got == answer, f"split at {index}: {got!r}")
        with server.connect() as client:
            for index in range(len(sent)):
                client.send_apart(sent[index:index + 1])
            answer = b"+OK\r\n+PONG\r\n$4\r\na\r\nb\r\n" + b":%d\r\n" % len(sent)
            check(client.read(len(answer)) == answer, "every byte alone")


def pipelined(path):
    """16 and 1,000 requests at once are answered in order, for several clients at a time"""
    with Server(path) as server:
        for count in (16, 1000):
            clients = [server.connect() for _ in range(10)]
            for number, client in enumerate(clients):
                client.send(b"".join(command("INCR", f"n{count}.{number}") for _ in range(count)))
            answer = b"".join(b":%d\r\n" % number for number in range(1, count + 1))
            for client in clients:
                check(client.read(len(answer)) == answer, f"{count} answers")
                client.socket.close()


def large(path):
    """a value of 40 MB is returned; one beyond the limit, and words beyond it together, are refused"""
    value = bytes(range(256)) * 160_000
    with Server(path) as server:
        expect(server, command("SET", "large", value) + command("GET", "large"),
               b"+OK\r\n$%d\r\n%s\r\n" % (len(value), value))
        expect(server, b"*2\r\n$3\r\nGET\r\n$%d\r\n" % (512 << 20), b"-ERR Protocol error: invalid bulk length\r\n")
        many = command("DEL", *range(10_000))
        expect(server, many, b":0\r\n")
    with Server(path, "--max-request", "1000") as server:
        expect(server, command("ECHO", "x" * 996), b"$996\r\n" + b"x" * 996 + b"\r\n")
        for sent in (b"*2\r\n$4\r\nECHO\r\n$997\r\n", b"*3\r\n$3\r\nDEL\r\n$900\r\n%s\r\n$98\r\n" % (b"x" * 900)):
            expect(server, sent, b"-ERR Protocol error: invalid bulk length\r\n")


def resident(server):
    """The bytes of memory that the server has."""
    with open(f"/proc/{server.process.pid}/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def processor_time(server):
    """The nanoseconds for which the server has run."""
    with open(f"/proc/{server.process.pid}/schedstat") as file:
        return int(file.read().split()[0])


def short_words(path):
    """a million words of one byte take no more memory than a buffer that grows, and none when their client has gone"""
    words = b"*1048576\r\n$3\r\nDEL\r\n" + b"$1\r\nx\r\n" * 1_048_574
    with Server(path) as server, server.connect() as other:
        check(ask(other, "PING") == b"+PONG", "another client")
        before = resident(server)
        clients = [server.connect() for _ in range(4)]
        for client in clients:
            client.send_apart(words)
        check(ask(other, "PING") == b"+PONG", "the server has read them")
        share = (resident(server) - before) / (len(clients) * len(words))
        # A buffer doubles, and the allocator keeps the halves for the next one: up to twice the bytes. A table of the
        # words would add more than as much again.
        check(share < 2.3, f"{share:.1f} bytes per byte that has arrived")
        clients[0].send(b"$1\r\nx\r\n")
        check(clients[0].read(4) == b":0\r\n", "the answer")
        for client in clients:
            client.socket.close()
        wait_until(lambda: statistic(other, "connected_clients") == 1, "the sessions have ended")
        wait_until(lambda: resident(server) - before < len(words), "the memory is the system's again")


def many_objects(path):
    """the memory of many subscriptions and keys is the system's again when they are gone"""
    count = 100_000
    with Server(path) as server, server.connect() as client:
        check(ask(client, "PING") == b"+PONG", "the server runs")
        before = resident(server)
        check(conversation(server, command("SUBSCRIBE", *range(count)))[1], "subscribed to many channels")
        for number in range(0, count, 1000):
            client.send(b"".join(command("SET", f"key{key}", "x" * 50) for key in range(number, number + 1000)))
            check(client.read(5000) == b"+OK\r\n" * 1000, "set")
        check(resident(server) - before > 10 << 20, "they take memory")
        check(ask(client, "FLUSHALL") == b"+OK", "flushed")
        wait_until(lambda: resident(server) - before < 8 << 20, "the memory is the system's again")


def long_list(path):
    """the time that LRANGE takes grows with the number of items, not with its square"""
    with Server(path) as server, server.connect() as client:
        for _ in range(8):
            check(int(ask(client, "LPUSH", "l", *["x" * 20] * 10_000)[1:]) % 10_000 == 0, "pushed")
        times = {}
        # The kernel may account for a running process at its ticks only, so each time is that of as many items.
        for count, requests in ((10_000, 128), (80_000, 16)):
            answer = b"*%d\r\n" % count + b"$20\r\nxxxxxxxxxxxxxxxxxxxx\r\n" * count
            before = processor_time(server)
            for _ in range(requests):
                client.send(command("LRANGE", "l", 0, count - 1))
                check(client.read(len(answer)) == answer, f"{count} items")
            check(ask(client, "PING") == b"+PONG", "the server has nothing left to do")
            times[count] = processor_time(server) - before
        check(times[80_000] < 4 * times[10_000], f"nanoseconds for requests of so many items: {times}")


# Other protocols


def information(path):
    """INFO has the sections that it is asked for, and CONFIG RESETSTAT begins its counters anew"""
    def sections(client, *names):
        client.send(command("INFO", *names))
        length = int(read_line(client)[1:])
        text = client.read(length + 2).decode()
        return text, [line[2:] for line in text.split("\r\n") if line.startswith("# ")]

    with Server(path) as server, server.connect() as client:
        usual = ["Server", "Clients", "Memory", "Stats", "Replication", "CPU", "Keyspace"]
        for names, wanted in (((), usual), (("default",), usual), (("cpu", "sentinel"), ["CPU"]), (("nothing",), []),
                              (("cpu", "default"), usual), (("ALL", "cpu"), usual[:-1] + ["Commandstats", "Keyspace"])):
            text, got = sections(client, *names)
            check(got == wanted, f"INFO {names}: {text}")
        for words in (("GET",), ("GET", "a"), ("LPUSH", "l", "x"), ("GET", "l")):
            ask(client, *words)
        text, _ = sections(client, "commandstats")
        check("cmdstat_get:calls=2,rejected_calls=1,failed_calls=1\r\n" in text, text)
        check(ask(client, "CONFIG", "RESETSTAT") == b"+OK", "reset")
        check("cmdstat_get" not in sections(client, "commandstats")[0], "the counters begin anew")


def http(path):
    """a page in a browser cannot have commands executed: POST and Host: end the connection"""
    with Server(path) as server, server.connect() as other:
        check(ask(other, "SET", "a", "b") == b"+OK", "set")
        for head in (b"POST / HTTP/1.1\r\nHost: x\r\n", b"PUT / HTTP/1.1\r\nHost: x\r\n", b"GET / HTTP/1.1\r\nHost: x\r\n"):
            with server.connect() as client:
                client.send(head + b"Content-Length: 10\r\n\r\nFLUSHALL\r\n")
                check(b"+OK" not in client.read_to_end()[0], f"{head}: it is executed")
        check(ask(other, "EXISTS", "a") == b":1", "the key is there")


def resp3(path):
    """HELLO 3 has maps, pushes and a null of its own, and a subscriber may do anything; RESET returns to RESP2"""
    with Server(path) as server, server.connect() as other:
        with server.connect() as client:
            for word, kind in ((b"3", b"%7"), (b"2", b"*14")):
                client.send(command("HELLO", word, "AUTH", "default", "any", "SETNAME", "me"))
                wanted = (b"%s\r\n$6\r\nserver\r\n$9\r\nkv-server\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$5\r\nproto\r\n:%s\r\n"
                          b"$2\r\nid\r\n:2\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n"
                          b"$7\r\nmodules\r\n*0\r\n") % (kind, word)
                got = client.read(len(wanted))
                check(got == wanted, f"HELLO {word}: {got}")
        with server.connect() as client:
            client.send(command("HELLO", "3"))
            client.read(len(wanted) - 1)
            for words, wanted in ((("GET", "none"), b"_\r\n"), (("CONFIG", "GET", "save"), b"%1\r\n$4\r\nsave\r\n$0\r\n\r\n"),
                                  (("SUBSCRIBE", "c"), b">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"),
                                  (("PING",), b"+PONG\r\n"), (("SET", "a", "b"), b"+OK\r\n")):
                client.send(command(*words))
                got = client.read(len(wanted))
                check(got == wanted, f"{words}: {got}")
            check(ask(other, "PUBLISH", "c", "x") == b":1", "published")
            for words, wanted in (((), b">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n"), (("RESET",), b"+RESET\r\n"),
                                  (("GET", "none"), b"$-1\r\n")):
                client.send(command(*words) if words else b"")
                got = client.read(len(wanted))
                check(got == wanted, f"{words}: {got}")
            check(ask(other, "PUBLISH", "c", "x") == b":0", "no subscriber")


# How clients leave


def half_close(path):
    """a client that ends its side gets its answers; one that ends within a request gets no answer to it"""
    with Server(path) as server:
        expect(server, command("PING") * 1000, b"+PONG\r\n" * 1000)
        for part in (b"", b"PI", b"*", b"*2\r\n", b"*2\r\n$3", b"*2\r\n$3\r\nGET\r\n", b"*1\r\n$4\r\nPING"):
            expect(server, part, b"")
            expect(server, b"PING\r\n" + part, b"+PONG\r\n")


def reset(path):
    """clients that reset within a request or while they are answered leave nothing behind"""
    with Server(path) as server, server.connect() as other:
        ask(other, "SET", "value", b"x" * 1_000_000)
        other_count = statistic(other, "connected_clients")
        for part in (b"*2\r\n$3\r\nGE", command("GET", "value") * 20, command("SUBSCRIBE", "x")):
            client = server.connect()
            client.send_apart(part)
            check(ask(other, "PING") == b"+PONG", "another client is answered meanwhile")
            client.reset()
        wait_until(lambda: statistic(other, "connected_clients") == other_count, "the sessions have ended")
        check(ask(other, "PUBLISH", "x", "y") == b":0", "a subscriber that has reset is no subscriber")


# Publishing


def subscribers(path):
    """all subscribers get all messages in order, until they unsubscribe"""
    with Server(path) as server, server.connect() as publisher:
        clients = [server.connect() for _ in range(5)]
        begin = b"*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n"
        for client in clients:
            client.send(command("SUBSCRIBE", "news"))
            check(client.read(len(begin)) == begin, "subscribed")
        publisher.send(b"".join(command("PUBLISH", "news", f"{number:04}") for number in range(1000)))
        check(publisher.read(4000) == b":5\r\n" * 1000, "the number of subscribers")
        messages = b"".join(b"*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$4\r\n%04d\r\n" % number for number in range(1000))
        for client in clients:
            check(client.read(len(messages)) == messages, "the messages")
        clients[0].send(command("UNSUBSCRIBE"))
        end = b"*3\r\n$11\r\nunsubscribe\r\n$4\r\nnews\r\n:0\r\n"
        check(clients[0].read(len(end)) == end, "unsubscribed")
        check(ask(publisher, "PUBLISH", "news", "x") == b":4", "one less")
        clients[1].socket.close()
        wait_until(lambda: ask(publisher, "PUBLISH", "news", "x") == b":3", "a closed one is no subscriber")
        for client in clients:
            client.socket.close()


def slow_subscriber(path):
    """a subscriber that never reads is disconnected, and another subscriber gets all messages"""
    with Server(path) as server, server.connect() as publisher, server.connect() as quick, \
            server.connect(receive_buffer=4096) as slow:
        begin = b"*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n"
        for client in (quick, slow):
            client.send(command("SUBSCRIBE", "news"))
            check(client.read(len(begin)) == begin, "subscribed")
        message = b"x" * 10_000
        wanted = b"*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$10000\r\n" + message + b"\r\n"
        # The kernel keeps a few megabytes, and the server one.
        for number in range(2000):
            count = ask(publisher, "PUBLISH", "news", message)
            check(quick.read(len(wanted)) == wanted, f"message {number} for the one that reads")
            if count == b":1":
                break
        check(count == b":1", "the one that never reads is disconnected")
        _, in_order = slow.read_to_end()
        check(not in_order, "it sees a reset, not an end after which it would believe to have all messages")


# Time


def time_to_live(path):
    """keys expire, asked for or not, and not early"""
    with Server(path) as server, server.connect() as client:
        started = time.monotonic()
        ask(client, "SET", "key", "v", "PX", "200")
        check(0 < int(ask(client, "PTTL", "key")[1:]) <= 200, "the time that is left")
        wait_until(lambda: ask(client, "EXISTS", "key") == b":0", "the key expires")
        check(time.monotonic() - started >= 0.2, "not early")
        # Whether or not the sweep has found it: an expired key has no time to live to keep.
        client.send(b"".join(command("SET", key, 5, "PX", time) for key, time in (("brief", 1), ("number", 1), ("clock", 20))))
        check(client.read(15) == b"+OK\r\n" * 3, "set")
        wait_until(lambda: ask(client, "EXISTS", "clock") == b":0", "the other key expires")
        check(ask(client, "SET", "brief", "w", "KEEPTTL") == b"+OK" and ask(client, "TTL", "brief") == b":-1", "none is kept")
        check(ask(client, "INCR", "number") == b":1" and ask(client, "TTL", "number") == b":-1", "an expired number is zero")
        check(ask(client, "DEL", "brief", "number") == b":2", "deleted")
        client.send(b"".join(command("SET", f"key{number}", "v", "PX", 1 + number % 50) for number in range(5000)))
        client.send(command("SET", "stays", "v", "EX", 1000))
        check(client.read(5 * 5001) == b"+OK\r\n" * 5001, "set")
        wait_until(lambda: ask(client, "DBSIZE") == b":1", "the sweep finds keys that no client asks for")
        check(statistic(client, "expired_keys") == 5004, "each is counted once")
        check(int(ask(client, "TTL", "stays")[1:]) in (999, 1000), "the other key stays")


def idle_timeout(path):
    """a silent client is disconnected, but not a subscriber"""
    with Server(path, "--idle-timeout", "0.2") as server, server.connect() as subscriber:
        begin = b"*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n"
        subscriber.send(command("SUBSCRIBE", "news"))
        check(subscriber.read(len(begin)) == begin, "subscribed")
        with server.connect() as client:
            client.send(command("PING"))
            check(client.read_to_end() == (b"+PONG\r\n", True), "the silent client")
        with server.connect() as client:
            client.send(command("PUBLISH", "news", "x"))
            check(client.read(4) == b":1\r\n", "the subscriber is still there")


def request_timeout(path):
    """a request that does not end is closed after its time-out, although bytes keep arriving"""
    with Server(path, "--request-timeout", "0.3") as server, server.connect() as client, server.connect() as other:
        client.send(b"*2\r\n$3\r\nGET\r\n$1000\r\n")
        client.socket.settimeout(0.02)
        ended = False
        deadline = time.monotonic() + PATIENCE
        while not ended and time.monotonic() < deadline:
            try:
                client.send(b"x")
                ended = client.socket.recv(1) == b""
            except TimeoutError:
                pass
            except OSError:
                ended = True
        check(ended, "the connection ends")
        check(ask(other, "PING") == b"+PONG", "a client without a request stays")


# The end


def drain(path):
    """SIGTERM ends idle clients at once, and clients within a request after its answer"""
    request = command("GET", "a")
    with Server(path) as server, server.connect() as idle, server.connect() as subscriber:
        check(ask(idle, "SET", "a", "b") == b"+OK", "set")
        subscriber.send(command("SUBSCRIBE", "x"))
        subscriber.read(30)
        busy = [(index, server.connect()) for index in range(1, len(request))]
        for index, client in busy:
            client.send_apart(request[:index])
        check(ask(idle, "PING") == b"+PONG", "the loop has turned")
        server.signal(signal.SIGTERM)
        check(idle.is_ended(), "the idle client sees the end")
        check(subscriber.is_ended(), "the subscriber sees the end")
        wait_until(lambda: is_refused(server.port), "new clients are refused")
        # Longer than the listener takes between two looks at its connections.
        check(not any(client.has_input(0.1 / len(busy)) for _, client in busy), "the others are left alone")
        for index, client in busy:
            client.send(request[index:])
            got = client.read_to_end()
            check(got == (b"$1\r\nb\r\n", True), f"the answer and the end, within byte {index}: {got}")
        for client in [idle, subscriber] + [client for _, client in busy]:
            client.socket.close()
        check(server.exit_code() == 0, "the exit code")


def second_signal(path):
    """a second signal resets the remaining clients and ends the process at once"""
    with Server(path) as server, server.connect() as busy, server.connect() as idle:
        busy.send_apart(b"*2\r\n$3\r\nGET\r\n")
        check(ask(idle, "PING") == b"+PONG", "the loop has turned")
        server.signal(signal.SIGINT)
        check(idle.is_ended(), "the drain has begun")
        time.sleep(0.1)  # until then a second signal counts as a copy of the first
        server.signal(signal.SIGTERM)
        started = time.monotonic()
        check(server.exit_code() == 0, "the exit code")
        check(time.monotonic() - started < 5, "the process waits for its deadline")


def command_line(path):
    """a used address and unknown options each end with one line on standard error"""
    with Server(path) as server:
        for options, code in ((["--listen", f"127.0.0.1:{server.port}"], 71), (["--bogus", "x"], 64), (["--listen"], 64)):
            done = subprocess.run([path, *options], capture_output=True, text=True, timeout=PATIENCE)
            check(done.returncode == code and done.stderr.startswith("kv-server: ") and done.stderr.count("\n") == 1,
                  f"{options}: {done}")


def redis_clients(path):
    """redis-cli and redis-benchmark work"""
    with Server(path) as server:
        cli = program("redis-cli")
        if cli:
            script = "SET fruit pear\nGET fruit\nLPUSH l a b\nLRANGE l 0 -1\nINCR n\nNOTHING\n"
            done = subprocess.run([cli, "-p", str(server.port)], input=script, capture_output=True, text=True,
                                  timeout=PATIENCE)
            lines = done.stdout.split("\n")
            check(lines[:6] == ["OK", "pear", "2", "b", "a", "1"] and "ERR unknown command" in lines[6], f"{done}")
        benchmark = program("redis-benchmark")
        if benchmark:
            for pipeline in ("1", "16"):
                done = subprocess.run(
                    [benchmark, "-p", str(server.port), "-t", "ping,set,get,incr,lpush,lrange_100", "-n", "2000", "-P",
                     pipeline, "-q"], capture_output=True, text=True, timeout=PATIENCE)
                check(done.returncode == 0 and done.stdout.count("requests per second") == 8 and not done.stderr,
                      f"{done}")


run("kv-server", [
    answers, beside_redis, split_anywhere, pipelined, large, short_words, many_objects, long_list, http, resp3, information, half_close, reset, subscribers, slow_subscriber,
    time_to_live, idle_timeout, request_timeout, drain, second_signal, command_line, redis_clients,
])

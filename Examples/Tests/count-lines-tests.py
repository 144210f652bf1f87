#!/usr/bin/env python3
"""Talks to count-lines, the program of the README: count-lines-tests.py [PATH-OF-COUNT-LINES]

Its port is 7000. Where another program has that port, only what count-lines says of it is tested.
"""
import signal
import socket
import subprocess

from servers import PATIENCE, check, is_refused, run, skip, wait_until

ADDRESS = ("127.0.0.1", 7000)


def port_in_use(path):
    """a port in use is one line, and no crash"""
    with socket.socket() as other:
        try:
            other.bind(ADDRESS)
            other.listen()
        except OSError:
            pass  # somebody else has it, which is as good
        done = subprocess.run([path], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)
    check((done.returncode, done.stdout, done.stderr)
          == (1, "bind 127.0.0.1:7000: Address already in use (EADDRINUSE)\n", ""), f"{done}")


def counted(path):
    """the lines of all clients are counted together"""
    if not is_refused(ADDRESS[1]):
        return skip("another program has port 7000")
    with subprocess.Popen([path], stdin=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: not is_refused(ADDRESS[1]), "nobody listens")
            with socket.create_connection(ADDRESS, PATIENCE) as first, socket.create_connection(ADDRESS, PATIENCE) as second:
                for client, sent, answer in [(first, b"a\n", b"1 a\n"), (second, b"b\n", b"2 b\n"), (first, b"c\n", b"3 c\n")]:
                    client.sendall(sent)
                    check(client.recv(100) == answer, f"the answer to {sent}")
            process.send_signal(signal.SIGTERM)
            check(process.wait(PATIENCE) == 0, "the exit code")
        finally:
            process.kill()


run("count-lines", [port_in_use, counted])

#!/usr/bin/env python3
"""The console of servers under load and with planted faults, as a browser and curl show it.

    console.py FAULTY-SERVER [FOLDER]

FOLDER gets the pictures of the page. Without Chromium the page is not looked at."""

import base64
import fcntl
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

BROWSERS = ['chromium', 'chromium-browser', 'google-chrome']
SIZES = [(1280, 1500), (400, 1500)]


class Browser:
    """Chromium by its debugging protocol, over a pipe: commands and answers are JSON, each ended by a zero."""

    def __init__(self, program):
        self.folder = tempfile.mkdtemp(prefix='console-browser-')
        (theirs_in, self.input), (self.output, theirs_out) = os.pipe(), os.pipe()

        def adopt():
            # Numbers that the two dup2 do not overwrite.
            one, two = os.dup(theirs_in), os.dup(theirs_out)
            one, two = [(fd if fd > 10 else fcntl.fcntl(fd, fcntl.F_DUPFD, 10)) for fd in (one, two)]
            os.dup2(one, 3)
            os.dup2(two, 4)

        self.process = subprocess.Popen(
            [program, '--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run',
             '--remote-debugging-pipe', f'--user-data-dir={self.folder}', 'about:blank'],
            close_fds=False, preexec_fn=adopt, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        self.buffer = b''
        self.number = 0
        self.complaints = []
        targets = self.command('Target.getTargets')['targetInfos']
        page = next(target for target in targets if target['type'] == 'page')
        self.session = None
        self.session = self.command('Target.attachToTarget', targetId=page['targetId'], flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Log'):
            self.command(f'{domain}.enable')

    def command(self, method, **parameters):
        self.number += 1
        message = {'id': self.number, 'method': method, 'params': parameters}
        if getattr(self, 'session', None):
            message['sessionId'] = self.session
        os.write(self.input, json.dumps(message).encode() + b'\0')
        while True:
            answer = self.read()
            if answer.get('id') == self.number:
                if 'error' in answer:
                    raise AssertionError(f'{method}: {answer["error"]}')
                return answer['result']
            if answer.get('method') in ('Runtime.exceptionThrown', 'Log.entryAdded'):
                self.complaints.append(json.dumps(answer['params'])[:500])

    def read(self):
        while b'\0' not in self.buffer:
            part = os.read(self.output, 1 << 20)
            if not part:
                raise AssertionError('the browser has ended')
            self.buffer += part
        message, _, self.buffer = self.buffer.partition(b'\0')
        return json.loads(message)

    def evaluate(self, expression):
        result = self.command('Runtime.evaluate', expression=expression, awaitPromise=True, returnByValue=True)
        if 'exceptionDetails' in result:
            raise AssertionError(result['exceptionDetails'])
        return result['result'].get('value')

    def show(self, size=SIZES[0], theme='light'):
        self.command('Emulation.setDeviceMetricsOverride', width=size[0], height=size[1], deviceScaleFactor=1, mobile=False)
        self.command('Emulation.setEmulatedMedia', features=[{'name': 'prefers-color-scheme', 'value': theme}])

    def go(self, url):
        self.command('Page.navigate', url=url)

    def wait(self, condition, what, seconds=20):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = self.evaluate(condition)
            if value:
                return value
            time.sleep(0.1)
        raise AssertionError(f'the page does not show {what}; it shows:\n' + self.evaluate('document.body.innerText'))

    def picture(self, path):
        height = self.evaluate('document.documentElement.scrollHeight')
        width = self.evaluate('innerWidth')
        data = self.command(
            'Page.captureScreenshot', captureBeyondViewport=True, format='webp', quality=70,
            clip={'x': 0, 'y': 0, 'width': width, 'height': min(height, 3000), 'scale': 1})
        with open(path, 'wb') as file:
            file.write(base64.b64decode(data['data']))

    def close(self):
        try:
            self.session = None
            self.command('Browser.close')
        except (AssertionError, OSError):
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class Server:
    """A server with a fault, and its console on a port."""

    def __init__(self, program, fault):
        with socket.create_server(('127.0.0.1', 0)) as reserved:
            self.console = reserved.getsockname()[1]
        self.process = subprocess.Popen(
            [program, fault, f'127.0.0.1:{self.console}'], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.port = int(self.process.stdout.readline().rsplit(':', 1)[1])
        self.clients = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for client in self.clients:
            client.close()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(1)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def load(self, count, path):
        """So many clients that each ask once, and do not wait for the answer."""
        for _ in range(count):
            client = socket.create_connection(('127.0.0.1', self.port))
            client.sendall(f'GET {path} HTTP/1.1\r\nHost: x\r\n\r\n'.encode())
            self.clients.append(client)

    def keep_asking(self, path='/'):
        """A client that asks again and again, until the end."""
        def run():
            client = http.client.HTTPConnection('127.0.0.1', self.port)
            try:
                while self.process.poll() is None:
                    client.request('GET', path)
                    client.getresponse().read()
            except (OSError, http.client.HTTPException):
                pass
        threading.Thread(target=run, daemon=True).start()

    def ask(self, path, method='GET'):
        client = http.client.HTTPConnection('127.0.0.1', self.console, timeout=60)
        client.request(method, path)
        answer = client.getresponse()
        text = answer.read().decode()
        assert answer.status == 200, (path, answer.status, text)
        return text

    @property
    def page(self):
        return f'http://127.0.0.1:{self.console}/'


TEXT = 'document.body.innerText'


def check_load(server, browser):
    for _ in range(4):
        server.keep_asking('/later')
    if browser:
        browser.wait('document.querySelectorAll("#connection-rows tr[class], #connection-rows td[data-label=Peer]").length >= 4', 'four connections')
        browser.wait(f'{TEXT}.includes("served at FaultyServer/FaultyServer.swift")', 'the line of the server')
    connections = json.loads(server.ask('/json'))['connections']
    assert connections['count'] >= 4, connections
    recording = json.loads(server.ask('/record?seconds=1', 'POST'))
    events = recording['traceEvents']
    phases = {phase: sum(event['ph'] == phase for event in events) for phase in 'XsfM'}
    assert phases['X'] > 100 and phases['s'] == phases['f'] > 10 and phases['M'] >= 3, phases
    print(f'  a recording of {phases["X"]} slices and {phases["s"]} arrows: {recording["otherData"]}')


def check_stuck(server, browser):
    time.sleep(1.5)
    # Promises that are made from now on show the line of their handlers.
    server.ask('/trace?seconds=60', 'POST')
    server.load(1, '/report')
    began = time.monotonic()
    if browser:
        browser.wait('/is stuck: for .* in a promise handler at FaultyServer.FaultyServer.swift/.test(document.getElementById("problems").innerText)', 'the stuck loop', 2)
    else:
        while 'is stuck: for' not in server.ask('/text'):
            assert time.monotonic() - began < 2, server.ask('/text')
            time.sleep(0.1)
    print(f'  the stuck loop was shown after {time.monotonic() - began:.1f} s')


def check_slow(server, browser):
    for _ in range(2):
        server.keep_asking()
    server.ask('/json')
    time.sleep(2)
    loops = json.loads(server.ask('/json'))['loops']
    longest = [loop['longestHandler'] for loop in loops if loop.get('longestHandler')]
    assert any(found['seconds'] > 0.1 and found['kind'] == 'timer' and 'FaultyServer.swift' in (found['line'] or '')
               for found in longest), longest


def check_leaking(server, browser):
    server.ask('/trace?seconds=60', 'POST')
    server.load(12, '/report')
    if browser:
        browser.wait(f'/made at FaultyServer.FaultyServer.swift:\\d+/.test({TEXT}) && {TEXT}.includes("news")', 'the lost promise at its line')
    time.sleep(0.5)
    trees = json.loads(server.ask('/json'))['promises']['trees']
    nodes = [node for tree in trees for node in tree['nodes']]
    assert any(node['name'] == 'news' or node['operation'] == 'made' and node['count'] >= 3 for node in nodes), trees


def check_waiting(server, browser):
    server.load(8, '/report')
    time.sleep(0.5)
    objects = json.loads(server.ask('/json'))['objects']
    full = [found for found in objects if found['kind'] == 'limiter' and found['inUse'] == found['limit'] == 1]
    assert sum(found['waiting'] for found in full) >= 6, objects
    if browser:
        browser.wait('/limiter "limiter" on worker-. is full: 1 of 1/.test(document.getElementById("problems").innerText)', 'the full limiter')


def check_overloaded(server, browser):
    server.load(16, '/report')
    time.sleep(0.5)
    objects = json.loads(server.ask('/json'))['objects']
    assert any(found['kind'] == 'thread pool' and found['name'] == 'reports' and found['waiting'] >= 3 for found in objects), objects
    if browser:
        browser.wait('/thread pool "reports" is full: 1 of 1/.test(document.getElementById("problems").innerText)', 'the full pool')


def check_large(server, browser):
    server.ask('/json')
    times, pieces = [], []
    for _ in range(5):
        began = time.monotonic()
        found = json.loads(server.ask('/json'))
        times.append(time.monotonic() - began)
        pieces.append(found['cost']['longestPiece'])
    print(f'  {found["connections"]["count"]} connections and {found["promises"]["pending"]} promises: an answer takes '
          f'{min(times):.2f} to {max(times):.2f} s, the longest piece {min(pieces) * 1e3:.1f} to {max(pieces) * 1e3:.1f} ms; '
          f'left out: {found["leftOut"]}')
    # How many promises it looks at in its time depends on the machine: it says what it has left out.
    assert found['connections']['count'] > 9000, found['connections']
    assert found['promises']['pending'] > 1_000_000 or any('promises' in line for line in found['leftOut']), found['leftOut']


CHECKS = {'stuck': check_stuck, 'slow': check_slow, 'leaking': check_leaking, 'waiting': check_waiting,
          'overloaded': check_overloaded, 'large': check_large}


def check(program, fault, name, body, program_of_browser, folder):
    print(f'{name}:')
    with Server(program, fault) as server:
        browser = Browser(program_of_browser) if program_of_browser else None
        try:
            if browser:
                browser.show()
                browser.go(server.page)
                browser.wait('Number(document.body && document.body.dataset.updates) > 0', 'anything')
            body(server, browser)
            if browser:
                assert not browser.complaints, browser.complaints
                browser.wait('Number(document.body.dataset.updates) > 2', 'three updates')
                for size in SIZES:
                    for theme in ('light', 'dark'):
                        browser.show(size, theme)
                        time.sleep(0.3)
                        overflow = browser.evaluate('document.documentElement.scrollWidth - innerWidth')
                        assert overflow <= 0, f'the page is {overflow} pixels wider than {size[0]}'
                        if folder:
                            browser.picture(f'{folder}/{name}-{size[0]}-{theme}.webp')
        finally:
            if browser:
                browser.close()


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    folder = sys.argv[2] if len(sys.argv) == 3 else None
    if folder:
        os.makedirs(folder, exist_ok=True)
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if not browser:
        print('skipped: there is no chromium (.ci/install), so only the texts are looked at')
    check(sys.argv[1], 'slow', 'load', check_load, browser, folder)
    for fault, body in CHECKS.items():
        check(sys.argv[1], fault, fault, body, browser, folder)


main()

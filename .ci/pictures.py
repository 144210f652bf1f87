#!/usr/bin/env python3
"""Draws the pictures of the documentation: pictures.py [--check]

Writes docs/pictures/*.svg. The numbers in them are read out of the tables of the pages, and the targets of the races out
of Benchmarks/promises/rows.py. `--check` writes nothing, and fails if a picture is not what it would be.

The pictures have a background of their own, and colours for light and dark, which `prefers-color-scheme` selects.
"""
import math
import re
import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = Path("docs/pictures")

# Class: property, light, dark.
COLOURS = {
    "page": ("fill", "#ffffff", "#15181c"),
    "ink": ("fill", "#1f2328", "#e6e9ed"),
    "faint": ("fill", "#59636e", "#a3adb8"),
    "box": ("fill", "#f3f5f8", "#22272e"),
    "edge": ("stroke", "#8c96a1", "#6f7a86"),
    "line": ("stroke", "#59636e", "#a3adb8"),
    "head": ("fill", "#59636e", "#a3adb8"),
    "grid": ("stroke", "#dde1e6", "#353b43"),
    "axis": ("stroke", "#1f2328", "#e6e9ed"),
    "blue": ("fill", "#0969da", "#58a6ff"),
    "blueline": ("stroke", "#0969da", "#58a6ff"),
    "green": ("fill", "#1a7f37", "#3fb950"),
    "greenline": ("stroke", "#1a7f37", "#3fb950"),
    "red": ("fill", "#cf222e", "#ff7b72"),
    "redline": ("stroke", "#cf222e", "#ff7b72"),
    "orange": ("fill", "#bc4c00", "#f0883e"),
    "purple": ("fill", "#8250df", "#bc8cff"),
    "grey": ("fill", "#6e7781", "#8b949e"),
}


def width_of(words, size):
    """An estimate, for boxes and for what must not overlap."""
    return sum(0.34 if c in "iljt.,:;'|()[] " else 0.86 if c in "mwMW" else 0.58 for c in words) * size


class Picture:
    def __init__(self, width, height, title):
        self.width, self.height, self.title, self.parts = width, height, title, []

    def text(self, x, y, words, size=13, colour="ink", anchor="start", bold=False):
        weight = ' font-weight="bold"' if bold else ""
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" class="{colour}" text-anchor="{anchor}"{weight}>'
            f"{escape(words)}</text>")

    def lines(self, x, y, rows, size=12, colour="faint", anchor="start"):
        for index, words in enumerate(rows):
            self.text(x, y + index * size * 1.4, words, size, colour, anchor)

    def box(self, x, y, width, height, title="", rows=(), edge="edge"):
        self.parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="7" class="box {edge}"'
            f' stroke-width="1.5"/>')
        for words, size in [(title, 14), *((row, 12) for row in rows)]:
            assert width_of(words, size) < width - 12, f"{self.title}: too long for its box: {words}"
        if title:
            self.text(x + width / 2, y + 22, title, 14, anchor="middle", bold=True)
        self.lines(x + width / 2, y + (40 if title else 20), rows, anchor="middle")

    def bar(self, x, y, width, height, colour):
        self.parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 1):.1f}" height="{height:.1f}" rx="2" class="{colour}"/>')

    def line(self, points, colour="line", width=1.5, dashed=False):
        path = " ".join(f"{'M' if index == 0 else 'L'}{x:.1f} {y:.1f}" for index, (x, y) in enumerate(points))
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(f'<path d="{path}" fill="none" class="{colour}" stroke-width="{width}"{dash}/>')

    def arrow(self, points, colour="line", head="head", dashed=False):
        (x0, y0), (x, y) = points[-2:]
        angle = math.atan2(y - y0, x - x0)
        back = (x - 8 * math.cos(angle), y - 8 * math.sin(angle))
        self.line([*points[:-1], back], colour, 1.5, dashed)
        wings = [(x - 10 * math.cos(angle + turn), y - 10 * math.sin(angle + turn)) for turn in (0.42, -0.42)]
        corners = " ".join(f"{a:.1f},{b:.1f}" for a, b in [(x, y), *wings])
        self.parts.append(f'<polygon points="{corners}" class="{head}"/>')

    def heading(self, subtitle=""):
        self.text(24, 34, self.title, 18, bold=True)
        self.text(44 + width_of(self.title, 18) * 1.12, 34, subtitle, 13, "faint")

    def svg(self):
        def rules(index):
            return "".join(f".{name}{{{colour[0]}:{colour[index]}}}" for name, colour in COLOURS.items())

        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.height}" role="img"'
            f' viewBox="0 0 {self.width} {self.height}" font-family="Helvetica, Arial, \'DejaVu Sans\', sans-serif">',
            f"<title>{escape(self.title)}</title>",
            f"<style>{rules(1)}@media (prefers-color-scheme: dark){{{rules(2)}}}</style>",
            f'<rect width="{self.width}" height="{self.height}" rx="10" class="page"/>',
            *self.parts, "</svg>", ""])


def cells(page, heading):
    """The rows of the table whose first column is called `heading`, each a list of its cells."""
    rows, inside = [], False
    for line in (ROOT / page).read_text().splitlines():
        if line.startswith(f"| {heading} |"):
            inside = True
        elif inside and not line.startswith("|"):
            return rows
        elif inside and not line.startswith("| ---"):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
    assert rows, f"{page}: no table '{heading}'"
    return rows


def found(page, pattern):
    match = re.search(pattern, (ROOT / page).read_text())
    assert match, f"{page}: nothing like {pattern}"
    return match.groups() if len(match.groups()) > 1 else match[1]


def turn():
    guarantees = "docs/reference/guarantees.md"
    jobs, time = found(guarantees, r"Jobs before timers and descriptors [^|]*\| ([\d,]+), or (\d+ ms)")
    events = found(guarantees, r"Events a turn \| (\d+)")
    p = Picture(860, 330, "A turn of the loop")
    w, h, xs, top, bottom = 232, 84, (24, 314, 604), 58, 216
    p.heading("repeated by run(), hang and turn(_:)")
    p.box(xs[0], top, w, h, "1  Mail", ("jobs of other threads move", "to the ready queue"))
    p.box(xs[1], top, w, h, "2  Ready jobs", ("run until there are none,", f"or {jobs} jobs, or {time}"))
    p.box(xs[2], top, w, h, "3  Ask the kernel", (f"epoll_wait, at most {events} events;", "sleeps only if nothing is ready"))
    p.box(xs[2], bottom, w, h, "4  Events", ("callbacks, in the order", "in which the kernel reported them"))
    p.box(xs[1], bottom, w, h, "5  Due timers", ("those that were due at step 4,", "in the order of their deadlines"))
    p.box(xs[0], bottom, w, h, "6  Mail and ready jobs", ("what the turn has made ready", "runs in this turn"))
    for a, b in ((0, 1), (1, 2)):
        p.arrow([(xs[a] + w + 4, top + h / 2), (xs[b] - 4, top + h / 2)])
        p.arrow([(xs[b] - 4, bottom + h / 2), (xs[a] + w + 4, bottom + h / 2)])
    p.arrow([(xs[2] + w / 2, top + h + 4), (xs[2] + w / 2, bottom - 4)])
    p.arrow([(xs[0] + w / 2, bottom - 4), (xs[0] + w / 2, top + h + 4)])
    p.text(xs[0] + w / 2 + 10, (top + h + bottom) / 2 + 4, "next turn", 12, "faint")
    p.text(xs[1] + w / 2, (top + h + bottom) / 2 - 4, "A handler is a job: it never runs inside", 12, "faint", "middle")
    p.text(xs[1] + w / 2, (top + h + bottom) / 2 + 13, "the call that attached it or settled it.", 12, "faint", "middle")
    return p


def life():
    p = Picture(860, 490, "The life of a promise")
    p.heading()
    p.box(300, 56, 260, 66, "pending", ("an operator, a resolver, a timer or a", "connection will settle it"))
    p.box(60, 206, 300, 66, "fulfilled", ("has a value, for good",), "greenline")
    p.box(500, 206, 300, 66, "rejected", ("has an error, for good",), "redline")
    p.arrow([(380, 126), (230, 202)], "greenline", "green")
    p.arrow([(480, 126), (630, 202)], "redline", "red")
    p.text(292, 158, "a value", 12, "faint", "end")
    p.lines(572, 132, ("a handler throws, or a resolver rejects", "cancel(): the error means \"cancelled\"",
                       "the last resolver is released: \"abandoned\""))
    p.box(60, 308, 300, 56, "", ("map, then, done, get run as jobs;", "recover and catch are skipped"))
    p.box(500, 308, 300, 56, "", ("recover, catch run as jobs;", "map, then, done, get are skipped"))
    p.arrow([(210, 276), (210, 304)])
    p.arrow([(650, 276), (650, 304)])
    p.arrow([(364, 336), (392, 336), (392, 396)])
    p.arrow([(496, 336), (468, 336), (468, 396)])
    p.box(300, 400, 260, 66, "the next promise", ("settles with the outcome of the handler,", "or with the one that skipped it"))
    p.lines(584, 424, ("Without a handler for its error,", "the log reports an unhandled rejection."))
    return p


def drain():
    seconds = found("docs/guides/serving.md", r"serveUntilStopped\(drainTimeout: \.seconds\((\d+)\)")
    p = Picture(860, 330, "A drain")
    begin, end, left = 320, 660, 280
    p.heading(f"serveUntilStopped(drainTimeout: .seconds({seconds}))")
    for x, words in ((begin, "first signal"), (end, f"deadline, {seconds} s later,")):
        p.line([(x, 76), (x, 312)], "axis", 1.2, True)
        p.text(x, 54 if x == end else 68, words, 12, anchor="middle", bold=True)
    p.text(end, 69, "or a second signal", 12, anchor="middle", bold=True)
    lanes = (
        ("A new client", None),
        ("An idle connection", "idle"),
        ("A busy one that finishes", "busy"),
        ("A handler that ends by itself", "handler"),
        ("A busy one that does not finish", "stuck"),
    )
    for index, (name, kind) in enumerate(lanes):
        y = 88 + index * 46
        p.text(24, y + 18, name, 12.5, bold=True)
        if kind is None:
            p.text(begin + 12, y + 18, "refused", 12, "red")
        elif kind == "idle":
            p.bar(left, y + 6, begin - left, 16, "grey")
            p.text(begin + 12, y + 18, "ended, counted as idle", 12, "faint")
        elif kind == "busy":
            p.bar(left, y + 6, 130, 16, "blue")
            p.text(left + 140, y + 18, "answered, then closed: idle", 12, "faint")
        elif kind == "handler":
            p.bar(left, y + 6, 170, 16, "blue")
            p.text(left + 180, y + 18, "its promise settles: finished", 12, "faint")
        else:
            p.bar(left, y + 6, end - left, 16, "orange")
            p.text(end + 12, y + 14, "reset, its promise", 12, "faint")
            p.text(end + 12, y + 30, "cancelled: aborted", 12, "faint")
    return p


def backpressure():
    high, low = found("docs/guides/streams.md", r"`isWritable` turns false at (\d+ KiB), and true again at (\d+ KiB)")
    chunk = found("docs/guides/streams.md", r"in a buffer of the loop, at most (\d+ KiB)")
    limit = found("docs/guides/streams.md", r"a write that finds (\d+ MiB) of memory taken")
    p = Picture(860, 300, "Backpressure")
    p.heading("connection.forEachChunk { connection.write($0) }")
    xs, w, y, h = (24, 192, 360, 528, 696), 140, 86, 78
    p.box(xs[0], y, w, h, "Client", ("sends, and reads", "slowly"))
    p.box(xs[1], y, w, h, "Kernel", ("receive buffer,", "of bounded size"))
    p.box(xs[2], y, w, h, "Handler", ("one chunk of at", f"most {chunk}"))
    p.box(xs[3], y, w, h, "Write queue", ("not writable above", f"{high}, until {low}"))
    p.box(xs[4], y, w, h, "Kernel", ("send buffer,", "of bounded size"))
    for a in range(4):
        p.arrow([(xs[a] + w + 2, y + h / 2), (xs[a + 1] - 2, y + h / 2)], "blueline", "blue")
    p.text(24, 66, "bytes", 12, "blue", bold=True)
    steps = ((4, "1  full: the client", "does not read"), (3, "2  the promise of the", "write stays pending"),
             (2, "3  the next chunk is", "not read"), (1, "4  full: the window", "closes"), (0, "5  its own sends", "wait"))
    for index, first, second in steps:
        p.text(xs[index] + w / 2, y + h + 58, first, 12, "faint", "middle")
        p.text(xs[index] + w / 2, y + h + 75, second, 12, "faint", "middle")
    for a in range(4):
        p.arrow([(xs[a + 1] + w / 2 - 8, y + h + 30), (xs[a] + w / 2 + 8, y + h + 30)], "redline", "red")
    p.text(24, y + h + 22, "pressure", 12, "red", bold=True)
    p.text(24, 282, f"Code that does not wait for its writes meets the limit of the queue: beyond {limit} a write is refused"
           " with ENOBUFS.", 12, "faint")
    return p


PEERS = {
    "SwiftNIO": "blue", "Swift Concurrency": "orange", "libuv": "purple", "echo-server": "green", "forEachChunk": "green",
}


def colour_of(peer):
    return next((colour for name, colour in PEERS.items() if peer.startswith(name)), "grey")


def race(title, subtitle, groups, lowest, highest, ticks, row=16):
    """Bars that begin at 1, on a logarithmic scale. Each group is a name and [(peer, ratio, low, high, target)]."""
    left, right, top = 240, 780, 96
    height = top + sum(24 + row * len(bars) + 8 for _, bars in groups) + 34
    p = Picture(860, height, title)

    def at(ratio):
        share = math.log(min(max(ratio, lowest), highest) / lowest) / math.log(highest / lowest)
        return left + share * (right - left)

    p.text(24, 34, title, 18, bold=True)
    p.lines(24, 54, subtitle)
    bottom = height - 30
    for tick in ticks:
        p.line([(at(tick), top - 4), (at(tick), bottom)], "axis" if tick == 1 else "grid", 1)
        for y in (top - 9, bottom + 14):
            p.text(at(tick), y, f"{tick:g}", 11, "faint", "middle")
    y = top
    for name, bars in groups:
        p.bar(24, y + 2, 812, 18, "box")
        p.text(30, y + 15, name, 12, bold=True)
        y += 24
        for peer, ratio, low, high, target in bars:
            start, end = sorted((at(1), at(ratio)))
            p.text(left - 10, y + 11, peer, 11, "faint", "end")
            p.bar(start, y + 2, end - start, row - 5, colour_of(peer))
            if low is not None:
                p.line([(at(low), y + row / 2 - 0.5), (at(high), y + row / 2 - 0.5)], "axis", 1)
            if target is not None:
                p.line([(at(target), y), (at(target), y + row - 2)], "greenline" if ratio <= target else "redline", 3)
            p.text(right + 10, y + 12, f"{ratio:.4f}" if ratio < 0.01 else f"{ratio:.2f}", 12, bold=True)
            y += row
        y += 8
    return p


def promises_race():
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(ROOT / "Benchmarks" / "promises"))
    import rows

    targets = {
        (row.title, target.peer): target.limit for row in rows.ROWS for target in row.targets if target.what == "ratio"}
    names = {name: peer for peer, name in rows.NAMES.items()}
    groups = []
    for step, peer, ratios, *_ in cells("docs/explanation/performance.md", "A step"):
        ratio, low, high = (float(number) for number in re.findall(r"[\d.]+", ratios))
        if step:
            groups.append((step, []))
        peer = peer.replace(", isolated", "")
        groups[-1][1].append((peer, ratio, low, high, targets.get((groups[-1][0], names.get(peer)))))
    return race(
        "Promises beside their peers",
        ("Processor time, ours divided by the peer's, on a logarithmic scale. A bar that goes left of 1: ours costs less.",
         "Thin line: the range of the rounds. Thick mark: the target, green if it is met."),
        groups, 0.005, 20, (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20))


def echo_race():
    groups = []
    for load, *ratios in cells("docs/explanation/performance.md", "Messages, connections"):
        bars = []
        for peer, cell in zip(("echo-server", "forEachChunk", "SwiftNIO", "libuv"), ratios):
            bars.append((peer, float(re.search(r"[\d.]+", cell)[0]), None, None, None))
        groups.append((load.split(", which")[0], bars))
    return race(
        "An echo server beside a minimal one in C",
        ("Processor time of the server for a message, divided by that of an epoll loop in C; bytes and connections.",
         "Green: this library, by promises (echo-server) and by forEachChunk."),
        groups, 0.9, 2.6, (0.9, 1, 1.2, 1.4, 1.6, 1.8, 2, 2.2, 2.4, 2.6))


PICTURES = {
    "turn": turn, "life": life, "drain": drain, "backpressure": backpressure, "promises-race": promises_race,
    "echo-race": echo_race,
}


def main():
    files = {FOLDER / f"{name}.svg": draw().svg() for name, draw in PICTURES.items()}
    present = {path.relative_to(ROOT) for path in (ROOT / FOLDER).glob("*.svg")}
    stale = sorted(str(path) for path in present | files.keys()
                   if path not in files or path not in present or (ROOT / path).read_text() != files[path])
    if "--check" in sys.argv[1:]:
        if stale:
            sys.exit(f"error: run .ci/pictures.py: a table has changed, and not {', '.join(stale)}")
        return
    (ROOT / FOLDER).mkdir(exist_ok=True)
    for path in stale:
        if Path(path) in files:
            (ROOT / path).write_text(files[Path(path)])
        else:
            (ROOT / path).unlink()
        print(path)


main()

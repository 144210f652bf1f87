import Promises
import Reactor
import ReactorIO
import ReactorLibc

extension Snapshot {
    /// The page for a terminal of this many columns.
    func text(columns: Int) -> String {
        var page = TextPage(columns: min(max(columns, 80), 160))
        let tracing = isTracing ? "on" + (tracingLeft.map { " for \($0) s" } ?? "") : "off"
        page.line("\(program ?? "")  process \(getpid())  console since \(timeText(uptime))  tracing \(tracing)")
        addLoops(to: &page)
        addObjects(to: &page)
        addConnections(to: &page)
        addPromises(to: &page)
        addEvents(to: &page)
        page.title("This look")
        page.line("took \(timeText(cost)) of the loops' time, in pieces of at most \(timeText(longestPiece))")
        page.line("left out: " + (leftOut.isEmpty ? "nothing" : leftOut.joined(separator: "; ")))
        return page.text
    }

    private func addLoops(to page: inout TextPage) {
        let now = LoopClock.monotonic.now.nanoseconds
        page.title("Loops")
        var table = TextTable([
            "loop", "thread", "turns/s", "busy", "lag p50", "p99", "max 60 s", "ready", "timers", "fds",
        ])
        for loop in loops {
            let (short, long) = (loop.loop.lags(ofSeconds: 10, at: now), loop.loop.lags(ofSeconds: 60, at: now))
            let metrics = loop.loop.last?.metrics
            table.add([
                loop.name, numberText(loop.loop.thread), loop.loop.turnRate.map { decimal($0, 0) } ?? "-",
                loop.loop.busy.map { decimal($0 * 100, 0) + " %" } ?? "-", timeText(short?.median),
                timeText(short?.p99),
                timeText(long?.most), numberText(metrics?.readyJobs), numberText(metrics?.timers),
                numberText(metrics?.descriptors),
            ])
        }
        page.table(table)
        for loop in loops {
            if let text = loop.problem { page.line("! \(loop.name) \(text)") }
            if let longest = loop.loop.longest {
                let time = timeText(longest.duration.clampedNanoseconds)
                let line = longest.callSite.map { " at \($0)" } ?? ""
                page.line(
                    "  \(loop.name): the longest handler of the last minute: \(time), a \(longest.kind.rawValue)\(line)"
                )
            }
        }
    }

    private func addObjects(to page: inout TextPage) {
        page.title("Listeners, pools, limiters, thread pools, memory")
        var table = TextTable(["kind", "name", "loop", "in use", "free", "limit", "waiting", "oldest"])
        var notes: [String] = []
        for (loop, facts) in objects {
            let amount = facts.form == .memory ? bytesText : numberText
            table.add([
                facts.form.rawValue, facts.name, loop, amount(facts.inUse), amount(facts.free), amount(facts.limit),
                numberText(facts.waiting), timeText(facts.oldestWaiter),
            ])
            let numbers = facts.others.filter { $0.value != 0 }.map { "\($0.name) \($0.value)" }
            let parts = [facts.callSite.map { "at \($0)" }, facts.state].compactMap(\.self) + numbers
            if facts.form == .listener, !parts.isEmpty {
                notes.append("  \(facts.name): \(parts.joined(separator: ", "))")
            }
        }
        page.table(table)
        for note in notes { page.line(note) }
    }

    private func addConnections(to page: inout TextPage) {
        page.title("Connections: \(connectionCount), by \(order.rawValue)")
        if connections.isEmpty { return page.line("none") }
        var table = TextTable(
            ["peer", "loop", "age", "idle", "received", "sent", "queued", "waits for"], textColumns: 2, last: true)
        for connection in connections {
            let facts = connection.facts
            let note =
                (facts.filter.map { " [\($0)]" } ?? "") + (connection.isOld ? " (old: the loop does not answer)" : "")
            table.add([
                facts.name, connection.loop, timeText(connection.age), timeText(connection.idle),
                bytesText(facts.received), bytesText(facts.sent), bytesText(facts.queued), connection.waitsFor + note,
            ])
        }
        page.table(table)
    }

    private func addPromises(to page: inout TextPage) {
        page.title(isTracing ? "Pending promises: \(pending)" : "Pending promises")
        if !isTracing {
            return page.line(
                "unknown: switch tracing on with  curl -X POST …/trace?seconds=60  (for promises made from then on)")
        }
        for tree in promises {
            page.line("on \(tree.loop): \(tree.pending)")
            for node in tree.nodes {
                let indent = String(repeating: "  ", count: min(node.depth, 30) + 1)
                if node.depth == 0, let work = node.work { page.line("  ← \(work)") }
                let count = node.group.count > 1 ? " ×\(node.group.count)" : ""
                let ages = tree.ages(node).map { ages in
                    "  " + timeText(ages.oldest) + (node.group.count > 1 ? " … \(timeText(ages.youngest))" : "")
                }
                let loss = node.group.loss.map { "  LOST: \($0.rawValue)" } ?? ""
                page.line("\(indent)\(node.depth == 0 ? "" : "└ ")\(node.title)\(count)\(ages ?? "")\(loss)")
            }
        }
    }

    private func addEvents(to page: inout TextPage) {
        page.title("Events: \(eventCount)")
        if events.isEmpty { page.line("none") }
        for event in events.prefix(20) {
            let age = timeText(Int64(max(time - event.time, 0)) * 1_000_000_000)
            let line = event.callSite.map { " at \($0)" } ?? ""
            page.line("\(age) ago  \(event.kind.rawValue): \(event.text)\(line)")
        }
        if events.count > 20 { page.line("and \(events.count - 20) more in /json") }
    }
}

extension Snapshot.Loop {
    /// The reason that the loop does not answer, or its busy handler; `nil` if all is well.
    var problem: String? {
        let handler = current.map { current in
            "in a \(current.handler.kind.rawValue)"
                + (current.handler.callSite.map { " at \($0)" } ?? currentPlace.map { " of \($0)" }
                    ?? (current.handler.kind == .promiseHandler
                        ? " (its line is known while promises are traced)" : ""))
        }
        switch state {
        case .stuck:
            let time = max(silence, current?.time ?? 0)
            return "is STUCK for \(timeText(time)) \(handler ?? "")"
        case .silent:
            return
                "has not answered for \(timeText(silence)), and no handler runs: no thread drives it, or one did so from before"
        case .answers:
            guard let current, current.time > 10_000_000 else { return nil }
            return "has been for \(timeText(current.time)) \(handler ?? "")"
        }
    }
}

/// Lines that fit a terminal.
struct TextPage {
    let columns: Int
    private(set) var text = ""

    init(columns: Int) { self.columns = columns }

    mutating func title(_ title: String) { text += "\n\(title.uppercased())\n" }

    /// Cuts a long line, and escapes control characters, by which a name could move the cursor.
    mutating func line(_ line: String) {
        let line = line.inOneLine
        text += line.count > columns ? "\(line.prefix(columns - 1))…\n" : "\(line)\n"
    }

    mutating func table(_ table: TextTable) { table.lines(columns: columns).forEach { line($0) } }
}

/// Columns as wide as their contents; the widest texts are cut.
struct TextTable {
    private var rows: [[String]]
    private let isText: [Bool]

    /// - Parameters:
    ///   - textColumns: the number of left-aligned texts at the left; other columns are numbers.
    ///   - last: true if the last column is a text.
    init(_ titles: [String], textColumns: Int? = nil, last: Bool = false) {
        let count = textColumns ?? (titles[0] == "kind" ? 3 : 1)
        rows = [titles]
        isText = titles.indices.map { $0 < count || last && $0 == titles.count - 1 }
    }

    mutating func add(_ row: [String]) { rows.append(row.map(\.inOneLine)) }

    func lines(columns: Int) -> [String] {
        var widths = isText.indices.map { index in rows.map { $0[index].count }.max() ?? 0 }
        var excess = widths.reduce(0, +) + 2 * (widths.count - 1) - columns
        while excess > 0,
            let widest = widths.indices.filter({ isText[$0] && widths[$0] > 8 }).max(by: { widths[$0] < widths[$1] })
        {
            widths[widest] -= 1
            excess -= 1
        }
        return rows.map { row in
            row.indices.map { index in
                let (cell, width) = (row[index], widths[index])
                let cut = cell.count > width ? "\(cell.prefix(width - 1))…" : cell
                let padding = String(repeating: " ", count: width - cut.count)
                return isText[index] ? cut + (index < row.count - 1 ? padding : "") : padding + cut
            }.joined(separator: "  ")
        }
    }
}

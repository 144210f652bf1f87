import Promises
import Reactor
import ReactorIO
import ReactorLibc

extension Snapshot {
    /// Returns the page for a terminal with this many columns.
    /// - Parameter tracer: the shell command that switches tracing on.
    func text(columns: Int, tracer: String) -> String {
        var page = TextPage(columns: min(max(columns, 80), 160))
        let tracing = isTracing ? "on" + (tracingLeft.map { " for \($0) s" } ?? "") : "off"
        page.line("\(program ?? "")  process \(getpid())  console since \(timeText(uptime))  tracing \(tracing)")
        let problems = problems
        if !problems.isEmpty { page.title("Look here first") }
        for problem in problems { page.note("! \(problem.place): \(problem.detail)") }
        addLoops(to: &page)
        addObjects(to: &page)
        addConnections(to: &page)
        addPromises(to: &page, tracer)
        addEvents(to: &page)
        page.title("This look")
        page.note("took \(timeText(cost)) of the loops' time, in pieces of at most \(timeText(longestPiece))")
        page.note("left out: " + (leftOut.isEmpty ? "nothing" : leftOut.joined(separator: "; ")))
        return page.text
    }

    private func addLoops(to page: inout TextPage) {
        let now = LoopClock.monotonic.now.nanoseconds
        page.title("Loops")
        var table = TextTable([
            "loop", "thread", "turns/s", "busy", "lag p50", "p99", "max 60 s", "ready", "timers", "watched",
        ])
        for loop in loops {
            let (short, long) = (loop.loop.lags(ofSeconds: 10, at: now), loop.loop.lags(ofSeconds: 60, at: now))
            let metrics = loop.loop.last?.metrics
            table.add([
                loop.name + (loop.state == .answers ? "" : " (old)"), numberText(loop.loop.thread),
                loop.loop.turnRate.map { decimal($0, 0) } ?? "-",
                loop.loop.busy.map { decimal($0 * 100, 0) + " %" } ?? "-", timeText(short?.median),
                timeText(short?.p99), timeText(long?.most), numberText(metrics?.readyJobs),
                numberText(metrics?.timers), numberText(metrics?.descriptors),
            ])
        }
        page.table(table)
        for loop in loops {
            guard let longest = loop.loop.longest else { continue }
            page.note("\(loop.name): the longest handler of the last minute: \(longest.inWords)")
        }
    }

    private func addObjects(to page: inout TextPage) {
        page.title("Listeners, pools, limiters, thread pools, memory")
        var table = TextTable(["kind", "name", "loop", "in use", "free", "limit", "waiting", "oldest"])
        var notes: [String] = []
        for object in objects {
            let facts = object.facts
            let amount = facts.form == .memory ? bytesText : numberText
            table.add([
                facts.form.rawValue, object.name, object.loop, amount(facts.inUse), amount(facts.free),
                amount(facts.limit), numberText(facts.waiting), timeText(facts.oldestWaiter),
            ])
            let finished = facts.ends.flatMap { $0.count == 0 ? nil : "\($0.count) finished in all" }
            let parts = [
                facts.callSite.map { "at \($0)" }, facts.state, finished, facts.inUse > 0 ? object.pace : nil,
            ]
            let numbers = facts.others.filter { $0.value != 0 }.map { "\($0.name) \($0.value)" }
            let note = (parts.compactMap(\.self) + (facts.form == .listener ? numbers : [])).joined(separator: ", ")
            if !note.isEmpty { notes.append("\(object.name): \(note)") }
        }
        page.table(table)
        for note in notes { page.note(note) }
    }

    private func addConnections(to page: inout TextPage) {
        page.title("Connections: \(allConnections.count), by \(order.rawValue)")
        if connections.isEmpty { return page.line("none") }
        var table = TextTable(
            ["peer", "loop", "age", "idle", "received", "sent", "queued", "waits for"], textColumns: 2, last: true)
        for connection in connections {
            let facts = connection.facts
            let note =
                (facts.filter.map { " [\($0)]" } ?? "") + (connection.isOld ? " (old: the loop does not answer)" : "")
            table.add([
                facts.name, connection.loop, connection.age.map { "\($0 / 1_000_000_000) s" } ?? "-",
                timeText(connection.idle),
                bytesText(facts.received), bytesText(facts.sent), bytesText(facts.queued), connection.waitsFor + note,
            ])
        }
        page.table(table)
    }

    private func addPromises(to page: inout TextPage, _ tracer: String) {
        page.title("Pending promises: \(pending)")
        if !isTracing {
            page.note("Those with names, or from before tracing ended. Tracing shows all that are made from then on:")
            page.command(tracer)
        }
        for tree in promises {
            page.line("on \(tree.loop): \(tree.pending)")
            for node in tree.nodes {
                let indent = String(repeating: "  ", count: min(node.depth, 30) + 1)
                if node.depth == 0, let work = tree.work(of: node) { page.line("  ← \(work)") }
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
            let line = event.callSite.map { " at \($0)" } ?? ""
            page.line("\(age(of: event)) ago  \(event.kind.rawValue): \(event.text)\(line)")
        }
        if events.count > 20 { page.line("and \(events.count - 20) more in /json") }
    }

    func age(of event: EventRing.Event) -> String { timeText(Int64(max(time - event.time, 0)) * 1_000_000_000) }
}

struct TextPage {
    let columns: Int
    private(set) var text = ""

    init(columns: Int) { self.columns = columns }

    mutating func title(_ title: String) { text += "\n\(title.uppercased())\n" }

    /// Shortens a long line, and escapes control characters, which could move the cursor.
    mutating func line(_ line: String) { text += line.inOneLine.shortened(to: columns) + "\n" }

    /// Adds a sentence on as many lines as it needs.
    mutating func note(_ note: String) {
        var line = ""
        for word in note.inOneLine.split(separator: " ") {
            if line.count + 1 + word.count > columns {
                self.line(line)
                line = "   "
            }
            line += line.isEmpty ? "\(word)" : " \(word)"
        }
        self.line(line)
    }

    /// Adds a command in full, to be copied.
    mutating func command(_ command: String) { text += "  \(command.inOneLine)\n" }

    mutating func table(_ table: TextTable) { table.lines(columns: columns).forEach { line($0) } }
}

/// A table whose columns fit their contents. The widest texts are shortened if necessary.
struct TextTable {
    private var rows: [[String]]
    private let isText: [Bool]

    /// - Parameters:
    ///   - textColumns: the number of left-aligned text columns, which come first; other columns are numbers.
    ///   - last: true if the last column is text.
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
                let cut = cell.shortened(to: width)
                let padding = String(repeating: " ", count: width - cut.count)
                return isText[index] ? cut + (index < row.count - 1 ? padding : "") : padding + cut
            }.joined(separator: "  ")
        }
    }
}

extension String {
    /// Cuts out the middle, because the end has the port or the line.
    fileprivate func shortened(to count: Int) -> String {
        if self.count <= count { return self }
        let start = count / 3
        return "\(prefix(start))…\(suffix(max(count - start - 1, 0)))"
    }
}

import Promises
import Reactor
import ReactorIO
import ReactorLibc

struct Problem {
    /// The place. Constant while the problem lasts, so a screen reader announces it once.
    let place: String
    let detail: String
}

extension Snapshot {
    /// The times from which a handler, or a wait in nanoseconds, is a problem.
    private static var longHandler: Duration { .milliseconds(50) }
    private static var longWait: Int64 { 10_000_000_000 }
    /// The maximum lines about unused resolvers.
    private static var mostResolvers: Int { 3 }

    var problems: [Problem] {
        loops.compactMap(\.problem) + losses + objects.compactMap { $0.problem(promises) } + loops.compactMap(lateness)
            + longRequests + resolvers + abandonments
    }

    private func lateness(_ loop: Loop) -> Problem? {
        guard loop.state == .answers, let longest = loop.loop.longest, longest.duration >= Self.longHandler else {
            return nil
        }
        let lags = loop.loop.lags(ofSeconds: 60, at: LoopClock.monotonic.now.nanoseconds)
        return Problem(
            place: "\(loop.name) is late",
            detail: "lag p99 \(timeText(lags?.p99)) in the last minute; longest handler \(longest.inWords)")
    }

    private var longRequests: [Problem] {
        let late = allConnections.filter { $0.facts.wait == .handler && $0.idle ?? 0 >= Self.longWait }
        return Dictionary(grouping: late) { $0.handlerText }.sorted { $0.key < $1.key }.map { handler, connections in
            let ended = connections.count { $0.facts.hasEnded }
            return Problem(
                place: "requests wait for the \(handler)",
                detail: "\(connections.count) for more than 10 s, the oldest "
                    + timeText(connections.compactMap(\.idle).max())
                    + (ended > 0 ? "; of \(ended) the peer has ended its side" : "")
                    + (isTracing ? "" : "; switch tracing on to see what they wait for"))
        }
    }

    private var losses: [Problem] {
        promises.flatMap(\.nodes).compactMap { node in
            guard let loss = node.group.loss else { return nil }
            return Problem(place: "lost promises: \(node.title)", detail: "\(node.group.count): \(loss.rawValue)")
        }
    }

    private var resolvers: [Problem] {
        var found: [(count: Int, problem: Problem)] = []
        for tree in promises {
            for node in tree.nodes where node.group.parent == nil && node.group.work == .resolver {
                guard let age = tree.ages(node)?.oldest, age >= Self.longWait else { continue }
                let (place, count) = (
                    "promises on \(tree.loop) wait for their resolver: \(node.title)", node.group.count
                )
                found.append((count, Problem(place: place, detail: "\(count), the oldest \(timeText(age))")))
            }
        }
        return found.sorted { $0.count > $1.count }.prefix(Self.mostResolvers).map(\.problem)
    }

    private var abandonments: [Problem] {
        let abandoned = events.filter { $0.kind == .abandoned }
        guard let last = abandoned.first else { return [] }
        return [
            Problem(
                place: "abandoned promises",
                detail: "\(abandoned.count), the last \(age(of: last)) ago, made at "
                    + (last.callSite.map { "\($0)" } ?? "an unknown line"))
        ]
    }
}

extension SlowHandler {
    /// `128 ms, timer at App/Main.swift:49`
    var inWords: String {
        timeText(duration.clampedNanoseconds) + ", \(kind.rawValue)" + (callSite.map { " at \($0)" } ?? "")
    }
}

extension Snapshot.Object {
    /// `"limiter" on worker-1`
    var title: String { "\(facts.form.rawValue) \"\(name)\"" + (loop.isEmpty ? "" : " on \(loop)") }

    fileprivate func problem(_ trees: [PromiseTree]) -> Problem? {
        guard let limit = facts.limit, limit > 0, facts.inUse >= limit, facts.waiting > 0 else { return nil }
        let amount = facts.form == .memory ? bytesText : numberText
        let oldest = facts.oldestWaiter.map { ", the oldest \(timeText($0))" } ?? ""
        return Problem(
            place: "\(title) is full",
            detail: "\(amount(facts.inUse)) of \(amount(limit)), \(facts.waiting) wait\(oldest)"
                + (pace.map { "; \($0)" } ?? "") + (call(trees).map { "; \($0) waits" } ?? ""))
    }

    /// Returns the line of most waiting calls of a limiter, if promises are traced.
    private func call(_ trees: [PromiseTree]) -> String? {
        guard facts.form == .limiter else { return nil }
        return trees.filter { $0.loop == loop }.flatMap(\.nodes).first { node in
            if case .place(facts.limit, facts.inUse, _) = node.group.work { true } else { false }
        }?.title
    }

    /// The rate at which uses finish, in words; `nil` before the second survey.
    var pace: String? {
        if let finishedPerSecond, finishedPerSecond > 0 { return "\(decimal(finishedPerSecond, 1)) finished/s" }
        return sinceFinished.map { "none finished for \(timeText($0))" }
    }
}

extension Snapshot.Loop {
    /// `in a timer at App/Main.swift:49`, once it has run for 10 ms.
    var handlerText: String? {
        current.flatMap { current in
            guard current.time > 10_000_000 else { return nil }
            let place = current.handler.callSite.map { " at \($0)" } ?? currentPlace.map { " of \($0)" }
            return "in a \(current.handler.kind.rawValue)\(place ?? "")"
        }
    }

    fileprivate var problem: Problem? {
        switch state {
        case .answers: return nil
        case .silent:
            return Problem(
                place: "\(name) does not answer",
                detail: "for \(timeText(silence)), and no handler runs: no thread drives it, or it has been stuck "
                    + "since before the console knew it")
        case .stuck:
            var detail = "for \(timeText(max(silence, current?.time ?? 0))) \(handlerText ?? "")"
            if let thread = loop.thread {
                detail += "; thread \(thread) \(ReactorConsole.state(ofThread: thread))"
                if current?.handler.callSite == nil {
                    detail +=
                        "; line not noted: promises were not traced when it was made; its stack: gdb -p \(getpid())"
                }
            }
            return Problem(place: "\(name) is stuck", detail: detail)
        }
    }
}

/// Returns the kernel's state of a thread, in words.
private func state(ofThread thread: Int) -> String {
    let files = FileSyscalls.real
    let file = CInt(files.open("/proc/self/task/\(thread)/stat", O_RDONLY, 0))
    guard file >= 0 else { return "has ended" }
    defer { _ = files.close(file) }
    var bytes = [UInt8](repeating: 0, count: 256)
    let count = bytes.withUnsafeMutableBytes { files.read(file, $0.baseAddress!, $0.count) }
    // `123 (name) R …`, and the name may contain any character.
    let letter = bytes.prefix(max(count, 0)).split(separator: UInt8(ascii: ")")).last?.dropFirst().first
    return letter == UInt8(ascii: "R") ? "runs" : letter == UInt8(ascii: "D") ? "waits for a disk" : "sleeps"
}

/// Checks a round of several threads: every outcome that the model allows, however the threads have met.
struct ThreadProgramRules: CustomStringConvertible {
    private let plans: [ThreadProgram]
    private let logs: [ThreadLog]
    private(set) var complaints: [String] = []

    /// The known facts about each promise: its origin, and its end.
    private var actions: [Int: Action] = [:]
    private var handlers: [Int: Handler] = [:]
    private var sources: [Int: (op: Operator, source: Int)] = [:]
    private var combined: [Int: (sources: [Int], combinator: Combinator)] = [:]
    private var replies: [Int: Int] = [:]
    private var handled: Set<Int> = []
    private var adopted: Set<Int> = []
    private var outcomes: [Int: String] = [:]
    private var runs: [Int: [Outcome]] = [:]
    private var made: Set<Int> = []
    private var cancelled = false
    private var stops: [Int: Int] = [:]
    private var ignoring: Set<Int> = []

    init(_ plans: [ThreadProgram], _ logs: [ThreadLog]) {
        self.plans = plans
        self.logs = logs
    }

    mutating func complain(_ text: String) { complaints.append(text) }

    mutating func check() {
        collect()
        checkHandlers()
        checkOrder()
        checkOffers()
        for name in sources.keys { checkChild(name) }
        for name in combined.keys { checkCombined(name) }
        checkCancellations()
        checkReports()
        for log in logs {
            if log.waitingHandlers != 0 { complain("\(log.waitingHandlers) handlers wait in the end") }
            for report in log.otherReports { complain("reported: \(report)") }
        }
    }

    // MARK: What is known

    private mutating func collect() {
        for plan in plans { collect(plan.prelude + plan.script) }
        for log in logs {
            for event in log.trace {
                switch event {
                case .attached(let name, let op, let source):
                    sources[name] = (op, source)
                    handled.insert(source)
                case .combined(let name, let sources, let combinator):
                    combined[name] = (sources, combinator)
                    if combinator.isRace { cancelled = true }
                    handled.formUnion(sources)
                case .replied(let name, let promise): replies[name] = promise
                case .ran(let name, let outcome): runs[name, default: []].append(outcome)
                case .cancelRequested: cancelled = true
                case .cancelled(let name): stops[name, default: 0] += 1
                default: break
                }
            }
            for (name, state) in log.states { learn(name, state, "a state") }
            ignoring.formUnion(log.ignoring)
        }
        for (name, promise) in replies {
            if sources[name]!.op == .ensureThen { handled.insert(promise) } else { adopted.insert(promise) }
        }
        for (name, outcomes) in runs where sources[name]!.op.tellsOutcome {
            // A cleanup may receive a cancellation that its source does not have, as may those who wait for a promise
            // that has merged with another.
            let mayKnowMore = mayBeCancelled(name) || mayHaveTwoEnds(sources[name]!.source)
            for outcome in outcomes where !(mayKnowMore && outcome == .error(.cancelled)) {
                learn(sources[name]!.source, outcome.description, "handler \(name)")
            }
        }
    }

    private mutating func collect(_ steps: [Step]) {
        for step in steps {
            actions[step.name] = step.action
            if case .make = step.action { made.insert(step.name) }
            guard let handler = step.handler else { continue }
            handlers[step.name] = handler
            collect(handler.steps)
        }
    }

    private mutating func learn(_ name: Int, _ outcome: String, _ by: String) {
        if outcome == "pending" { complain("p\(name) is pending in the end") }
        if let known = outcomes[name], known != outcome { complain("p\(name) is \(known), but by \(by) \(outcome)") }
        outcomes[name] = outcome
    }

    /// True for a cleanup that may have received a cancellation, out of turn.
    private func mayBeCancelled(_ name: Int) -> Bool {
        cancelled && [.tap, .ensure, .ensureThen].contains(sources[name]!.op)
            && outcomes[name] ?? "cancelled" == "cancelled"
    }

    /// True if its handler has returned a promise that others may wait for too: a cancellation notifies those who wait
    /// for it, and then it shows how the other one ends.
    private func mayHaveTwoEnds(_ name: Int) -> Bool { cancelled && replies[name] != nil }

    private static func isValue(_ outcome: String) -> Bool { Int(outcome) != nil }

    // MARK: Each handler once, and in order

    private mutating func checkHandlers() {
        for (name, attachment) in sources where attachment.op != .pipe {
            let count = runs[name]?.count ?? 0
            guard let outcome = outcomes[attachment.source] else {
                if count > 1 { complain("handler \(name) ran \(count) times") }
                continue
            }
            // A handler whose own promise was cancelled may not have run.
            let mayBeSkipped = cancelled && attachment.op.makesPromise && outcomes[name] ?? "cancelled" == "cancelled"
            let expected = attachment.op.handles(Outcome(text: outcome)) ? 1 : 0
            if mayHaveTwoEnds(attachment.source) && count <= 1 { continue }
            if count != expected && !(mayBeSkipped && count == 0) {
                complain("handler \(name) of p\(attachment.source), which is \(outcome), ran \(count) times")
            }
        }
        for (name, count) in stops {
            guard case .onCancel(let key, _)? = actions[name] else { continue }
            if count != 1 { complain("onCancel \(name) ran \(count) times") }
            if let outcome = outcomes[key], outcome != "cancelled" {
                complain("onCancel \(name) ran, and p\(key) is \(outcome)")
            }
        }
        for log in logs {
            let pipes = log.trace.compactMap { event -> (name: Int, source: Int)? in
                guard case .attached(let name, .pipe, let source) = event else { return nil }
                return (name, source)
            }
            for (pipe, record) in zip(pipes, log.pipes) {
                if record.count != 1 { complain("pipe \(pipe.name) of p\(pipe.source) ran \(record.count) times") }
                if let outcome = outcomes[pipe.source], !record.saw(Outcome(text: outcome)),
                    !(mayHaveTwoEnds(pipe.source) && record.saw(.error(.cancelled)))
                {
                    complain("pipe \(pipe.name) of p\(pipe.source), which is \(outcome), saw something else")
                }
            }
        }
    }

    /// A cancellation takes effect at the latest when all threads are idle, unless a cleanup is waited for, or only the
    /// handlers were notified, since others wait for the promise that the promise's handler has returned.
    private mutating func checkCancellations() {
        for name in ignoring where !waitsForCleanUp(name) && !mayHaveTwoEnds(name) {
            complain("p\(name) was cancelled, and goes on")
        }
    }

    /// True if it is a cleanup that has returned a promise, or waits for one, perhaps through others.
    private func waitsForCleanUp(_ name: Int) -> Bool {
        var (left, seen) = ([name], Set<Int>())
        while let next = left.popLast() {
            if !seen.insert(next).inserted { continue }
            if sources[next]?.op == .ensureThen && replies[next] != nil { return true }
            left += [sources[next]?.source, replies[next]].compactMap { $0 } + (combined[next]?.sources ?? [])
        }
        return false
    }

    /// Handlers that one thread attached to one promise run in the order of attaching.
    private mutating func checkOrder() {
        for log in logs {
            var place: [Int: Int] = [:]
            for (index, event) in log.trace.enumerated() {
                if case .ran(let name, _) = event { place[name] = index }
            }
            var last: [Int: (name: Int, place: Int)] = [:]
            for event in log.trace {
                guard case .attached(let name, _, let source) = event, let place = place[name], !mayBeCancelled(name)
                else { continue }
                if let last = last[source], last.place > place {
                    complain("handlers \(last.name) and \(name) of p\(source) ran in the wrong order")
                }
                last[source] = (name, place)
            }
        }
    }

    // MARK: The right outcome

    /// A promise with a resolver ends as the first of some thread's offers, or is abandoned if there are none.
    private mutating func checkOffers() {
        var offers: [Int: Set<String>] = [:]
        var abandoned: [Int: Int] = [:]
        for log in logs {
            var seen: Set<Int> = []
            for event in log.trace {
                if case .settled(let name, let outcome) = event, seen.insert(name).inserted {
                    offers[name, default: []].insert(outcome.description)
                }
                if case .abandoned(let name) = event { abandoned[name, default: 0] += 1 }
            }
        }
        for name in made {
            let reports = abandoned[name] ?? 0
            if let offered = offers[name] {
                if reports != 0 { complain("p\(name) was settled, and is reported as abandoned") }
                guard let outcome = outcomes[name], !offered.contains(outcome) else { continue }
                if !(cancelled && outcome == "cancelled") { complain("p\(name) is \(outcome), which was not offered") }
            } else {
                // Perhaps cancelled, without a reference or a waiter.
                if outcomes[name] == nil && cancelled && reports <= 1 { continue }
                let outcome = outcomes[name] ?? "abandoned"
                if outcome == "cancelled" && cancelled && reports == 0 { continue }
                if outcome != "abandoned" { complain("p\(name) is \(outcome), although it was not settled") }
                if reports != 1 { complain("p\(name) is reported as abandoned \(reports) times") }
            }
        }
    }

    private mutating func checkChild(_ name: Int) {
        guard let (op, source) = sources[name], op.makesPromise, let outcome = outcomes[name],
            let sourceOutcome = outcomes[source], !(cancelled && outcome == "cancelled"), !mayHaveTwoEnds(source)
        else { return }
        let handler = handlers[name]!
        var expected = sourceOutcome
        if op.handles(Outcome(text: sourceOutcome)), ![.tap, .ensure, .ensureThen].contains(op) {
            switch handler.reply {
            case .value(let number), .promise(_, let number): if op != .get { expected = "\(number)" }
            case .failure(let number): expected = "flaw\(number)"
            }
            if let inner = replies[name] {
                guard let innerOutcome = outcomes[inner] else { return }
                expected = isInCircle(name) ? "returnedSelf" : innerOutcome
            }
        }
        if outcome != expected { complain("p\(name) is \(outcome), and should be \(expected)") }
    }

    /// True if it returned a promise that returned another, and so on, back to it.
    private func isInCircle(_ name: Int) -> Bool {
        var next = replies[name]
        for _ in 0..<replies.count {
            guard let promise = next, promise != name else { break }
            next = sources[promise]?.op == .ensureThen ? nil : replies[promise]
        }
        return next == name
    }

    private mutating func checkCombined(_ name: Int) {
        guard let (sources, combinator) = combined[name], let outcome = outcomes[name] else { return }
        if cancelled && outcome == "cancelled" { return }
        let ends = sources.compactMap { outcomes[$0] }
        guard ends.count == sources.count, !sources.contains(where: mayHaveTwoEnds) else { return }
        let errors = ends.filter { !Self.isValue($0) }
        let allowed =
            switch combinator {
            case _ where sources.isEmpty: [combinator.isRace ? "badInput" : "0"]
            case .race: ends
            case .raceFulfilled where errors.count < ends.count: ends.filter(Self.isValue)
            case .raceFulfilled: [errors.allSatisfy { $0 == "cancelled" } ? "cancelled" : "noWinner"]
            case .all where !errors.isEmpty: errors
            // For `each`, an error counts as one.
            case .all, .each: ["\(ends.reduce(0) { $0 + (Int($1) ?? 1) })"]
            }
        if !allowed.contains(outcome) { complain("p\(name) is \(outcome), and should be of \(allowed)") }
    }

    // MARK: What is reported

    /// An unhandled rejection is reported once. For promises that follow one another, the threads decide how many
    /// merge, and whether a handler of one came before that.
    private mutating func checkReports() {
        let all = Array(sources.keys.filter { sources[$0]!.op.makesPromise }) + Array(combined.keys) + Array(made)
        // Nothing can be expected of a promise that was released before the end.
        guard all.allSatisfy({ outcomes[$0] != nil }), !cancelled else { return }
        var leader: [Int: Int] = [:]
        func lead(_ name: Int) -> Int { leader[name].map { $0 == name ? name : lead($0) } ?? name }
        for (name, promise) in replies where sources[name]!.op != .ensureThen { leader[lead(name)] = lead(promise) }
        var groups: [Int: [Int]] = [:]
        for name in all where !Self.isValue(outcomes[name]!) && outcomes[name] != "abandoned" {
            groups[lead(name), default: []].append(name)
        }
        var least: [String: Int] = [:]
        var most: [String: Int] = [:]
        for group in groups.values {
            let error = outcomes[group[0]]!
            let ends = group.filter { !handled.contains($0) && !adopted.contains($0) }.count
            let isRound = group.contains { isInCircle($0) }
            if group.allSatisfy({ !handled.contains($0) }) { least[error, default: 0] += isRound ? 0 : 1 }
            most[error, default: 0] += isRound ? group.count : ends
        }
        var seen: [String: Int] = [:]
        for fault in logs.flatMap(\.unhandled) { seen[fault.description, default: 0] += 1 }
        for error in Set(seen.keys).union(most.keys) {
            let count = seen[error] ?? 0
            if count < least[error] ?? 0 || count > most[error] ?? 0 {
                complain("\(error) is reported \(count) times, not \(least[error] ?? 0) to \(most[error] ?? 0)")
            }
        }
    }

    // MARK: For people

    var description: String {
        var lines = complaints
        for (thread, plan) in plans.enumerated() {
            lines.append("--- thread \(thread) makes:\n\(Program(steps: plan.prelude))")
            lines.append("and then, together with the others:\n\(Program(steps: plan.script))")
        }
        for (thread, log) in logs.enumerated() {
            lines.append("--- what happened on thread \(thread):")
            lines += log.trace.map(\.description)
        }
        lines.append("--- in the end:")
        lines += outcomes.sorted { $0.key < $1.key }.map { "p\($0.key) is \($0.value)" }
        return lines.joined(separator: "\n")
    }
}

extension Outcome {
    /// In the form of `description`.
    fileprivate init(text: String) {
        if let number = Int(text) {
            self = .value(number)
        } else if text.hasPrefix("flaw"), let number = Int(text.dropFirst(4)) {
            self = .error(.flaw(number))
        } else {
            let known: [Fault] = [.returnedSelf, .abandoned, .cancelled, .badInput, .noWinner]
            self = .error(known.first { $0.description == text } ?? .unknown(text))
        }
    }
}

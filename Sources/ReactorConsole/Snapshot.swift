import Promises
import Reactor
import ReactorIO
import ReactorLibc

/// The console's knowledge at one moment.
struct Snapshot {
    /// The visitor's choices for the parts that may be long.
    struct Scope {
        var connections = 100
        var order = ConnectionOrder.idle
        var promises = 100
        static var most: Int { 100_000 }
    }

    enum ConnectionOrder: String, CaseIterable {
        case peer, age, idle, received, sent, queued
    }

    struct Loop {
        enum State: String {
            case answers
            /// No answer for a while, while in a handler.
            case stuck
            /// No answer for a while, although in no handler: no thread drives the loop, or it was stuck from the
            /// start.
            case silent
        }

        let loop: WatchedLoop
        /// A distinct name.
        let name: String
        let state: State
        /// Nanoseconds since the unanswered question.
        let silence: Int64
        let current: WatchedLoop.Current?
        let currentPlace: String?
    }

    struct Object {
        let facts: InspectedFacts
        /// A name distinct among objects of this kind and loop.
        let name: String
        let loop: String
        var finishedPerSecond: Double?
        /// The nanoseconds since the last use ended or, if none has, since the console was started.
        var sinceFinished: Int64?
    }

    struct ListedConnection {
        let facts: ConnectionFacts
        let loop: String
        let listener: InspectedFacts?
        /// True when the loop has not answered since then.
        let isOld: Bool
        /// Nanoseconds, in whole seconds, and no less than `idle`; `nil` if older than the console.
        var age: Int64? {
            facts.since.flatMap { InspectedObjects.time(since: $0) }.map {
                max($0, ((idle ?? 0) + 999_999_999) / 1_000_000_000 * 1_000_000_000)
            }
        }
        var idle: Int64? { facts.quiet.map { Int64($0) * 1_000_000 } }
    }

    let program = CommandLine.arguments.first?.split(separator: "/").last.map(String.init)
    let time = ReactorLibc.time(nil)
    let uptime: Int64
    let tracingLeft: Int?
    let isTracing: Bool
    let isRecording: Bool
    let loops: [Loop]
    let objects: [Object]
    /// All connections in the chosen order. An answer lists the first ones.
    let allConnections: [ListedConnection]
    let connections: ArraySlice<ListedConnection>
    let order: ConnectionOrder
    let promises: [PromiseTree]
    let pending: Int
    let events: [EventRing.Event]
    let eventCount: Int
    /// The metrics of the loops that answer, by name.
    let metrics: [(name: String, metrics: LoopMetrics)]
    /// The survey's time on all loops, and its longest piece, in nanoseconds.
    let cost: Int64
    let longestPiece: Int64
    let leftOut: [String]

    /// The nanoseconds for which a loop may be silent.
    static var patience: Int64 { 250_000_000 }

    init(of watcher: Watcher, _ scope: Scope) {
        let now = LoopClock.monotonic.now.nanoseconds
        var missing: [String] = []
        let watched = watcher.loops.values.filter { !$0.isOfPool }.sorted { $0.serial < $1.serial }
        let names = Self.names(of: watched)
        let findings = watched.map { watcher.findings[$0.serial] }
        uptime = now - watcher.started
        (tracingLeft, isTracing) = (watcher.tracingLeft, conf.trace)
        isRecording = watcher.recording != nil
        objects = Self.objects(
            [("", InspectedObjects.facts(ofLoop: 0))] + zip(names, findings).map { ($0, $1?.facts ?? []) }, watcher, now
        )
        let listeners = Dictionary(
            objects.compactMap { entry in entry.facts.identity.map { ($0, entry.facts) } },
            uniquingKeysWith: { one, _ in one })
        let loops = zip(watched, findings).enumerated().map { index, pair in
            Loop(pair.0, names[index], pair.1, listeners, at: now)
        }
        self.loops = loops
        order = scope.order
        let all = findings.enumerated().flatMap { index, found in
            (found?.connections ?? []).map { (index: index, facts: $0) }
        }
        allConnections = all.sorted { $0.facts.isBefore($1.facts, by: scope.order) }.map {
            ListedConnection(
                facts: $0.facts, loop: names[$0.index], listener: $0.facts.listener.flatMap { listeners[$0] },
                isOld: loops[$0.index].state != .answers)
        }
        connections = allConnections.prefix(scope.connections)
        if all.count > connections.count { missing.append("\(all.count - connections.count) connections") }
        // A loop that does not answer may hold connections that no survey has listed.
        let absent = loops.filter { $0.state != .answers }.map(\.name).joined(separator: ", ")
        let open = objects.reduce(0) { $0 + ($1.facts.form == .listener ? $1.facts.inUse : 0) }
        let hidden = open - all.count { $0.facts.listener != nil }
        if !absent.isEmpty, hidden > 0 { missing.append("\(hidden) connections of \(absent)") }
        let pools = Dictionary(
            objects.compactMap { entry in entry.facts.identity.map { ($0, entry.name) } },
            uniquingKeysWith: { one, _ in one })
        let trees = zip(names, findings).compactMap { name, found in
            found.map { PromiseTree(loop: name, $0.promises, pools, at: now) }
        }
        let ended =
            isTracing ? [PromiseTree(ofEndedLoopsExcept: Set(watcher.loops.keys), at: now)].compactMap(\.self) : []
        promises = (ended + trees).filter { $0.pending > 0 }.map { $0.first(scope.promises) }
        pending = (ended + trees).reduce(0) { $0 + $1.pending }
        missing += promises.compactMap(\.leftOut)
        for loop in loops where loop.state != .answers { missing.append("news of \(loop.name), which does not answer") }
        (events, eventCount) = watcher.events.latest
        if eventCount > events.count { missing.append("\(eventCount - events.count) earlier events") }
        metrics = zip(names, findings).compactMap { name, found in found.map { (name, $0.metrics) } }
        cost = findings.reduce(0) { $0 + ($1?.cost ?? 0) }
        longestPiece = findings.map { $0?.longestPiece ?? 0 }.max() ?? 0
        leftOut = missing
    }

    private static func objects(
        _ found: [(loop: String, facts: [InspectedFacts])], _ watcher: Watcher, _ now: Int64
    ) -> [Object] {
        var objects: [Object] = []
        var numbers: [String: Int] = [:]
        for (loop, facts) in found {
            for facts in facts.sorted(by: { ($0.form.rawValue, $0.name) < ($1.form.rawValue, $1.name) }) {
                let number = numbers["\(facts.form) \(loop) \(facts.name)", default: 0] + 1
                numbers["\(facts.form) \(loop) \(facts.name)"] = number
                objects.append(
                    Object(facts: facts, name: number == 1 ? facts.name : "\(facts.name) (\(number))", loop: loop))
            }
        }
        let counts = objects.compactMap { object in object.facts.ends.map { (object.title, $0.count) } }
        let paces = watcher.paces(Dictionary(counts) { one, _ in one }, at: now)
        for index in objects.indices {
            objects[index].finishedPerSecond = paces[objects[index].title]
            // Without a time, no use has ended since the console's start.
            objects[index].sinceFinished = objects[index].facts.ends.map {
                InspectedObjects.time(since: $0.last) ?? now - watcher.started
            }
        }
        return objects
    }

    /// Returns the loops' names, made distinct for Prometheus's labels.
    private static func names(of loops: [WatchedLoop]) -> [String] {
        let counts = Dictionary(loops.map { ($0.name, 1) }, uniquingKeysWith: +)
        return loops.map { counts[$0.name]! > 1 ? "\($0.name) (\($0.serial))" : $0.name }
    }
}

extension Snapshot.Loop {
    fileprivate init(
        _ loop: WatchedLoop, _ name: String, _ found: Survey.Findings?,
        _ listeners: [ObjectIdentifier: InspectedFacts], at now: Int64
    ) {
        (self.loop, self.name) = (loop, name)
        silence = loop.silence(at: now)
        current = loop.current(at: now)
        state = silence < Snapshot.patience ? .answers : current != nil ? .stuck : .silent
        let connection = current?.handler.descriptor.flatMap { descriptor in
            found?.connections.first { $0.descriptor == descriptor }
        }
        let line = connection?.listener.flatMap { listeners[$0]?.callSite }
        currentPlace = connection.map { "connection \($0.name)" + (line.map { ", served at \($0)" } ?? "") }
    }
}

extension Snapshot.ListedConnection {
    var handlerText: String { "handler" + (listener?.callSite.map { " of the server at \($0)" } ?? "") }

    var waitsFor: String {
        let line = facts.callSite.map { " at \($0)" } ?? ""
        return switch facts.wait {
        case .handler: handlerText + (facts.hasEnded ? "; the peer has ended its side" : "")
        case .read: "read" + line
        case .write: "write: the peer does not read"
        case .readAndWrite: "read\(line), and write"
        case .pause: "pause of readRate"
        case .close: "close"
        case .pool: "request of its pool"
        case .nothing: "nothing: it has ended"
        }
    }
}

extension ConnectionFacts {
    /// Sorts largest values first, unknown values last.
    fileprivate func isBefore(_ other: Self, by order: Snapshot.ConnectionOrder) -> Bool {
        switch order {
        case .peer: name < other.name
        case .age: since ?? .max < other.since ?? .max
        case .idle: quiet ?? -1 > other.quiet ?? -1
        case .received: received > other.received
        case .sent: sent > other.sent
        case .queued: queued > other.queued
        }
    }

    var name: String { peer.map { "\($0)" } ?? "descriptor \(descriptor)" }
}

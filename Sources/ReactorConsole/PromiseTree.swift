import Promises
import Reactor
import ReactorIO

/// A loop's pending promises: what waits for what, with the work at the root.
struct PromiseTree {
    struct Node {
        let group: PromiseGroup
        var depth = 0
    }

    let loop: String
    let pending: Int
    /// Each group precedes the groups that wait for it. Trees with lost promises come first, then the largest.
    private(set) var nodes: [Node]
    private(set) var leftOut: String?
    let now: Int64
    private let pools: [ObjectIdentifier: String]

    init(loop: String, _ findings: Survey.PromiseFindings, _ pools: [ObjectIdentifier: String], at now: Int64) {
        self.init(loop: loop, findings.groups, findings.pending, pools, at: now)
        var missing: [String] = []
        if findings.share < 1 {
            missing.append("\(decimal((1 - findings.share) * 100, 0)) % of the promises of \(loop)")
        }
        if findings.ungrouped > 0 { missing.append("the lines of \(findings.ungrouped) promises of \(loop)") }
        if !missing.isEmpty { leftOut = missing.joined(separator: ", ") }
    }

    /// Makes the tree for ended loops; `nil` if no promise is left.
    init?(ofEndedLoopsExcept living: Set<Int>, at now: Int64) {
        // The console's own loop lives, too.
        let walk = PromiseWalk(except: living.union([EventLoop.ofCurrentThread.serial]))
        let deadline = LoopClock.monotonic.now.nanoseconds + 50_000_000
        while walk.advance(), LoopClock.monotonic.now.nanoseconds < deadline {}
        if walk.pending == 0 { return nil }
        self.init(loop: "loops that have ended", walk.groups, walk.pending, [:], at: now)
    }

    private init(
        loop: String, _ groups: [PromiseGroup], _ pending: Int, _ pools: [ObjectIdentifier: String], at now: Int64
    ) {
        (self.loop, self.pending, self.pools, self.now) = (loop, pending, pools, now)
        var children = [[Int]](repeating: [], count: groups.count)
        var roots: [Int] = []
        // A group comes after its parent.
        var totals = groups.map { (isLost: $0.loss != nil, count: $0.count) }
        for index in groups.indices.reversed() {
            guard let parent = groups[index].parent else { continue }
            totals[parent].isLost = totals[parent].isLost || totals[index].isLost
            totals[parent].count += totals[index].count
        }
        for index in groups.indices {
            if let parent = groups[index].parent { children[parent].append(index) } else { roots.append(index) }
        }
        func rank(_ index: Int) -> (Int, Int, Int64) {
            (totals[index].isLost ? 0 : 1, -totals[index].count, groups[index].oldest)
        }
        var nodes: [Node] = []
        var rest = roots.sorted { rank($0) > rank($1) }.map { (index: $0, depth: 0) }
        while let next = rest.popLast() {
            nodes.append(Node(group: groups[next.index], depth: next.depth))
            rest += children[next.index].sorted { rank($0) > rank($1) }.map { (index: $0, depth: next.depth + 1) }
        }
        self.nodes = nodes
    }

    func first(_ count: Int) -> PromiseTree {
        var tree = self
        if nodes.count <= count { return tree }
        tree.nodes = Array(nodes.prefix(count))
        let missing = "\(nodes.count - count) lines of the promises of \(loop)"
        tree.leftOut = leftOut.map { "\($0), \(missing)" } ?? missing
        return tree
    }

    /// Returns the ages of a group's oldest and youngest promise, in nanoseconds; `nil` for promises of another loop.
    func ages(_ node: Node) -> (oldest: Int64, youngest: Int64)? {
        node.group.count == 0 ? nil : (now - node.group.oldest, now - node.group.youngest)
    }

    func work(of node: Node) -> String? {
        guard node.group.parent == nil, let work = node.group.work else { return nil }
        return switch work {
        case .timer(let left) where left < 0: "timer, due now"
        case .timer(let left): "timer due in \(timeText(left))"
        case .input(let connection): "input of \(connection)"
        case .resolver: "whoever has the resolver"
        case .job(let pool):
            "a job of " + (pool.flatMap { pools[$0] }.map { "thread pool \"\($0)\"" } ?? "a dispatcher")
        case .place(let limit, let inUse, let waiting):
            "a place of limiter \"limiter\" (\(inUse) of \(limit) in use, \(waiting) wait)"
        case .ready: "its handler is ready to run"
        case .untraced(let line?): "a promise from before tracing, made at \(line)"
        case .untraced(nil): "a promise from before tracing"
        case .sources(let count): "\(count) sources from before tracing"
        case .unknown: nil
        }
    }
}

extension PromiseTree.Node {
    /// `then at App/Login.swift:14 "login"`
    var title: String {
        group.operation + (group.callSite.map { " at \($0)" } ?? "") + (group.name.map { " \"\($0.inOneLine)\"" } ?? "")
    }
}

/// Returns nanoseconds in readable form: `3.2 s`.
func timeText(_ time: Int64?) -> String {
    guard let time else { return "-" }
    let seconds = Double(time) / 1e9
    return switch abs(seconds) {
    case 0: "0 s"
    case ..<1e-3: "\(decimal(seconds * 1e6, 0)) µs"
    case ..<1: "\(decimal(seconds * 1e3, seconds < 0.01 ? 1 : 0)) ms"
    case ..<60: "\(decimal(seconds, 1)) s"
    case ..<7200: "\(decimal(seconds / 60, 0)) min"
    case ..<172_800: "\(decimal(seconds / 3600, 1)) h"
    default: "\(decimal(seconds / 86_400, 0)) d"
    }
}

/// Returns bytes in readable form: `1.2 MB`.
func bytesText(_ bytes: Int?) -> String {
    guard let bytes else { return "-" }
    for (unit, size) in [("GB", 1e9), ("MB", 1e6), ("kB", 1e3)] where Double(bytes) >= size {
        return "\(decimal(Double(bytes) / size, 1)) \(unit)"
    }
    return "\(bytes) B"
}

func numberText(_ value: Int?) -> String { value.map(String.init) ?? "-" }

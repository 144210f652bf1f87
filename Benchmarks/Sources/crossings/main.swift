// What it costs to cross between promises, async functions and threads: a table, for docs/explanation/performance.md.
//
// Nanoseconds of processor time of the whole process and blocks asked of the allocator (`-` unless promises/allocations.c is
// preloaded), for one crossing; the median of the rounds. `crossings 20000 5`: so many a round, so many rounds.

import CSupport
import Glibc
import Promises
import Reactor
import ReactorIO

let arguments = CommandLine.arguments.dropFirst().compactMap { Int($0) }
let count = arguments.first ?? 50_000
let rounds = arguments.dropFirst().first ?? 7

/// What the rounds of one row have cost, for one crossing.
struct Samples {
    private var all: [(nanoseconds: Double, blocks: Double)] = []
    private var start = (time: 0, blocks: Int64(0))

    mutating func begin() { start = (processorTime(), bench_allocations()) }

    mutating func end() {
        all.append(
            (
                Double(processorTime() - start.time) / Double(count),
                start.blocks < 0 ? -1 : Double(bench_allocations() - start.blocks) / Double(count)
            ))
    }

    func report(_ title: String) {
        let median = all.sorted { $0.nanoseconds < $1.nanoseconds }[all.count / 2]
        let blocks = Int(median.blocks.rounded())
        print("| \(title) | \(Int(median.nanoseconds.rounded())) | \(blocks < 0 ? "-" : "\(blocks)") |")
        fflush(nil)
    }
}

func processorTime() -> Int {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// So many crossings by async code. It runs where `measure` is called: on the executor that the task prefers.
struct Row: Sendable {
    let title: String
    let body: @Sendable (Int) async throws -> Void

    init(_ title: String, _ body: @escaping @Sendable (Int) async throws -> Void) {
        self.title = title
        self.body = body
    }

    func measure() async throws {
        try await body(count / 10)
        var samples = Samples()
        for _ in 0..<rounds {
            samples.begin()
            try await body(count)
            samples.end()
        }
        samples.report(title)
    }
}

/// So many crossings by promises, each when the one before is over.
@MainActor func measure(_ title: String, _ step: () throws -> Void) rethrows {
    for _ in 0..<count / 10 { try step() }
    var samples = Samples()
    for _ in 0..<rounds {
        samples.begin()
        for _ in 0..<count { try step() }
        samples.end()
    }
    samples.report(title)
}

/// What is done between two crossings, where the task is at home: or it would stay where it has gone.
@inline(never) func beAtHome() { bench_mark() }

actor Resident {
    private let home: LoopRemote
    // Something to do, or there would be no need to come.
    private var visits = 0
    nonisolated var unownedExecutor: UnownedSerialExecutor { home.asUnownedSerialExecutor() }

    init(on home: LoopRemote) { self.home = home }

    func visit() { visits += 1 }

    func call(_ other: Resident, _ count: Int) async { for _ in 0..<count { await other.visit() } }

    func yield(_ count: Int) async { for _ in 0..<count { await Task.yield() } }

    func awaitSettled(_ count: Int) async throws {
        let promise = Promise.value(1)
        for _ in 0..<count { _ = try await promise.value }
    }

    func awaitPending(_ count: Int) async throws {
        for _ in 0..<count {
            let (promise, resolver) = Promise<Int>.pending()
            home.submit { resolver.fulfill(1) }
            _ = try await promise.value
        }
    }

    func awaitContinuation(_ count: Int) async {
        for _ in 0..<count {
            await withUnsafeContinuation { continuation in home.submit { continuation.resume() } }
        }
    }
}

actor Neighbour {
    private var visits = 0

    func visit() { visits += 1 }
}

@MainActor enum Reception {
    private static var visits = 0

    static func visit() { visits += 1 }
}

@concurrent func awaitPending(_ count: Int, _ home: LoopRemote) async throws {
    for _ in 0..<count {
        let (promise, resolver) = Promise<Int>.pending()
        home.submit { resolver.fulfill(1) }
        _ = try await promise.value
    }
}

func onTheLoop(_ home: LoopRemote) -> [Row] {
    let (resident, other) = (Resident(on: home), Resident(on: home))
    let neighbour = Neighbour()
    return [
        Row("Actor of a loop to another of the same loop, and back") { await resident.call(other, $0) },
        Row("Task on the loop to an actor there, and back") {
            for _ in 0..<$0 {
                await resident.visit()
                beAtHome()
            }
        },
        Row("Task on the loop to an actor without an executor, and back") {
            for _ in 0..<$0 {
                await neighbour.visit()
                beAtHome()
            }
        },
        Row("Task on the main loop to the main actor, and back") {
            for _ in 0..<$0 {
                await Reception.visit()
                beAtHome()
            }
        },
        Row("`withTaskExecutorPreference` of the loop, there already") {
            for _ in 0..<$0 { await withTaskExecutorPreference(home) {} }
        },
        Row("`Task.yield` of a task on the loop") { for _ in 0..<$0 { await Task.yield() } },
        Row("The same of an actor on the loop") { await resident.yield($0) },
        Row("`promise.value` of a settled promise") { try await resident.awaitSettled($0) },
        Row("`promise.value` in an actor of the loop, until a job of the loop settles it") {
            try await resident.awaitPending($0)
        },
        Row("The same in a task on the loop") { try await awaitPending($0, home) },
        Row("A continuation of Swift's in an actor of the loop, which a job of the loop resumes") {
            await resident.awaitContinuation($0)
        },
    ]
}

func onThePool(_ home: LoopRemote) -> [Row] {
    let resident = Resident(on: home)
    let neighbour = Neighbour()
    return [
        Row("Task on Swift's pool to an actor on the loop, and back") {
            for _ in 0..<$0 {
                await resident.visit()
                beAtHome()
            }
        },
        Row("Task on Swift's pool to an actor there, and back") {
            for _ in 0..<$0 {
                await neighbour.visit()
                beAtHome()
            }
        },
        Row("`Task.yield` on Swift's pool") { for _ in 0..<$0 { await Task.yield() } },
        Row("`promise.value` in an actor of a loop that a task of Swift's pool calls") {
            try await resident.awaitPending($0)
        },
        Row("A continuation of Swift's in such an actor") { await resident.awaitContinuation($0) },
        Row("`promise.value` on Swift's pool, until a job of the loop settles it") { try await awaitPending($0, home) },
    ]
}

// All threads on one processor: what waking another one costs depends on what else the machine does.
guard bench_pin() == 0 else { fatalError("this thread cannot be bound to a processor") }
let home = EventLoop.current.remote
print("| | ns | blocks |\n| --- | --- | --- |")
try EventLoop.current.run { for row in onTheLoop(home) { try await row.measure() } }
try hang(Promise { try await Task.detached { for row in onThePool(home) { try await row.measure() } }.value })

try measure("`Promise { … }` of an async closure that returns at once, and `hang`") {
    _ = try hang(Promise { 1 })
}
/// A message to a server on the same loop, and its echo, which the client awaits. The client is a chain in both rows.
@MainActor func measureEcho(_ title: String, _ serve: (Listener) -> Promise<DrainResult>) throws {
    let listener = try Listener.bind("unix:@crossings-\(getpid())")
    let served = serve(listener)
    let client = try hang(connect(to: listener.localAddress))
    try measure(title) { _ = try hang(client.write("hello\n").then { client.readLine() }) }
    client.close()
    listener.close()
    try hang(served)
}

// Functions, since a closure at the top level belongs to the main actor.

func serveByPromises(_ listener: Listener) -> Promise<DrainResult> {
    func echo(_ connection: Connection) -> Promise<Void> {
        connection.readLine().then { line -> Promise<Void> in
            guard let line else { return .value }
            return connection.write(line + "\n").then { echo(connection) }
        }
    }
    return listener.serve(handler: echo)
}

func serveByAwaiting(_ listener: Listener) -> Promise<DrainResult> {
    listener.serveAsync { connection in
        for try await line in connection.lines { try await connection.write(line + "\n").value }
    }
}

try measureEcho("A line and its echo on one loop: the server is a chain of promises", serveByPromises)
try measureEcho("The same: the server is an async handler", serveByAwaiting)
try measureEcho("The same: the async handler belongs to the main actor") { listener in
    listener.serveAsync { @MainActor connection in
        for try await line in connection.lines { try await connection.write(line + "\n").value }
    }
}

let neighbour = try EventLoop.spawn(name: "neighbour")
let pool = try ThreadPool(threads: 1)
try measure("`map(on:)` of another loop, and `hang`") { _ = try hang(Promise.value(1).map(on: neighbour) { $0 }) }
try measure("The same of a pool of one thread") { _ = try hang(Promise.value(1).map(on: pool) { $0 }) }
neighbour.stop()
neighbour.join()

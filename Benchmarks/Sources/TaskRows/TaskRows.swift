import Dispatch
import Workload

/// Swift Concurrency's rows, where they make sense. A task stands for a promise, `await` for `map`.
///
/// The chains run on one actor, as handlers run on one loop; groups run on the pool, as their users run them.
public let all: [Workload] = [
    onTask("make-settle", makeSettle),
    onTask("map-pending-1") { await mapPending(1, $0) },
    onTask("map-pending-10") { await mapPending(10, $0) },
    onTask("map-pending-1000") { await mapPending(1000, $0) },
    onTask("map-settled", mapSettled),
    onTask("reject-10", reject10),
    onTask("when-10") { await whenAll(10, $0) },
    onTask("when-1000") { await whenAll(1000, $0) },
    onTask("race-2") { await race(2, $0) },
    onTask("race-10") { await race(10, $0) },
    onTask("timer-0", startAndCancel),
    onTask("hang-timer", sleepForNothing),
]

/// A row whose stretch is one task, awaited by the calling thread.
func onTask(_ row: String, _ body: @escaping @Sendable (Int) async -> Void) -> Workload {
    Workload(row) { n in
        let done = DispatchSemaphore(value: 0)
        Task.detached {
            await body(n)
            done.signal()
        }
        done.wait()
    }
}

@globalActor
actor Bench {
    static let shared = Bench()
}

/// A pending value.
@Bench
final class Gate {
    private var value: Int?
    private var waiter: UnsafeContinuation<Int, Never>?

    func wait() async -> Int {
        if let value { return value }
        return await withUnsafeContinuation { waiter = $0 }
    }

    func open(_ value: Int) {
        self.value = value
        waiter?.resume(returning: value)
    }
}

struct Failure: Error {}

func makeSettle(_ n: Int) async {
    var sum = 0
    for _ in 0..<n { sum &+= await withUnsafeContinuation { $0.resume(returning: 1) } }
    precondition(sum == n)
}

@Bench
func mapPending(_ length: Int, _ n: Int) async {
    let step = opaque(1)
    var sum = 0
    for _ in 0..<n {
        let gate = Gate()
        var last = Task { await gate.wait() &+ step }
        for _ in 1..<length {
            let previous = last
            last = Task { await previous.value &+ step }
        }
        gate.open(0)
        sum &+= await last.value
    }
    precondition(sum == n * length)
}

@Bench
func mapSettled(_ n: Int) async {
    let step = opaque(1)
    let settled = Task { 0 }
    var sum = await settled.value
    for _ in 0..<n { sum &+= await Task { await settled.value &+ step }.value }
    precondition(sum == n)
}

@Bench
func reject10(_ n: Int) async {
    let step = opaque(1)
    var caught = 0
    for _ in 0..<n {
        var last = Task { () async throws -> Int in throw Failure() }
        for _ in 0..<10 {
            let previous = last
            last = Task { try await previous.value &+ step }
        }
        do { blackHole(try await last.value) } catch { caught += 1 }
    }
    precondition(caught == n)
}

func whenAll(_ count: Int, _ n: Int) async {
    var sum = 0
    for _ in 0..<n {
        sum &+= await withTaskGroup(of: Int.self) { group in
            for _ in 0..<count { group.addTask { 1 } }
            var values: [Int] = []
            values.reserveCapacity(count)
            for await value in group { values.append(value) }
            return values.count
        }
    }
    precondition(sum == n * count)
}

func race(_ count: Int, _ n: Int) async {
    var sum = 0
    for _ in 0..<n {
        sum &+= await withTaskGroup(of: Int.self) { group in
            for _ in 0..<count { group.addTask { 1 } }
            let first = await group.next()
            group.cancelAll()
            return first!
        }
    }
    precondition(sum == n)
}

func startAndCancel(_ n: Int) async {
    for _ in 0..<n {
        let task = Task { try? await Task.sleep(for: .seconds(60)) }
        task.cancel()
        await task.value
    }
}

func sleepForNothing(_ n: Int) async {
    for _ in 0..<n { try? await Task.sleep(nanoseconds: 0) }
}

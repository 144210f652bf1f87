import Reactor

/// Limits the number of operations in progress. The others wait in the order of their calls.
///
/// ```swift
/// let limiter = Limiter(8)
/// func render(_ page: Page) -> Promise<Image> {
///     limiter.run { ChildProcess.run("render", page.path).map { try Image($0.output) } }
/// }
/// ```
///
/// An operation is in progress until its promise has settled, even after a cancellation: its clean-ups, the guarantees
/// of `onCancelThen`, and a closure on a pool thread must end first. Cancelling a waiting operation dequeues it. Put a
/// time limit outside, `limiter.run { … }.timeout(…)`. With a `timeout` inside, the operation would settle before the
/// abandoned work has ended.
///
/// Belongs to the thread that made it. The loop's end rejects waiting operations with `PromiseError.loopEnded`.
public final class Limiter {
    package let limit: Int
    /// The number of operations in progress.
    public private(set) var active = 0
    /// The number of waiting operations.
    public var waiting: Int { turns.count }

    private var turns = LinkedOrder<PromiseCore>()
    private var nextNumber = 0
    private let loop = EventLoop.ofCurrentThread
    /// The registration that reports the loop's end. Exists while operations wait.
    private var ending = 0
    private var ends = InspectedEnds()

    /// - Parameter limit: at least 1. A smaller limit rejects each operation with `PromiseError.badInput`.
    public init(_ limit: Int) {
        self.limit = limit
        InspectedObjects.add(self, ofLoop: loop.serial)
    }

    deinit { InspectedObjects.remove(self) }

    /// Calls `work` as soon as fewer than `limit` operations are in progress.
    /// - Parameter work: called once, in a job on this thread's loop, unless the result has been cancelled.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @discardableResult
    public func run<Work: Thenable>(
        _ work: @escaping () throws -> Work, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Work.T> {
        guard limit > 0 else { return rejectInvalidLimit("Limiter.run", "", limit, file, line) }
        return turn(file, line).then(
            { permit in
                let promise = try work().asPromise()
                promise.core.watch { _ in withExtendedLifetime(permit) {} }
                return promise
            }, file: file, line: line)
    }

    /// Makes an operation's permit, which ends when its last reference is released.
    private func turn(_ file: StaticString, _ line: UInt) -> Promise<OnDeinit> {
        if active < limit {
            active += 1
            return .value(permit)
        }
        let number = nextNumber
        let turn = PromiseCore(Turn(limiter: self, number: number))
        nextNumber += 1
        if turns.isEmpty { ending = loop.whenEnding { [unowned self] in loopWillEnd() } }
        turns.append(turn, number)
        return Promise(turn.traced(root: "Limiter.run", Promise<OnDeinit>.self, file, line))
    }

    private func workDidEnd() {
        ends.add()
        guard let turn = turns.popFirst() else {
            active -= 1
            return
        }
        forgetEndingIfNobodyWaits()
        turn.fulfill(permit)
    }

    private var permit: OnDeinit { OnDeinit { self.workDidEnd() } }

    private func forgetEndingIfNobodyWaits() {
        if turns.isEmpty { loop.forgetEnding(ending) }
    }

    private func leave(_ number: Int) -> Bool {
        guard turns.remove(number) != nil else { return false }
        forgetEndingIfNobodyWaits()
        return true
    }

    private func loopWillEnd() {
        while let turn = turns.popFirst() { turn.producerDidEnd(.loopEnded) }
    }

    // Unowned: the limiter outlives its turns, because the operations in progress retain it, and it settles all turns
    // first.
    private struct Turn: Operation {
        typealias Output = OnDeinit
        unowned(unsafe) let limiter: Limiter
        let number: Int
        let since = InspectedObjects.second

        func run(_ source: AnySource, _ core: PromiseCore) { preconditionFailure("a turn has no source") }

        static func stop(_ core: PromiseCore) -> Bool {
            let turn = core.payload.value(as: Turn.self)
            return turn.limiter.leave(turn.number)
        }
    }
}

extension Limiter: Inspected {
    package var facts: [InspectedFacts] {
        var facts = InspectedFacts(
            .limiter, "limiter", limit: limit, inUse: active, free: max(limit - active, 0), waiting: waiting,
            oldestWaiter: turns.oldest.flatMap { InspectedObjects.time(since: $0.payload.value(as: Turn.self).since) })
        facts.ends = ends
        return [facts]
    }

    /// The limiter of a waiting call's core, on the thread of its loop; `nil` if the core is no such call's.
    static func limiter(of core: PromiseCore) -> Limiter? {
        let isTurn = core.code.with([]).bits == CoreCode.of(Turn.self).bits
        return isTurn && core.state.loadRelaxed().isPending ? core.payload.value(as: Turn.self).limiter : nil
    }
}

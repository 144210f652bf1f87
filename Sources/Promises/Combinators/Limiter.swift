import Reactor

/// Lets at most a number of works be under way at a time. The others wait in the order of their calls.
///
/// ```swift
/// let limiter = Limiter(8)
/// func render(_ page: Page) -> Promise<Image> {
///     limiter.run { ChildProcess.run("render", page.path).map { try Image($0.output) } }
/// }
/// ```
///
/// A work is under way until its promise has settled, also after a cancellation: until its clean-ups, the guarantees of
/// `onCancelThen`, and a closure that a thread of a pool is running have ended. Cancelling a work that waits takes it out of
/// the order. A time limit belongs outside, `limiter.run { … }.timeout(…)`: a `timeout` inside is a work that has settled when
/// the time is up, while what it gives up may still be ending.
///
/// Belongs to the thread that made it. What still waits when the loop ends is rejected with `PromiseError.loopEnded`.
public final class Limiter {
    package let limit: Int
    /// How many are under way.
    public private(set) var active = 0
    /// How many wait.
    public var waiting: Int { order.count }

    private var order = LinkedOrder()
    private var turns: [Int: PromiseCore] = [:]
    private var nextNumber = 0
    private let loop = EventLoop.ofCurrentThread
    /// What the loop calls when it ends, while works wait.
    private var ending = 0

    /// - Parameter limit: at least 1; with any other number each work is rejected with `PromiseError.badInput`.
    public init(_ limit: Int) { self.limit = limit }

    /// Calls `work` as soon as fewer than `limit` works are under way.
    /// - Parameter work: called once, in a job of this thread's loop, unless the result has been cancelled.
    /// - Returns: a promise of the value of the promise that `work` returns.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @discardableResult
    public func run<Work: Thenable>(
        _ work: @escaping () throws -> Work, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Work.T> {
        guard limit > 0 else { return rejectInvalidLimit("Limiter.run", limit, file, line) }
        return turn().then(
            { permit in
                let promise = try work().asPromise()
                promise.core.watch(KeptPermit(permit: permit))
                return promise
            }, file: file, line: line)
    }

    private func turn() -> Promise<Permit> {
        if active < limit {
            active += 1
            return .value(Permit(self))
        }
        let turn = Turn(Permit.self, self)
        turn.number = nextNumber
        nextNumber += 1
        if order.isEmpty { ending = loop.whenEnding { [unowned self] in loopWillEnd() } }
        order.append(turn.number)
        turns[turn.number] = turn
        return Promise(turn)
    }

    /// A work has ended: its permit goes to the first that waits.
    private func workDidEnd() {
        guard let number = order.popFirst(), let turn = turns.removeValue(forKey: number) else {
            active -= 1
            return
        }
        forgetEndingIfNobodyWaits()
        turn.fulfill(Permit(self))
    }

    private func forgetEndingIfNobodyWaits() {
        if order.isEmpty { loop.forgetEnding(ending) }
    }

    private func loopWillEnd() {
        while let number = order.popFirst() { turns.removeValue(forKey: number)?.producerDidEnd(.loopEnded) }
    }

    /// A call of `run` that waits.
    // @unchecked Sendable: as PromiseCore. Only the limiter accesses `number`.
    private final class Turn: IOPromise, @unchecked Sendable {
        var number = 0
    }

    /// The right to be under way. It ends with its last reference, wherever that is lost: with the work, or with a handler that
    /// is dropped before it runs.
    private final class Permit {
        private let limiter: Limiter

        init(_ limiter: Limiter) { self.limiter = limiter }

        deinit { limiter.workDidEnd() }
    }

    /// Keeps a permit until its source has settled.
    private struct KeptPermit: Operation {
        typealias Input = Never
        typealias Output = Void
        let permit: Permit

        func run(_ source: AnySource, _ core: PromiseCore) { core.finish(()) }
    }
}

extension Limiter: IOProducer {
    func stop(_ promise: PromiseCore) -> Bool {
        guard let turn = promise as? Turn, order.remove(turn.number) else { return false }
        turns[turn.number] = nil
        forgetEndingIfNobodyWaits()
        return true
    }
}

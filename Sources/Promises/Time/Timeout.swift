import Reactor

extension Thenable {
    /// Settles as this promise does, or is rejected with `error` if that takes longer than `limit`.
    ///
    /// What has taken too long is cancelled then, as by `cancel()`: as far as nobody else waits for it. The timer is one of
    /// this thread's loop, is never early, and leaves the loop as soon as the promise settles. A limit of zero and less is
    /// over in the loop's next turn.
    ///
    /// ```swift
    /// fetch(url).timeout(.seconds(2)).recover { _ in cached(url) }
    /// ```
    @available(*, noasync, message: "an async function has no loop of its own; use it before you await")
    @inlinable
    public func timeout(
        _ limit: Duration, error: any Error = PromiseError.timedOut, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T> { timeout(LoopDeadline(after: limit), error, file, line) }

    /// As `timeout(_:)`, with the limit in seconds.
    @available(*, noasync, message: "an async function has no loop of its own; use it before you await")
    @inlinable
    public func timeout(
        seconds: Double, error: any Error = PromiseError.timedOut, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T> { timeout(LoopDeadline(after: .clamped(seconds: seconds)), error, file, line) }

    /// As `timeout(_:)`, with a moment on the loop's clock: for several steps that share one limit.
    ///
    /// ```swift
    /// let deadline = EventLoop.current.now.advanced(by: .seconds(5))
    /// connect(to: address).timeout(deadline: deadline).then { greet($0).timeout(deadline: deadline) }
    /// ```
    @available(*, noasync, message: "an async function has no loop of its own; use it before you await")
    @inlinable
    public func timeout(
        deadline: EventLoop.Instant, error: any Error = PromiseError.timedOut, file: StaticString = #fileID,
        line: UInt = #line
    ) -> Promise<T> { timeout(LoopDeadline(at: deadline), error, file, line) }

    @inlinable
    func timeout(
        _ deadline: LoopDeadline, _ error: any Error, _ file: StaticString, _ line: UInt
    ) -> Promise<T> {
        let source = asPromise().core
        let child = source.derive(Timeout<T>(deadline), role: .hasDeadline)
        deadline.start(child, error)
        return Promise(child.traced("timeout", after: source, Promise<T>.self, file, line))
    }
}

/// Settles as its source does; the deadline goes with it.
@usableFromInline
struct Timeout<T>: Operation {
    @usableFromInline typealias Input = T
    @usableFromInline typealias Output = T
    @usableFromInline let deadline: LoopDeadline

    @inlinable init(_ deadline: LoopDeadline) { self.deadline = deadline }

    @inlinable
    func run(_ source: Source<T>, _ core: PromiseCore) { core.finish(as: source) }
}

/// A timer that cancels a promise, and that leaves the loop with its last reference.
@usableFromInline
final class LoopDeadline {
    private let moment: EventLoop.Instant
    private let loop = EventLoop.ofCurrentThread
    private var timer: EventLoop.Timer?

    @usableFromInline
    init(after delay: Duration) { moment = loop.deadline(after: delay) }

    @usableFromInline
    init(at moment: EventLoop.Instant) { self.moment = moment }

    /// The timer holds `core`, and that holds this object by its operation: until the timer fires, or the core settles.
    @usableFromInline
    func start(_ core: PromiseCore, _ error: any Error) {
        timer = loop.schedule(at: moment) {
            // What has settled in time, and is only on its way here, is not too late.
            guard core.isWaiting else { return }
            core.cancel(with: error)
        }
    }

    deinit {
        // Any other thread is here only when the loop is ending, and releases its timers itself.
        if loop.isUsableHere { timer?.cancel() }
    }
}

extension PromiseCore {
    /// Whether it stands in a source's list and has not been told anything.
    var isWaiting: Bool { upstream.load(ordering: .relaxed) & Upstream.mark == Upstream.waiting }
}

import Reactor

extension Thenable {
    /// Settles like this promise, or is rejected with `error` if it takes longer than `limit`.
    ///
    /// ```swift
    /// fetch(url).timeout(.seconds(2)).recover { _ in cached(url) }
    /// ```
    ///
    /// When the limit expires, this promise is cancelled, as by `cancel()`, unless another handler waits for it. The
    /// timer belongs to this thread's loop, never fires early, and is removed when this promise settles. A limit of
    /// zero or less expires in the loop's next turn.
    /// - Parameters:
    ///   - limit: the time from now.
    ///   - error: the result's error when the limit expires.
    @available(*, noasync, message: "an async function has no loop of its own; use it before you await")
    @inlinable
    public func timeout(
        _ limit: Duration, error: any Error = PromiseError.timedOut, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T> { timeout(error, file, line) { $0.schedule(after: limit, $1) } }

    /// Like `timeout(_:)`, but with a time on the loop's clock, which several steps can share.
    ///
    /// ```swift
    /// let deadline = EventLoop.current.now.advanced(by: .seconds(5))
    /// connect(to: address).timeout(deadline: deadline).then { greet($0).timeout(deadline: deadline) }
    /// ```
    ///
    /// A past deadline expires in the loop's next turn.
    @available(*, noasync, message: "an async function has no loop of its own; use it before you await")
    @inlinable
    public func timeout(
        deadline: LoopInstant, error: any Error = PromiseError.timedOut, file: StaticString = #fileID,
        line: UInt = #line
    ) -> Promise<T> { timeout(error, file, line) { $0.schedule(at: deadline, $1) } }

    @inlinable
    func timeout(
        _ error: any Error, _ file: StaticString, _ line: UInt,
        _ schedule: (EventLoop, @escaping () -> Void) -> EventLoop.Timer
    ) -> Promise<T> {
        let source = asPromise().core
        let deadline = LoopDeadline()
        let child = source.derive(SettleAsSource<T>(retaining: deadline), role: .hasDeadline)
        deadline.start(child, error, schedule)
        return Promise(child.traced("timeout", after: source, Promise<T>.self, file, line))
    }
}

/// A timer that cancels a promise. Releasing the last reference to this object removes the timer from the loop.
@usableFromInline
final class LoopDeadline {
    private let loop = EventLoop.ofCurrentThread
    private var timer: EventLoop.Timer?

    @usableFromInline
    init() {}

    /// The timer retains `core`, and the operation of `core` retains this object, until the timer fires or the core
    /// settles.
    @usableFromInline
    func start(
        _ core: PromiseCore, _ error: any Error, _ schedule: (EventLoop, @escaping () -> Void) -> EventLoop.Timer
    ) {
        timer = schedule(loop) {
            // Not late if the source settled in time and its notification is still queued.
            if core.isWaiting { core.cancelNow(with: error) }
        }
    }

    deinit {
        // On another thread only while the loop ends, which releases its timers itself.
        if loop.isUsableHere { timer?.cancel() }
    }
}

extension PromiseCore {
    package var isWaiting: Bool { sourceWord.loadRelaxed().isWaiting }
}

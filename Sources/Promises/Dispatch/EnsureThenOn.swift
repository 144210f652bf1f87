import Reactor
import Synchronization

extension Catchable where T: Sendable {
    /// Calls `body` on `dispatcher` when the promise settles or is cancelled, waits for the guarantee that `body`
    /// returns, and then passes the outcome on.
    ///
    /// The outcome is passed on as a job of this thread's loop.
    /// - Parameters:
    ///   - dispatcher: where `body` runs; `nil` for inline.
    ///   - body: the cleanup. It attaches handlers only with `on:`, unless `dispatcher` is a loop's `remote`.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: a promise that settles as this one, once the guarantee of `body` is fulfilled. If the dispatcher
    ///   refuses the job, it is rejected with that error; see `map(on:)`.
    @available(*, noasync, message: "no loop passes the outcome on in an async function; use ensure(on:)")
    public func ensureThen(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable () -> Guarantee<Void>,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T> {
        let (cleanup, start) = DispatchedCleanup.pending(body)
        return ensure(on: dispatcher, start, file: file, line: line).ensureThen({ cleanup }, file: file, line: line)
    }
}

extension Guarantee where T: Sendable {
    /// Calls `body` on `dispatcher` when the guarantee is fulfilled, abandoned or cancelled, waits for the guarantee that
    /// `body` returns, and then passes the value on; see `Promise.ensureThen(on:)`.
    /// - Parameters:
    ///   - dispatcher: where `body` runs; `nil` for inline.
    ///   - body: the cleanup.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: a guarantee of the value, fulfilled once the guarantee of `body` is.
    @available(*, noasync, message: "no loop passes the outcome on in an async function; use ensure(on:)")
    @discardableResult
    public func ensureThen(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable () -> Guarantee<Void>,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<T> {
        let (cleanup, start) = DispatchedCleanup.pending(body)
        return ensure(on: dispatcher, start, file: file, line: line).ensureThen({ cleanup }, file: file, line: line)
    }
}

/// The end of a cleanup that a dispatcher starts. It is reached also if the dispatcher never starts it.
private final class DispatchedCleanup: Sendable {
    private let didEnd: @Sendable (()) -> Void
    private let hasBegun = Atomic(false)

    private init(_ didEnd: @escaping @Sendable (()) -> Void) { self.didEnd = didEnd }

    /// A guarantee for the end of the cleanup, and the closure that starts it.
    static func pending(
        _ body: @escaping @Sendable () -> Guarantee<Void>
    ) -> (end: Guarantee<Void>, start: @Sendable () -> Void) {
        let (end, didEnd) = Guarantee<Void>.pending()
        let cleanup = DispatchedCleanup(didEnd)
        return (end, { cleanup.start(body) })
    }

    private func start(_ body: () -> Guarantee<Void>) {
        hasBegun.store(true, ordering: .relaxed)
        // Inline: no loop may run on this thread. An abandoned cleanup has ended too.
        body().pipe { [didEnd] _ in didEnd(()) }
    }

    deinit {
        // The closure was released without a call, so no other thread has this object.
        if !hasBegun.load(ordering: .relaxed) { didEnd(()) }
    }
}

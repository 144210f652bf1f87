import Reactor

/// The end of a chain that has handled some of its errors; see `catch(only:)`.
///
/// It takes a `catch` or a `cauterize` to handle the rest. An error that has passed all of them is reported as an
/// unhandled rejection, unless it means "cancelled".
public struct CascadingFinalizer {
    private let core: PromiseCore

    @usableFromInline
    init(_ core: PromiseCore) { self.core = core }

    // Rejected with what nobody has handled yet.
    @usableFromInline var rest: Promise<Void> { Promise(core) }

    /// Calls `body` with an error that is left, if `policy` lets it see it; as `Promise.catch`.
    /// - Returns: a finalizer, for a `finally` that runs in any case.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable
    @discardableResult
    public func `catch`(
        policy: CatchPolicy = conf.catchPolicy, _ body: @escaping (any Error) -> Void, file: StaticString = #fileID,
        line: UInt = #line
    ) -> Finalizer { rest.catch(policy: policy, body, file: file, line: line) }

    /// Calls `body` with an error that is left if it is of type `only` and `policy` lets it see it; as
    /// `Promise.catch(only:)`.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable
    public func `catch`<E: Error>(
        only: E.Type, policy: CatchPolicy = conf.catchPolicy, _ body: @escaping (E) -> Void,
        file: StaticString = #fileID, line: UInt = #line
    ) -> CascadingFinalizer { rest.catch(only: only, policy: policy, body, file: file, line: line) }

    /// Calls `body` if an error is left that is equal to `only`, whatever the policy for cancellations; as
    /// `Promise.catch(only:)`.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable
    public func `catch`<E: Error & Equatable>(
        only: E, _ body: @escaping () -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> CascadingFinalizer { rest.catch(only: only, body, file: file, line: line) }

    /// Logs an error that is left, if `policy` lets it see it; as `Promise.cauterize`.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable
    @discardableResult
    public func cauterize(
        policy: CatchPolicy = conf.catchPolicy, file: StaticString = #fileID, line: UInt = #line
    ) -> Finalizer { rest.cauterize(policy: policy, file: file, line: line) }

    /// Calls `body` when the chain has ended so far, however it has: after a handler, after a success, and also if an error
    /// is left, which this does not handle. May be called several times.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    public func finally(_ body: @escaping () -> Void, file: StaticString = #fileID, line: UInt = #line) {
        // Watching only, or it would count as being told of the error.
        let child = core.derive(Finally(body), role: .onlyWatching)
        _ = child.traced("finally", after: core, Guarantee<Void>.self, file, line)
    }
}

/// Runs whatever has become of the source.
private struct Finally: Operation {
    typealias Input = Void
    typealias Output = Void
    let body: () -> Void
    // A waiter that only watches does not keep its loop by the count of those that wait.
    private let loop = EventLoop.ofCurrentThread

    init(_ body: @escaping () -> Void) { self.body = body }

    func run(_ source: Source<Void>, _ core: PromiseCore) {
        body()
        core.finish(())
    }
}

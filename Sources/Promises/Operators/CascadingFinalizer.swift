import Reactor

/// The end of a chain that has handled some of its errors; see `catch(only:)`.
///
/// A `catch` or a `cauterize` must handle the others. An error that none of them handles is reported as an unhandled
/// rejection, unless it means "cancelled".
public struct CascadingFinalizer {
    private let core: PromiseCore

    @usableFromInline
    init(_ core: PromiseCore) { self.core = core }

    // Rejected with the error that no handler has taken yet.
    @usableFromInline var rest: Promise<Void> { Promise(core) }

    /// Calls `body` with a remaining error, if `policy` lets the handler see it; see `Promise.catch`.
    /// - Parameters:
    ///   - policy: whether the handler sees errors that mean "cancelled"; by default `conf.catchPolicy`.
    ///   - body: the handler; called with the error, in a job of this thread's loop.
    /// - Returns: a finalizer, for a `finally` that always runs.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable
    @discardableResult
    public func `catch`(
        policy: CatchPolicy = conf.catchPolicy, _ body: @escaping (any Error) -> Void, file: StaticString = #fileID,
        line: UInt = #line
    ) -> Finalizer { rest.catch(policy: policy, body, file: file, line: line) }

    /// Calls `body` with a remaining error of type `only`, if `policy` lets the handler see it; see
    /// `Promise.catch(only:)`.
    /// - Parameters:
    ///   - only: the type of the errors to handle.
    ///   - policy: whether the handler sees errors that mean "cancelled"; by default `conf.catchPolicy`.
    ///   - body: the handler; called with the error, in a job of this thread's loop.
    /// - Returns: the rest of the chain, which handles the other errors.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable
    public func `catch`<E: Error>(
        only: E.Type, policy: CatchPolicy = conf.catchPolicy, _ body: @escaping (E) -> Void,
        file: StaticString = #fileID, line: UInt = #line
    ) -> CascadingFinalizer { rest.catch(only: only, policy: policy, body, file: file, line: line) }

    /// Calls `body` if a remaining error is equal to `only`; see `Promise.catch(only:)`.
    /// - Parameters:
    ///   - only: the error to handle, whatever the policy for cancellations.
    ///   - body: the handler; called in a job of this thread's loop.
    /// - Returns: the rest of the chain, which handles the other errors.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable
    public func `catch`<E: Error & Equatable>(
        only: E, _ body: @escaping () -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> CascadingFinalizer { rest.catch(only: only, body, file: file, line: line) }

    /// Logs a remaining error, if `policy` lets it pass; see `Promise.cauterize`.
    /// - Parameter policy: whether an error that means "cancelled" is logged; by default `conf.catchPolicy`.
    /// - Returns: a finalizer, for a `finally` that always runs.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable
    @discardableResult
    public func cauterize(
        policy: CatchPolicy = conf.catchPolicy, file: StaticString = #fileID, line: UInt = #line
    ) -> Finalizer { rest.cauterize(policy: policy, file: file, line: line) }

    /// Calls `body` when the chain so far has ended: after a handler, after a success, or with an error that remains.
    /// `finally` does not handle that error. It may be called several times.
    /// - Parameter body: called once, in a job of this thread's loop.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    public func finally(_ body: @escaping () -> Void, file: StaticString = #fileID, line: UInt = #line) {
        _ = watchEnd(body, file, line)
    }

    /// A guarantee that is fulfilled after `body` has run at the end of the chain so far.
    func watchEnd(_ body: @escaping () -> Void, _ file: StaticString, _ line: UInt) -> Guarantee<Void> {
        // Only watches: otherwise the error would count as handled.
        let child = core.derive(Finally(body: body), role: .leavesUnhandled)
        return Guarantee(child.traced("finally", after: core, Guarantee<Void>.self, file, line))
    }
}

/// Runs whatever the outcome of the source is.
private struct Finally: Operation {
    typealias Input = Never
    typealias Output = Void
    let body: () -> Void

    func run(_ source: AnySource, _ core: PromiseCore) {
        body()
        core.finish(())
    }
}

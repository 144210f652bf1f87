import Reactor

extension Catchable {
    /// Ends a chain whose errors need only a log line: reports errors that `policy` includes as `LogEvent.cauterized`,
    /// with the line of this call.
    ///
    /// ```swift
    /// writeFile(figures, to: path).cauterize()
    /// ```
    ///
    /// - Parameter policy: decides whether cancellations are logged.
    /// - Returns: a finalizer, for a `finally` that always runs.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    @discardableResult
    public func cauterize(
        policy: CatchPolicy = conf.catchPolicy, file: StaticString = #fileID, line: UInt = #line
    ) -> Finalizer {
        let source = asPromise().core
        // No error can follow. Most writes are fulfilled when they return, and a job for each would cost 840
        // instructions. While the promise is settling, `finally` must queue after the handlers that still have to be
        // notified.
        if source.state.load().isFulfilledForAll && !Tracing.isOn { return Finalizer(PromiseCore.void) }
        let operation = Cauterize<T>(policy, CallSite(file, line))
        return Finalizer(Promise<T>(source).derived("cauterize", operation, file, line).core)
    }
}

@usableFromInline
struct Cauterize<T>: Operation {
    @usableFromInline let policy: CatchPolicy
    @usableFromInline let callSite: CallSite

    @inlinable
    init(_ policy: CatchPolicy, _ callSite: CallSite) {
        self.policy = policy
        self.callSite = callSite
    }

    @inlinable @inline(__always)
    func run(_ source: Source<T>, _ core: PromiseCore) {
        if !source.isFulfilled && policy.catches(source.error) {
            Reports.reportCauterized(source.core, Promise<T>.self, callSite)
        }
        core.finish(())
    }
}

extension Reports {
    @usableFromInline
    static func reportCauterized(_ core: PromiseCore, _ type: Any.Type, _ callSite: CallSite) {
        var promise = core.provenance(type: "\(type)", callSite: core.payload.callSite)
        promise.cauterizedAt = callSite
        conf.log(.cauterized(core.payload.error, promise))
    }
}

import Reactor

extension Catchable {
    /// Ends a chain whose errors need only a log line: an error that `policy` lets pass is reported as
    /// `LogEvent.cauterized`, with the line of this call.
    ///
    /// ```swift
    /// writeFile(figures, to: path).cauterize()
    /// ```
    ///
    /// - Parameter policy: whether an error that means "cancelled" is logged; by default `conf.catchPolicy`.
    /// - Returns: a finalizer, for a `finally` that always runs.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    @discardableResult
    public func cauterize(
        policy: CatchPolicy = conf.catchPolicy, file: StaticString = #fileID, line: UInt = #line
    ) -> Finalizer {
        let source = asPromise().core
        // Nothing can go wrong any more. Most writes are fulfilled when they return, and a job for each took 840
        // instructions. While the promise is being settled, a `finally` must queue behind the handlers that are still
        // to be notified.
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

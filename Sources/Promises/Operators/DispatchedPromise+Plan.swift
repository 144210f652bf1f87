import Reactor

// What an operator with `on:` does with the outcome of its source.

extension DispatchedPromise {
    enum Outcome {
        /// Fulfills the promise that it receives.
        case fulfilled((PromiseCore) -> Void)
        case error(any Error, from: CallSite?)
        /// The future outcome of this promise, which the closure has returned.
        case following(PromiseCore)

        static func value<Value>(_ value: Value) -> Outcome { .fulfilled { $0.fulfill(value) } }

        /// The outcome of the source.
        static func same<Value>(_ source: Source<Value>) -> Outcome {
            if source.isFulfilled { return .value(source.value) }
            return .error(source.error, from: source.callSite)
        }
    }

    /// What is to be done about the outcome of the source. Called on the thread that settles it.
    typealias Plan = (AnySource) -> Step

    enum Step {
        /// The closure is not interested.
        case pass(Outcome)
        case dispatch(Work)
    }

    struct Work {
        let run: () throws -> Outcome
        /// The outcome if the dispatcher does not run it; by default an error.
        var otherwise: (() -> Outcome)?
    }
}

extension Thenable {
    /// Makes a promise of type `type` of this one, by a closure that `plan` gives to `dispatcher`; `nil` runs it inline.
    /// - Parameters:
    ///   - operation: the name of the operator.
    ///   - cleansUp: whether the closure also runs if the promise is cancelled, with the cancellation as the outcome.
    func dispatched<Made: Thenable>(
        _ operation: StaticString, on dispatcher: (any Dispatcher)?, as type: Made.Type, isGuarantee: Bool = false,
        cleansUp: Bool = false, _ file: StaticString, _ line: UInt,
        _ plan: @escaping (Source<T>) -> DispatchedPromise.Step
    ) -> PromiseCore {
        let source = asPromise().core
        let promise = DispatchedPromise(
            of: Made.T.self, on: dispatcher, isGuarantee: isGuarantee, cleansUp: cleansUp, CallSite(file, line)
        ) { plan($0.of(T.self)) }
        // First: the promise that the closure returns is recorded with this one.
        _ = promise.traced(operation, after: source, type, file, line)
        promise.start(after: source)
        return promise
    }
}

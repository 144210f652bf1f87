extension Thenable {
    /// Passes the value on `pause` after this promise is fulfilled. A rejection passes on at once.
    ///
    /// ```swift
    /// func poll() -> Promise<Job> { ask().delay(.seconds(2)).then { $0.isDone ? .value($0) : poll() } }
    /// ```
    ///
    /// A cancellation during the pause removes the timer from the loop.
    /// - Parameter pause: the time to wait. Zero or less means the loop's next turn.
    @available(*, noasync, message: "an async function has no loop of its own; use Task.sleep")
    @inlinable
    public func delay(_ pause: Duration, file: StaticString = #fileID, line: UInt = #line) -> Promise<T> {
        derived("delay", Delay<T>(pause), file, line)
    }
}

extension Guarantee {
    /// Passes the value on `pause` after the guarantee is fulfilled; see `Promise.delay`.
    @available(*, noasync, message: "an async function has no loop of its own; use Task.sleep")
    @inlinable
    public func delay(_ pause: Duration, file: StaticString = #fileID, line: UInt = #line) -> Guarantee<T> {
        derived("delay", Delay<T>(pause), file, line)
    }
}

@usableFromInline
struct Delay<T>: Operation {
    @usableFromInline typealias Output = T
    @usableFromInline let pause: Duration

    @inlinable init(_ pause: Duration) { self.pause = pause }

    @inlinable
    func run(_ source: Source<T>, _ core: PromiseCore) {
        guard source.isFulfilled else { return core.finish(rejectedAs: source.reference) }
        let outcome = DelayedOutcome<T>(source.core, afterAnyOutcome: false)
        core.finish(following: Promise<T>(TimerPromise.make(after: pause).derive(outcome)))
    }
}

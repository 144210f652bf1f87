import Reactor

extension Thenable {
    /// Passes the value on `pause` after it has come, and a rejection at once. A pause of zero and less is the loop's next
    /// turn. Cancelled meanwhile, the timer leaves the loop.
    @available(*, noasync, message: "an async function has no loop of its own; use Task.sleep")
    @inlinable
    public func delay(_ pause: Duration, file: StaticString = #fileID, line: UInt = #line) -> Promise<T> {
        let source = asPromise().core
        return Promise(source.derive(Delay<T>(pause)).traced("delay", after: source, Promise<T>.self, file, line))
    }

    /// As `delay(_:)`, with the pause in seconds.
    @available(*, noasync, message: "an async function has no loop of its own; use Task.sleep")
    @inlinable
    public func delay(seconds: Double, file: StaticString = #fileID, line: UInt = #line) -> Promise<T> {
        delay(.clamped(seconds: seconds), file: file, line: line)
    }
}

extension Guarantee {
    /// Passes the value on `pause` after it has come; see `Promise.delay`.
    @available(*, noasync, message: "an async function has no loop of its own; use Task.sleep")
    @inlinable
    public func delay(_ pause: Duration, file: StaticString = #fileID, line: UInt = #line) -> Guarantee<T> {
        Guarantee(core.derive(Delay<T>(pause)).traced("delay", after: core, Guarantee<T>.self, file, line))
    }

    /// As `delay(_:)`, with the pause in seconds.
    @available(*, noasync, message: "an async function has no loop of its own; use Task.sleep")
    @inlinable
    public func delay(seconds: Double, file: StaticString = #fileID, line: UInt = #line) -> Guarantee<T> {
        delay(.clamped(seconds: seconds), file: file, line: line)
    }
}

@usableFromInline
struct Delay<T>: Operation {
    @usableFromInline typealias Input = T
    @usableFromInline typealias Output = T
    @usableFromInline let pause: Duration

    @inlinable init(_ pause: Duration) { self.pause = pause }

    @inlinable
    func run(_ source: Source<T>, _ core: PromiseCore) {
        guard source.isFulfilled else { return core.finish(rejectedAs: source.reference) }
        let timer = TimerCore(pause)
        core.finish(following: timer.derive(DelayedOutcome<T>(source.core)), as: T.self)
    }
}

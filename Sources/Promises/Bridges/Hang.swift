import Reactor

/// Drives this thread's loop until `promise` settles, and returns its value or throws its error.
///
/// For synchronous tests, command-line tools, and the top of a program. Other handlers of the loop run meanwhile. It may be
/// called inside a handler: events that the outer turn has fetched are then delivered here, once and in order, and
/// the outer handler goes on afterwards. There is no blocking that does not drive the loop, so a promise that this loop
/// is to settle is never starved by waiting for it.
///
/// If nothing on the loop can settle it any more, and no dispatcher has a handler of this thread, that is logged once, as
/// `LogEvent.hangCannotEnd`, and `hang` goes on waiting for other threads. With a time-out it is logged when the time is up.
///
/// - Parameter timeout: how long to wait, by the loop's clock; without it, for ever.
/// - Throws: the promise's error; `PromiseError.timedOut`; `.loopEnded` if this loop is being stopped for good, see
///   `EventLoop.spawn`; `SystemError` if the loop cannot open its descriptors.
@available(*, noasync, message: "an async function must not block its thread; write try await promise.value")
@inlinable
@discardableResult
public func hang<T>(
    _ promise: Promise<T>, timeout: Duration? = nil, _ file: StaticString = #fileID, _ line: UInt = #line
) throws -> T {
    let core = promise.core
    let (root, kind) =
        try core.settled ?? core.drive(timeout, waitingFor: "Promise<\(T.self)>", Origin(file, line))
    return try root._withUnsafeGuaranteedRef { root in
        if kind == State.fulfilled { return root.value(as: T.self) }
        root.markHandled()
        throw root.error
    }
}

/// Drives this thread's loop until `guarantee` is fulfilled; see the form for promises.
///
/// Traps if the loop cannot open its descriptors, or the guarantee is abandoned or cancelled, since it has no error to
/// say so with.
@available(*, noasync, message: "an async function must not block its thread; write await guarantee.value")
@inlinable
@discardableResult
public func hang<T>(_ guarantee: Guarantee<T>, _ file: StaticString = #fileID, _ line: UInt = #line) -> T {
    do { return try hang(guarantee.asPromise(), timeout: nil, file, line) } catch {
        fatalError("hang on a Guarantee<\(T.self)> cannot end: \(error)", file: file, line: line)
    }
}

/// Drives this thread's loop until `guarantee` is fulfilled or the time-out has passed; see the form for promises.
@available(*, noasync, message: "an async function must not block its thread; write await guarantee.value")
@inlinable
@discardableResult
public func hang<T>(
    _ guarantee: Guarantee<T>, timeout: Duration, _ file: StaticString = #fileID, _ line: UInt = #line
) throws -> T {
    try hang(guarantee.asPromise(), timeout: timeout, file, line)
}

extension Thenable {
    /// The same as `hang(self)`: there is no blocking here that does not drive the loop.
    @available(*, noasync, message: "an async function must not block its thread; write try await promise.value")
    @inlinable
    @discardableResult
    public func wait(_ file: StaticString = #fileID, _ line: UInt = #line) throws -> T {
        try hang(asPromise(), timeout: nil, file, line)
    }
}

extension Core {
    /// Turns until this core has settled; how, is the answer.
    @usableFromInline
    func drive(
        _ timeout: Duration?, waitingFor what: @autoclosure () -> String, _ caller: Origin
    ) throws -> (core: Unmanaged<Core>, kind: UInt) {
        let loop = EventLoop.ofThisThread
        // What this thread's own handlers settle needs no waiting and no waking.
        loop.runReadyJobs()
        if let settled { return settled }
        // Another thread that settles the promise posts this to us, which ends our wait. The hang itself tells of a
        // rejection, and may end before there is one.
        let wakeUp = Core(WakeUp(loop), role: .onlyWatching)
        attach(wakeUp)
        defer { wakeUp.withdraw() }
        var timedOut = false
        let timer = timeout.map { loop.schedule(after: $0) { timedOut = true } }
        defer { timer?.cancel() }
        var hasWarned = false
        while true {
            if let settled { return settled }
            // With a time-out it is said when the time is up, and the timer, which is ours, has gone.
            if !hasWarned && !loop.canWakeItself {
                hasWarned = true
                conf.log(.hangCannotEnd(provenance(type: what(), origin: root.placeOfMaking), at: caller))
                continue
            }
            if timedOut { throw PromiseError.timedOut }
            if loop.isStopping { throw PromiseError.loopEnded }
            try loop.turn(.wait)
        }
    }
}

/// Does nothing: that it comes is enough.
private struct WakeUp: Operation {
    typealias Input = Void
    typealias Output = Void
    // A waiter that only watches does not keep its loop by the count of those that wait; who settles posts to it.
    let loop: EventLoop

    init(_ loop: EventLoop) { self.loop = loop }

    func run(_ source: Source<Void>, _ core: Core) { core.finish(()) }
}

import Reactor

/// Drives this thread's loop until `promise` settles, and returns its value or throws its error.
///
/// For synchronous tests, command-line tools, and the top of a program. Other handlers of the loop run meanwhile. It may be
/// called inside a handler: events that the outer turn has fetched are then delivered here, once and in order, and
/// the outer handler goes on afterwards. There is no blocking that does not drive the loop, so a promise that this loop
/// is to settle is never starved by waiting for it.
///
/// Two things are logged, each once for a line of code, and `hang` goes on waiting:
/// - `LogEvent.hangDeadlock`, at once: the promise is settled by a handler further down this thread's stack, which cannot
///   return before `hang` does.
/// - `LogEvent.hangStalled`: for a second nothing on the loop could have settled the promise, and no dispatcher had a
///   handler of this thread, so only another thread can. With a time-out it is logged when the time is up.
///
/// - Parameter timeout: how long to wait, by the loop's clock; without it, for ever.
/// - Throws: the promise's error; `PromiseError.timedOut`; `.loopEnded` if this loop is being stopped for good, see
///   `EventLoop.spawn`; `SystemError` if the loop cannot open its descriptors, and with `ELOOP` if `hang` is called inside
///   so many handlers that call it too that the thread's stack is nearly used.
@available(*, noasync, message: "an async function must not block its thread; write try await promise.value")
@inlinable
@discardableResult
public func hang<T>(
    _ promise: Promise<T>, timeout: Duration? = nil, _ file: StaticString = #fileID, _ line: UInt = #line
) throws -> T {
    let core = promise.core
    let (root, kind) =
        try core.settled ?? core.drive(timeout, waitingFor: "Promise<\(T.self)>", CallSite(file, line))
    return try root._withUnsafeGuaranteedRef { root in
        if kind == State.fulfilled { return root.value(as: T.self) }
        root.markHandled()
        throw root.error
    }
}

/// Drives this thread's loop until `guarantee` is fulfilled; see the form for promises.
///
/// Traps if the loop cannot open its descriptors, or the stack is nearly used, or the guarantee is abandoned or cancelled, or the other loop that it depends
/// on has ended, since it has no error to say so with. For the same reason it goes on when this loop is being stopped: wait for
/// `asPromise()` where that matters.
@available(*, noasync, message: "an async function must not block its thread; write await guarantee.value")
@inlinable
@discardableResult
public func hang<T>(_ guarantee: Guarantee<T>, _ file: StaticString = #fileID, _ line: UInt = #line) -> T {
    let core = guarantee.core
    do {
        let (root, kind) =
            try core.settled
            ?? core.drive(nil, waitingFor: "Guarantee<\(T.self)>", CallSite(file, line), endsWithLoop: false)
        return try root._withUnsafeGuaranteedRef { root in
            if kind == State.fulfilled { return root.value(as: T.self) }
            throw root.error
        }
    } catch {
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

extension PromiseCore {
    /// Turns until this core has settled; how, is the answer.
    @usableFromInline
    func drive(
        _ timeout: Duration?, waitingFor what: @autoclosure () -> String, _ caller: CallSite, endsWithLoop: Bool = true
    ) throws -> (core: Unmanaged<PromiseCore>, kind: UInt) {
        // This thread's loop is there as long as the thread is in here.
        let loop = EventLoop.unmanagedOfThisThread
        try loop._withUnsafeGuaranteedRef { try $0.checkStack() }
        // What this thread's own handlers settle needs no waiting and no waking.
        loop._withUnsafeGuaranteedRef { $0.runReadyJobs() }
        if let settled { return settled }
        // Another thread that settles the promise posts this to us, which ends our wait. The hang itself tells of a
        // rejection, and may end before there is one.
        let wakeUp = loop._withUnsafeGuaranteedRef { WakeUp.take(on: $0) }
        wakeUp._withUnsafeGuaranteedRef { attach($0, .fromOpaque(wakeUp.toOpaque())) }
        defer { loop._withUnsafeGuaranteedRef { WakeUp.giveBack(wakeUp, to: $0) } }
        let timer = timeout.map { limit in loop._withUnsafeGuaranteedRef { $0.schedule(after: limit) {} } }
        defer { timer?.cancel() }
        if loop._withUnsafeGuaranteedRef({ $0.isInsideHandler }) && isHeldUpByThisStack { reportDeadlock(what, caller) }
        var watch = HangWatch()
        while true {
            if let settled { return settled }
            let isStuck = watch.isWatching && !loop._withUnsafeGuaranteedRef { $0.canWakeItself }
            // With a time-out it is said when the time is up, and the timer, which is ours, has gone.
            if isStuck && watch.isOver(isTimedOut: timer != nil) {
                reportStuck(what, caller)
                continue
            }
            if let timer, !timer.isPending { throw PromiseError.timedOut }
            if endsWithLoop, loop._withUnsafeGuaranteedRef({ $0.shouldStop }) { throw PromiseError.loopEnded }
            if isStuck {
                try loop._withUnsafeGuaranteedRef { try $0.turn(forRealAtMost: watch.remaining) }
            } else {
                watch.restart()
                try loop._withUnsafeGuaranteedRef { try $0.turn(.wait) }
            }
        }
    }
}

/// The waiter of a `hang`. Does nothing: that it comes is enough.
///
/// Once it has come, nothing refers to it any more, and the next `hang` of the thread takes it again.
// @unchecked: as for PromiseCore. The flags belong to the loop's thread.
private final class WakeUp: PromiseCore, @unchecked Sendable {
    // A waiter that only watches does not keep its loop by the count of those that wait; the settling thread posts to it.
    // (A loop releases the one that it keeps when it ends.) `nil` once the waiter has been withdrawn: its place may stay in
    // the list for long, and a settling thread that cannot take it any more does not look at its loop.
    @exclusivity(unchecked) private var eventLoop: EventLoop?
    @exclusivity(unchecked) private var isAwaited = true
    @exclusivity(unchecked) private var hasCome = false

    private init(_ loop: EventLoop) {
        eventLoop = loop
        super.init(
            state: State.pending, loop: Unmanaged.passUnretained(loop).toOpaque(), role: [.onlyWatching, .onlyWaking]
        ) { _, _ in }
    }

    /// One that waits for nothing yet, with a reference for the list that it will wait in.
    static func take(on loop: EventLoop) -> Unmanaged<WakeUp> {
        guard let used = loop.takeSpareJob() else { return .passRetained(WakeUp(loop)) }
        // Nothing else is ever kept there.
        let wakeUp = Unmanaged<WakeUp>.fromOpaque(used.toOpaque())
        wakeUp._withUnsafeGuaranteedRef {
            $0.hasCome = false
            $0.cameByLink = false
        }
        return wakeUp
    }

    /// The `hang` is over: keeps what has come, and leaves the rest to where it stands.
    static func giveBack(_ wakeUp: Unmanaged<WakeUp>, to loop: EventLoop) {
        if wakeUp._withUnsafeGuaranteedRef({ $0.hasCome }) {
            return loop.keepRecycledWaiter(.fromOpaque(wakeUp.toOpaque()))
        }
        // It is there as long as it has neither come nor been withdrawn.
        let wakeUp = wakeUp.takeUnretainedValue()
        wakeUp.isAwaited = false
        if wakeUp.withdraw() { wakeUp.eventLoop = nil }
    }

    override func runAndRelease() {
        letGoOfSource()
        // The reference that came with it is then the hang's.
        if isAwaited { hasCome = true } else { Unmanaged.passUnretained(self).release() }
    }

    /// The loop has ended, and every `hang` on it. Any thread, so the flags are not looked at.
    override func discardAndRelease() {
        letGoOfSource()
        Unmanaged.passUnretained(self).release()
    }

    private func letGoOfSource() {
        let word = upstream.load(ordering: .relaxed)
        if word != Upstream.taken { PromiseCore.release(upstream: word) }
        upstream.store(Upstream.taken, ordering: .relaxed)
    }
}

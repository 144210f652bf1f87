import CLinux
import Reactor

/// Drives this thread's loop until `promise` settles, and returns its value or throws its error.
///
/// ```swift
/// let page = try hang(fetch(url), timeout: .seconds(10))
/// ```
///
/// For synchronous tests, command-line tools, and the top level of a program. The loop's other handlers run while
/// `hang` waits, so `hang` never starves a promise that this loop must settle. Inside a handler, `hang` delivers the
/// remaining events of the outer turn, once and in order, and the outer handler continues afterwards.
///
/// In three situations `hang` logs an event, once per line of code, and continues to wait:
/// - `LogEvent.hangDeadlock`: a handler further down this thread's stack settles the promise, and cannot return before
///   `hang` does. Or `hang` runs in a pool's job, and for one second all the pool's threads have waited, without a time
///   limit, for jobs in its queue.
/// - `LogEvent.hangStalled`: for one second, or until the `timeout`, nothing on the loop could have settled the
///   promise, and no dispatcher had a handler from this thread. Only another thread can settle it.
/// - `LogEvent.hangNested`: this handler runs inside a turn of another handler, whose `hang` cannot return before this
///   one. Server handlers should wait with `then`: with `hang`, each client waits for all later ones.
///
/// - Parameters:
///   - promise: the promise to wait for.
///   - timeout: the time limit, by the loop's clock; `nil` for none.
/// - Throws:
///   - the promise's error;
///   - `PromiseError.timedOut` if the time limit expires;
///   - `PromiseError.loopEnded` if this loop is being stopped for good, see `EventLoop.spawn`;
///   - `SystemError` if the loop cannot open its descriptors;
///   - `SystemError` with `EBADF` if the loop has ended, in a `deinit` that runs during its end;
///   - `SystemError` with `ELOOP` if nested calls of `hang` nearly exhaust the thread's stack: about 10,000 in a
///     release build with 8 MiB. If a handler discards this error, the promise that it would settle afterwards stays
///     pending.
@available(*, noasync, message: "an async function must not block its thread; write try await promise.value")
@inlinable
@discardableResult
public func hang<T>(
    _ promise: Promise<T>, timeout: Duration? = nil, _ file: StaticString = #fileID, _ line: UInt = #line
) throws -> T {
    let core = promise.core
    let seen = core.state.load()
    if seen.isFulfilled { return core.payload.value(as: T.self) }
    let outcome =
        try core.settled(seen)
        ?? driveLoop(until: core, timeout, waitingFor: "Promise<\(T.self)>", CallSite(file, line))
    if outcome.isFulfilled { return outcome.of(T.self).value }
    core.markHandled()
    throw outcome.error
}

/// Drives this thread's loop until `guarantee` is fulfilled, and returns its value; see `hang` for promises.
///
/// Since it cannot throw, it traps if the guarantee is abandoned or cancelled, if the guarantee depends on another loop
/// that has ended, or if this thread's loop has ended, in a `deinit` that runs during its end.
///
/// For the same reason it continues
/// - while the loop cannot open its descriptors: it logs `LogEvent.watchPaused`, retries every 10 ms, and meanwhile
///   runs due timers and jobs from other threads;
/// - when this loop is being stopped;
/// - on a new stack of 8 MiB when nested calls of `hang` nearly exhaust the stack. If there is no memory for the stack,
///   it traps.
///
/// To avoid this, wait for `asPromise()`.
@available(*, noasync, message: "an async function must not block its thread; write await guarantee.value")
@inlinable
@discardableResult
public func hang<T>(_ guarantee: consuming Guarantee<T>, _ file: StaticString = #fileID, _ line: UInt = #line) -> T {
    // Moved out: the loop reuses the core of a guarantee that the caller does not keep, such as a timer's.
    let core = CoreRef.retaining((consume guarantee).core)
    defer { core.releaseOrKeep() }
    do {
        let outcome = try core.borrow {
            try $0.settled
                ?? driveLoop(
                    until: $0, nil, waitingFor: "Guarantee<\(T.self)>", CallSite(file, line), endsWithLoop: false)
        }
        if outcome.isFulfilled { return outcome.of(T.self).value }
        throw outcome.error
    } catch {
        if let value = hangOnNewStack(Guarantee<T>(core.object), after: error, file, line) { return value }
        fatalError("hang on a Guarantee<\(T.self)> cannot end: \(error)", file: file, line: line)
    }
}

/// Waits with a time limit; see `hang` for promises.
/// - Throws: the same errors as `hang` for promises, except a rejection's.
@available(*, noasync, message: "an async function must not block its thread; write await guarantee.value")
@inlinable
@discardableResult
public func hang<T>(
    _ guarantee: Guarantee<T>, timeout: Duration, _ file: StaticString = #fileID, _ line: UInt = #line
) throws -> T {
    try hang(guarantee.asPromise(), timeout: timeout, file, line)
}

@usableFromInline
func driveLoop(
    until core: PromiseCore, _ timeout: Duration?, waitingFor what: @autoclosure () -> String, _ callSite: CallSite,
    endsWithLoop: Bool = true
) throws -> AnySource {
    let loop = LoopRef.ofThisThread
    // An ended loop takes no waiter: the settling thread would release the waiter while this call uses it.
    try loop.borrow { try $0.checkWhetherItCanWait() }
    // A promise that this thread's own jobs settle needs no wait and no wake-up.
    loop.borrow { $0.runReadyJobs() }
    if let settled = core.settled { return settled }
    // The thread that settles the promise posts this waiter to the loop, which ends the wait. The waiter marks no
    // rejection as handled; `hang`, which may end before there is one, does so itself.
    let wakeUp = loop.borrow { WakeUp.take(on: $0) }
    wakeUp.borrow { core.attach($0, owned: wakeUp.core) }
    defer { loop.borrow { WakeUp.giveBack(wakeUp, to: $0) } }
    let timer = timeout.map { limit in loop.borrow { $0.schedule(after: limit) {} } }
    defer { timer?.cancel() }
    if loop.borrow({ $0.isBeingDriven }) {
        if StackSearch.isHeldUp(core) {
            HangReports.report(.deadlock, core, what, callSite)
        } else if loop.borrow({ $0.isHandlerInsideHandler }) {
            HangReports.report(.nested, core, what, callSite)
        }
    }
    var watch = HangWatch()
    var pool = timeout == nil ? PoolWait.ofThisThread(loop) : nil
    defer { pool?.end() }
    var isFirstTurn = true
    while true {
        if let settled = core.settled { return settled }
        let rest = watch.isWatching ? pool?.timeUntilReport(of: core) : nil
        if rest == .zero {
            watch.end()
            HangReports.report(.deadlock, core, what, callSite)
            continue
        }
        let isStuck = watch.isWatching && !loop.borrow { $0.canWakeItself }
        // With a time limit, the report waits for this call's timer.
        if isStuck && watch.isOver(isTimedOut: timer != nil) {
            HangReports.report(.stalled, core, what, callSite)
            continue
        }
        if let timer, !timer.isActive { throw PromiseError.timedOut }
        if endsWithLoop, loop.borrow({ $0.isStopping }) { throw PromiseError.loopEnded }
        do {
            if rest != nil || !isStuck { watch.restart() }
            let limit = rest ?? (isStuck ? watch.remaining : nil)
            try loop.borrow {
                if let limit {
                    try $0.awaitOtherThreads(forRealAtMost: limit)
                } else if isFirstTurn {
                    try $0.turn(.wait)
                } else {
                    try $0.turnAgain(.wait)
                }
            }
            isFirstTurn = limit != nil
        } catch let error as SystemError where !endsWithLoop && error.isShortage {
            loop.borrow { $0.waitForDescriptors(error) }
            isFirstTurn = true
        }
    }
}

/// Continues a `hang` on a separate stack if `error` refuses it because of its depth. Peers may determine the depth,
/// and a guarantee cannot report the error.
/// - Returns: the value; `nil` after any other error, or without memory for a stack.
@usableFromInline
@inline(never)
func hangOnNewStack<T>(
    _ guarantee: Guarantee<T>, after error: any Error, _ file: StaticString, _ line: UInt
) -> T? {
    let isRejected = guarantee.core.settled.map { !$0.isFulfilled } ?? false
    guard (error as? SystemError)?.code == ELOOP, !isRejected else { return nil }
    var value: T?
    var body = { value = hang(guarantee, file, line) }
    // Sound: this thread calls the closure before this returns, and nothing keeps the pointer.
    _ = withUnsafeMutablePointer(to: &body) { body in
        clinux_on_new_stack({ $0!.assumingMemoryBound(to: (() -> Void).self).pointee() }, body)
    }
    return value
}

/// A waiter for `hang`. Its arrival ends the wait, so its operation does nothing. After that nothing refers to the
/// waiter, so the loop keeps it for the thread's next `hang`.
// @unchecked: for the same reasons as PromiseCore. The flags are accessed only on the loop's thread.
private final class WakeUp: PromiseCore, @unchecked Sendable {
    @exclusivity(unchecked) private var isAwaited = true
    @exclusivity(unchecked) private var hasArrived = false

    private init(_ loop: EventLoop) {
        super.init(state: .pending, loop: LoopRef(loop), role: [.leavesUnhandled, .onlyWaking], code: .none)
    }

    /// Takes a waiter, with a reference for its future list.
    static func take(on loop: EventLoop) -> UnownedReference<WakeUp> {
        // A loop keeps nothing else.
        guard let wakeUp = LoopRef(loop).exchangeKept(nil as UnownedReference<WakeUp>?) else {
            return .retaining(WakeUp(loop))
        }
        wakeUp.borrow { $0.hasArrived = false }
        return wakeUp
    }

    /// Keeps a waiter that has arrived for reuse, and leaves any other in its list.
    static func giveBack(_ wakeUp: UnownedReference<WakeUp>, to loop: EventLoop) {
        if wakeUp.borrow({ $0.hasArrived }) {
            // One is enough, even after a nested `hang`.
            LoopRef(loop).exchangeKept(wakeUp)?.release()
            return
        }
        // The object exists until the waiter arrives or is withdrawn.
        let wakeUp = wakeUp.object
        wakeUp.isAwaited = false
        wakeUp.withdraw()
    }

    override func runAndRelease() {
        releaseSource()
        // The `hang` takes over the reference that arrives with the waiter.
        if isAwaited { hasArrived = true } else { release() }
    }

    /// The loop and every `hang` on it have ended. Any thread, so the flags are not accessed.
    override func discardAndRelease() {
        releaseSource()
        release()
    }

    private func releaseSource() {
        sourceWord.loadRelaxed().release()
        sourceWord.store(.taken)
    }
}

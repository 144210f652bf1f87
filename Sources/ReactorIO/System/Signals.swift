import Promises
import Reactor

/// Makes an asynchronous sequence of signals that this process receives, on this thread's loop.
///
/// ```swift
/// let stops = try signals(SIGTERM, SIGINT)
/// for try await signal in stops { … }
/// ```
///
/// The sequence observes the signals from this call until it and its iterators are released. Then the process's
/// previous action is restored. Signals that arrive while no consumer waits are kept, each once. At the end they go to
/// other watches or to that action, as for `EventLoop.onSignal`. The sequence keeps the loop alive while a consumer
/// waits.
/// - Returns: a sequence that does not end by itself.
/// - Throws: `SystemError` from `sigaction`, as for `onSignal`.
@available(*, noasync, message: "an async function has no loop of its own; make it in a synchronous function")
public func signals(
    _ signals: CInt..., file: StaticString = #fileID, line: UInt = #line
) throws(SystemError) -> LoopSequence<CInt> {
    let loop = EventLoop.ofCurrentThread
    let feed = SignalFeed(on: loop)
    for signal in signals { try feed.watch(signal, file, line) }
    return LoopSequence(feed)
}

/// Keeps signals that no consumer has requested. Accessed only on the loop's thread.
private final class SignalFeed: LoopSource {
    let name: StaticString = "signals"
    let loop: EventLoop
    private var watches: [EventLoop.Watch] = []
    private var arrived: [CInt] = []
    private var waiter: Resolver<Void>?
    /// True from the beginning of a consumer's wait until the consumer has resumed.
    private var isWaited = false

    init(on loop: EventLoop) { self.loop = loop }

    deinit {
        loop.performCleanup { [loop, watches] in
            if !loop.hasEnded { for watch in watches { watch.cancel() } }
        }
    }

    func watch(_ signal: CInt, _ file: StaticString, _ line: UInt) throws(SystemError) {
        // Rejects a consumer's wait when the loop ends.
        let end = OnDeinit { [weak self] in self?.waiter.take()?.reject(PromiseError.loopEnded) }
        let handler = { [weak self] in withExtendedLifetime(end) { self?.take(signal) ?? () } }
        let watch = try loop.keepSignal(signal, handler, file, line)
        watch.unref()
        watches.append(watch)
    }

    private func take(_ signal: CInt) {
        if !arrived.contains(signal) { arrived.append(signal) }
        waiter.take()?.fulfill(())
    }

    func next(isolation _: isolated (any Actor)?) async throws -> CInt? {
        guard !isWaited else { throw PromiseError.badInput("signals: two callers wait for the next one") }
        isWaited = true
        defer { isWaited = false }
        while arrived.isEmpty {
            let (promise, resolver) = Promise<Void>.pending()
            waiter = resolver
            keepLoopAlive()
            defer {
                waiter = nil
                unrefWatches()
            }
            try await promise.value
        }
        let signal = arrived.removeFirst()
        loop.noteSignalHandled(signal)
        return signal
    }

    // Called on the loop's thread, which the handles require of async code.
    private func keepLoopAlive() { for watch in watches { watch.ref() } }
    private func unrefWatches() { for watch in watches { watch.unref() } }
}

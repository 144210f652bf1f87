import Glibc
import Reactor

/// Drains listeners at the first of several signals, and aborts their connections at the second.
///
/// Accessed only on the loop's thread. Retained by its signal watches, which it cancels when its promise settles, so
/// that the process's own actions are restored then.
final class SignalledDrain: IOProducer {
    private let listeners: [Listener]
    private let timeout: Duration
    private let onSignal: ((CInt) -> Void)?
    /// The promise of `serve`, if a cancellation is to close the listener.
    private var service: PromiseCore?
    private var watches: [EventLoop.SignalWatch] = []
    private var promise: PromiseCore?
    /// How many signals have arrived.
    private var signalCount = 0
    /// By the indices of `listeners`: whether the listener's account is complete.
    private var isComplete: [Bool]

    init(_ listeners: [Listener], _ timeout: Duration, _ onSignal: ((CInt) -> Void)?) {
        self.listeners = listeners
        self.timeout = timeout
        self.onSignal = onSignal
        isComplete = listeners.map { _ in false }
    }

    /// Begins to watch the signals, then to serve, and then to wait for the ends of the listeners.
    /// - Parameter serve: begins to serve, on behalf of the returned promise only; returns `nil` if the listeners serve
    ///   already.
    /// - Returns: a promise of the account of all listeners. Rejected at once with a `SystemError` of `sigaction`,
    ///   before serving has begun, or as `serve`.
    func start(
        _ signals: [CInt], _ file: StaticString, _ line: UInt, serving serve: () -> Promise<Void>? = { nil }
    ) -> Promise<DrainResult> {
        do {
            try watch(signals, file, line)
            service = serve()?.core
            if let (root, kind) = service?.settled, kind == State.rejected {
                root._withUnsafeGuaranteedRef { $0.markHandled() }
                throw root._withUnsafeGuaranteedRef { $0.error }
            }
        } catch {
            endWatches()
            return Promise(refused: error)
        }
        let core = IOPromise(DrainResult.self, self)
        promise = core
        for index in listeners.indices {
            if let served = listeners[index].acceptQueue.service?.promise {
                served.watch(AccountIsComplete(drain: self, index: index))
            } else if listeners[index].isClosed {
                isComplete[index] = true
            }
        }
        finishIfComplete()
        return Promise(core)
    }

    private func watch(_ signals: [CInt], _ file: StaticString, _ line: UInt) throws(SystemError) {
        if signals.isEmpty { throw SystemError(.sigaction, EINVAL, detail: "no signals") }
        let last = LastWatch(self)
        for signal in Set(signals) {
            let watch = try EventLoop.ofCurrentThread.onSignal(
                signal, { last.drain.signalDidArrive(signal) }, file: file, line: line)
            watches.append(watch)
        }
    }

    private func signalDidArrive(_ signal: CInt) {
        signalCount += 1
        let isFirst = signalCount == 1
        onSignal?(signal)
        // The closure may have cancelled the promise, or turned the loop so that another signal has arrived.
        for (index, listener) in listeners.enumerated() where promise != nil {
            if isFirst { listener.drain(deadline: timeout).core.watch(AccountIsComplete(drain: self, index: index)) }
            if signalCount > 1 { listener.abortDrain() }
        }
    }

    /// The drain of a listener has ended, or its `serve`, whichever comes first.
    fileprivate func accountIsComplete(_ index: Int) {
        isComplete[index] = true
        finishIfComplete()
    }

    private func finishIfComplete() {
        guard isComplete.allSatisfy(\.self), let core = promise.take() else { return }
        endWatches()
        core.fulfill(listeners.reduce(DrainResult()) { $0 + ($1.drain?.guarantee.settledValue ?? DrainResult()) })
    }

    /// - Returns: whether `error` has rejected the promise, which may have settled or been cancelled before.
    fileprivate func listenerDidFail(_ error: any Error) -> Bool {
        guard let core = promise.take() else { return false }
        endWatches()
        core.reject(error)
        return true
    }

    func stop(_ promise: PromiseCore) -> Bool {
        guard self.promise.take() != nil else { return false }
        endWatches()
        service?.cancel()
        return true
    }

    /// The handlers of the watches were released: the loop has ended.
    fileprivate func watchesWereReleased() { promise.take()?.producerDidEnd() }

    private func endWatches() {
        let watches = watches
        self.watches = []
        for watch in watches { watch.cancel() }
    }
}

/// Retained only by the handlers of the watches, so its `deinit` marks their end.
private final class LastWatch {
    let drain: SignalledDrain

    init(_ drain: SignalledDrain) { self.drain = drain }

    deinit { drain.watchesWereReleased() }
}

/// Waits for the promise of `serve`, or for that of `drain`.
private struct AccountIsComplete: Operation {
    typealias Input = Never
    typealias Output = Void
    let drain: SignalledDrain
    let index: Int

    func run(_ source: AnySource, _ core: PromiseCore) {
        if source.isFulfilled {
            drain.accountIsComplete(index)
        } else if drain.listenerDidFail(source.error) {
            source.core.markHandled()
        }
        core.finish(())
    }
}

extension DrainResult {
    fileprivate static func + (one: DrainResult, other: DrainResult) -> DrainResult {
        var sum = one
        sum.idle += other.idle
        sum.finished += other.finished
        sum.aborted += other.aborted
        return sum
    }
}

import Promises
import Reactor
import ReactorLibc

/// Watches the signals that stop one or several listeners. The first signal drains them, and a later one aborts the
/// rest. Accessed only on the loop's thread. Retained by its watches, until the process's previous actions are restored
/// or the loop ends.
final class StopSignals: CancellableWork {
    /// The time in which further signals count as copies of the first; see `ServeOptions.stopSignals`.
    private static var duplicateWindow: Duration { .milliseconds(100) }

    private var listeners: [Listener]
    private let timeout: Duration
    private let signals: Set<CInt>
    private let onSignal: ((CInt) -> Void)?
    private let loop = EventLoop.ofCurrentThread
    private var watches: [EventLoop.Watch] = []
    /// The registration of `loopWillEnd`, while the signals are watched.
    private var ending: Int?
    /// The time of the first signal, which drains the listeners.
    private var firstSignal: LoopInstant?
    private var aborts = false
    private var isOver = false
    private var promise: PromiseCore?
    private var missing: Set<Int> = []

    init(
        _ listeners: [Listener], _ timeout: Duration, _ onSignal: ((CInt) -> Void)?, _ signals: [CInt],
        _ file: StaticString, _ line: UInt
    ) throws(SystemError) {
        self.listeners = listeners
        self.timeout = timeout
        self.onSignal = onSignal
        self.signals = Set(signals)
        if signals.isEmpty { throw SystemError(.sigaction, EINVAL, detail: "no signals") }
        do throws(SystemError) {
            for signal in self.signals {
                watches.append(
                    try loop.onSignal(signal, { [self] in signalDidArrive(signal) }, file: file, line: line))
            }
        } catch {
            end()
            throw error
        }
        ending = loop.whenEnding { [self] in loopWillEnd() }
    }

    private func signalDidArrive(_ signal: CInt) {
        if isOver { return }
        let isFirst = firstSignal == nil
        if let firstSignal {
            if !aborts && firstSignal.duration(to: loop.now) < Self.duplicateWindow { return }
            aborts = true
        } else {
            firstSignal = loop.now
        }
        onSignal?(signal)
        // The closure may have ended this object, or turned the loop.
        for (index, listener) in listeners.enumerated() {
            if isOver { return }
            if isFirst { watch(listener.drain(deadline: timeout).core, of: index) }
            if aborts { listener.abortDrain() }
        }
    }

    /// Restores the process's previous actions. After the first signal, waits until no copy can arrive, because a copy
    /// would kill a process that has stopped properly. `atOnce` skips that wait, because the loop ends.
    func end(atOnce: Bool = false) {
        let copiesEnd = atOnce || aborts ? nil : firstSignal?.advanced(by: Self.duplicateWindow)
        isOver = true
        // A listener that serves until these signals retains this object.
        let released = listeners
        listeners = []
        if let copiesEnd, loop.now < copiesEnd {
            for watch in watches { watch.unref() }
            loop.schedule(at: copiesEnd) { [self] in restoreActions() }.unref()
        } else {
            restoreActions()
        }
        withExtendedLifetime(released) {}
    }

    private func restoreActions() {
        let (watches, ending) = (watches, ending.take())
        self.watches = []
        guard loop.isOwnedByThisThread else { return }
        if let ending { loop.forgetEnding(ending) }
        // Signals that arrived after the first one ask for a stop that has already happened.
        if firstSignal != nil { for signal in signals { loop.noteSignalHandled(signal) } }
        for watch in watches { watch.cancel() }
    }

    private func loopWillEnd() {
        end(atOnce: true)
        promise.take()?.producerDidEnd(.loopEnded)
    }
}

// MARK: Several listeners

extension StopSignals {
    fileprivate func join() -> Promise<DrainResult> {
        let core = PromiseCore.pending(DrainResult.self, by: self)
        promise = core
        for (index, listener) in listeners.enumerated() {
            let served = listener.serving
            if served == nil, listener.state.isClosed { continue }
            missing.insert(index)
            if let served { watch(served, of: index) }
        }
        finishIfDone()
        return Promise(core)
    }

    private func finishIfDone() {
        guard missing.isEmpty, let core = promise.take() else { return }
        let listeners = listeners
        end()
        core.fulfill(listeners.reduce(DrainResult()) { $0 + $1.state.result })
    }

    /// Watches a listener's drain or its `serve`, whichever settles first.
    private func watch(_ outcome: PromiseCore, of index: Int) {
        outcome.watch { [self] source in
            if source.isFulfilled {
                missing.remove(index)
                finishIfDone()
            } else if let promise = promise.take() {
                source.core.markHandled()
                end()
                promise.reject(source.error)
            }
        }
    }

    func stop(_ promise: PromiseCore) -> Bool {
        guard self.promise.take() != nil else { return false }
        end()
        return true
    }
}

extension Listener {
    /// Drains `listeners` when a signal asks the process to stop. The first of `signals` drains all of them within
    /// `deadline`. A second, the same or another, aborts the remaining connections. Further signals within 100 ms of
    /// the first are ignored as copies; see `ServeOptions.stopSignals`.
    ///
    /// ```swift
    /// pages.serve { … }
    /// figures.serve { … }
    /// let result = try hang(Listener.drain([pages, figures], atFirstOf: [SIGTERM, SIGINT], deadline: .seconds(10)))
    /// ```
    ///
    /// For a single listener use `ServeOptions.stopSignals`.
    ///
    /// The signals are watched from this call on, and keep the loop alive. When the promise settles, but not before
    /// those 100 ms have passed, the process's previous actions are restored.
    /// - Parameters:
    ///   - listeners: listeners on this thread's loop. If one does not serve yet, the promise waits for the first
    ///     signal, which drains that listener, even a closed one.
    ///   - signals: at least one signal.
    ///   - deadline: the time limit of the drain; see `drain(deadline:)`.
    ///   - onSignal: called with each signal, before the drain or abort.
    /// - Returns: a promise of the sum of all listeners' results. Fulfilled when each listener has been drained, or is
    ///   closed without connections. A listener that is closed without a drain adds nothing. Rejected with
    ///   - `SystemError` from `sigaction`, at once, as for `onSignal`, and with `EINVAL` if there is no signal;
    ///   - the error that rejects a listener's `serve`, where it counts as handled. The other listeners continue.
    ///
    /// Cancelling the promise only stops watching the signals.
    @available(*, noasync, message: "on a loop write try await firstly { … }.value, else use a synchronous function")
    public static func drain(
        _ listeners: [Listener], atFirstOf signals: [CInt], deadline: Duration, onSignal: ((CInt) -> Void)? = nil,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<DrainResult> {
        var promise: Promise<DrainResult>
        do throws(SystemError) {
            promise = try StopSignals(listeners, deadline, onSignal, signals, file, line).join()
        } catch {
            promise = Promise(refused: error)
        }
        return Promise(promise.core.traced(root: "drain", Promise<DrainResult>.self, file, line))
    }
}

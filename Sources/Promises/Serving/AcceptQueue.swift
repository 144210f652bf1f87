import Reactor

/// The consumers of a listener's connections: the waiting calls of `accept`, or a call of `serve` until its promise
/// settles.
///
/// A separate object, which stays intact while the listener is released: an inline handler of one promise rejected then
/// may cancel another.
final class AcceptQueue: IOProducer {
    weak var listener: Listener?
    var waiting: [PromiseCore] = []

    /// The promise of `serve`.
    private(set) var service: PromiseCore?
    /// The maximum number of active connections of `serve`.
    private(set) var limit = 0
    /// Begins to serve an accepted socket, on this loop or on another.
    private(set) var start: ((Accepted) -> Void)?
    private(set) var signals: StopSignals?

    var isInUse: Bool { service != nil || !waiting.isEmpty }

    /// Begins a call of `serve`; no other may be running.
    func begin(_ promise: PromiseCore, limit: Int, signals: StopSignals?, _ start: @escaping (Accepted) -> Void) {
        (service, self.limit, self.signals, self.start) = (promise, limit, signals, start)
        // `StopSignals` watches it.
        promise.annotate(.isHandedOutAgain)
    }

    /// Ends the call of `serve`, and the watch of its signals.
    /// - Returns: its promise, which the caller settles.
    func endService() -> PromiseCore? {
        guard let promise = service.take() else { return nil }
        let (signals, start) = (signals.take(), start.take())
        signals?.end()
        return withExtendedLifetime(start) { promise }
    }

    func refuseAll(_ error: SystemError) {
        while !waiting.isEmpty { waiting.removeFirst().reject(error) }
        endService()?.reject(error)
    }

    /// An `accept` or `serve` was cancelled.
    func stop(_ promise: PromiseCore) -> Bool {
        if service === promise {
            _ = endService()
            listener?.serveWasCancelled()
            return true
        }
        guard let index = waiting.firstIndex(where: { $0 === promise }) else { return false }
        waiting.remove(at: index)
        listener?.updateInterest()
        return true
    }
}

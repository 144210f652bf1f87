import Reactor

/// The listener whose connections are taken.
protocol AcceptQueueOwner: AnyObject {
    func acceptWasCancelled()
    func serveWasCancelled()
}

/// The takers of a listener's connections: the waiting calls of `accept`, or `serve`.
///
/// An object of its own, which is intact while the listener is released: an inline handler of one promise that is
/// rejected then may cancel another.
final class AcceptQueue: IOProducer {
    var waiting: [PromiseCore] = []
    var service: ServeCall?
    weak var owner: (any AcceptQueueOwner)?

    /// A call of `serve`, until its promise settles.
    // A class: for each connection it is looked at twice, and a copy of a struct would count each of its references.
    final class ServeCall {
        let limit: Int
        let promise: PromiseCore
        /// Ends the watch of the signals that stop it, if there are any.
        let endSignals: (() -> Void)?
        /// Begins to serve an accepted socket, on this loop or on another.
        let start: (Accepted) -> Void

        init(
            limit: Int, promise: PromiseCore, endSignals: (() -> Void)?, start: @escaping (Accepted) -> Void
        ) {
            self.limit = limit
            self.promise = promise
            self.endSignals = endSignals
            self.start = start
        }
    }

    /// Whether an `accept` waits, or `serve` is running.
    var isInUse: Bool { service != nil || !waiting.isEmpty }

    func refuseAll(_ error: SystemError) {
        while !waiting.isEmpty { waiting.removeFirst().reject(error) }
        endService()?.reject(error)
    }

    /// Ends the call of `serve`, and the watch of its signals.
    /// - Returns: its promise, which the caller settles.
    func endService() -> PromiseCore? {
        guard let call = service.take() else { return nil }
        call.endSignals?()
        return call.promise
    }

    /// An `accept` or `serve` was cancelled.
    func stop(_ promise: PromiseCore) -> Bool {
        if let service, service.promise === promise {
            _ = endService()
            owner?.serveWasCancelled()
            return true
        }
        guard let index = waiting.firstIndex(where: { $0 === promise }) else { return false }
        waiting.remove(at: index)
        owner?.acceptWasCancelled()
        return true
    }
}

import Reactor

/// The takers of a listener's connections: the waiting calls of `accept`, or `serve`.
///
/// An object of its own, which is intact while the listener is released: an inline handler of one promise that is
/// rejected then may cancel another.
final class AcceptQueue: IOProducer {
    var waiting: [PromiseCore] = []
    var service: Service?
    weak var listener: Listener?

    struct Service {
        let limit: Int
        /// Begins to serve an accepted socket, on this loop or on another.
        let start: (Accepted) -> Void
        let promise: PromiseCore
    }

    func refuseAll(_ error: SystemError) {
        while !waiting.isEmpty { waiting.removeFirst().reject(error) }
        service.take()?.promise.reject(error)
    }

    /// An `accept` or `serve` was cancelled.
    func stop(_ promise: PromiseCore) -> Bool {
        if let service, service.promise === promise {
            self.service = nil
            if let listener, !listener.isClosed { listener.release() }
            return true
        }
        guard let index = waiting.firstIndex(where: { $0 === promise }) else { return false }
        waiting.remove(at: index)
        listener?.updateInterest()
        return true
    }
}

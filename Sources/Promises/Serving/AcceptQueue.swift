import Reactor

/// Who has asked a listener for connections: each `accept` that waits, or `serve`.
///
/// An object of its own, which is still whole when the listener goes: an inline handler of one promise that is rejected
/// then may cancel another.
final class AcceptQueue: IOProducer {
    var waiting: [PromiseCore] = []
    var service: Service?
    weak var listener: Listener?

    struct Service {
        let limit: Int
        /// Begins to serve what was accepted, here or on another loop.
        let start: (Accepted) -> Void
        let promise: PromiseCore
    }

    func refuseAll(_ error: SystemError) {
        while !waiting.isEmpty { waiting.removeFirst().reject(error) }
        service.take()?.promise.reject(error)
    }

    /// An `accept` was cancelled, or `serve`.
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

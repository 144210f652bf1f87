import Reactor

/// One socket of a listener, as the poller knows it.
final class AcceptSocket: ReadinessHandler {
    private let listening: ListeningSocket
    /// The listener, held while this door waits: nobody else need hold it then.
    var keeper: Listener?
    /// Connections that the kernel has refused since it last had one, or none.
    var refusals = 0

    init(_ listening: ListeningSocket) { self.listening = listening }

    var socket: Socket { listening.socket }
    var address: SocketAddress { listening.address }

    /// As `keepAliveReasons` shows it: of several sockets the one that waits.
    package var label: String { "Listener(\(address))" }

    func letGo(on loop: EventLoop) {
        keeper = nil
        if loop.isOwnedByThisThread { loop.forget(socket.fd) }
        listening.close()
    }

    package func descriptorIsReady(_ ready: Interest) { keeper?.acceptReady(on: self) }

    package func loopWillEnd() { keeper?.loopWillEnd() }
}

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

/// What accept4 has answered, of which no connection has been made yet.
struct Accepted: Sendable {
    let fd: CInt
    let peer: SocketAddress?
    let isUnix: Bool

    /// The current loop's from now on.
    func connection(on loop: EventLoop) -> Connection {
        loop.forget(fd)
        return Connection(Socket(fd, loop.kernel), peer: peer, isUnix: isUnix, on: loop)
    }
}

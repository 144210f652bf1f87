import Reactor

/// One socket of a listener, for the poller.
final class AcceptSocket: ReadinessHandler {
    private let listening: ListeningSocket
    /// Retained while this socket waits for clients: no other reference to the listener is needed then.
    var listener: Listener?
    /// The number of calls of `accept` in a row that failed with the error of a single connection.
    var refusals = 0

    init(_ listening: ListeningSocket) { self.listening = listening }

    var socket: Socket { listening.socket }
    var address: SocketAddress { listening.address }

    /// The text in `keepAliveReasons`: if there are several sockets, the address of the waiting one.
    package var label: String { "Listener(\(address))" }

    func error(_ code: CInt) -> SystemError { SystemError(.accept, code, detail: address.description) }

    func close(on loop: EventLoop) {
        listener = nil
        if loop.isOwnedByThisThread { loop.forget(socket.fd) }
        listening.close()
    }

    package func descriptorIsReady(_ ready: Interest) -> Interest {
        listener?.acceptReady(on: self)
        return []
    }

    package func loopWillEnd() { listener?.loopWillEnd() }
}

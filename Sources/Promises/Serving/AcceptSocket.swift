import Reactor

/// What retains a socket while it waits for clients, and is told of them. Called on the loop's thread.
protocol AcceptSocketOwner: AnyObject {
    func acceptReady(on socket: AcceptSocket)
    func loopWillEnd()
}

/// One socket of a listener, as the poller sees it.
final class AcceptSocket: ReadinessHandler {
    private let listening: ListeningSocket
    /// The listener, retained while this socket waits for clients: no other reference to it is needed then.
    var owner: (any AcceptSocketOwner)?
    /// How many calls of `accept` in a row have failed with the error of a single connection.
    var refusals = 0

    init(_ listening: ListeningSocket) { self.listening = listening }

    var socket: Socket { listening.socket }
    var address: SocketAddress { listening.address }

    /// The text in `keepAliveReasons`: of several sockets, the address of the waiting one.
    package var label: String { "Listener(\(address))" }

    func error(_ code: CInt) -> SystemError { SystemError(.accept, code, detail: address.description) }

    func close(on loop: EventLoop) {
        owner = nil
        if loop.isOwnedByThisThread { loop.forget(socket.fd) }
        listening.close()
    }

    package func descriptorIsReady(_ ready: Interest) -> Interest {
        owner?.acceptReady(on: self)
        return []
    }

    package func loopWillEnd() { owner?.loopWillEnd() }
}

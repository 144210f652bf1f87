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

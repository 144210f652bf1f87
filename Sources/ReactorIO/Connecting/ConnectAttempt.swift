import Promises
import Reactor
import ReactorLibc

/// A socket that is connecting to one address. The poller or a timer retains it.
final class ConnectAttempt: ReadinessHandler {
    let address: SocketAddress
    // Race and attempt retain each other until the attempt succeeds, fails, or is abandoned, as by the loop's end.
    private let race: ConnectRace
    private let loop: EventLoop
    private var socket: Socket?
    private var retry: EventLoop.Timer?
    private var tries = 0
    private let began: LoopInstant

    /// The maximum time to retry a Unix connect, about as long as the kernel tries TCP.
    private static var retryLimit: Duration { .seconds(120) }

    init(_ address: SocketAddress, _ race: ConnectRace) {
        self.address = address
        self.race = race
        loop = race.loop
        began = loop.now
    }

    /// If this throws, the caller must call `giveUp`.
    func start(from source: SocketAddress?, _ options: [SocketSetting]) throws(SystemError) {
        let socket = try Socket.client(for: address, from: source, options, loop.kernel)
        self.socket = socket
        loop.forget(socket.fd)
        try advance(socket)
    }

    private func advance(_ socket: Socket) throws(SystemError) {
        let code = socket.startConnect(to: address)
        if code == 0 { return try loop.setInterest([.writing, .error, .hangUp], of: socket.fd, handler: self) }
        // A full backlog of a Unix listener. No event reports room.
        guard code == EAGAIN, address.isUnix, began.advanced(by: Self.retryLimit) > loop.now else {
            throw SystemError(.connect, code, detail: address.description)
        }
        let again = InternalJob({ [self] in tryAgain() }, ifLoopEnds: { [self] in loopWillEnd() })
        retry = loop.startTimer(after: .milliseconds(1 << min(tries, 6)), again)
        tries += 1
    }

    private func tryAgain() {
        guard let socket else { return }
        do throws(SystemError) { try advance(socket) } catch { fail(error) }
    }

    package func descriptorIsReady(_ ready: Interest) -> Interest {
        if let socket { mayHaveConnected(socket, hasError: ready.contains(.error) || ready.contains(.hangUp)) }
        return []
    }

    /// - Parameter hasError: false to save the call that asks the kernel for an error.
    private func mayHaveConnected(_ socket: Socket, hasError: Bool) {
        var code = hasError ? socket.takeError() : 0
        // A connect to a port in this machine's ephemeral range may connect the socket to itself.
        if code == 0 && !address.isUnix && socket.localAddress == address { code = ECONNREFUSED }
        guard code == 0 else { return fail(SystemError(.connect, code, detail: address.description)) }
        self.socket = nil
        // Keeps the registration, which the connection takes over.
        do throws(SystemError) { try loop.setInterest([], of: socket.fd, handler: nil) } catch {}
        race.attemptDidConnect(by: self, socket)
    }

    private func fail(_ error: SystemError) {
        giveUp()
        race.attemptDidFail(self, error)
    }

    package func loopWillEnd() { race.loopWillEnd() }

    func giveUp() {
        retry?.cancel()
        retry = nil
        guard let socket else { return }
        self.socket = nil
        loop.forget(socket.fd)
        loop.kernel.close(socket.fd)
    }
}

import Glibc
import Reactor

/// Opens a TCP connection on this thread's loop.
///
/// Rejected with the `SystemError` that the kernel reports, such as `ECONNREFUSED`, or with `PromiseError.timedOut` when
/// `timeout` has passed; the attempt is then given up and its descriptor closed, as it is when the promise is cancelled. Without a timeout the kernel gives up
/// after about two minutes, with `ETIMEDOUT`. See connect(2).
@available(*, noasync, message: "an async function has no loop of its own")
public func connect(
    to address: SocketAddress, timeout: Duration? = nil, file: StaticString = #fileID, line: UInt = #line
) -> Promise<Connection> {
    Promise(attempt(address, timeout).core.traced(root: "connect", Promise<Connection>.self, file, line))
}

private func attempt(_ address: SocketAddress, _ timeout: Duration?) -> Promise<Connection> {
    let attempt = ConnectAttempt(address, on: EventLoop.ofThisThread)
    do throws(SystemError) { try attempt.start(timeout) } catch { return Promise(error: error) }
    return Promise(attempt.promise)
}

/// Opens a TCP connection to `127.0.0.1:7000`, `[::1]:7000` or `localhost:7000`; see the form with an address. Also rejected
/// with `SocketAddress.ParseError`.
@available(*, noasync, message: "an async function has no loop of its own")
public func connect(
    to address: String, timeout: Duration? = nil, file: StaticString = #fileID, line: UInt = #line
) -> Promise<Connection> {
    do throws(SocketAddress.ParseError) {
        return connect(to: try SocketAddress(address), timeout: timeout, file: file, line: line)
    } catch {
        let core = Core(error: error, origin: Origin(file, line))
        return Promise(core.traced(root: "connect", Promise<Connection>.self, file, line))
    }
}

/// A connect that is under way. The poller holds it until it is decided.
private final class ConnectAttempt: ReadinessHandler, IOProducer {
    private(set) lazy var promise = IOPromise(Connection.self, self)
    private let address: SocketAddress
    private let loop: EventLoop
    private var socket: Socket?
    private var timer: EventLoop.Timer?

    init(_ address: SocketAddress, on loop: EventLoop) {
        self.address = address
        self.loop = loop
    }

    // The loop ended before the attempt did.
    deinit { giveUp() }

    func start(_ timeout: Duration?) throws(SystemError) {
        let socket = try Socket.connecting(to: address, loop.kernel)
        self.socket = socket
        loop.forget(socket.fd)
        try loop.setInterest(.writing, of: socket.fd, handler: self)
        timer = timeout.map { loop.schedule(after: $0) { [weak self] in self?.timeOut() } }
    }

    func descriptorIsReady(_ ready: Interest) {
        guard let socket else { return }
        timer?.cancel()
        var code = socket.takeError()
        // A connect to a port of this machine's own ephemeral range may meet itself: two ends, one socket.
        if code == 0 && socket.localAddress == address { code = ECONNREFUSED }
        guard code == 0 else {
            giveUp()
            return promise.reject(SystemError(.connect, code, detail: address.description))
        }
        self.socket = nil
        // The registration is kept, as the connection's own.
        do throws(SystemError) { try loop.setInterest([], of: socket.fd, handler: nil) } catch {}
        promise.fulfill(Connection(socket, peer: address, on: loop))
    }

    func loopIsEnding() {
        giveUp()
        promise.reject(SystemError(.connect, ECANCELED, detail: "the loop has ended"))
    }

    func stop(_ promise: Core) -> Bool {
        giveUp()
        return true
    }

    private func timeOut() {
        giveUp()
        promise.reject(PromiseError.timedOut)
    }

    private func giveUp() {
        guard let socket else { return }
        self.socket = nil
        loop.forget(socket.fd)
        loop.kernel.close(socket.fd)
    }
}

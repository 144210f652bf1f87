import Glibc
import PromisesTestSupport
import Synchronization

/// The other end of a connection: a plain blocking socket, which behaves or misbehaves as a test needs. A call without
/// an answer fails with `EAGAIN` after a minute. A signal of another test does not end a call: without a retry it
/// would, since the socket has time limits, even if the signal's handler asks for a restart (signal(7)).
final class Peer: Sendable {
    private let number: Atomic<CInt>
    var fd: CInt { number.load(ordering: .relaxed) }

    init(to address: SocketAddress, receiveBuffer: CInt? = nil, sending bytes: [UInt8] = []) throws {
        let fd = socket(address.family, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        number = Atomic(fd)
        if let receiveBuffer { set(SOL_SOCKET, SO_RCVBUF, receiveBuffer) }
        set(SOL_SOCKET, SO_RCVTIMEO, timeval(tv_sec: 60, tv_usec: 0))
        set(SOL_SOCKET, SO_SNDTIMEO, timeval(tv_sec: 60, tv_usec: 0))
        set(CInt(IPPROTO_TCP), TCP_NODELAY, CInt(1))
        // A connect that is repeated after a signal is in progress, or connected by then.
        let result = retrying { Int(address.withSocketAddress { Glibc.connect(fd, $0, $1) }) }
        guard result == 0 || errno == EISCONN else { throw SystemError(.connect, errno, detail: address.description) }
        Fixture.current?.network.ledger.peers.change { [self] in $0.append(self) }
        try send(bytes)
    }

    convenience init(to address: SocketAddress, sending text: String) throws {
        try self.init(to: address, sending: Array(text.utf8))
    }

    deinit { close() }

    private func set<Value>(_ level: CInt, _ name: CInt, _ value: Value) {
        withUnsafeBytes(of: value) { _ = setsockopt(fd, level, name, $0.baseAddress!, socklen_t($0.count)) }
    }

    /// Sends all of `bytes`, waiting as long as the other side does not take them.
    func send(_ bytes: [UInt8]) throws {
        var sent = 0
        while sent < bytes.count {
            let count = retrying {
                bytes[sent...].withUnsafeBytes { Glibc.send(fd, $0.baseAddress!, $0.count, CInt(MSG_NOSIGNAL)) }
            }
            guard count >= 0 else { throw SystemError(.send, errno) }
            sent += count
        }
    }

    func send(_ text: String) throws { try send(Array(text.utf8)) }

    /// The available bytes; empty at the end.
    func receive(upTo limit: Int = 65536) throws -> [UInt8] {
        var failure: CInt = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: limit) { buffer, count in
            let result = retrying { recv(fd, buffer.baseAddress!, limit, 0) }
            if result < 0 { failure = errno }
            count = max(result, 0)
        }
        guard failure == 0 else { throw SystemError(.receive, failure) }
        return bytes
    }

    /// Exactly `count` bytes, or fewer if the end comes first.
    func receive(exactly count: Int) throws -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < count {
            let more = try receive(upTo: min(count - bytes.count, 65536))
            if more.isEmpty { break }
            bytes += more
        }
        return bytes
    }

    func readToEnd() throws -> [UInt8] { try receive(exactly: .max) }

    /// The code of the error that ends reading; `nil` for an orderly end.
    func failureOfReading() -> CInt? {
        do {
            while !(try receive().isEmpty) {}
            return nil
        } catch { return (error as? SystemError)?.code }
    }

    /// Half-closes.
    func end() { shutdown(fd, CInt(SHUT_WR)) }

    /// Closes both directions, as a process that exits does.
    func close() {
        let fd = number.exchange(-1, ordering: .relaxed)
        if fd >= 0 { _ = Glibc.close(fd) }
    }

    /// Closes with a reset.
    func reset() {
        set(SOL_SOCKET, SO_LINGER, linger(l_onoff: 1, l_linger: 0))
        close()
    }
}

/// Repeats a system call until no signal interrupts it.
func retrying(_ call: () -> Int) -> Int {
    while true {
        let result = call()
        if result != -1 || errno != EINTR { return result }
    }
}

/// Runs `body` on a separate thread, where it may block while the loop runs.
func elsewhere<T: Sendable>(_ body: @escaping @Sendable () throws -> T) -> Promise<T> {
    let (promise, resolver) = Promise<T>.pending()
    let fixture = Fixture.current
    let thread = TestThread {
        do { resolver.fulfill(try fixture.map { try $0.use { _ in try body() } } ?? body()) } catch {
            resolver.reject(error)
        }
    }
    thread.detach()
    return promise
}

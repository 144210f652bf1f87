import Glibc
import Reactor

/// A client of the server: a plain blocking socket. A call without an answer fails with `EAGAIN` after ten seconds.
final class Client {
    let fd: CInt

    init(to address: SocketAddress, receiveBuffer: CInt? = nil) throws {
        fd = socket(address.family, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        if let receiveBuffer { set(SOL_SOCKET, SO_RCVBUF, receiveBuffer) }
        set(SOL_SOCKET, SO_RCVTIMEO, timeval(tv_sec: 10, tv_usec: 0))
        set(SOL_SOCKET, SO_SNDTIMEO, timeval(tv_sec: 10, tv_usec: 0))
        set(CInt(IPPROTO_TCP), TCP_NODELAY, CInt(1))
        let result = address.withSocketAddress { connect(fd, $0, $1) }
        guard result == 0 else { throw SystemError(.connect, errno, detail: address.description) }
    }

    deinit { close(fd) }

    private func set<Value>(_ level: CInt, _ name: CInt, _ value: Value) {
        withUnsafeBytes(of: value) { _ = setsockopt(fd, level, name, $0.baseAddress!, socklen_t($0.count)) }
    }

    /// Sends as much as the other side takes, waiting at most `patience` milliseconds each time, and returns the number
    /// of bytes.
    @discardableResult
    func send(_ bytes: [UInt8], patience: CInt = 10_000) throws -> Int {
        var sent = 0
        while sent < bytes.count {
            let flags = CInt(MSG_NOSIGNAL) | CInt(MSG_DONTWAIT)
            let count = bytes[sent...].withUnsafeBytes { Glibc.send(fd, $0.baseAddress!, $0.count, flags) }
            if count >= 0 {
                sent += count
            } else if errno == EAGAIN {
                if !waits(for: POLLOUT, patience) { break }
            } else {
                throw SystemError(.send, errno)
            }
        }
        return sent
    }

    /// A client with unread answers: it has sent more than it has read, and the server's write waits.
    static func stalled(at address: SocketAddress) throws -> Client {
        let client = try Client(to: address, receiveBuffer: 4096)
        let chunk = randomBytes(1 << 20)
        while try client.send(chunk, patience: 300) == chunk.count {}
        return client
    }

    /// Reads the rest from the server; returns the code of the error that ends it, `nil` for an orderly end.
    func failureOfReading() -> CInt? {
        do { _ = try readToEnd() } catch { return (error as? SystemError)?.code }
        return nil
    }

    /// Waits for an event of poll(2); returns false if none came.
    func waits(for events: Int32, _ patience: CInt) -> Bool {
        var entry = pollfd(fd: fd, events: Int16(events), revents: 0)
        return poll(&entry, 1, patience) == 1
    }

    /// The available bytes; empty at the end.
    func receive(upTo limit: Int = 65536) throws -> [UInt8] {
        var failure: CInt = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: limit) { buffer, count in
            let result = recv(fd, buffer.baseAddress!, limit, 0)
            if result < 0 { failure = errno }
            count = max(result, 0)
        }
        guard failure == 0 else { throw SystemError(.receive, failure) }
        return bytes
    }

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

    /// True if one message is echoed.
    func echoes(_ text: String) throws -> Bool {
        try send(Array(text.utf8))
        return try receive(exactly: text.utf8.count) == Array(text.utf8)
    }

    /// Half-closes.
    func end() { shutdown(fd, CInt(SHUT_WR)) }

    /// Makes closing send a reset.
    func resetWhenClosed() { set(SOL_SOCKET, SO_LINGER, linger(l_onoff: 1, l_linger: 0)) }
}

/// Pseudorandom bytes, the same in each run.
func randomBytes(_ count: Int) -> [UInt8] {
    var state: UInt64 = 0x9E37_79B9_7F4A_7C15
    return (0..<count).map { _ in
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        return UInt8(truncatingIfNeeded: state)
    }
}

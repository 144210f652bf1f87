@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

extension Peer {
    /// Sends as much as the other side takes, waiting at most `patience` milliseconds each time, and returns the number
    /// of bytes.
    @discardableResult
    func send(_ bytes: [UInt8], patience: CInt) throws -> Int {
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
    static func stalled(at server: ServerProcess) throws -> Peer {
        let client = try Peer(to: server.address, receiveBuffer: 4096)
        let chunk = randomBytes(1 << 20)
        repeat { try client.send(chunk, patience: 300) } while !client.hasStalled(server)
        return client
    }

    /// True if the server has taken what it takes; on a busy machine it may just not have run.
    func hasStalled(_ server: ServerProcess) -> Bool { server.isAsleep && !waits(for: POLLOUT, 0) }

    /// Waits for an event of poll(2); returns false if none came.
    func waits(for events: Int32, _ patience: CInt) -> Bool {
        var entry = pollfd(fd: fd, events: Int16(events), revents: 0)
        return poll(&entry, 1, patience) == 1
    }

    /// Half-closes, and expects the end of the server's side.
    func leave(at place: SourceLocation = #_sourceLocation) throws {
        end()
        #expect(try receive() == [], sourceLocation: place)
    }

    /// True if one message is echoed.
    func echoes(_ text: String) throws -> Bool {
        try send(text)
        return try receive(exactly: text.utf8.count) == Array(text.utf8)
    }
}

/// Pseudorandom bytes, the same in each run.
func randomBytes(_ count: Int) -> [UInt8] {
    var random = SplitMix64(1)
    return (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) }
}

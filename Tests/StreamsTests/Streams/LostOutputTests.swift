@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// Written bytes are lost while the socket lives: its peer must see a reset, not an orderly end after a part of them.
struct LostOutputTests {
    @Test func theLoopEndsBeforeTheyAreSent() throws {
        var far: Peer?
        try withNetwork { net in
            let (connection, peer) = try net.pair()
            connection.writeQueueLimit = .max
            connection.write(pattern(8 << 20)).cauterize()
            far = peer
        }
        expectEqual(far?.failureOfReading(), ECONNRESET)
    }

    @Test(.pair, arguments: [true, false]) func aReadThatFailsLosesWhatIsQueued(isQueued: Bool) throws {
        connection.writeQueueLimit = .max
        let write = connection.write(isQueued ? pattern(8 << 20) : Array("all".utf8))
        let real = net.kernel.receive
        // It also takes the byte, with which the kernel would reset by itself.
        net.kernel.receive = { real($0, $1, $2) < 0 ? -Int(EAGAIN) : -Int(ENOMEM) }
        let read = connection.read()
        try peer.send("x")
        expectEqual(try hang(read, timeout: patience), failed(ENOMEM))
        expectEqual(code(write), isQueued ? ENOMEM : nil)
        connection.close()
        expectEqual(peer.failureOfReading(), isQueued ? ECONNRESET : nil)
    }

    @Test(.pair) func theKernelRefusesGatheredAnswers() throws {
        try hang(connection.write("begin\n"))
        let served = connection.forEachLine { _ -> Promise<Void> in
            net.kernel.send = { _, _, _ in -Int(ENOBUFS) }
            return connection.write("answer\n")
        }
        try peer.send("a\nb\n")
        expectEqual(try rejection(of: served), ENOBUFS)
        let closed = connection.closed
        connection.close()
        expectEqual(closed.settledValue, .failed(SystemError(.send, ENOBUFS)))
        expectEqual(peer.failureOfReading(), ECONNRESET)
    }

    @Test(.pair) func theKernelRefusesAWrite() throws {
        try hang(connection.write("begin\n"))
        hang(after(.zero))
        net.kernel.send = { _, _, _ in -Int(ENOBUFS) }
        expectEqual(code(connection.write("end\n")), ENOBUFS)
        connection.close()
        expectEqual(peer.failureOfReading(), ECONNRESET)
    }
}

@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// Readiness is level-triggered: if no call consumes it, the loop must not turn for it endlessly. In virtual time.
struct FutileReadinessTests {
    @Test(.network(.virtual), arguments: [EPERM, ENOSYS, ENOMEM, EAGAIN]) func receptionsThatAreAllRefusedPause(
        code trouble: CInt
    ) throws {
        let socket = try DatagramSocket.bind("127.0.0.1:0")
        let fd = try #require(net.ledger.open.max())
        var seen = 0
        let done = socket.forEachPacket { _, _ in seen += 1 }
        try hang(socket.send([1], to: socket.localAddress))
        awaitArrival(of: POLLIN, at: fd)
        let real = net.kernel.receiveMessages
        net.kernel.receiveMessages = { net.isSpinning(.receiveMessages) ? real($0, $1, $2) : -Int(trouble) }
        let lines = logged { net.settle(.milliseconds(520)) }
        expect(net.calls(.receiveMessages) >= 6 && net.calls(.receiveMessages) <= 256 + 6)
        expectEqual(lines.count, 1)
        expectEqual(lines.first?.contains("cannot watch a descriptor for now: recvmmsg"), true)
        expect(done.isPending)

        net.kernel.receiveMessages = real
        try net.loop.run(until: { seen == 1 })
        // Unchanged: the next one is received at once.
        let begin = net.loop.now
        try hang(socket.send([2], to: socket.localAddress))
        awaitArrival(of: POLLIN, at: fd)
        try net.loop.run(until: { seen == 2 })
        expectEqual(net.loop.now, begin)
    }

    /// Such as an error queue, which read(2) does not empty, or a lack of memory for the bytes (`net.ipv4.tcp_mem`).
    @Test(.pair(.virtual), arguments: [SystemCall.receive, .send])
    func aConnectionThatIsReadyForNothingPauses(call: SystemCall) throws {
        try peer.send("x")
        awaitArrival(of: POLLIN, at: try #require(net.ledger.accepted.first))
        let real = net.kernel
        net.kernel.receive = { net.isSpinning(.receive) ? real.receive($0, $1, $2) : -Int(EAGAIN) }
        net.kernel.send = { net.isSpinning(.send) ? real.send($0, $1, $2) : -Int(EAGAIN) }
        let exchange = call == .receive ? connection.receive().map { $0 } : connection.write("y").map { [0x78] }
        let lines = logged { net.settle(.milliseconds(520)) }
        expect(net.calls(call) >= 6 && net.calls(call) <= 256 + 7)
        expectEqual(lines.count, 1)
        net.kernel = real
        expectEqual(try hang(exchange), [0x78])
    }

    /// The report is made while a read receives in place.
    @Test(.pair(.virtual)) func theLogHandlerMayEndTheConnection() throws {
        try peer.send("x")
        awaitArrival(of: POLLIN, at: try #require(net.ledger.accepted.first))
        net.kernel.receive = { _, _, _ in -Int(EAGAIN) }
        let thread = pthread_self()
        // The handler is called by this thread.
        nonisolated(unsafe) let connection = connection
        let recorder = LogRecorder(where: { _ in pthread_equal(pthread_self(), thread) != 0 }) { _ in
            connection.abort()
        }
        defer { recorder.stop() }
        let read = connection.read(exactly: 10_000)
        net.settle(.milliseconds(520))
        expectEqual((read.error as? SystemError)?.code, ECANCELED)
        expectEqual(recorder.count, 1)
    }

    @Test(.pair(.virtual)) func aWriteWithoutReadinessDoesNotCount() throws {
        let budget = net.limitSends(to: 0)
        let value = SharedBytes(pattern(20_000))
        let lines = logged { for _ in 0..<300 { connection.write { $0.append(value) }.cancel() } }
        expectEqual(lines, [])
        budget.remaining = .max
        try hang(connection.write("x"))
        expectEqual(try peer.receive(), [0x78])
    }

    /// The pause belongs to the descriptor, and ends with it.
    @Test(.network(.virtual)) func theNextOwnerOfTheNumberDoesNotPause() throws {
        let socket = try DatagramSocket.bind("127.0.0.1:0")
        let fd = try #require(net.ledger.open.max())
        _ = socket.forEachPacket { _, _ in }
        try hang(socket.send([1], to: socket.localAddress))
        awaitArrival(of: POLLIN, at: fd)
        let real = net.kernel.receiveMessages
        net.kernel.receiveMessages = { net.isSpinning(.receiveMessages) ? real($0, $1, $2) : -Int(EPERM) }
        _ = logged { net.settle(.milliseconds(50)) }
        expectEqual(net.calls(.receiveMessages), 256)
        net.kernel.receiveMessages = real
        // Its number gets another file atomically, so that no other thread can take it.
        let (reader, writer) = try Connection.pipe()
        let copy = try reader.detach()
        net.ledger.disown(copy)
        net.kernel.close = { $0 == fd ? Int(dup2(copy, fd)) : Int(Glibc.close($0)) }
        socket.close()
        net.kernel.close = Syscalls().close
        close(copy)
        net.ledger.adopt(fd)
        let adopted = try Connection(adopting: fd)
        let begin = net.loop.now
        try hang(writer.write("x"))
        expectEqual(hang(adopted.read()), .bytes([0x78]))
        expectEqual(net.loop.now, begin)
    }
}

extension Network {
    /// A loop that spins fails its test instead of blocking it.
    fileprivate func isSpinning(_ call: SystemCall) -> Bool { calls(call) > 10_000 }
}

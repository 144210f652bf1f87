@testable import PromisesTestSupport

/// Readiness is level-triggered: if no call consumes it, the loop must not turn for it endlessly. In virtual time.
struct FutileReadinessTests {
    @Test(arguments: [EPERM, ENOSYS, ENOMEM, EAGAIN]) func receptionsThatAreAllRefusedPause(code trouble: CInt) throws {
        try withNetwork(clock: VirtualClock()) { net in
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
            socket.close()
        }
    }

    /// Such as an error queue, which makes a socket ready and which read(2) does not empty.
    @Test func aConnectionThatIsReadyForNothingPauses() throws {
        try withPair(clock: VirtualClock()) { net, connection, peer in
            try peer.send("x")
            awaitArrival(of: POLLIN, at: try #require(net.ledger.accepted.first))
            let real = net.kernel.receive
            net.kernel.receive = { net.isSpinning(.receive) ? real($0, $1, $2) : -Int(EAGAIN) }
            let read = connection.read()
            let lines = logged { net.settle(.milliseconds(520)) }
            expect(net.calls(.receive) >= 6 && net.calls(.receive) <= 256 + 6)
            expectEqual(lines.count, 1)
            net.kernel.receive = real
            expectEqual(hang(read), .bytes([0x78]))
        }
    }

    /// Such as a socket with room, for which the system has no memory (`net.ipv4.tcp_mem`).
    @Test func aConnectionThatIsWritableAndTakesNothingPauses() throws {
        try withPair(clock: VirtualClock()) { net, connection, peer in
            let real = net.kernel.send
            net.kernel.send = { net.isSpinning(.send) ? real($0, $1, $2) : -Int(EAGAIN) }
            let write = connection.write("x")
            let lines = logged { net.settle(.milliseconds(520)) }
            expect(net.calls(.send) >= 6 && net.calls(.send) <= 256 + 7)
            expectEqual(lines.count, 1)
            net.kernel.send = real
            try hang(write)
            expectEqual(try peer.receive(), [0x78])
        }
    }

    /// The pause belongs to the descriptor, and ends with it.
    @Test func theNextOwnerOfTheNumberDoesNotPause() throws {
        try withNetwork(clock: VirtualClock()) { net in
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
            adopted.close()
            writer.close()
        }
    }
}

extension Network {
    /// A loop that spins fails its test instead of blocking it.
    fileprivate func isSpinning(_ call: SystemCall) -> Bool { calls(call) > 10_000 }
}

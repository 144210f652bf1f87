@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

struct DetachTests {
    private func refusal(_ connection: Connection) -> CInt? {
        do {
            _ = try connection.detach()
            return nil
        } catch { return error.code }
    }

    @Test(.pair) func itsDescriptorGoesOnAsAnotherConnection() throws {
        connection.idleTimeout = .milliseconds(1)
        try peer.send("first")
        expectEqual(try hang(connection.read(), timeout: patience), .bytes(Array("first".utf8)))
        try peer.send("second")
        let descriptor = try connection.detach()
        expectEqual(refusal(connection), EBADF)
        connection.close()
        connection.abort()
        net.settle()
        let heir = try Connection(adopting: descriptor)
        expectEqual(heir.peerAddress, connection.peerAddress)
        expectEqual(try hang(heir.receive(), timeout: patience), Array("second".utf8))
        try hang(heir.write("back"), timeout: patience)
        expectEqual(try peer.receive(exactly: 4), Array("back".utf8))
    }

    @Test(.pair) func itLivesOnAnotherLoop() throws {
        // It was registered with this loop's epoll.
        let read = connection.read()
        try net.loop.turn(.poll)
        read.cancel()
        let descriptor = try connection.detach()
        net.ledger.disown(descriptor)
        try EventLoop.withLoop { _ in
            let heir = try Connection(adopting: descriptor)
            try peer.send("over there")
            expectEqual(try hang(heir.receive(), timeout: patience), Array("over there".utf8))
            heir.abort()
        }
        expect(!net.loop.isAlive)
    }

    @Test(.listener) func aServedOneThatIsGivenAwayLeavesItsPlace() throws {
        var descriptors: [CInt] = []
        let served = listener.serve(ServeOptions(maxConnections: 1)) { connection in
            descriptors.append(try connection.detach())
            return Promise<Void>.value
        }
        let clients = [try Peer(to: listener.localAddress), try Peer(to: listener.localAddress)]
        try net.loop.run(until: { descriptors.count == 2 })
        try listener.end(served)
        for (descriptor, client) in zip(descriptors, clients) {
            let heir = try Connection(adopting: descriptor)
            try hang(heir.write("x"), timeout: patience)
            expectEqual(try client.receive(exactly: 1), [0x78])
            heir.abort()
        }
    }

    @Test(.network) func whatIsUnderWayIsRefusedAndGoesOn() throws {
        let (one, other) = try Connection.pair()
        let line = one.readLine()
        expectEqual(refusal(one), EBUSY)
        try hang(other.write("line\nrest"), timeout: patience)
        expectEqual(try hang(line, timeout: patience), "line")
        expectEqual(refusal(one), EBUSY)
        expectEqual(try hang(one.receive(), timeout: patience), Array("rest".utf8))
        let write = one.write(pattern(3_000_000))
        expectEqual(refusal(one), EBUSY)
        expectEqual(try hang(other.read(exactly: 3_000_000), timeout: patience).count, 3_000_000)
        try hang(write, timeout: patience)
        let chunks = one.forEachChunk { _ in }
        expectEqual(refusal(one), EBUSY)
        chunks.cancel()
        net.settle()
        other.abort()
        one.close()
        expectEqual(refusal(one), EBADF)
    }

    @Test(.pair) func oneThatHasFailedSaysWhy() throws {
        peer.reset()
        expectEqual(try hang(connection.read(), timeout: patience), failed(ECONNRESET))
        expectEqual(refusal(connection), ECONNRESET)
    }
}

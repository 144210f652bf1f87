import Glibc
import Promises
import Reactor
import Testing

@testable import PromisesTestSupport

/// Descriptors that are given away.
@Suite struct DetachTests {
    private func refusal(_ connection: Connection) -> CInt? {
        do {
            _ = try connection.detach()
            return nil
        } catch { return error.code }
    }

    @Test func itsDescriptorGoesOnAsAnotherConnection() throws {
        try withNetwork { net in
            let (connection, peer) = try net.pair()
            connection.idleTimeout = .milliseconds(1)
            try peer.send("first")
            #expect(try hang(connection.read(), timeout: patience) == .bytes(Array("first".utf8)))
            try peer.send("second")
            let descriptor = try connection.detach()
            #expect(connection.isClosed && connection.localAddress == nil)
            #expect(refusal(connection) == EBADF)
            #expect(connection.read().settledValue == failed(EBADF))
            #expect(hang(connection.close()) == ())
            connection.abort()
            net.settle()
            let heir = try Connection(adopting: descriptor)
            #expect(heir.peerAddress == connection.peerAddress)
            #expect(try hang(heir.receive(), timeout: patience) == Array("second".utf8))
            try hang(heir.write("back"), timeout: patience)
            #expect(try peer.receive(exactly: 4) == Array("back".utf8))
            heir.abort()
        }
    }

    @Test func itLivesOnAnotherLoop() throws {
        try withNetwork { net in
            let (connection, peer) = try net.pair()
            // It was registered with this loop's epoll.
            let read = connection.read()
            try net.loop.turn(.poll)
            read.cancel()
            let descriptor = try connection.detach()
            net.ledger.disown(descriptor)
            try EventLoop.withLoop { _ in
                let heir = try Connection(adopting: descriptor)
                try peer.send("over there")
                #expect(try hang(heir.receive(), timeout: patience) == Array("over there".utf8))
                heir.abort()
            }
            #expect(!net.loop.isAlive)
        }
    }

    @Test func aServedOneThatIsGivenAwayLeavesItsPlace() throws {
        try withNetwork { net in
            let listener = try net.listen()
            var descriptors: [CInt] = []
            let served = listener.serve(ServeOptions(maxConnections: 1)) { connection in
                descriptors.append(try connection.detach())
                return Promise<Void>.value
            }
            let clients = [try Peer(to: listener.localAddress), try Peer(to: listener.localAddress)]
            try net.loop.run(until: { descriptors.count == 2 })
            listener.close()
            try hang(served, timeout: patience)
            for (descriptor, client) in zip(descriptors, clients) {
                let heir = try Connection(adopting: descriptor)
                try hang(heir.write("x"), timeout: patience)
                #expect(try client.receive(exactly: 1) == [0x78])
                heir.abort()
            }
        }
    }

    @Test func whatIsUnderWayIsRefusedAndGoesOn() throws {
        try withNetwork { net in
            let (one, other) = try Connection.pair()
            let line = one.readLine()
            #expect(refusal(one) == EBUSY)
            try hang(other.write("line\nrest"), timeout: patience)
            #expect(try hang(line, timeout: patience) == "line")
            // "rest" has been read.
            #expect(refusal(one) == EBUSY)
            #expect(try hang(one.receive(), timeout: patience) == Array("rest".utf8))
            let write = one.write(pattern(3_000_000))
            #expect(refusal(one) == EBUSY)
            #expect(try hang(other.read(exactly: 3_000_000), timeout: patience).count == 3_000_000)
            try hang(write, timeout: patience)
            let chunks = one.forEachChunk { _ in }
            #expect(refusal(one) == EBUSY)
            chunks.cancel()
            net.settle()
            other.abort()
            one.close()
            #expect(refusal(one) == EBADF)
        }
    }

    @Test func oneThatHasFailedSaysWhy() throws {
        try withNetwork { net in
            let (connection, peer) = try net.pair()
            peer.reset()
            #expect(try hang(connection.read(), timeout: patience) == failed(ECONNRESET))
            #expect(refusal(connection) == ECONNRESET)
            connection.close()
        }
    }
}

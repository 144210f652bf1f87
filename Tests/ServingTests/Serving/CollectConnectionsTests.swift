@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

struct CollectConnectionsTests {
    private func converse(with listener: Listener, _ done: Promise<DrainResult>) throws {
        let clients = try (0..<5).map { _ in try Peer(to: listener.localAddress) }
        for (number, client) in clients.enumerated() {
            let answer = elsewhere {
                try client.send([UInt8](repeating: 0, count: number + 1))
                return try client.receive(exactly: number + 1).count
            }
            expectEqual(try hang(answer, timeout: patience), number + 1)
        }
        let counts = hang(listener.collect { [$0.bytesReceived, $0.bytesSent] }).sorted { $0[0] < $1[0] }
        expectEqual(counts, (1...5).map { [$0, $0] })
        expectEqual(hang(listener.collect { $0.peerAddress?.isUnix }).count, 5)
        hang(listener.collect { if $0.bytesReceived > 2 { $0.abort() } })
        for client in clients[2...] { expect(client.failureOfReading() == ECONNRESET) }
        for client in clients[..<2] { client.close() }
        listener.close()
        try hang(done, timeout: patience)
        expectEqual(hang(listener.collect { $0.bytesReceived }), [])
    }

    @Test(.listener(turns: 4000)) func onItsLoop() throws {
        expectEqual(hang(listener.collect { $0.bytesReceived }), [])
        try converse(with: listener, listener.serve { echo($0) })
    }

    @Test(.group(2)) func onAGroup() throws {
        try converse(with: listener, listener.serve(on: loops) { echo($0) })
    }

    @Test(.group(1)) func onAGroupThatHasEnded() throws {
        let done = listener.serve(on: loops) { echo($0) }
        _ = try welcome(to: listener)
        let collected = listener.collect { $0.bytesReceived }
        loops.stop()
        loops.join()
        expect(hang(collected) == [] || hang(collected) == [1])
        expectEqual(hang(listener.collect { $0.bytesReceived }), [])
        expectEqual(try rejection(of: done), ECANCELED)
    }
}

@testable import PromisesTestSupport

struct StopReadingTests {
    enum Way: CaseIterable { case thrown, rejected, rejectedLater, thrownWithoutPromises }

    private func stop(_ way: Way) throws -> Promise<Void> {
        switch way {
        case .rejected: return Promise(error: StopReading())
        case .rejectedLater: return after(.milliseconds(10)).done { throw StopReading() }
        case .thrown, .thrownWithoutPromises: throw StopReading()
        }
    }

    private func lines(_ connection: Connection, _ way: Way, _ handle: @escaping (String) -> Void) -> Promise<Void> {
        if way == .thrownWithoutPromises {
            return connection.forEachLine { line in
                if line == "stop" { throw StopReading() }
                handle(line)
            }
        }
        return connection.forEachLine { line -> Promise<Void> in
            guard line == "stop" else {
                handle(line)
                return .value
            }
            return try stop(way)
        }
    }

    @Test(.network(.virtual), arguments: Way.allCases) func whatFollowsIsLeftToTheNextRead(way: Way) throws {
        let (a, b) = try Connection.pair()
        var seen: [String] = []
        let all = lines(a, way) { seen.append($0) }
        try hang(b.write("one\ntwo\nstop\nthree\nfour"), timeout: patience)
        try hang(all, timeout: patience)
        expectEqual(seen, ["one", "two"])
        expectEqual(try hang(a.readLine(), timeout: patience), "three")
        expectEqual(try hang(a.read(), timeout: patience), .bytes(Array("four".utf8)))
    }

    @Test(.listener) func anAnswerLeavesBeforeTheEnd() throws {
        let served = listener.serve { connection in
            connection.forEachLine { line in
                let written = connection.write("\(line)\n")
                return line == "quit" ? written.done { throw StopReading() } : written
            }
        }
        let client = try Peer(to: listener.localAddress, sending: "a\nquit\nb\n")
        client.end()
        try net.loop.run(until: { listener.activeConnections == 0 && net.calls(.send) > 0 })
        expectEqual(try client.readToEnd(), Array("a\nquit\n".utf8))
        try listener.end(served)
    }

    @Test(.network(.virtual), arguments: Way.allCases) func chunks(way: Way) throws {
        let (a, b) = try Connection.pair()
        var count = 0
        let all: Promise<Void>
        if way == .thrownWithoutPromises {
            all = a.forEachChunk { chunk in
                count += chunk.byteCount
                if count == 4 { throw StopReading() }
            }
        } else {
            all = a.forEachChunk { chunk -> Promise<Void> in
                count += chunk.byteCount
                if count < 4 { return .value }
                return try stop(way)
            }
        }
        for _ in 0..<2 {
            try hang(b.write("ab"), timeout: patience)
            try net.loop.turn(.poll)
        }
        try hang(all, timeout: patience)
        expectEqual(count, 4)
        try hang(b.write("rest"), timeout: patience)
        expectEqual(try hang(a.read(), timeout: patience), .bytes(Array("rest".utf8)))
    }

    /// The body throws it in the call that cancelled the loop.
    @Test(.network) func itDoesNotReplaceACancellation() throws {
        let (a, b) = try Connection.pair()
        var all: Promise<Void>?
        all = a.forEachLine { _ in
            all?.cancel()
            throw StopReading()
        }
        try hang(b.write("x\n"), timeout: patience)
        #expect(throws: PromiseError.cancelled) { try hang(all!, timeout: patience) }
        all = nil
    }
}

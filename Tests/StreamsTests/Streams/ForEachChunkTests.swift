@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

struct ForEachChunkTests {
    private func text(_ chunk: RawSpan) -> String { chunk.withUnsafeBytes { String(decoding: $0, as: UTF8.self) } }

    @Test(.network(turns: 2000)) func whatACancelledReadHasLeftComesInChunksOfTheUsualSize() throws {
        let (a, b) = try Connection.pair()
        let read = a.read(exactly: 1_000_000)
        try hang(b.write(pattern(300_000)), timeout: patience)
        net.settle()
        read.cancel()
        b.shutdownWrite().cauterize()
        var sizes: [Int] = []
        var (jobs, most) = (0, 0)
        let all = a.forEachChunk { (chunk: RawSpan) -> Void in
            sizes.append(chunk.byteCount)
            jobs += 1
            most = max(most, jobs)
            net.loop.enqueue { jobs -= 1 }
        }
        try hang(all, timeout: patience)
        expect(sizes.reduce(0, +) == 300_000 && sizes.max()! <= 65536)
        expectEqual(most, 1, "each has a job of its own, so that the stack does not grow")
    }

    /// A loop whose input has already arrived begins in a job, as a handler of a settled promise.
    @Test(.network) func theFirstCallIsAHandlersJob() throws {
        let (a, b) = try Connection.pair()
        try hang(b.write("1\n2\n").then { a.readLine() }, timeout: patience)
        let waiting = net.loop.metrics.waitingHandlers
        let order = Shared<[String]>([])
        TestThread.run { [remote = net.loop.remote] in remote.submit { order.change { $0.append("a job before") } } }
        let all = a.forEachChunk { _ -> Void in
            order.change { $0.append("a chunk") }
            throw StopReading()
        }
        expectEqual(net.loop.metrics.waitingHandlers, waiting + 1)
        try hang(all, timeout: patience)
        expect(net.loop.metrics.waitingHandlers == waiting && order.value == ["a job before", "a chunk"])
    }

    @Test(.network) func aPendingPromisePausesReading() throws {
        let (a, b) = try Connection.pair()
        var seen: [String] = []
        let (gate, resolver) = Promise<Void>.pending()
        let all = a.forEachChunk { chunk -> Promise<Void> in
            seen.append(text(chunk))
            return seen.count == 1 ? gate : .value
        }
        try hang(b.write("one"), timeout: patience)
        try net.loop.run(until: { seen.count == 1 })
        try hang(b.write("two"), timeout: patience)
        b.abort()
        let calls = net.calls(.receive)
        // Not even the peer's end keeps it busy.
        expect(net.turns { net.settle() } <= 5)
        expect(net.calls(.receive) == calls && seen == ["one"])
        expectEqual(a.read().settledValue, failed(EBUSY))
        resolver.fulfill()
        try hang(all, timeout: patience)
        expectEqual(seen, ["one", "two"])
    }

    @Test(.network) func whatTheBodyThrowsOrReturnsEndsIt() throws {
        let (a, b) = try Connection.pair()
        let thrown = a.forEachChunk { _ in throw Flaw() }
        try hang(b.write("x"), timeout: patience)
        expect(thrown, failsWith: Flaw())
        let returned = a.forEachChunk { _ in Promise<Void>(error: Flaw()) }
        try hang(b.write("x"), timeout: patience)
        expect(returned, failsWith: Flaw())
        let later = a.forEachChunk { _ in after(.milliseconds(1)).then { Promise<Void>(error: Flaw()) } }
        try hang(b.write("x"), timeout: patience)
        expect(later, failsWith: Flaw())
        try hang(b.write("y"), timeout: patience)
        expectEqual(try hang(a.receive(), timeout: patience), [0x79])
    }

    /// The promise of the read has the only reference to the connection, and releases it in a call of the connection.
    @Test(.network) func aConnectionThatOnlyTheReadRetainsFailsWhenItCannotBeRegistered() throws {
        var (connection, peer): (Connection?, Peer) = try net.pair()
        defer { peer.close() }
        let end = try #require(connection?.closed)
        let (work, resolver) = Promise<Void>.pending()
        var calls = 0
        let reading = try #require(connection).forEachChunk { _ in
            calls += 1
            return work
        }
        connection = nil
        try peer.send("x")
        try net.loop.run(until: { calls == 1 })
        // Input that nothing waits for ends the registration, so that the next wait needs another one.
        try peer.send("y")
        for _ in 0..<3 { try net.loop.turn(.poll) }
        net.kernel.epollControl = { _, _, _, _ in -Int(EPERM) }
        resolver.fulfill()
        expectEqual(try rejection(of: reading), EPERM)
        guard case .failed(let error)? = end.settledValue else { return expect(Bool(false), "\(end)") }
        expectEqual(error.code, EPERM)
    }

    @Test(.network) func cancelledItLeavesTheRestToOthers() throws {
        let (a, b) = try Connection.pair()
        // Before it has begun, while it waits for input, and while it waits for the body's promise.
        a.forEachChunk { _ in Issue.record("it was cancelled") }.cancel()
        let reading = a.forEachChunk { _ in Issue.record("it was cancelled") }
        try net.loop.turn(.poll)
        reading.cancel()
        expect(!net.loop.isAlive)
        let (work, resolver) = Promise<Void>.pending()
        let paused = a.forEachChunk { _ in work }
        try hang(b.write("x"), timeout: patience)
        try net.loop.run(until: { a.bytesReceived == 1 })
        paused.cancel()
        expect(work.error as? PromiseError == .cancelled)
        resolver.fulfill()
        var inside: Promise<Void>?
        inside = a.forEachChunk { _ in inside?.cancel() }
        try hang(b.write("y"), timeout: patience)
        expect(inside!, failsWith: PromiseError.cancelled)
        try hang(b.write("z"), timeout: patience)
        expectEqual(try hang(a.receive(), timeout: patience), [0x7A])
        expect(!net.loop.isAlive)
    }

    @Test(.pair) func aChunkStaysAsItIsWhateverItsBodyDoes() throws {
        let a = connection
        let (c, d) = try Connection.pair()
        var seen: [String] = []
        let all = a.forEachChunk { chunk in
            // Other connections read meanwhile, as does the connection itself, without a reader.
            d.write("elsewhere").cauterize()
            expectEqual(try hang(c.receive(), timeout: patience), Array("elsewhere".utf8))
            try net.deliver("unread", from: peer)
            a.close()
            seen.append(text(chunk))
        }
        try peer.send("chunk")
        expectEqual(try rejection(of: all), ECANCELED)
        expectEqual(seen, ["chunk"])
    }

    @Test(.network(turns: 4000), arguments: [false, true]) func aPipeForwardsAllAsFastAsItsSinkTakesIt(endsSink: Bool)
        throws
    {
        let (client, near) = try Connection.pair()
        let (reader, writer) = try Connection.pipe()
        let bytes = pattern(4_000_000)
        let moved = pipe(from: near, to: writer, endingSink: endsSink)
        let write = client.write(bytes)
        net.settle()
        expect(write.isPending && writer.queuedBytes <= 65536)
        let calls = net.calls(.receive)
        net.settle()
        expectEqual(net.calls(.receive), calls)
        client.shutdownWrite().cauterize()
        expectEqual(try hang(reader.read(exactly: bytes.count), timeout: patience), bytes)
        expectEqual(try hang(moved, timeout: patience), bytes.count)
        expect(!near.isClosed && !writer.isClosed)
        if endsSink {
            expectEqual(try hang(reader.read(), timeout: patience), .end)
        } else {
            try hang(writer.write("x"), timeout: patience)
        }
    }
}

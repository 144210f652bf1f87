@testable import PromisesTestSupport

struct ForEachChunkTests {
    private struct Enough: Error, Equatable {}

    private func text(_ chunk: RawSpan) -> String { chunk.withUnsafeBytes { String(decoding: $0, as: UTF8.self) } }

    @Test func whatACancelledReadHasLeftComesInChunksOfTheUsualSize() throws {
        try withConnections(turns: 2000) { net, a, b in
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
    }

    @Test func aPendingPromisePausesReading() throws {
        try withConnections { net, a, b in
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
    }

    @Test func theValuesOfTheBodysPromisesDoNotMatter() throws {
        try withConnections { net, a, b in
            let (pending, resolver) = Promise<[String]>.pending()
            var seen: [String] = []
            let all = a.forEachChunk { chunk -> Promise<[String]> in
                seen.append(text(chunk))
                return seen.count == 2 ? pending : .value(seen)
            }
            for word in ["one", "two", "three"] {
                try hang(b.write(word), timeout: patience)
                net.settle()
            }
            expectEqual(seen, ["one", "two"])
            resolver.fulfill(["done"])
            b.close()
            try hang(all, timeout: patience)
            expectEqual(seen, ["one", "two", "three"])
            expectEqual(pending.settledValue, ["done"])
        }
    }

    @Test func whatTheBodyThrowsOrReturnsEndsIt() throws {
        try withConnections { _, a, b in
            let thrown = a.forEachChunk { _ in throw Enough() }
            try hang(b.write("x"), timeout: patience)
            expect(thrown, failsWith: Enough())
            let returned = a.forEachChunk { _ in Promise<Void>(error: Enough()) }
            try hang(b.write("x"), timeout: patience)
            expect(returned, failsWith: Enough())
            let later = a.forEachChunk { _ in after(.milliseconds(1)).then { Promise<Void>(error: Enough()) } }
            try hang(b.write("x"), timeout: patience)
            expect(later, failsWith: Enough())
            try hang(b.write("y"), timeout: patience)
            expectEqual(try hang(a.receive(), timeout: patience), [0x79])
        }
    }

    /// The promise of the read has the only reference to the connection, and releases it in a call of the connection.
    @Test func aConnectionThatOnlyTheReadRetainsFailsWhenItCannotBeRegistered() throws {
        try withNetwork { net in
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
    }

    @Test func cancelledItLeavesTheRestToOthers() throws {
        try withConnections { net, a, b in
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
    }

    @Test func returnedByAHandlerItIsCancelledWithThatChain() throws {
        try withConnections { net, a, b in
            // Both while it waits for input and while it waits for the body's promise.
            for isPaused in [false, true] {
                let (work, resolver) = Promise<Void>.pending()
                let chain = after(.zero).then {
                    after(.zero).then { a.forEachChunk { _ in isPaused ? work : .value } }.map { "done" }
                }
                let before = a.bytesReceived
                try hang(b.write("x"), timeout: patience)
                try net.loop.run(until: { a.bytesReceived > before })
                try net.loop.turn(.poll)
                expect(chain.isPending)
                chain.cancel()
                try net.loop.run()
                expectEqual(work.isRejected, isPaused)
                resolver.fulfill()
                try hang(b.write("y"), timeout: patience)
                expectEqual(try hang(a.receive(), timeout: patience), [0x79])
            }
        }
    }

    @Test func aChunkStaysAsItIsWhateverItsBodyDoes() throws {
        try withPair { net, a, peer in
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
    }

    @Test func aResetRejectsIt() throws {
        try withPair { net, a, peer in
            let all = a.forEachChunk { _ in }
            try peer.send("x")
            net.settle(.milliseconds(1))
            peer.reset()
            expectEqual(try rejection(of: all), ECONNRESET)
        }
    }

    @Test func theEndOfTheLoopReleasesIt() throws {
        for isPaused in [false, true] {
            weak var witness: Connection?
            var outcome: Promise<Void>?
            try withNetwork { net in
                let (a, b) = try Connection.pair()
                witness = a
                outcome = a.forEachChunk { _ -> Promise<Void> in
                    _ = a
                    return isPaused ? after(.seconds(3600)).asPromise() : .value
                }
                try hang(b.write("x"), timeout: patience)
                try net.loop.run(until: { a.bytesReceived == 1 })
                outcome?.catch(policy: .allErrors) { _ in }
            }
            let isGone = witness == nil
            expect(isGone, "paused: \(isPaused)")
            expectEqual(outcome?.isRejected, true, "paused: \(isPaused)")
        }
    }
}

@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

struct CorkTests {
    @Test(.network) func aThousandSmallWritesInOneHandlerAreTwoCalls() throws {
        net.ledger.sendsPiecesSingly = false
        let (connection, peer) = try net.pair()
        var order: [Int] = []
        let all = after(.zero).then { () -> Promise<Void> in
            let writes = (0..<1000).map { connection.write(pattern(8, from: $0 * 8)) }
            for (index, write) in writes.enumerated() { write.done { order.append(index) }.cauterize() }
            return when(fulfilled: writes)
        }
        try hang(all, timeout: patience)
        expect(net.calls(.send) + net.calls(.sendVector) <= 2)
        expect(net.calls(.epollControl) <= 4)
        // More handlers than a turn's budget of jobs.
        try net.loop.run(until: { order.count == 1000 })
        expectEqual(order, Array(0..<1000))
        expectEqual(try peer.receive(exactly: 8000), pattern(8000))
    }

    @Test(.network) func whatIsHeldBackGoesWhenAHandlerWaitsForIt() throws {
        let (a, b) = try Connection.pair()
        let (c, d) = try Connection.pair()
        var order: [String] = []
        let done = [a, c].map { connection in
            connection.read().asPromise().done { _ in
                connection.write("1").cauterize()
                try hang(connection.write("2"), timeout: patience)
                order.append("sent")
            }
        }
        for peer in [b, d] { try hang(peer.write("x"), timeout: patience) }
        try hang(when(fulfilled: done), timeout: patience)
        expectEqual(order, ["sent", "sent"])
        for peer in [b, d] { expectEqual(try hang(peer.read(exactly: 2), timeout: patience), Array("12".utf8)) }
    }

    @Test func whatWaitsForTheJobsOfATurnIsNotLost() throws {
        try withConnections { _, a, b in
            try hang(a.write("1"), timeout: patience)
            a.write("2").cauterize()
            a.write("3").cauterize()
            let ended = a.shutdownWrite()
            expect(ended.isPending)
            expectEqual(try hang(readToEnd(b), timeout: patience), Array("123".utf8))
            expect(ended.isFulfilled)
        }
        try withConnections { _, a, b in
            a.write("1").cauterize()
            let second = a.write("2")
            let closed = a.close()
            let all = readToEnd(b)
            expectEqual(try hang(all, timeout: patience), Array("12".utf8))
            b.close()
            try hang(closed, timeout: patience)
            expect(second.isFulfilled)
        }
    }

    @Test(.network(turns: 4000), arguments: [false, true]) func moreBuffersThanOneCallTakes(throughPipe: Bool) throws {
        net.ledger.sendsPiecesSingly = false
        var most = 0
        let real = net.kernel
        net.kernel.sendVector = {
            most = max(most, $2)
            return real.sendVector($0, $1, $2)
        }
        net.kernel.writeVector = {
            most = max(most, $2)
            return real.writeVector($0, $1, $2)
        }
        let (reader, writer) = try throughPipe ? Connection.pipe() : Connection.pair()
        let buffers = (0..<2000).map { pattern(16_385, from: $0 * 16_385) }
        let write = writer.write(buffers)
        let read = reader.read(exactly: 2000 * 16_385)
        expectEqual(try hang(read, timeout: patience), pattern(2000 * 16_385))
        try hang(write, timeout: patience)
        expect(most > 1 && most <= 1024)
    }

    @Test(.network) func takingManyBackIsLinear() throws {
        let real = net.kernel
        try expectProportional(scaled(250_000)) { count in
            let (a, b) = try Connection.pair()
            a.writeQueueLimit = .max
            net.kernel.send = { _, _, _ in -Int(EAGAIN) }
            let writes = (0..<count).map { a.write([UInt8(truncatingIfNeeded: $0)]) }
            // Neither from the front nor from the back, and every hundredth stays.
            for index in 0..<count {
                let place = index * 7919 % count
                if place % 100 != 0 { writes[place].cancel() }
            }
            let kept = stride(from: 0, to: count, by: 100).map { UInt8(truncatingIfNeeded: $0) }
            expectEqual(a.queuedBytes, kept.count)
            net.kernel = real
            expectEqual(try hang(b.read(exactly: kept.count), timeout: patience), kept)
            expect(!writes.contains(where: \.isPending))
        }
    }
}

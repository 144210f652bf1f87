@testable import PromisesTestSupport

/// Writes whose bytes a closure appends.
struct WriteInPlaceTests {
    @Test(arguments: [0, 1, 1000, 16_384, 16_385, 300_000]) func anyNumberOfBytes(count: Int) throws {
        try withConnections(turns: 2000) { _, a, b in
            let written = a.write { $0.append(pattern(count)) }
            let next = a.write { $0.append("end") }
            let read = b.read(exactly: count + 3)
            expectEqual(try hang(read, timeout: patience), pattern(count) + Array("end".utf8))
            try hang(when(fulfilled: [written, next]), timeout: patience)
        }
    }

    @Test func aBodyThatThrowsWritesNothing() throws {
        try withConnections { _, a, b in
            for _ in 0..<3 {
                #expect(throws: Flaw(1)) {
                    try a.write { output in
                        output.append("lost")
                        throw Flaw(1)
                    }
                }
            }
            a.write { $0.append("kept") }.cauterize()
            expectEqual(try hang(b.receive(), timeout: patience), Array("kept".utf8))
        }
    }

    @Test func writesInsideOfTheBodyPrecedeIt() throws {
        try withConnections { _, a, b in
            let outer = a.write { output in
                output.append("3")
                a.write { inner in
                    inner.append("2")
                    a.write("1").cauterize()
                }.cauterize()
                output.append("4")
            }
            try hang(outer, timeout: patience)
            expectEqual(try hang(b.read(exactly: 4), timeout: patience), Array("1234".utf8))
        }
    }

    /// Actions of a body on its connection.
    enum Deed: CaseIterable { case close, abort, shutDown, hang, replace }

    @Test(arguments: Deed.allCases) func whateverTheBodyDoes(deed: Deed) throws {
        try withConnections { _, a, b in
            let written = try a.write { output in
                output.append("first ")
                switch deed {
                case .close: a.close()
                case .abort: a.abort()
                case .shutDown: a.shutdownWrite().cauterize()
                case .hang: try hang(after(.milliseconds(1)), timeout: patience)
                case .replace: output = ByteWriter(reserving: 100_000)
                }
                output.append("last")
            }
            switch deed {
            case .close, .abort: expectEqual(try rejection(of: written), EBADF)
            case .shutDown: expectEqual(try rejection(of: written), EPIPE)
            case .hang:
                try hang(written, timeout: patience)
                expectEqual(try hang(b.receive(), timeout: patience), Array("first last".utf8))
            case .replace:
                try hang(written, timeout: patience)
                expectEqual(try hang(b.receive(), timeout: patience), Array("last".utf8))
            }
        }
    }

    /// A copy of the writer's bytes is not changed by later writes.
    @Test func bytesThatAreTakenOutStay() throws {
        try withConnections { _, a, b in
            var taken: [[UInt8]] = []
            for number in 0..<3 {
                a.write { output in
                    output.append("number \(number)")
                    taken.append(output.bytes)
                }.cauterize()
            }
            expectEqual(taken, (0..<3).map { Array("number \($0)".utf8) })
            expectEqual(try hang(b.read(exactly: 24), timeout: patience), taken.flatMap { $0 })
        }
    }

    @Test func theLimitOfTheQueueHolds() throws {
        try withConnections { _, a, _ in
            a.writeQueueLimit = 100_000
            var refused: Promise<Void>?
            for _ in 0..<10_000 where refused == nil {
                let written = a.write { $0.append(pattern(10_000)) }
                if written.isRejected { refused = written } else { written.ignoringErrors() }
            }
            let promise = try #require(refused)
            expectEqual(try rejection(of: promise), ENOBUFS)
            expect(a.queuedBytes <= 110_000)
        }
    }

    @Test func answersToRequestsThatCameTogetherLeaveTogether() throws {
        try withNetwork(clock: VirtualClock()) { net in
            net.ledger.sendsPiecesSingly = false
            let (connection, peer) = try net.pair()
            let served = connection.forEachFrame(LineDecoder()) { line, bytes in
                connection.write { output in
                    output.append(line)
                    output.append(bytes.rest())
                }
            }
            try net.deliver("a\nb\nc\nd\n", from: peer)
            try net.loop.run(until: { connection.bytesSent == 12 })
            expectEqual(net.calls(.send), 1)
            expectEqual(try peer.receive(exactly: 12), Array("aa\nbb\ncc\ndd\n".utf8))
            peer.end()
            try hang(served, timeout: patience)
        }
    }
}

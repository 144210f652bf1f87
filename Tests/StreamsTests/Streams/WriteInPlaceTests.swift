@testable import PromisesTestSupport

struct WriteInPlaceTests {
    @Test(.network(turns: 2000), arguments: [0, 1, 1000, 16_384, 16_385, 300_000]) func anyNumberOfBytes(count: Int)
        throws
    {
        let (a, b) = try Connection.pair()
        let written = a.write { $0.append(pattern(count)) }
        let next = a.write { $0.append(Array("end".utf8).span.bytes) }
        let read = b.read(exactly: count + 3)
        expectEqual(try hang(read, timeout: patience), pattern(count) + Array("end".utf8))
        try hang(when(fulfilled: [written, next]), timeout: patience)
    }

    @Test(.network) func aBodyThatThrowsWritesNothing() throws {
        let (a, b) = try Connection.pair()
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

    @Test(.network) func writesInsideOfTheBodyPrecedeIt() throws {
        let (a, b) = try Connection.pair()
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

    enum Deed: CaseIterable { case close, abort, shutDown, hang, replace }

    @Test(.network, arguments: Deed.allCases) func whateverTheBodyDoes(deed: Deed) throws {
        let (a, b) = try Connection.pair()
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

    /// A copy of the writer's bytes is not changed by later writes.
    @Test(.network) func bytesThatAreTakenOutStay() throws {
        let (a, b) = try Connection.pair()
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

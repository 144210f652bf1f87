@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

struct WriteTests {
    @Test(.pair) func anEmptyWriteSendsNothing() throws {
        let empty = [connection.write(""), connection.write([UInt8]()), connection.write([[UInt8]]())]
        try hang(when(fulfilled: empty), timeout: patience)
        expectEqual(net.calls(.send), 0)
        try hang(connection.write("x"), timeout: patience)
        expectEqual(try peer.receive(), [0x78])
    }

    @Test(.pair) func aWriteIsNotFulfilledBeforeItsLastByte() throws {
        let budget = net.limitSends(to: 9)
        let first = connection.write("12345")
        let second = connection.write("67890")
        expect(first.isFulfilled)
        for _ in 0..<3 { try net.loop.turn(.poll) }
        expect(second.isPending && connection.queuedBytes == 1)
        budget.remaining = 1
        try hang(second, timeout: patience)
        expectEqual(try peer.receive(exactly: 10), Array("1234567890".utf8))
    }

    @Test(.pair) func interruptedCallsAreRepeated() throws {
        let real = net.kernel
        var interruptions = 0
        func interrupts() -> Bool {
            interruptions += 1
            return interruptions % 2 == 1
        }
        net.kernel.receive = { interrupts() ? -Int(EINTR) : real.receive($0, $1, $2) }
        net.kernel.send = { interrupts() ? -Int(EINTR) : real.send($0, $1, $2) }
        net.kernel.epollWait = { interrupts() ? -Int(EINTR) : real.epollWait($0, $1, $2, $3) }
        net.kernel.epollControl = { interrupts() ? -Int(EINTR) : real.epollControl($0, $1, $2, $3) }
        for number in 0..<10 {
            try peer.send([UInt8(number)])
            expectEqual(try hang(connection.read(), timeout: patience), .bytes([UInt8(number)]))
            try hang(connection.write([UInt8(number)]), timeout: patience)
        }
        expectEqual(try peer.receive(exactly: 10), Array(0..<10))
        net.kernel = real
    }

    @Test(.pair) func withoutARegistrationReadsAndWritesFail() throws {
        let real = net.kernel
        net.kernel.epollControl = { _, _, _, _ in -Int(EPERM) }
        let read = connection.read()
        expectEqual(read.settledValue, .failed(SystemError(.epollControl, EPERM)))
        expectEqual(code(connection.write("x")), EPERM)
        net.kernel = real
        expect(connection.close().isFulfilled)
    }

    // MARK: In place

    @Test(.network(turns: 2000), arguments: [0, 1, 1000, 16_384, 16_385, 300_000])
    func anyNumberOfBytesWrittenInPlace(count: Int) throws {
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

    @Test(.network, arguments: Deed.allCases) func aWriteInPlaceWhateverItsBodyDoes(deed: Deed) throws {
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

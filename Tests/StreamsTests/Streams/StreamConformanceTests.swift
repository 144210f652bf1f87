// ReactorTLSTests compiles this file too, with streams over TLS.
#if TLS || !STREAMS_OVER_TLS
import Glibc

@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// The behaviour common to all two-way streams, tested with each kind and from each of its ends.
struct StreamConformanceTests {
    @Test(arguments: StreamKind.allCases) func largeTransfersBothWaysAtOnce(kind: StreamKind) throws {
        try kind.with { a, b, _ in
            let (there, back) = (pattern(1_000_000), pattern(700_000, from: 17))
            let writes = [
                a.output.write(there), a.output.shutdownWrite(), b.output.write(back), b.output.shutdownWrite(),
            ]
            let reads = [readToEnd(a.input), readToEnd(b.input)]
            try hang(when(fulfilled: writes), timeout: patience)
            expectEqual(try hang(when(fulfilled: reads), timeout: patience), [back, there])
            let (sent, received) = (a.output.bytesSent, b.input.bytesReceived)
            expect(sent == received && b.output.bytesSent == a.input.bytesReceived)
            // A filter adds to the bytes of the descriptor.
            expect(kind.isFiltered ? sent > there.count : sent == there.count)
            expect(kind.isFiltered ? b.output.bytesSent > back.count : b.output.bytesSent == back.count)
        }
    }

    @Test(arguments: StreamKind.allCases) func oneWayGoesOnWhenTheOtherHasEnded(kind: StreamKind) throws {
        try kind.with { a, b, _ in
            try hang(a.output.shutdownWrite(), timeout: patience)
            expectEqual(try hang(b.input.read(), timeout: patience), .end)
            expectEqual(b.input.read().settledValue, .end)
            expectEqual(code(a.output.write("x")), EPIPE)
            expect(a.output.shutdownWrite().isFulfilled && !a.output.isClosed)
            try hang(b.output.write("still"), timeout: patience)
            expectEqual(try hang(a.input.receive(), timeout: patience), Array("still".utf8))
            hang(b.close())
            expectEqual(try hang(a.input.read(), timeout: patience), .end)
        }
    }

    @Test(arguments: StreamKind.allCases) func closeDeliversAndAbortCutsOff(kind: StreamKind) throws {
        try kind.with { a, b, _ in
            a.output.write("last words").catch { _ in }
            let closed = a.close()
            expectEqual(try hang(b.input.receive(), timeout: patience), Array("last words".utf8))
            expectEqual(try hang(b.input.read(), timeout: patience), .end)
            b.abort()
            try hang(closed, timeout: patience)
        }
        try kind.with { a, b, _ in
            let read = b.input.read()
            let waiting = a.output.write(pattern(8 << 20))
            a.abort()
            expectEqual(code(waiting), ECANCELED)
            var outcome = try hang(read, timeout: patience)
            while case .bytes = outcome { outcome = try hang(b.input.read(), timeout: patience) }
            expectEqual(outcome, (kind.knowsResets ? failed(ECONNRESET) : .end))
        }
    }

    @Test(arguments: StreamKind.allCases) func misuseIsRefusedAndHarmless(kind: StreamKind) throws {
        try kind.with { a, b, _ in
            let read = a.input.read()
            expectEqual(a.input.read().settledValue?.failure, EBUSY)
            expect(a.output.write("").isFulfilled)
            try hang(b.output.write("x"), timeout: patience)
            expectEqual(try hang(read, timeout: patience), .bytes([0x78]))
            for limit in [0, -1, .min] {
                expectEqual(a.input.read(upTo: limit).settledValue?.failure, EINVAL, "\(limit)")
            }
            a.abort()
            expectEqual(a.input.read().settledValue?.failure, EBADF)
            expectEqual(code(a.output.write("x")), EBADF)
            try hang(a.close(), timeout: patience)
        }
    }

    @Test(arguments: StreamKind.allCases) func aWriteWithoutAReaderFailsAndTheProcessLives(kind: StreamKind)
        throws
    {
        try kind.with { a, b, _ in
            let waiting = a.output.write(pattern(8 << 20))
            b.abort()
            let first = try rejection(of: waiting)
            expect(first == EPIPE || kind.knowsResets && first == ECONNRESET)
            expectEqual(code(a.output.write("x")), first)
        }
    }

    @Test(arguments: StreamKind.allCases) func anUnreadEndDoesNotSpin(kind: StreamKind) throws {
        try kind.with { a, b, net in
            a.input.read().cancel()
            b.input.close()
            b.output.close()
            let turns = net.turns { net.settle() }
            expect(turns <= 6)
            expectEqual(try hang(a.input.read(), timeout: patience), .end)
            a.abort()
        }
    }

    @Test(arguments: StreamKind.allCases) func aCancelledReadLeavesTheBytes(kind: StreamKind) throws {
        try kind.with { a, b, net in
            let read = a.input.read()
            try net.loop.turn(.poll)
            read.cancel()
            expect(!net.loop.isAlive)
            try hang(b.output.write("bytes"), timeout: patience)
            expectEqual(try hang(a.input.receive(), timeout: patience), Array("bytes".utf8))
        }
    }

    @Test(arguments: StreamKind.allCases) func linesFramesAndChunks(kind: StreamKind) throws {
        try kind.with { a, b, _ in
            let served = b.input.readLine().then { line -> Promise<Void> in
                b.output.write("\(line ?? "none")!\n").then {
                    b.input.forEachChunk { b.output.write($0) }
                }
            }
            try hang(a.output.write("hel"), timeout: patience)
            try hang(a.output.write("lo\r\nrest"), timeout: patience)
            expectEqual(try hang(a.input.readLine(), timeout: patience), "hello!")
            expectEqual(try hang(a.input.read(exactly: 4), timeout: patience), Array("rest".utf8))
            let large = pattern(500_000)
            a.output.write(large).cauterize()
            expectEqual(try hang(a.input.read(exactly: large.count), timeout: patience), large)
            a.output.shutdownWrite().cauterize()
            try hang(served, timeout: patience)
        }
    }

    @Test(arguments: StreamKind.allCases) func writesOfEveryFormKeepTheirOrder(kind: StreamKind) throws {
        try kind.with { a, b, _ in
            let all = pattern(400_000)
            a.output.writeQueueLimit = .max
            var writes: [Promise<Void>] = []
            var place = 0
            for (step, size) in [10, 40_000, 5, 5, 100_000, 0, 16_384, 1, 90_000].enumerated() {
                let part = Array(all[place..<place + size])
                place += size
                switch step % 3 {
                case 0: writes.append(a.output.write(part))
                case 1: writes.append(a.output.write([Array(part.prefix(size / 2)), Array(part.dropFirst(size / 2))]))
                default: writes.append(a.output.write(part.span.bytes))
                }
            }
            let last = [Array(all[place...].prefix(50_000)), Array(all[place...].dropFirst(50_000))]
            writes.append(forEach(last) { a.output.write($0) })
            expectEqual(try hang(b.input.read(exactly: all.count), timeout: patience), all)
            try hang(when(fulfilled: writes), timeout: patience)
        }
    }

    @Test(arguments: StreamKind.allCases) func silenceIsTimedOut(kind: StreamKind) throws {
        try kind.with { a, b, _ in
            a.input.idleTimeout = .milliseconds(5)
            let outcome = try hang(a.input.read(), timeout: patience)
            expectEqual(outcome.failure, ETIMEDOUT)
            _ = b
        }
    }
}

extension ReadOutcome {
    /// The code of the error, whatever the call.
    fileprivate var failure: CInt? {
        if case .failed(let error) = self { error.code } else { nil }
    }
}
#endif

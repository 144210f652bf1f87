import Glibc
import Promises
import Reactor
import Testing

/// What every two-way stream does, asked of each kind and from each of its ends.
@Suite struct StreamConformance {
    enum Kind: CaseIterable {
        case ipv4Client, ipv4Server, ipv6Client, ipv6Server

        /// Both ends on one loop.
        func with(_ body: (Connection, Connection) throws -> Void) throws {
            try withNetwork(turns: 4000) { net in
                let isIPv6 = self == .ipv6Client || self == .ipv6Server
                let listener = try net.listen(isIPv6 ? "[::1]:0" : "127.0.0.1:0")
                let client = try hang(connect(to: listener.localAddress), timeout: patience)
                let server = try net.accept(from: listener)
                listener.close()
                let isClient = self == .ipv4Client || self == .ipv6Client
                try body(isClient ? client : server, isClient ? server : client)
            }
        }
    }

    @Test(arguments: Kind.allCases) func bytesGoBothWaysInOrder(kind: Kind) throws {
        try kind.with { a, b in
            for number in 0..<20 {
                let text = Array("message \(number)".utf8)
                try hang(a.write(text), timeout: patience)
                #expect(try hang(b.receive(), timeout: patience) == text)
                try hang(b.write(text), timeout: patience)
                #expect(try hang(a.receive(), timeout: patience) == text)
            }
        }
    }

    @Test(arguments: Kind.allCases) func largeTransfersBothWaysAtOnce(kind: Kind) throws {
        try kind.with { a, b in
            let (there, back) = (pattern(3_000_000), pattern(2_000_000, from: 17))
            let writes = [a.write(there), a.shutdownWrite(), b.write(back), b.shutdownWrite()]
            let reads = [readToEnd(a), readToEnd(b)]
            try hang(when(fulfilled: writes), timeout: patience)
            #expect(try hang(when(fulfilled: reads), timeout: patience) == [back, there])
            #expect(a.bytesSent == there.count && b.bytesReceived == there.count)
            #expect(b.bytesSent == back.count && a.bytesReceived == back.count)
        }
    }

    @Test(arguments: Kind.allCases) func oneWayGoesOnWhenTheOtherHasEnded(kind: Kind) throws {
        try kind.with { a, b in
            try hang(a.shutdownWrite(), timeout: patience)
            #expect(try hang(b.read(), timeout: patience) == .end)
            #expect(code(a.write("x")) == EPIPE)
            try hang(b.write("still"), timeout: patience)
            #expect(try hang(a.receive(), timeout: patience) == Array("still".utf8))
            hang(b.close())
            #expect(try hang(a.read(), timeout: patience) == .end)
        }
    }

    @Test(arguments: Kind.allCases) func closeDeliversAndAbortResets(kind: Kind) throws {
        try kind.with { a, b in
            a.write("last words").catch { _ in }
            let closed = a.close()
            #expect(try hang(b.receive(), timeout: patience) == Array("last words".utf8))
            #expect(try hang(b.read(), timeout: patience) == .end)
            b.abort()
            try hang(closed, timeout: patience)
        }
        try kind.with { a, b in
            let read = b.read()
            a.abort()
            let outcome = try hang(read, timeout: patience)
            #expect(outcome == failed(ECONNRESET))
        }
    }

    @Test(arguments: Kind.allCases) func misuseIsRefusedAndHarmless(kind: Kind) throws {
        try kind.with { a, b in
            let read = a.read()
            #expect(a.read().value == failed(EBUSY))
            #expect(a.write("").isFulfilled)
            try hang(b.write("x"), timeout: patience)
            #expect(try hang(read, timeout: patience) == .bytes([0x78]))
            a.abort()
            #expect(a.read().value == failed(EBADF))
            #expect(code(a.write("x")) == EBADF)
        }
    }
}

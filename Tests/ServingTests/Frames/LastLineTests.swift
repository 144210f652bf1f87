@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

@Suite(.ownThread) struct LastLineTests {
    private let decoder = LineDecoder(lastLine: .accept)

    /// A connection that receives `text` and then the end.
    private func stream(_ text: String) throws -> Connection {
        let (a, b) = try Connection.pair()
        try hang(b.write(text), timeout: patience)
        b.close()
        return a
    }

    @Test(
        .network,
        arguments: [
            ("a\nb", ["a", "b"]), ("a\nb\n", ["a", "b"]), ("a\nb\r", ["a", "b"]), ("\n", [""]), ("\r", [""]), ("", []),
        ])
    func loopsAndReadsGetIt(text: String, lines: [String]) throws {
        var seen: [String] = []
        try hang(try stream(text).forEachFrame(decoder) { frame, _ in seen.append(frame) }, timeout: patience)
        expectEqual(seen, lines)
        seen = []
        let answered = try stream(text).forEachFrame(decoder) { line, _ -> Guarantee<Void> in
            after(.milliseconds(1)).done { seen.append(line) }
        }
        try hang(answered, timeout: patience)
        expectEqual(seen, lines)
        let a = try stream(text)
        for line in lines { expectEqual(try hang(a.readFrame(decoder), timeout: patience), line) }
        expectEqual(try hang(a.readFrame(decoder), timeout: patience), nil)
        let iterated = try net.loop.run {
            var seen: [String] = []
            for try await line in try stream(text).frames(decoder) { seen.append(line) }
            return seen
        }
        expectEqual(iterated, lines)
    }

    /// One byte that is not UTF-8 ends nothing.
    @Test(.network) func linesOfBytes() throws {
        let (a, b) = try Connection.pair()
        try hang(b.write([0xFF, 0x0A, 0x61, 0xFF]), timeout: patience)
        b.close()
        var lines: [[UInt8]] = []
        try hang(
            a.forEachFrame(DelimiterDecoder("\n", lastFrame: .accept)) { frame, _ in lines.append(frame) },
            timeout: patience)
        expectEqual(lines, [[0xFF], [0x61, 0xFF]])
    }

    @Test(.network) func limitsAndTextHoldForTheLastOne() throws {
        let a = try stream("123\r")
        expect(a.readFrame(LineDecoder(limit: 2, lastLine: .accept)), failsWith: StreamError.limitExceeded(limit: 2))
        let short = DelimiterDecoder("\r\n", limit: 3, lastFrame: .accept)
        expect(a.readFrame(short), failsWith: StreamError.limitExceeded(limit: 3))
        expectEqual(try hang(a.readFrame(LineDecoder(limit: 3, lastLine: .accept)), timeout: patience), "123")
        let (c, d) = try Connection.pair()
        try hang(d.write([0x61, 0xFF]), timeout: patience)
        d.close()
        expect(c.readFrame(decoder), failsWith: StreamError.notUTF8(position: 1))
        expectEqual(try hang(c.receive(), timeout: patience), [0x61, 0xFF])
    }

    /// A stream that fails has no last line: the rest of it is unknown.
    @Test(.pair) func aFailureIsNoEndAndLosesNothing() throws {
        let read = connection.readFrame(decoder)
        try net.deliver("half", from: peer)
        try net.loop.turn(.poll)
        peer.reset()
        expectEqual(try rejection(of: read), ECONNRESET)
        expectEqual(connection.read(exactly: 4).settledValue, Array("half".utf8))
        expectEqual(code(connection.read(exactly: 1)), ECONNRESET)
        expectEqual(connection.read().settledValue, failed(ECONNRESET))
    }

    @Test(.filteredPair, arguments: [true, false]) func aFilterSaysWhatAnEndIs(isInOrder: Bool) throws {
        let end = isInOrder ? RecordFilter.record(.end) : []
        try peer.send(RecordFilter.data(Array("a\nb".utf8)) + end)
        peer.end()
        var lines: [String] = []
        let read = connection.forEachFrame(decoder) { frame, _ in lines.append(frame) }
        if isInOrder {
            try hang(read, timeout: patience)
        } else {
            expect(read, failsWith: ConnectionFilterError.truncated)
        }
        expectEqual(lines, (isInOrder ? ["a", "b"] : ["a"]))
    }

    /// A drain ends a loop after the frames that it has; a part of a line is waited for, and the end of the stream
    /// completes it.
    @Test(.listener) func aDrainWaitsForTheLastLine() throws {
        var lines: [String] = []
        let served = listener.serve { connection in
            connection.forEachFrame(decoder) { frame, _ in lines.append(frame) }
        }
        let peer = try Peer(to: listener.localAddress, sending: "a\nb")
        try net.loop.run(until: { lines == ["a"] })
        let drained = listener.drain(deadline: .seconds(10))
        try net.loop.turn(.poll)
        expectEqual(listener.activeConnections, 1)
        peer.end()
        try hang(drained.asVoid().asPromise(), timeout: patience)
        try hang(served.asVoid(), timeout: patience)
        expectEqual(lines, ["a", "b"])
    }

    /// A cancelled wait leaves no state in the decoder of a sequence.
    @Test(.network) func aSequenceGoesOnBehindOtherReads() throws {
        let (a, b) = try Connection.pair()
        let frames = a.frames(decoder)
        try hang(b.write("half a line"), timeout: patience)
        #expect(throws: CancellationError.self) {
            try net.loop.run {
                withUnsafeCurrentTask { current in
                    let current = current
                    net.loop.schedule(after: .milliseconds(1)) { current?.cancel() }
                }
                for try await line in frames { Issue.record("\(line)") }
            }
        }
        expectEqual(try hang(a.receive(), timeout: patience), Array("half a line".utf8))
        try hang(b.write("1\n"), timeout: patience)
        b.close()
        let lines = try net.loop.run {
            var lines: [String] = []
            for try await line in frames { lines.append(line) }
            return lines
        }
        expectEqual(lines, ["1"])
    }
}

@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// Lines; empty ones, and those that begin with `#`, are skipped.
private struct ScriptDecoder: FrameDecoder {
    func decode(_ bytes: RawSpan) throws -> DecodedFrame<String> {
        bytes.withUnsafeBytes { bytes in
            guard let end = bytes.firstIndex(of: 0x0A) else { return .incomplete(missing: 1) }
            if end == 0 || bytes[0] == UInt8(ascii: "#") { return .skipped(consumed: end + 1) }
            return .frame(String(decoding: bytes[..<end], as: UTF8.self), consumed: end + 1)
        }
    }
}

struct SkippedBytesTests {
    @Test(.network(turns: 5000), arguments: [1, 2, 3, 7, 1000]) func areInNoFrame(step: Int) throws {
        let bytes = Array("\n# a comment\none\n\n\n#\ntwo\n# the end\n\n".utf8)
        let (a, b) = try Connection.pair()
        var seen: [String] = []
        let all = a.forEachFrame(ScriptDecoder()) { frame, _ in seen.append(frame) }
        try hang(when(fulfilled: b.send(bytes, inPiecesOf: step), all), timeout: patience)
        expectEqual(seen, ["one", "two"])

        let (c, d) = try Connection.pair()
        d.send(bytes, inPiecesOf: step).cauterize()
        expectEqual(try hang(c.readFrame(ScriptDecoder()), timeout: patience), "one")
        expectEqual(try hang(c.readFrame(ScriptDecoder()), timeout: patience), "two")
        expectEqual(try hang(c.readFrame(ScriptDecoder()), timeout: patience), nil)
    }

    @Test(.pair(.virtual), arguments: [true, false]) func doNotProlongTheIdleTime(loops: Bool) throws {
        connection.frameTimeouts = FrameTimeouts(idle: .seconds(60))
        let all: Promise<Void> =
            loops
            ? connection.forEachFrame(ScriptDecoder()) { _, _ in } : connection.readFrame(ScriptDecoder()).asVoid()
        let begin = net.loop.now
        for _ in 0..<3 {
            hang(after(.seconds(19)))
            try net.deliver("\n", from: peer)
            try net.loop.turn(.poll)
        }
        #expect(throws: StreamError.timedOut(got: 0)) { try hang(all) }
        expectEqual(begin.duration(to: net.loop.now), .seconds(60))
        #expect(throws: StreamError.timedOut(got: 0)) { try hang(connection.readFrame(ScriptDecoder())) }
        expectEqual(begin.duration(to: net.loop.now), .seconds(120))
    }

    /// Skipped bytes count as part of the frame after them, and of its message: a peer cannot send them forever.
    @Test(
        .pair(.virtual),
        arguments: [
            FrameTimeouts(frame: .seconds(5)), FrameTimeouts(message: .seconds(5)),
            FrameTimeouts(idle: .seconds(60), frame: .seconds(5), minimumRate: 1),
        ], [0, 1, 2])
    func countForTheTimeOfTheirFrame(limits: FrameTimeouts, form: Int) throws {
        connection.frameTimeouts = limits
        let all: Promise<Void> =
            switch form {
            case 0: connection.forEachFrame(ScriptDecoder()) { _, _ -> Promise<Void> in .value }
            case 1: connection.readFrame(ScriptDecoder()).asVoid()
            default: Promise<Void>(on: .current) { for try await _ in connection.frames(ScriptDecoder()) {} }
            }
        hang(after(.seconds(50)))
        let begin = net.loop.now
        // Two seconds each; after the last one, half of a frame follows, which is just as late.
        for text in ["\n", "# comment\n", "\nx"] {
            try net.deliver(text, from: peer)
            try net.loop.turn(.poll)
            hang(after(.seconds(2)))
        }
        try hang(all.recover(policy: .allErrors) { _ in .value })
        expectEqual(all.error as? StreamError, .timedOut(got: 1))
        expectEqual(begin.duration(to: net.loop.now), .seconds(6))
    }

    @Test(.pair(.virtual)) func leaveTheNextFrameItsTime() throws {
        connection.frameTimeouts = FrameTimeouts(frame: .seconds(5), message: .seconds(5))
        var seen: [String] = []
        let all = connection.forEachFrame(ScriptDecoder()) { frame, _ -> Promise<Void> in
            seen.append(frame)
            return .value
        }
        for text in ["\n", "one\n\n", "# two\n", "two\n"] {
            try net.deliver(text, from: peer)
            try net.loop.turn(.poll)
            hang(after(.seconds(2)))
        }
        hang(after(.seconds(600)))
        expect(seen == ["one", "two"] && all.isPending)
        all.cancel()
    }
}

@testable import PromisesTestSupport

/// Returns the number of bytes as the frame, and the given `consumed`, valid or not.
private struct OddDecoder: FrameDecoder {
    var consumed: Int
    func decode(_ bytes: RawSpan) throws -> DecodedFrame<Int> { .frame(bytes.byteCount, consumed: consumed) }
}

/// Calls `meddle` when it has two bytes, and returns them as a frame.
private final class MeddlingDecoder: FrameDecoder {
    var meddle: () -> Void = {}

    func decode(_ bytes: RawSpan) throws -> DecodedFrame<String> {
        if bytes.byteCount < 2 { return .incomplete(missing: 2 - bytes.byteCount) }
        meddle()
        return .frame("a frame", consumed: 2)
    }
}

struct FrameDecoderTests {
    @Test(.network) func aDecoderMayCancelItsReadAndBeginAnotherOne() throws {
        let (a, b) = try Connection.pair()
        let decoder = MeddlingDecoder()
        let cancelled = a.readFrame(decoder)
        var other: Promise<[UInt8]>?
        decoder.meddle = {
            cancelled.cancel()
            other = a.read(exactly: 3)
        }
        b.write("12").cauterize()
        while other == nil { try net.loop.turn(.wait) }
        expectEqual(cancelled.error?.isCancelled, true)
        expectEqual(other?.isPending, true)
        b.write("345").cauterize()
        expectEqual(try other.map { try hang($0, timeout: patience) }, Array("345".utf8))
    }

    @Test(.network) func aLengthAboveTheLimitTakesNoMemory() throws {
        let (a, b) = try Connection.pair()
        try hang(b.write([0xFF, 0xFF, 0xFF, 0xFF]), timeout: patience)
        let frame = a.readFrame(LengthPrefixDecoder<UInt32>(limit: 1000))
        #expect(throws: StreamError.limitExceeded(limit: 1000)) { try hang(frame, timeout: patience) }
        let wide = a.readFrame(LengthPrefixDecoder<UInt64>(limit: .max))
        try hang(b.write([0xFF, 0xFF, 0xFF, 0xFF]), timeout: patience)
        #expect(throws: StreamError.limitExceeded(limit: .max)) { try hang(wide, timeout: patience) }
        expectEqual(a.bufferedByteCount, 8)
        expectEqual(try hang(a.read(exactly: 8), timeout: patience).count, 8)
        expectEqual(a.bufferedByteCount, 0)
    }

    @Test func anEmptyDelimiterIsNeverFound() throws {
        var decoder = DelimiterDecoder("", limit: 3)
        let bytes = pattern(3)
        guard case .incomplete = try decoder.decode(bytes.span.extracting(first: 2).bytes) else {
            Issue.record("it is found")
            return
        }
        #expect(throws: StreamError.limitExceeded(limit: 3)) { _ = try decoder.decode(bytes.span.bytes) }
    }

    @Test(.network) func aLengthNearTheLargestIntegerDoesNotOverflow() throws {
        let (a, b) = try Connection.pair()
        let decoder = LengthPrefixDecoder<UInt64>(limit: .max)
        // The prefix and the payload together are exactly the largest integer.
        let largest = a.readFrame(decoder)
        try hang(b.write([0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xF7]), timeout: patience)
        while a.bufferedByteCount < 8 { try EventLoop.current.turn(.wait) }
        expect(largest.isPending)
        largest.cancel()
        expectEqual(try hang(a.read(exactly: 8), timeout: patience).count, 8)
        try hang(b.write([0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xF8]), timeout: patience)
        let excessive = a.readFrame(decoder)
        #expect(throws: StreamError.limitExceeded(limit: .max)) { try hang(excessive, timeout: patience) }
    }

    /// A frame takes at least one byte, and no more than there are: otherwise the body would be called forever, or
    /// bytes be lost.
    @Test(.network, arguments: [Int.min, -1, 0, 1, 3, 4, Int.max], [true, false]) func aDecoderThatMiscounts(
        consumed: Int, loops: Bool
    ) throws {
        let (a, b) = try Connection.pair()
        a.frameTimeouts = FrameTimeouts(idle: .seconds(60), frame: .seconds(60))
        let decoder = OddDecoder(consumed: consumed)
        var count = 0
        let all = loops ? a.forEachFrame(decoder) { _, _ in count += 1 } : a.readFrame(decoder).asVoid()
        try hang(b.write([1, 2, 3]).then { b.shutdownWrite() }, timeout: patience)
        if (1...3).contains(consumed) {
            try hang(all, timeout: patience)
            return
        }
        let text = "OddDecoder has returned .frame(consumed: \(consumed)) for 3 bytes"
        #expect(throws: PromiseError.badInput(text)) { try hang(all, timeout: patience) }
        expect(try hang(a.receive(), timeout: patience) == [1, 2, 3] && count == 0)
    }

    /// A header of one line, and the number of bytes in it.
    @Test(.network) func aBodyReadsWhatFollowsItsFrame() throws {
        let (a, b) = try Connection.pair()
        var bodies: [String] = []
        let all = a.forEachLine { line -> Promise<Void> in
            if line == "0" { return .value }
            return a.read(exactly: Int(line)!).done { bodies.append(String(decoding: $0, as: UTF8.self)) }
        }
        try hang(b.write("3\nabc0\n5\nhello0\n").then { b.shutdownWrite() }, timeout: patience)
        try hang(all, timeout: patience)
        expectEqual(bodies, ["abc", "hello"])
    }

    @Test(.network) func whileAFrameIsAwaitedNoOtherReadBegins() throws {
        let (a, _) = try Connection.pair()
        let all = a.forEachLine { _ in }
        expectEqual(try hang(a.read(), timeout: patience), .failed(SystemError(.receive, EBUSY)))
        expectEqual(try rejection(of: a.forEachLine { _ in }), EBUSY)
        all.cancel()
        let next = a.readLine()
        a.close()
        expectEqual(try rejection(of: next), ECANCELED)
        expectEqual(try rejection(of: a.forEachLine { _ in }), EBADF)
    }

    @Test(.network) func framesThatAreHereAreHandledInOneJobButNotAll() throws {
        let (a, b) = try Connection.pair()
        var (count, other) = (0, 0)
        let all = a.forEachLine { _ -> Promise<Void> in
            // Jobs before the bytes were read do not count.
            if count == 0 { other = 0 }
            count += 1
            return .value
        }
        try hang(b.write(String(repeating: "\n", count: 1000)), timeout: patience)
        func tick() {
            net.loop.enqueue {
                other += 1
                if count < 1000 { tick() }
            }
        }
        tick()
        try net.loop.run(until: { count == 1000 })
        // One job after each 64 frames.
        expect(other >= 1000 / 64 && other <= 1000 / 64 + 2)
        all.cancel()
    }

    /// The search for a delimiter goes on where it has ended, but begins anew for the next frame.
    @Test(.network, arguments: ["\n", "\r\n"]) func aShortFrameAfterALongOneIsFound(delimiter: String) throws {
        let (a, b) = try Connection.pair()
        var frames: [String] = []
        let all = a.forEachFrame(DelimiterDecoder(delimiter)) { frame, _ in
            frames.append(String(decoding: frame, as: UTF8.self))
        }
        try hang(b.write("a long frame"), timeout: patience)
        try net.loop.run(until: { a.bufferedByteCount == 12 })
        let rest = ["", "1", "22", ""].joined(separator: delimiter)
        try hang(b.write(rest).then { b.shutdownWrite() }, timeout: patience)
        try hang(all, timeout: patience)
        expectEqual(frames, ["a long frame", "1", "22"])
    }

    @Test(.network) func cancellingALoopOfFramesCancelsWhatItWaitsFor() throws {
        let (a, b) = try Connection.pair()
        let (answer, resolver) = Promise<Void>.pending()
        defer { withExtendedLifetime(resolver) {} }
        let all = a.forEachLine { _ in answer }
        try hang(b.write("a\nb\n"), timeout: patience)
        try net.loop.run(until: { a.bufferedByteCount == 2 })
        all.cancel()
        expect(answer.isCancelled)
        expectEqual(try hang(a.readLine(), timeout: patience), "b")
    }
}

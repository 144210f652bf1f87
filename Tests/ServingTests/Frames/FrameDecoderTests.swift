@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// Claims to have found a frame, or to have skipped bytes: as many as given, valid or not.
private struct OddDecoder: FrameDecoder {
    let consumed: Int
    let skips: Bool

    func decode(_ bytes: RawSpan) -> DecodedFrame<Int> {
        skips ? .skipped(consumed: consumed) : .frame(bytes.byteCount, consumed: consumed)
    }
}

struct FrameDecoderTests {
    @Test(.network) func aLengthTakesNoMemoryHoweverLargeItIs() throws {
        let (a, b) = try Connection.pair()
        // The prefix and the payload together are exactly the largest integer.
        let largest = a.readFrame(LengthPrefixDecoder<UInt64>(limit: .max))
        try hang(b.write([0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xF7]), timeout: patience)
        try net.loop.run(until: { a.bufferedByteCount == 8 })
        expect(largest.isPending)
        largest.cancel()
        let excessive = a.readFrame(LengthPrefixDecoder<UInt32>(limit: 1000))
        expect(excessive, failsWith: StreamError.limitExceeded(limit: 1000))
        expectEqual(a.bufferedByteCount, 8)
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

    /// A frame takes at least one byte, and no more than there are: otherwise the body would be called forever, or bytes
    /// be lost. A decoder that skips nothing waits for more.
    @Test(.network, arguments: [Int.min, -1, 0, 1, 2, 3, 4, Int.max], [true, false]) func aDecoderThatMiscounts(
        consumed: Int, loops: Bool
    ) throws {
        for skips in [true, false] {
            let (a, b) = try Connection.pair()
            a.frameTimeouts = FrameTimeouts(idle: .seconds(60), frame: .seconds(60))
            let decoder = OddDecoder(consumed: consumed, skips: skips)
            var frames = 0
            let all = loops ? a.forEachFrame(decoder) { _, _ in frames += 1 } : a.readFrame(decoder).asVoid()
            try hang(b.write([1, 2, 3]), timeout: patience)
            try net.loop.run(until: { a.bytesReceived == 3 })
            try net.loop.turn(.poll)
            let goesOn = loops || skips
            // After two of three bytes it is asked again.
            let left = goesOn && consumed == 2 ? 1 : 3
            if ((skips ? 0 : 1)...left).contains(consumed) {
                expectEqual(all.isPending, goesOn, "skips: \(skips)")
                expectEqual(a.bufferedByteCount, goesOn && consumed > 0 ? 0 : 3 - consumed, "skips: \(skips)")
                all.cancel()
                continue
            }
            let result = skips ? "skipped" : "frame"
            let text = "OddDecoder has returned .\(result)(consumed: \(consumed)) for \(left) bytes"
            expect(all, failsWith: PromiseError.badInput(text))
            expect(a.bufferedByteCount == left && frames == (left == 1 && !skips ? 1 : 0), text)
        }
    }

    /// Other jobs run after each 64 frames or skips.
    @Test(.network, arguments: [false, true]) func aFloodIsHandledInSeveralJobs(skips: Bool) throws {
        let (a, b) = try Connection.pair()
        let all = a.forEachFrame(OddDecoder(consumed: 1, skips: skips)) { _, _ in Promise.value }
        try hang(b.write(pattern(1000)), timeout: patience)
        var jobs = 0
        func tick() {
            net.loop.enqueue {
                // Jobs before the bytes were read do not count.
                if a.bytesReceived == 1000 { jobs += 1 }
                if a.bytesReceived < 1000 || a.bufferedByteCount > 0 { tick() }
            }
        }
        tick()
        try net.loop.run(until: { a.bytesReceived == 1000 && a.bufferedByteCount == 0 })
        expect(jobs >= 1000 / 64 && jobs <= 1000 / 64 + 2, "\(jobs)")
        all.cancel()
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

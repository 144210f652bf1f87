@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

private final class RecordDecoder: FrameDecoder {
    private(set) var calls = 0

    func decode(_ bytes: RawSpan) throws -> DecodedFrame<UInt8> {
        calls += 1
        return try .reading(bytes) { reader in
            let type = try reader.byte()
            _ = try reader.bytes(prefixedBy: UInt32.self, limit: 1 << 20)
            return type
        }
    }
}

private func record(_ type: UInt8, _ text: [UInt8]) -> [UInt8] {
    var output = ByteWriter()
    output.append(type)
    output.append(UInt32(text.count))
    output.append(text)
    return output.bytes
}

private func text(of record: inout ByteReader) throws -> [UInt8] {
    try record.skip(1)
    return [UInt8](try record.bytes(prefixedBy: UInt32.self, limit: 1 << 20))
}

struct LendingTests {
    private let records = (0..<30).map { (type: UInt8($0), text: pattern($0 * 7)) }

    @Test(.network(turns: 50_000), arguments: [1, 2, 5, 64, 100_000], [false, true])
    func eachFrameIsLentOnceHoweverItArrives(step: Int, filtered: Bool) throws {
        let (a, b) = try Connection.pair()
        if filtered { try hang(when(fulfilled: a.filter(RecordFilter()), b.filter(RecordFilter(key: 3)))) }
        var seen: [[UInt8]] = []
        let all = a.forEachFrame(RecordDecoder()) { type, bytes -> Promise<Void> in
            let remaining = bytes.remaining
            expect(Int(type) == seen.count && remaining == 5 + seen.count * 7)
            seen.append(try text(of: &bytes))
            let isAtEnd = bytes.isAtEnd
            expect(isAtEnd)
            return .value
        }
        let bytes = records.flatMap { record($0.type, $0.text) }
        try hang(when(fulfilled: b.send(bytes, inPiecesOf: step), all), timeout: patience)
        expectEqual(seen, records.map(\.text))
    }

    /// Actions of a body on its connection while it has a frame of it, with another frame after that.
    enum Deed: CaseIterable { case readOn, readFrame, hang, cancel, startLoop }

    @Test(.network(turns: 2000), arguments: Deed.allCases) func aFrameStaysValidWhateverTheBodyDoes(deed: Deed) throws {
        let (a, b) = try Connection.pair()
        let (first, second) = (pattern(3000), pattern(2000, from: 77))
        var seen: [[UInt8]] = []
        var inner: [UInt8]?
        var all: Promise<Void>?
        all = a.forEachFrame(RecordDecoder()) { _, bytes -> Promise<Void> in
            if !seen.isEmpty {
                seen.append(try text(of: &bytes))
                return .value
            }
            var next = Promise.value
            switch deed {
            case .readOn: next = a.read(exactly: 2005).done { inner = $0 }
            case .readFrame:
                next = a.readFrame { try text(of: &$0) }.done { inner = $0 }
            case .hang:
                // More arrives meanwhile.
                try hang(b.write(record(3, second)).then { after(.milliseconds(1)) }, timeout: patience)
            case .cancel: all?.cancel()
            case .startLoop:
                next = a.forEachFrame(RecordDecoder()) { _, bytes in
                    inner = try text(of: &bytes)
                    throw StopReading()
                }
            }
            seen.append(try text(of: &bytes))
            return next
        }
        try hang(b.write(record(1, first) + record(2, second)), timeout: patience)
        try net.loop.run(until: { !seen.isEmpty })
        b.shutdownWrite().ignoringErrors()
        let result = Result { try all.map { try hang($0, timeout: patience) } }
        expectEqual(seen.first, first)
        switch deed {
        case .readOn: expect(inner == record(2, second) && seen.count == 1)
        case .readFrame, .startLoop: expect(inner == second && seen.count == 1)
        case .hang: expectEqual(seen, [first, second, second])
        case .cancel:
            expectEqual(all?.error?.isCancelled, true)
            expectEqual(try hang(a.readFrame { try text(of: &$0) }, timeout: patience), second)
        }
        expect((try? result.get()) != nil || deed == .cancel)
    }

    @Test(.network) func theDescriptorMayBeTakenOutOfTheBody() throws {
        let (a, b) = try Connection.pair()
        var (seen, descriptor): ([UInt8], CInt) = ([], -1)
        let all = a.forEachFrame(RecordDecoder()) { _, bytes in
            descriptor = try a.detach()
            seen = try text(of: &bytes)
            throw StopReading()
        }
        try hang(b.write(record(1, pattern(50))), timeout: patience)
        try hang(all, timeout: patience)
        expect(seen == pattern(50) && descriptor >= 0)
        try Connection(adopting: descriptor).close()
    }

    @Test(.network) func aBodyThatReadsBeyondItsFrameFails() throws {
        let (a, b) = try Connection.pair()
        let all = a.forEachFrame(RecordDecoder()) { _, bytes in try bytes.skip(20) }
        try hang(b.write(record(1, [1, 2, 3]) + record(2, pattern(100))), timeout: patience)
        #expect(throws: ByteError.endOfInput(missing: 12)) { try hang(all, timeout: patience) }
        // The frame after it is left.
        expectEqual(a.bufferedByteCount, 105)
    }

    @Test(.network(turns: 20_000)) func aDecoderIsCalledWhenItsMissingBytesAreHere() throws {
        let (a, b) = try Connection.pair()
        let decoder = RecordDecoder()
        let all = a.forEachFrame(decoder) { _, bytes in
            let remaining = bytes.remaining
            expectEqual(remaining, 1_000_005)
        }
        let sent = b.send(record(1, pattern(1_000_000)), inPiecesOf: 1000)
        try hang(when(fulfilled: sent, all), timeout: patience)
        expect(decoder.calls <= 4)
    }

    /// The last frame takes the rest at the end.
    @Test(.network) func aLastFrameIsLentToo() throws {
        let (a, b) = try Connection.pair()
        var lines: [String] = []
        let all = a.forEachFrame(LineDecoder(lastLine: .accept)) { line, bytes in
            lines += [line, try String(utf8: bytes.rest())]
        }
        try hang(b.write("one\ntwo").then { b.shutdownWrite() }, timeout: patience)
        try hang(all, timeout: patience)
        expectEqual(lines, ["one", "one\n", "two", "two"])
    }

    @Test(.network) func anErrorOfAReadByClosureConsumesNothing() throws {
        let (a, b) = try Connection.pair()
        try hang(b.write(record(1, pattern(5))), timeout: patience)
        let flawed = a.readFrame { reader -> Int in
            try reader.skip(4)
            throw Flaw(3)
        }
        expect(flawed, failsWith: Flaw(3))
        let long = a.readFrame { reader in [UInt8](try reader.bytes(until: 9, limit: 2)) }
        expect(long, failsWith: StreamError.limitExceeded(limit: 2))
        let nothing = a.readFrame { _ in 7 }
        #expect(throws: PromiseError.self) { try hang(nothing, timeout: patience) }
        let cancelled = a.readFrame { try $0.skip(1000) }
        cancelled.cancel()
        expectEqual(try hang(a.readFrame { try text(of: &$0) }, timeout: patience), pattern(5))
        b.write("half").cauterize()
        let early = a.readFrame { try text(of: &$0) }
        b.shutdownWrite().cauterize()
        expect(early, failsWith: StreamError.endedEarly(expected: .frame, got: 4))
    }
}

@testable import Promises
@testable import PromisesTestSupport
@testable import ReactorIO
@testable import ReactorIOTestSupport

struct LargePayloadTests {
    /// A length of four bytes, and that many bytes.
    private struct RecordDecoder: FrameDecoder {
        func decode(_ bytes: RawSpan) throws -> DecodedFrame<Int> {
            try .reading(bytes) { try $0.bytes(prefixedBy: UInt32.self, limit: 64 << 20).byteCount }
        }
    }

    private func record(_ payload: [UInt8]) -> [UInt8] {
        var writer = ByteWriter()
        try! writer.append(prefixedBy: UInt32.self) { $0.append(payload) }
        return writer.bytes
    }

    /// Records of these sizes arrive in pieces of each size, and each is kept as it was sent, even one that shares
    /// memory with the connection's buffer, which stays in use.
    @Test(.pair(turns: 40_000), arguments: [1000, 16_384, 65_536, 70_000, 1 << 20])
    func keptBytesStayAsTheyWere(piece: Int) throws {
        net.limitReceives(to: piece)
        let sizes = [
            0, 10, 16_383, 16_384, 100_000, 100_000, 3, 100_000, 1_200_000, 1_200_000, 40_000, 40_000, 70_000, 5,
        ]
        var kept: [SharedBytes] = []
        let all = connection.forEachFrame(RecordDecoder()) { count, reader -> Promise<Void> in
            try reader.skip(4)
            kept.append(reader.keep(try reader.bytes(count)))
            return .value
        }
        let sent = sizes.enumerated().map { pattern($1, from: $0 * 1000) }
        let bytes = sent.flatMap(record)
        let sending = elsewhere {
            try peer.send(bytes)
            peer.end()
        }
        try hang(when(fulfilled: all, sending), timeout: patience)
        expectEqual(kept.map(\.count), sizes)
        expect(zip(kept, sent).allSatisfy { [UInt8]($0) == $1 })
    }

    /// From the second large frame on, a loop keeps the memory that the kernel has filled: nothing is copied.
    @Test(.pair(turns: 4000)) func aLargeFrameIsKeptWhereItWasReceived() throws {
        var places: [UInt] = []
        var filled: [Range<UInt>] = []
        let receive = net.kernel.receive
        net.kernel.receive = { fd, buffer, count in
            let result = receive(fd, buffer, count)
            let start = UInt(bitPattern: buffer)
            if result > 0 { filled.append(start..<start + UInt(result)) }
            return result
        }
        let all = connection.forEachFrame(RecordDecoder()) { count, reader -> Promise<Void> in
            try reader.skip(4)
            let kept = reader.keep(try reader.bytes(count))
            places.append(kept.withUnsafeBytes { UInt(bitPattern: $0.baseAddress!) })
            return .value
        }
        for number in 1...3 {
            filled = []
            let bytes = record(pattern(300_000))
            let sending = elsewhere { try peer.send(bytes) }
            try net.loop.run(until: { places.count == number })
            try hang(sending, timeout: patience)
            let last = places[number - 1] + 299_999
            expect(filled.contains { $0.contains(last) })
            if number > 1 { expect(filled.contains { $0.contains(places[number - 1]) }) }
        }
        all.cancel()
    }

    /// A frame of a megabyte moves at most once, and one that is only announced takes little.
    @Test func roomForWhatIsStillMissing() {
        func room(behind count: Int, for new: Int, of missing: Int?) -> Int {
            var bytes = pattern(count)
            bytes.makeRoom(for: new, of: missing)
            return bytes.capacity
        }
        expect(room(behind: 1, for: 1000, of: 60_000) > 60_000)
        expect((65_000...80_000).contains(room(behind: 1, for: 1000, of: 1 << 30)))
        expect((300_000...400_000).contains(room(behind: 10_000, for: 10_000, of: 1 << 30)))
        expect((30_000...40_000).contains(room(behind: 10_000, for: 10_000, of: nil)))
    }

    @Test(.pair(turns: 4000)) func readExactlyIsReceivedInPlace() throws {
        var filled: [UInt: Int] = [:]
        let receive = net.kernel.receive
        net.kernel.receive = { fd, buffer, count in
            let result = receive(fd, buffer, count)
            if result > 0 { filled[UInt(bitPattern: buffer)] = result }
            return result
        }
        let read = connection.read(exactly: 60_000)
        let bytes = pattern(60_000)
        let sending = elsewhere { try peer.send(bytes + [1]) }
        let got = try hang(read, timeout: patience)
        try hang(sending, timeout: patience)
        expect(got == bytes)
        expect(got.withUnsafeBytes { filled[UInt(bitPattern: $0.baseAddress!)] } != nil)
        expectEqual(try hang(connection.read(exactly: 1), timeout: patience), [1])
    }

    /// A peer that has sent large frames, and then the beginning of another, holds only the memory of that.
    @Test(.pair(turns: 4000), arguments: [0, 1, 1000, 20_000]) func anExpectationTakesNoMemory(count: Int) throws {
        var frames = 0
        let all = connection.forEachFrame(RecordDecoder()) { _, _ in frames += 1 }
        let bytes = record(pattern(900_000)) + record(pattern(900_000))
        let sending = elsewhere { try peer.send(bytes) }
        try net.loop.run(until: { frames == 2 })
        try hang(sending, timeout: patience)
        try peer.send([UInt8](record(pattern(900_000)).prefix(count)))
        try net.loop.run(until: { connection.bytesReceived == 1_800_008 + count })
        try net.loop.turn(.poll)
        expectEqual(connection.bufferedByteCount, count)
        expect(connection.heldMemory <= 2 * count + 4096, "\(connection.heldMemory)")
        all.cancel()
    }
}

@testable import PromisesTestSupport

struct FrameTests {
    private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    @Test(.network) func whatLiesBeyondIsTheNextReadsOfWhateverForm() throws {
        let (a, b) = try Connection.pair()
        try hang(b.write("one;two;threefourfive;six\nrest"), timeout: patience)
        expectEqual(try hang(a.read(until: [0x3B]), timeout: patience), bytes("one"))
        let before = net.calls(.receive)
        expectEqual(a.read(until: bytes(";")).settledValue, bytes("two"))
        expectEqual(a.read(exactly: 5).settledValue, bytes("three"))
        expectEqual(a.read(upTo: 4).settledValue, .bytes(bytes("four")))
        expectEqual(a.receive(upTo: 4).settledValue, bytes("five"))
        expectEqual(a.readLine().settledValue, ";six")
        expectEqual(net.calls(.receive), before)
        var seen: [UInt8] = []
        let all = a.forEachChunk { chunk in chunk.withUnsafeBytes { seen += $0 } }
        expect(seen.isEmpty, "the body was called inside the call")
        b.close()
        try hang(all, timeout: patience)
        expectEqual(seen, bytes("rest"))
    }

    @Test(.network) func badInputNamesValueAndCall() throws {
        let (a, b) = try Connection.pair()
        let refused: [(promise: Promise<Void>, detail: String)] = [
            (a.read(exactly: 0).asVoid(), "exactly: 0"), (a.read(exactly: .min).asVoid(), "exactly: \(Int.min)"),
            (a.read(until: []).asVoid(), "until: an empty delimiter"),
            (a.read(until: [1], limit: 0).asVoid(), "limit: 0"), (a.readLine(limit: -5).asVoid(), "limit: -5"),
        ]
        for (promise, detail) in refused {
            expectEqual(try rejection(of: promise), EINVAL)
            let error = promise.error as? SystemError
            expect(error?.detail == detail && error?.call == .receive)
        }
        let waiting = a.read(exactly: 1)
        expect(code(a.read(exactly: 1)) == EBUSY && a.read().settledValue == failed(EBUSY))
        expectEqual(try rejection(of: a.forEachChunk { _ in }), EBUSY)
        try hang(b.write("x"), timeout: patience)
        expectEqual(try hang(waiting, timeout: patience), [0x78])
    }

    /// Every byte of this could begin the delimiter: searching all of them again with each piece would take minutes.
    @Test(.network(turns: 200_000)) func aLongSearchIsLinear() throws {
        let (a, b) = try Connection.pair()
        net.kernel.receive = { real in { real($0, $1, min($2, 64)) } }(net.kernel.receive)
        let text = [UInt8](repeating: 0x61, count: 1 << 20)
        let write = b.write([text, bytes("b")])
        let read = a.read(until: bytes("ab"), limit: .max)
        expectEqual(try hang(read, timeout: patience)?.count, text.count - 1)
        try hang(write, timeout: patience)
    }
}

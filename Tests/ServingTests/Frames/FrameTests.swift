@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

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

    /// Lines of up to 15 ASCII bytes take a separate path to a text.
    @Test(.network) func linesOfEveryLengthWithOtherBytesAtEveryPlace() throws {
        let (a, b) = try Connection.pair()
        for length in 0...18 {
            let ascii = (0..<length).map { UInt8(0x61 + $0) }
            try hang(b.write(ascii + [0x0A]), timeout: patience)
            expectEqual(try hang(a.readLine(), timeout: patience), String(decoding: ascii, as: UTF8.self))
            for place in 0..<length {
                let text: [UInt8] = ascii[..<place] + Array("ü".utf8) + ascii[(place + 1)...]
                try hang(b.write(text + [0x0D, 0x0A]), timeout: patience)
                expectEqual(try hang(a.readLine(), timeout: patience), String(decoding: text, as: UTF8.self))
                var flawed = ascii
                flawed[place] = 0x80
                try hang(b.write(flawed + [0x0A]), timeout: patience)
                expect(a.readLine(), failsWith: StreamError.notUTF8(position: place))
                expectEqual(try hang(a.read(until: "\n"), timeout: patience), flawed)
            }
        }
    }

    /// What was searched of the one is not skipped in the other.
    @Test(.network, arguments: ["\n", "\r\n", ""]) func aFrameInPartsAndAShorterOneBehindIt(delimiter: String) throws {
        let (a, b) = try Connection.pair()
        var frames: [String] = []
        let all =
            delimiter.isEmpty
            ? a.forEachLine { frames.append($0) }
            : a.forEachFrame(DelimiterDecoder(delimiter)) { frame, _ in
                frames.append(String(decoding: frame, as: UTF8.self))
            }
        let end = delimiter.isEmpty ? "\n" : delimiter
        try hang(b.write("a long one"), timeout: patience)
        net.settle()
        try hang(b.write("\(end)x\(end)").then { b.shutdownWrite() }, timeout: patience)
        try hang(all, timeout: patience)
        expectEqual(frames, ["a long one", "x"])
    }

    @Test(.network) func anErrorEndsALoopOfLinesAndTheRestIsThere() throws {
        struct Enough: Error, Equatable {}
        let (a, b) = try Connection.pair()
        try hang(b.write("1\n2\n3\nend"), timeout: patience)
        var lines: [String] = []
        let all = a.forEachLine { line in
            lines.append(line)
            if line == "2" { throw Enough() }
        }
        expect(all, failsWith: Enough())
        expectEqual(lines, ["1", "2"])
        b.close()
        var rest: [String] = []
        let early = StreamError.endedEarly(expected: .delimiter([0x0A]), got: 3)
        expect(a.forEachLine { rest.append($0) }, failsWith: early)
        expectEqual(rest, ["3"])
        expectEqual(try hang(a.receive(), timeout: patience), Array("end".utf8))
    }
}

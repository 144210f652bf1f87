@testable import PromisesTestSupport

struct LineTests {
    /// Lines of up to 15 ASCII bytes take a separate path to a text.
    @Test(.network) func everyLengthWithOtherBytesAtEveryPlace() throws {
        let (a, b) = try Connection.pair()
        for length in 0...18 {
            let ascii = (0..<length).map { UInt8(0x61 + $0) }
            try hang(b.write(ascii + [0x0A]), timeout: patience)
            expectEqual(try hang(a.readLine(), timeout: patience), String(decoding: ascii, as: UTF8.self))
            for place in 0..<length {
                let text = Array(ascii[..<place] + "ü".utf8 + ascii[(place + 1)...])
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

    @Test(.network) func anErrorEndsItAndTheRestIsThere() throws {
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

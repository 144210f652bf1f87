import Glibc
import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

@Suite struct LineTests {
    @Test func bothEndingsAndEmptyLines() throws {
        try withConnections { _, a, b in
            try hang(b.write("one\ntwo\r\n\n\r\nthr\ree\nfünf\n"), timeout: patience)
            b.close()
            var lines: [String?] = []
            for _ in 0..<7 { lines.append(try hang(a.readLine(), timeout: patience)) }
            expectEqual(lines, ["one", "two", "", "", "thr\ree", "fünf", nil])
        }
    }

    @Test func whatIsNoTextSaysWhereAndStays() throws {
        try withConnections { _, a, b in
            let line = Array("aü".utf8) + [0xFF, 0x62]
            try hang(b.write(line + [0x0A]), timeout: patience)
            expect(a.readLine(), failsWith: StreamError.notUTF8(position: 3))
            expect(a.readLine(), failsWith: StreamError.notUTF8(position: 3))
            expectEqual(a.read(until: [0x0A]).settledValue, line)
        }
    }

    /// Lines of up to 15 ASCII bytes take a separate path to a text.
    @Test func everyLengthWithOtherBytesAtEveryPlace() throws {
        try withConnections { _, a, b in
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
    }

    @Test func theLimitCountsTheLineAlone() throws {
        try withConnections { net, a, b in
            try hang(b.write("1234\r\n12345\r\n"), timeout: patience)
            expectEqual(try hang(a.readLine(limit: 4), timeout: patience), "1234")
            expect(a.readLine(limit: 4), failsWith: StreamError.limitExceeded(limit: 4))
            expectEqual(a.readLine(limit: 5).settledValue, "12345")
            let read = a.readLine(limit: 4)
            try hang(b.write("1234\r"), timeout: patience)
            net.settle(.milliseconds(1))
            expect(read.isPending)
            try hang(b.write("x"), timeout: patience)
            expect(read, failsWith: StreamError.limitExceeded(limit: 4))
        }
    }

    @Test func eachLineWaitsForTheOneBefore() throws {
        try withConnections { _, a, b in
            try hang(b.write("1\n2\n3\n"), timeout: patience)
            b.close()
            var log: [String] = []
            let all = a.forEachLine { line -> Guarantee<Void> in
                log.append("begin \(line)")
                return after(.milliseconds(1)).done { log.append("end \(line)") }
            }
            try hang(all, timeout: patience)
            expectEqual(log, ["begin 1", "end 1", "begin 2", "end 2", "begin 3", "end 3"])
        }
    }

    @Test func anErrorEndsItAndTheRestIsThere() throws {
        struct Enough: Error, Equatable {}
        try withConnections { _, a, b in
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

    @Test func cancelledItReadsNoMore() throws {
        try withConnections { net, a, b in
            var lines: [String] = []
            let all = a.forEachLine { lines.append($0) }
            try hang(b.write("1\npart"), timeout: patience)
            net.settle(.milliseconds(1))
            all.cancel()
            expectEqual(lines, ["1"])
            expect(!net.loop.isAlive)
            try hang(b.write(" of it"), timeout: patience)
            expectEqual(try hang(a.read(exactly: 10), timeout: patience), Array("part of it".utf8))
        }
    }
}

@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

private func read<Value>(_ bytes: [UInt8], _ body: (inout ByteReader) throws -> Value) throws -> Value {
    var reader = ByteReader(bytes.span.bytes)
    return try body(&reader)
}

struct ByteReaderTests {
    @Test func integersOfBothOrdersAtAnyPosition() throws {
        let bytes: [UInt8] = [0xFF, 0x01, 0x02, 0x03, 0x04, 0xFE, 0xFF, 0x80]
        try read(bytes) { reader throws in
            expectEqual(try reader.byte(), 0xFF)
            expectEqual(try reader.integer(), UInt32(0x0102_0304))
            expectEqual(try reader.integer(as: Int16.self, .littleEndian), -2)
            expect(reader.remaining == 1 && !reader.isAtEnd)
            expectEqual(try reader.integer(as: Int8.self), -128)
            expect(reader.isAtEnd && reader.position == 8)
        }
    }

    @Test func anIncompleteValueReadsNothing() throws {
        try read([0, 9, 1, 2]) { reader throws in
            #expect(throws: ByteError.endOfInput(missing: 4)) { try reader.integer(as: UInt64.self) }
            #expect(throws: ByteError.endOfInput(missing: 7)) {
                [UInt8](try reader.bytes(prefixedBy: UInt16.self, limit: 9))
            }
            #expect(throws: ByteError.limitExceeded(limit: 8)) {
                [UInt8](try reader.bytes(prefixedBy: UInt16.self, limit: 8))
            }
            #expect(throws: ByteError.endOfInput(missing: 1)) { [UInt8](try reader.bytes(until: 0xFF)) }
            #expect(throws: ByteError.endOfInput(missing: .max - 4)) { try reader.skip(.max) }
            expectEqual(reader.position, 0)
            expectEqual([UInt8](reader.rest()), [0, 9, 1, 2])
            expectEqual([UInt8](reader.rest()), [])
        }
        // A length that fits into no integer, or whose end does not, is beyond any limit.
        for (first, last) in [(0xFF, 0xFF), (0x7F, 0xF8)] as [(UInt8, UInt8)] {
            try read([first] + [UInt8](repeating: 0xFF, count: 6) + [last]) { reader throws in
                #expect(throws: ByteError.limitExceeded(limit: .max)) {
                    [UInt8](try reader.bytes(prefixedBy: UInt64.self, limit: .max))
                }
                expectEqual(reader.position, 0)
            }
        }
    }

    @Test(
        arguments: [
            ([0x00], 0), ([0x7F], 127), ([0x80, 0x01], 128), ([0xFF, 0xFF, 0xFF, 0x7F], 268_435_455),
            ([0x80, 0x00], 0),
            ([UInt8](repeating: 0xFF, count: 9) + [0x01], UInt64.max),
        ] as [([UInt8], UInt64)])
    func varints(bytes: [UInt8], value: UInt64) throws {
        expectEqual(try read(bytes) { try $0.varint() }, value)
        for count in 0..<bytes.count {
            #expect(throws: ByteError.endOfInput(missing: 1)) { try read(Array(bytes[..<count])) { try $0.varint() } }
        }
    }

    @Test func varintsThatAreTooLong() {
        let bytes = [UInt8](repeating: 0xFF, count: 9) + [0x02]
        #expect(throws: ByteError.malformed(position: 9)) { try read(bytes) { try $0.varint() } }
        #expect(throws: ByteError.limitExceeded(limit: 4)) { try read(bytes) { try $0.varint(limit: 4) } }
        #expect(throws: ByteError.limitExceeded(limit: -1)) { try read(bytes) { try $0.varint(limit: -1) } }
    }

    /// More bytes complete a frame, but not a part whose length has been read.
    @Test func theEndOfAPartIsNoIncompleteFrame() throws {
        let bytes: [UInt8] = [1, 9]
        func decode(_ body: (inout ByteReader) throws -> UInt32) throws -> Int? {
            let frame = try DecodedFrame<UInt32>.reading(bytes.span.bytes, body)
            return if case .incomplete(let missing) = frame { missing } else { nil }
        }
        #expect(throws: ByteError.endOfInput(missing: 3)) {
            try decode { reader in
                var part = ByteReader(try reader.bytes(prefixedBy: UInt8.self, limit: 9))
                return try part.integer()
            }
        }
        let ofCopy = try decode { reader in
            var ahead = reader
            return try ahead.integer()
        }
        expectEqual(ofCopy, 2)
    }

    @Test func theLimitHoldsWithoutADelimiterToo() throws {
        try read([UInt8](repeating: 1, count: 65537)) { reader throws in
            #expect(throws: ByteError.limitExceeded(limit: 65536)) { [UInt8](try reader.bytes(until: 0)) }
            #expect(throws: ByteError.limitExceeded(limit: 65536)) { [UInt8](try reader.line()) }
            #expect(throws: ByteError.limitExceeded(limit: 40)) { try reader.decimal(until: 0, as: Int.self) }
        }
        // The limit is for the line; the return before the newline is not part of it.
        try read(Array("ab\r\n".utf8)) { reader throws in
            #expect(throws: ByteError.limitExceeded(limit: 1)) { [UInt8](try reader.line(limit: 1)) }
            expectEqual([UInt8](try reader.line(limit: 2)), [0x61, 0x62])
        }
        try read(Array("abc\n".utf8)) { reader throws in
            #expect(throws: ByteError.limitExceeded(limit: 2)) { [UInt8](try reader.line(limit: 2)) }
            expectEqual(reader.position, 0)
        }
    }

    @Test(
        arguments: [
            ("0", 0), ("-0", 0), ("007", 7), ("9223372036854775807", .max), ("-9223372036854775808", .min),
            ("9223372036854775808", nil), ("-9223372036854775809", nil), ("", nil), ("-", nil), ("+1", nil),
            ("1 ", nil), ("1a", nil), ("--1", nil), ("1:", nil), ("1/", nil),
        ] as [(String, Int?)])
    func decimals(text: String, value: Int?) throws {
        let bytes = Array((text + "\r\n").utf8)
        try read(bytes) { reader throws in
            if let value {
                expectEqual(try reader.decimal(until: 0x0D), value)
                expectEqual(reader.remaining, 1)
            } else {
                #expect(throws: ByteError.malformed(position: 0)) { try reader.decimal(until: 0x0D, as: Int.self) }
                expectEqual(reader.position, 0)
            }
        }
    }

    @Test func aNegativeNumberIsNoUnsignedOne() {
        #expect(throws: ByteError.self) { try read(Array("-1\n".utf8)) { try $0.decimal(until: 10, as: UInt8.self) } }
        #expect(throws: ByteError.self) { try read(Array("256\n".utf8)) { try $0.decimal(until: 10, as: UInt8.self) } }
        #expect(throws: ByteError.endOfInput(missing: 1)) {
            try read(Array("25".utf8)) { try $0.decimal(until: 10, as: UInt8.self) }
        }
    }

    @Test func linesAndDelimiters() throws {
        try read(Array("GET\r\n\nx\0rest".utf8)) { reader throws in
            expectEqual(try String(utf8: reader.line()), "GET")
            expectEqual(try String(utf8: reader.line()), "")
            expectEqual(try String(utf8: reader.bytes(until: 0)), "x")
            #expect(throws: ByteError.endOfInput(missing: 1)) { [UInt8](try reader.line()) }
            #expect(throws: ByteError.limitExceeded(limit: 2)) { [UInt8](try reader.line(limit: 2)) }
            expectEqual([UInt8](reader.rest()), Array("rest".utf8))
        }
        #expect(throws: ByteError.malformed(position: 1)) { try read([0x61, 0xFF]) { try String(utf8: $0.bytes(2)) } }
    }
}

struct ByteWriterTests {
    @Test func aPartFollowsItsLength() throws {
        var writer = ByteWriter(reserving: 64)
        writer.append(UInt8(1))
        try writer.append(prefixedBy: UInt16.self) { part in
            part.append("ab\0")
            try part.append(prefixedBy: UInt32.self, .littleEndian) { $0.append([9, 8]) }
        }
        expectEqual(writer.bytes, [1, 0, 9, 0x61, 0x62, 0, 2, 0, 0, 0, 9, 8])
    }

    @Test func aPartThatIsTooLongAppendsNothing() throws {
        var writer = ByteWriter()
        writer.append("a")
        #expect(throws: ByteError.limitExceeded(limit: 255)) {
            try writer.append(prefixedBy: UInt8.self) { $0.append([UInt8](repeating: 0, count: 256)) }
        }
        #expect(throws: Flaw(1)) {
            try writer.append(prefixedBy: UInt8.self) {
                $0.append([1])
                throw Flaw(1)
            }
        }
        expectEqual(writer.bytes, [0x61])
    }

    /// A body may put another writer in the place of its own, with fewer bytes or with shared ones.
    @Test(arguments: [0, 100, 40_000], [false, true]) func aBodyThatReplacesTheWriter(count: Int, isShared: Bool) {
        var writer = ByteWriter()
        writer.append(pattern(100))
        if isShared { writer.append(SharedBytes(pattern(30_000))) }
        #expect(throws: ByteError.self) {
            try writer.append(prefixedBy: UInt32.self) {
                $0 = ByteWriter()
                $0.append(SharedBytes(pattern(count)))
                if count == 0 || isShared { throw ByteError.limitExceeded(limit: 0) }
            }
        }
        expect(writer.bytes.count <= 30_100)
    }

    @Test func decimals() {
        var writer = ByteWriter()
        for value in [0, -7, 10, .max, .min] as [Int] {
            writer.append(decimal: value)
            writer.append(" ")
        }
        expectEqual(writer.bytes, Array("0 -7 10 9223372036854775807 -9223372036854775808 ".utf8))
    }

    /// Values of each kind in any order, written and read again, and cut at each byte.
    @Test(arguments: 0..<20) func whatIsWrittenIsRead(seed: UInt64) throws {
        var dice = SplitMix64(seed)
        let kinds = (0..<8).map { _ in Int.random(in: 0..<5, using: &dice) }
        let values = kinds.map { _ in
            UInt64.random(in: 0...(1 << UInt64.random(in: 0...63, using: &dice)), using: &dice)
        }
        var writer = ByteWriter()
        for (kind, value) in zip(kinds, values) {
            switch kind {
            case 0: writer.append(value)
            case 1: writer.append(value, .littleEndian)
            case 2: writer.append(varint: value)
            case 3:
                writer.append(decimal: value)
                writer.append(" ")
            default: try writer.append(prefixedBy: UInt8.self) { $0.append("\(value)") }
            }
        }
        func readBack(_ reader: inout ByteReader) throws {
            for (kind, value) in zip(kinds, values) {
                switch kind {
                case 0: expectEqual(try reader.integer(), value)
                case 1: expectEqual(try reader.integer(as: UInt64.self, .littleEndian), value)
                case 2: expectEqual(try reader.varint(), value)
                case 3: expectEqual(try reader.decimal(until: 0x20), value)
                default: expectEqual(try String(utf8: reader.bytes(prefixedBy: UInt8.self, limit: 255)), "\(value)")
                }
            }
        }
        let bytes = writer.bytes
        try read(bytes) { reader throws in
            try readBack(&reader)
            expectEqual(reader.remaining, 0)
        }
        for count in 0..<bytes.count {
            let part = Array(bytes[..<count])
            let result = try DecodedFrame<Void>.reading(part.span.bytes) { reader throws in
                // No expectation fails before the end.
                try readBack(&reader)
            }
            guard case .incomplete(let missing) = result else {
                Issue.record("a frame of \(count) of \(bytes.count) bytes")
                return
            }
            expect(missing >= 1 && missing <= bytes.count - count)
        }
    }
}

@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// Any stream in any pieces: every form of reading returns the same as if all bytes were there at once.
///
/// `FUZZ_SEEDS=10000` tries that many streams; the number of a test case is the seed that repeats it.
struct FrameFuzzingTests {
    private static let corpus: [[UInt8]] =
        [
            "GET /path HTTP/1.1\r\nHost: example.com\r\nContent-Length: 5\r\n\r\nhello",
            "one\ntwo\r\nthree\rfour\n\n\r\n\r\r\n", "\r\n\r\r\n\r\n\r\n\r", "aaaaaaaaab", "abababac",
            "--boundary\r\n--boundary--",
            "$5\r\nhello\r\n*2\r\n:1\r\n", "line with ümlaut and 🙂\nnext\n",
            "\u{7F}\u{80}\u{7FF}\u{800}\u{FFFF}\u{10000}\u{10FFFF}\n",
            "", "\n", "\r", "x",
        ].map { Array($0.utf8) } + [
            // Overlong, out of range, surrogates, truncated, and continuation bytes without a start.
            [0xC0, 0x80, 0x0A], [0xED, 0xA0, 0x80, 0x0A], [0xF4, 0x90, 0x80, 0x80, 0x0A], [0xE2, 0x82, 0x0A, 0xAC],
            [0x80, 0x0A],
            [0x00, 0x00, 0x00, 0x05, 0x01, 0x02, 0x03, 0x04, 0x05], [UInt8](repeating: 0x0A, count: 300),
            [UInt8](repeating: 0x61, count: 5000), [0xFF, 0xFE, 0x0A],
        ]
    private static let delimiters: [[UInt8]] = [
        [0x0A], [0x0D, 0x0A], [0x0D, 0x0A, 0x0D, 0x0A], [0x61], [0x61, 0x62], [0x61, 0x61, 0x61], [0x00], [0x2D, 0x2D],
        [0x61, 0x62, 0x61, 0x63], [0x0A, 0x0A], [0xFF],
    ]
    private static let seeds = getenv("FUZZ_SEEDS").flatMap { Int(String(cString: $0)) } ?? (isSanitized ? 12 : 60)

    @Test(.network(turns: .max), arguments: 0..<UInt64(seeds)) func everyFormBringsWhatTheWholeStreamWould(seed: UInt64)
        throws
    {
        var dice = SplitMix64(seed)
        var model = FramingModel(stream(&dice))
        let (a, b) = try Connection.pair()
        try say(model.stream, b, net, &dice)
        var tries = 0
        // Refusals consume nothing, so every now and then another read must.
        while tries < 400 && (!model.rest.isEmpty || tries < 20) {
            tries += 1
            let size = 1 + dice.below(dice.pick([3, 30, 400, 6000]))
            switch dice.below(6) {
            case 0: try check(a.read(exactly: size).map { .bytes($0) }, model.exactly(size))
            case 1:
                let delimiter = dice.pick(Self.delimiters)
                let read = a.read(until: delimiter, limit: size)
                try check(read.map { $0.map { .bytes($0) } ?? .nothing }, model.until(delimiter, limit: size))
            case 2:
                let read = a.readLine(limit: size)
                try check(read.map { $0.map { .line($0) } ?? .nothing }, model.line(limit: size))
            case 3:
                let part = try hang(a.receive(upTo: size), timeout: patience)
                expect(part.count <= size && model.rest.starts(with: part))
                expect(!part.isEmpty || model.rest.isEmpty)
                model.skip(part.count)
            case 4: try withdraw(a.read(exactly: model.rest.count + size), net, &dice)
            case 5 where !model.rest.isEmpty:
                try withdraw(a.read(until: [0xC1, 0xC1, 0xC1], limit: .max), net, &dice)
            default: break
            }
        }
        expect(net.loop.metrics.turns <= 200 + 6 * net.calls(.receive) + 3 * tries, "it spins")
        a.abort()
        b.abort()
        try net.loop.run()
    }

    private func check(_ read: Promise<FramingModel.Answer>, _ expected: FramingModel.Answer) throws {
        let answer = read.recover(policy: .allErrors) { error -> Promise<FramingModel.Answer> in
            guard let error = error as? StreamError else { throw error }
            return .value(.refused(error))
        }
        expectEqual(try hang(answer, timeout: patience), expected)
    }

    /// A read that cannot finish is cancelled after a few turns; at the end of the stream it is refused.
    private func withdraw<T>(_ read: Promise<T>, _ net: Network, _ dice: inout SplitMix64) throws {
        for _ in 0..<dice.below(4) { try net.loop.turn(.poll) }
        read.cancel()
        expect(read.isRejected)
        read.ignoringErrors()
    }

    /// Several entries of the corpus in a row, with a few changes.
    private func stream(_ dice: inout SplitMix64) -> [UInt8] {
        var bytes: [UInt8] = []
        for _ in 0..<1 + dice.below(8) { bytes += dice.pick(Self.corpus) }
        for _ in 0..<dice.below(8) where !bytes.isEmpty {
            let place = dice.below(bytes.count)
            switch dice.below(5) {
            case 0: bytes[place] = UInt8(dice.below(256))
            case 1: bytes.removeSubrange(place..<min(bytes.count, place + dice.below(20)))
            case 2: bytes.insert(contentsOf: dice.pick(Self.delimiters), at: place)
            case 3: bytes.insert(contentsOf: bytes[place..<min(bytes.count, place + dice.below(50))], at: place)
            default: bytes.swapAt(place, dice.below(bytes.count))
            }
        }
        return bytes
    }

    /// Sends the bytes in pieces, a few of them per turn, which are read in other pieces.
    private func say(_ bytes: [UInt8], _ connection: Connection, _ net: Network, _ dice: inout SplitMix64) throws {
        let (written, read) = (1 + dice.below(dice.pick([2, 40, 3000])), 1 + dice.below(dice.pick([2, 40, 3000])))
        var sizes = SplitMix64(dice.next())
        net.kernel.receive = { [real = net.kernel.receive] in real($0, $1, min($2, 1 + sizes.below(read))) }
        connection.send(bytes, inPiecesOf: written).ignoringErrors()
    }
}

/// The expected results of reads, from the whole stream at once: how it arrives in pieces must not matter.
private struct FramingModel {
    let stream: [UInt8]
    private(set) var place = 0

    init(_ stream: [UInt8]) { self.stream = stream }

    enum Answer: Equatable {
        case bytes([UInt8])
        case line(String)
        /// The stream has ended where an answer could begin.
        case nothing
        case refused(StreamError)
    }

    var rest: ArraySlice<UInt8> { stream[place...] }

    /// Skips bytes that another form of reading has taken.
    mutating func skip(_ count: Int) { place += count }

    mutating func exactly(_ count: Int) -> Answer {
        if rest.count < count { return .refused(.endedEarly(expected: .bytes(count), got: rest.count)) }
        defer { place += count }
        return .bytes(Array(rest.prefix(count)))
    }

    mutating func until(_ delimiter: [UInt8], limit: Int) -> Answer {
        guard let end = first(delimiter) else {
            if rest.count - delimiter.count >= limit { return .refused(.limitExceeded(limit: limit)) }
            return rest.isEmpty
                ? .nothing : .refused(.endedEarly(expected: .delimiter(delimiter), got: rest.count))
        }
        if end > limit { return .refused(.limitExceeded(limit: limit)) }
        defer { place += end + delimiter.count }
        return .bytes(Array(rest.prefix(end)))
    }

    mutating func line(limit: Int) -> Answer {
        let newline = rest.firstIndex(of: 0x0A)
        var text = rest[..<(newline ?? rest.endIndex)]
        let size = text.count
        if text.last == 0x0D { text.removeLast() }
        if text.count > limit { return .refused(.limitExceeded(limit: limit)) }
        if newline == nil {
            return size == 0 ? .nothing : .refused(.endedEarly(expected: .delimiter([0x0A]), got: size))
        }
        if let flaw = Self.firstFlaw(Array(text)) { return .refused(.notUTF8(position: flaw)) }
        place += size + 1
        return .line(String(decoding: text, as: UTF8.self))
    }

    /// The place where `delimiter` begins, by trying each one.
    private func first(_ delimiter: [UInt8]) -> Int? {
        (0..<max(0, rest.count - delimiter.count + 1)).first { rest.dropFirst($0).starts(with: delimiter) }
    }

    /// The start of the first invalid character: the rest of what is a text up to there.
    private static func firstFlaw(_ bytes: [UInt8]) -> Int? {
        func isText(_ count: Int) -> Bool { String(validating: bytes.prefix(count), as: UTF8.self) != nil }
        return isText(bytes.count) ? nil : (0..<bytes.count).last(where: isText)
    }
}

@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

struct StopReadingTests {
    enum Way: CaseIterable { case thrown, rejected, rejectedLater, thrownWithoutPromises }

    @Test(.network(.virtual), arguments: Way.allCases, [false, true])
    func whatFollowsIsLeftToTheNextRead(way: Way, inChunks: Bool) throws {
        let (a, b) = try Connection.pair()
        var seen: [String] = []
        func handle(_ text: String) throws -> Promise<Void> {
            seen.append(text)
            guard text.hasPrefix("stop") else { return .value }
            switch way {
            case .rejected: return Promise(error: StopReading())
            case .rejectedLater: return after(.milliseconds(10)).done { throw StopReading() }
            case .thrown, .thrownWithoutPromises: throw StopReading()
            }
        }
        let all: Promise<Void> =
            switch (way, inChunks) {
            case (.thrownWithoutPromises, false): a.forEachLine { _ = try handle($0) }
            case (.thrownWithoutPromises, true): a.forEachChunk { _ = try handle(String(utf8: $0)) }
            case (_, false): a.forEachLine { try handle($0) }
            case (_, true): a.forEachChunk { try handle(String(utf8: $0)) }
            }
        for text in inChunks ? ["one\n", "stop\n", "two\nthree"] : ["one\nstop\ntwo\nthree"] {
            try hang(b.write(text), timeout: patience)
            try net.loop.turn(.poll)
        }
        try hang(all, timeout: patience)
        expectEqual(seen, inChunks ? ["one\n", "stop\n"] : ["one", "stop"])
        expectEqual(try hang(a.readLine(), timeout: patience), "two")
        expectEqual(try hang(a.read(), timeout: patience), .bytes(Array("three".utf8)))
    }

    /// The body throws it in the call that cancelled the loop.
    @Test(.network) func itDoesNotReplaceACancellation() throws {
        let (a, b) = try Connection.pair()
        var all: Promise<Void>?
        all = a.forEachLine { _ in
            all?.cancel()
            throw StopReading()
        }
        try hang(b.write("x\n"), timeout: patience)
        #expect(throws: PromiseError.cancelled) { try hang(all!, timeout: patience) }
        all = nil
    }
}

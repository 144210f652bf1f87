@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// `FrameTimeouts.message` and `minimumRate`. A message is a line, followed by further lines up to one that says "end".
struct MessageTimeoutTests {
    private let limits = FrameTimeouts(frame: .seconds(10), message: .seconds(20))

    /// A loop over such messages.
    private final class Conversation {
        private(set) var messages: [String] = []
        private var all = Promise<Void>.value
        /// The time that the handler works before each read of a part.
        private let work: Duration

        init(_ limits: FrameTimeouts, work: Duration = .zero) {
            self.work = work
            connection.frameTimeouts = limits
            all = connection.forEachLine { [unowned self] head in parts(head) }
        }

        private func parts(_ text: String) -> Promise<Void> {
            after(work).then { connection.readLine() }.then { [self] part -> Promise<Void> in
                guard let part else { return .value }
                if part != "end" { return parts(text + part) }
                messages.append(text)
                return .value
            }
        }

        /// The number of bytes of the message that had arrived when its time was over.
        var late: Int? {
            guard case StreamError.timedOut(let got)? = all.error else { return nil }
            return got
        }
    }

    private func send(_ text: String, andWait seconds: Int) throws {
        try net.deliver(text, from: peer)
        try net.loop.turn(.poll)
        hang(after(.seconds(seconds)))
    }

    private func parts() -> Promise<Void> { connection.readLine().then { _ in parts() } }

    @Test(.pair(.virtual)) func theReadsOfABodyAreOneMessage() throws {
        let it = Conversation(limits)
        for text in ["head\n", "a\n", "b\n"] { try send(text, andWait: 6) }
        expectEqual(it.late, nil)
        try send("c\n", andWait: 1)
        expectEqual(it.late, nil)
        hang(after(.seconds(2)))
        expectEqual(it.late, 11)
    }

    @Test(.pair(.virtual)) func eachMessageCountsAnewAlsoBehindAnother() throws {
        let it = Conversation(limits)
        for text in ["one\n", "a\n", "end\ntwo\n", "b\n", "end\n"] { try send(text, andWait: 9) }
        expect(it.messages == ["onea", "twob"] && it.late == nil)
        hang(after(.seconds(100)))
        expectEqual(it.late, nil)
        try send("three\n", andWait: 19)
        expectEqual(it.late, nil)
        hang(after(.seconds(2)))
        expectEqual(it.late, 6)
    }

    @Test(.pair(.virtual)) func whatTheHandlerTakesDoesNotCount() throws {
        let it = Conversation(limits, work: .seconds(60))
        for text in ["head\n", "a\n", "b\n", "end\n"] { try send(text, andWait: 65) }
        expect(it.late == nil && it.messages == ["headab"], "it has waited five seconds for each of three parts")
    }

    @Test(.pair(.virtual, turns: 4000)) func aRateMakesTheLimitAHeadStart() throws {
        let it = Conversation(FrameTimeouts(frame: .seconds(10), message: .seconds(10), minimumRate: 1))
        try send("head\n", andWait: 5)
        for _ in 0..<100 { try send("part\n", andWait: 5) }
        expectEqual(it.late, nil)
        // Half as fast: five seconds behind after each ten.
        try send("part\n", andWait: 10)
        expectEqual(it.late, nil)
        try send("part\n", andWait: 11)
        expectEqual(it.late, 5 * 103)
    }

    @Test(.pair(.virtual, turns: 4000)) func aRateAppliesToALargeFrame() throws {
        connection.frameTimeouts = FrameTimeouts(frame: .seconds(10), minimumRate: 10)
        let read = connection.read(exactly: 10_000)
        for _ in 0..<100 { try send("10 bytes..", andWait: 1) }
        let begin = net.loop.now
        expectEqual(try timeout(of: read), 1000)
        expectEqual(begin.duration(to: net.loop.now), .seconds(10))
    }

    /// Otherwise a peer that sends a part whenever the time is over would stay forever.
    @Test(.pair(.virtual)) func aPartThatIsThereWhenTheTimeIsOverGainsNone() throws {
        connection.frameTimeouts = limits
        let all = connection.forEachLine { _ in parts() }
        for _ in 0..<3 where all.isPending {
            try net.deliver("part\n", from: peer)
            try net.loop.turn(.poll)
            try net.loop.turn(.poll)
            net.clock.advance(by: .seconds(20))
        }
        expectEqual(try timeout(of: all), 10)
    }

    enum Reads: CaseIterable {
        case lines, asyncLines, behindAsyncLines, withoutALoop
        // Otherwise a peer that sends the parts of a body slowly would stay forever.
        case declared, inALoopBehindALoop, byALoopInABody, behindALoopInABody
    }

    /// Eight arrivals, six seconds apart, each of which is a line, or ends one and begins the next.
    @Test(.pair(.virtual, turns: 4000), arguments: Reads.allCases, ["line\n", "\nb"])
    func whichReadsAreOneMessage(reads: Reads, text: String) throws {
        connection.frameTimeouts = limits
        func stoppedLoop() -> Promise<Void> { connection.forEachLine { _ -> Promise<Void> in throw StopReading() } }
        let all: Promise<Void>
        switch reads {
        case .lines: all = connection.forEachLine { _ in Promise.value }
        case .asyncLines: all = Promise(on: net.loop) { for try await _ in connection.lines {} }
        case .behindAsyncLines:
            all = Promise(on: net.loop) {
                for try await _ in connection.lines { break }
                while try await connection.readLine().value != nil {}
            }
        case .withoutALoop: all = parts()
        case .declared:
            connection.beginMessage()
            all = parts()
        case .inALoopBehindALoop: all = stoppedLoop().then { connection.forEachLine { _ in parts() } }
        case .byALoopInABody: all = connection.forEachLine { _ in connection.forEachLine { _ in Promise.value } }
        case .behindALoopInABody: all = connection.forEachLine { _ in stoppedLoop().then { parts() } }
        }
        for _ in 0..<8 where all.isPending { try send(text, andWait: 6) }
        switch reads {
        case .lines, .asyncLines, .behindAsyncLines, .withoutALoop:
            expect(all.isPending && connection.bytesReceived == 8 * text.utf8.count)
        default: expect(try timeout(of: all) != nil)
        }
    }

    @Test(.pair(.virtual, turns: 4000)) func aReadThatOutlastsItsLoopEndsAtTheLimitOfTheMessage() throws {
        connection.frameTimeouts = FrameTimeouts(message: .seconds(20))
        var part: Promise<[UInt8]>?
        let all = connection.forEachLine { _ -> Promise<Void> in
            part = connection.read(exactly: 100)
            throw StopReading()
        }
        try peer.send("head\nrest")
        try hang(all, timeout: patience)
        let begin = net.loop.now
        expectEqual(try part.map(timeout), 4)
        expectEqual(begin.duration(to: net.loop.now), .seconds(20))
    }
}

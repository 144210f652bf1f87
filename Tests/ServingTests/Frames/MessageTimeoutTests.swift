@testable import PromisesTestSupport

/// `FrameTimeouts.message` and `minimumRate`. A message is a line, followed by further lines up to one that says "end".
struct MessageTimeoutTests {
    private final class Conversation {
        let connection: Connection
        private let peer: Peer
        private let net: Network
        private let clock: VirtualClock
        private(set) var messages: [String] = []
        private(set) var all = Promise<Void>.value
        /// The time that the handler works before each read of a part.
        var work = Duration.zero

        init(_ net: Network, _ clock: VirtualClock, _ limits: FrameTimeouts) throws {
            (connection, peer) = try net.pair()
            self.net = net
            self.clock = clock
            connection.frameTimeouts = limits
        }

        func begin() {
            all = connection.forEachLine { [unowned self] head in parts(head) }
        }

        private func parts(_ text: String) -> Promise<Void> {
            after(work).then { [self] in connection.readLine() }.then { [self] part -> Promise<Void> in
                guard let part else { return .value }
                if part != "end" { return parts(text + part) }
                messages.append(text)
                return .value
            }
        }

        func send(_ text: String, andWait seconds: Int) throws {
            try net.deliver(text, from: peer)
            try net.loop.turn(.poll)
            hang(after(.seconds(seconds)))
        }

        /// The number of bytes of the message that had arrived when its time was over.
        var late: Int? {
            guard case StreamError.timedOut(let got)? = all.error else { return nil }
            return got
        }
    }

    private func converse(_ limits: FrameTimeouts, _ body: (Conversation) throws -> Void) throws {
        let clock = VirtualClock()
        try withNetwork(clock: clock, turns: 4000) { net in
            let conversation = try Conversation(net, clock, limits)
            conversation.begin()
            try body(conversation)
            conversation.connection.abort()
        }
    }

    private func parts(_ connection: Connection) -> Promise<Void> {
        connection.readLine().then { _ in parts(connection) }
    }

    private let limits = FrameTimeouts(frame: .seconds(10), message: .seconds(20))

    @Test func theReadsOfABodyAreOneMessage() throws {
        try converse(limits) { it in
            for text in ["head\n", "a\n", "b\n"] { try it.send(text, andWait: 6) }
            expectEqual(it.late, nil)
            try it.send("c\n", andWait: 1)
            expectEqual(it.late, nil)
            hang(after(.seconds(2)))
            expectEqual(it.late, 11)
        }
    }

    @Test func eachMessageCountsAnewAlsoBehindAnother() throws {
        try converse(limits) { it in
            for text in ["one\n", "a\n", "end\ntwo\n", "b\n", "end\n"] { try it.send(text, andWait: 9) }
            expect(it.messages == ["onea", "twob"] && it.late == nil)
            hang(after(.seconds(100)))
            expectEqual(it.late, nil)
            try it.send("three\n", andWait: 19)
            expectEqual(it.late, nil)
            hang(after(.seconds(2)))
            expectEqual(it.late, 6)
        }
    }

    @Test func whatTheHandlerTakesDoesNotCount() throws {
        try converse(limits) { it in
            it.work = .seconds(60)
            for text in ["head\n", "a\n", "b\n", "end\n"] { try it.send(text, andWait: 65) }
            expect(it.late == nil && it.messages == ["headab"], "it has waited five seconds for each of three parts")
        }
    }

    @Test func aRateMakesTheLimitAHeadStart() throws {
        try converse(FrameTimeouts(frame: .seconds(10), message: .seconds(10), minimumRate: 1)) { it in
            try it.send("head\n", andWait: 5)
            for _ in 0..<100 { try it.send("part\n", andWait: 5) }
            expectEqual(it.late, nil)
            // Half as fast: five seconds behind after each ten.
            try it.send("part\n", andWait: 10)
            expectEqual(it.late, nil)
            try it.send("part\n", andWait: 11)
            expectEqual(it.late, 5 * 103)
        }
    }

    @Test(.pair(.virtual, turns: 4000)) func aRateAppliesToALargeFrame() throws {
        connection.frameTimeouts = FrameTimeouts(frame: .seconds(10), minimumRate: 10)
        let read = connection.read(exactly: 10_000)
        for _ in 0..<100 {
            try net.deliver([UInt8](repeating: 0, count: 10), from: peer)
            try net.loop.turn(.poll)
            hang(after(.seconds(1)))
        }
        expect(read.isPending)
        hang(after(.seconds(9)))
        expect(read.isPending)
        hang(after(.seconds(2)))
        guard case StreamError.timedOut(got: 1000)? = read.error else { return expect(Bool(false), "\(read)") }
    }

    /// Otherwise a peer that sends a part whenever the time is over would stay forever.
    @Test(.pair(.virtual)) func aPartThatIsThereWhenTheTimeIsOverGainsNone() throws {
        connection.frameTimeouts = limits
        let all = connection.forEachLine { _ in parts(connection) }
        for _ in 0..<3 where all.isPending {
            try net.deliver("part\n", from: peer)
            try net.loop.turn(.poll)
            try net.loop.turn(.poll)
            net.clock.advance(by: .seconds(30))
        }
        try hang(all.recover(policy: .allErrors) { _ in .value })
        guard case StreamError.timedOut(got: 10)? = all.error else { return expect(Bool(false), "\(all)") }
    }

    @Test func aHandlerWithoutALoopSaysWhereAMessageBegins() throws {
        for says in [false, true] {
            try withPair(clock: VirtualClock()) { net, connection, peer in
                connection.frameTimeouts = limits
                if says { connection.beginMessage() }
                let all = parts(connection)
                for _ in 0..<5 where all.isPending {
                    try net.deliver("part\n", from: peer)
                    try net.loop.turn(.poll)
                    hang(after(.seconds(6)))
                }
                expect(all.isPending != says)
            }
        }
    }

    /// Sends `text` eight times, six seconds apart, or until `isOver`.
    private func repeatedly(_ text: String, from peer: Peer, _ net: Network, until isOver: () -> Bool) throws {
        for _ in 0..<8 where !isOver() {
            try net.deliver(text, from: peer)
            try net.loop.turn(.poll)
            hang(after(.seconds(6)))
        }
    }

    /// Each arrival ends a line and begins the next.
    @Test(.listener(.virtual, turns: 4000), arguments: [false, true]) func eachLineOfALoopIsAMessageAlsoInAStream(
        isAsync: Bool
    ) throws {
        var errors: [any Error] = []
        var count = 0
        let served =
            isAsync
            ? listener.serveAsync(onError: { error, _ in errors.append(error) }) { connection in
                connection.frameTimeouts = limits
                for try await _ in connection.lines { count += 1 }
            }
            : listener.serve(onError: { error, _ in errors.append(error) }) { connection in
                connection.frameTimeouts = limits
                return connection.forEachLine { _ -> Promise<Void> in
                    count += 1
                    return .value
                }
            }
        let peer = try Peer(to: listener.localAddress, sending: "a")
        try net.loop.run(until: { listener.activeConnections == 1 })
        try repeatedly("\nb", from: peer, net) { !errors.isEmpty }
        expect(errors.isEmpty && count == 8)
        try listener.end(served, closing: [peer])
    }

    @Test(.listener(.virtual, turns: 4000)) func theReadsBehindAsyncLinesAreMessagesOfTheirOwn() throws {
        var errors: [any Error] = []
        var count = 0
        let served = listener.serveAsync(onError: { error, _ in errors.append(error) }) { connection in
            connection.frameTimeouts = limits
            for try await _ in connection.lines { break }
            while try await connection.readLine().value != nil { count += 1 }
        }
        let peer = try Peer(to: listener.localAddress, sending: "head\na")
        try net.loop.run(until: { listener.activeConnections == 1 })
        try repeatedly("\nb", from: peer, net) { !errors.isEmpty }
        expect(errors.isEmpty && count == 8)
        peer.reset()
        try listener.end(served)
    }

    /// Otherwise a peer that sends the parts of a body slowly would stay forever.
    @Test(.pair(.virtual, turns: 4000), arguments: [false, true]) func aLoopInABodyReadsAPartOfItsMessage(
        isInside: Bool
    ) throws {
        connection.frameTimeouts = limits
        let all = connection.forEachLine { _ in
            connection.forEachLine { _ -> Promise<Void> in if isInside { .value } else { throw StopReading() } }
                .then { parts(connection) }
        }
        try repeatedly("part\n", from: peer, net) { !all.isPending }
        guard case StreamError.timedOut? = all.error else { return expect(Bool(false), "\(all)") }
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
        try hang(part!.asVoid().recover(policy: .allErrors) { _ in .value }, timeout: .seconds(21))
        guard case StreamError.timedOut(got: 4)? = part?.error else { return expect(Bool(false), "\(part!)") }
    }

    @Test(.pair(.virtual, turns: 4000)) func aLoopBehindALoopBeginsMessages() throws {
        connection.frameTimeouts = limits
        let all = connection.forEachLine { _ -> Promise<Void> in throw StopReading() }
            .then { connection.forEachLine { _ in parts(connection) } }
        try repeatedly("part\n", from: peer, net) { !all.isPending }
        guard case StreamError.timedOut? = all.error else { return expect(Bool(false), "\(all)") }
    }
}

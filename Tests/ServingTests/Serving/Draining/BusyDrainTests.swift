@testable import Promises
@testable import PromisesTestSupport
@testable import ReactorIO
@testable import ReactorIOTestSupport

/// A drain of clients that keep their pipelines full: what a handler has read is answered, and the connection ends in
/// order.
struct BusyDrainTests {
    enum Loop: CaseIterable { case frames, lines, linesWithoutPromises, chunks, asyncLines, asyncFrames, asyncChunks }
    enum Answers: CaseIterable { case awaited, declared }

    /// Answers each byte `x` of a line with `a`, after `time`.
    struct Handler: Sendable {
        let loop: Loop
        let answers: Answers
        let time: Duration
        let read = Shared(0)

        func answer(_ text: String, on connection: Connection) -> Promise<Void> {
            let count = text.utf8.count { $0 == UInt8(ascii: "x") }
            read.change { $0 += count }
            let answer = after(time).then { connection.write(String(repeating: "a", count: count)) }
            if answers == .awaited { return answer }
            connection.deferDrain(until: answer).ignoringErrors()
            return .value
        }

        func serve(_ connection: Connection) -> Promise<Void> {
            switch loop {
            case .frames: connection.forEachFrame(LineDecoder()) { line, _ in answer(line, on: connection) }
            case .linesWithoutPromises: connection.forEachLine { _ = answer($0, on: connection) }
            case .chunks: connection.forEachChunk { answer(try String(utf8: $0), on: connection) }
            default: connection.forEachLine { answer($0, on: connection) }
            }
        }

        func serveAsync(_ connection: Connection) async throws {
            switch loop {
            case .asyncFrames:
                for try await frame in connection.frames(DelimiterDecoder("\n")) {
                    try await firstly { answer(String(decoding: frame, as: UTF8.self), on: connection) }.value
                }
            case .asyncChunks:
                for try await chunk in connection.chunks {
                    try await firstly { answer(String(decoding: chunk, as: UTF8.self), on: connection) }.value
                }
            default: for try await line in connection.lines { try await firstly { answer(line, on: connection) }.value }
            }
        }

        var isAsync: Bool { loop == .asyncLines || loop == .asyncFrames || loop == .asyncChunks }
        /// Whether the loop knows where a request ends.
        var hasFrames: Bool { loop != .chunks && loop != .asyncChunks }
    }

    /// A line every 5 ms, of which each is answered after 400 ms.
    @Test(.listener(.virtual, turns: 100_000), arguments: Loop.allCases, Answers.allCases)
    func everythingThatWasReadIsAnswered(loop: Loop, answers: Answers) throws {
        let handler = Handler(loop: loop, answers: answers, time: .milliseconds(400))
        let served =
            handler.isAsync
            ? listener.serveAsync { try await handler.serveAsync($0) } : listener.serve { handler.serve($0) }
        let client = try Peer(to: listener.localAddress)
        var drained: Guarantee<DrainResult>?
        var begin = net.loop.now
        for number in 0..<2500 {
            if number == 100 {
                drained = listener.drain(deadline: .seconds(10))
                begin = net.loop.now
            }
            if number > 100 && listener.activeConnections == 0 { break }
            try client.send("x\n")
            hang(after(.milliseconds(5)))
        }
        let time = begin.duration(to: net.loop.now)
        expectEqual(try client.readToEnd().count, handler.read.value)
        client.close()
        let result = hang(drained!)
        expect(result.aborted == 0 && result.idle == 1, "\(result)")
        // Answers that are not awaited leave at once; others, and streams without frames, have their time.
        let isEarly = answers == .declared && handler.hasFrames && loop != .linesWithoutPromises
        expect(time < (isEarly ? .milliseconds(500) : .milliseconds(9600)), "\(time)")
        _ = try hang(served)
    }

    /// Each client always has 50 requests under way.
    @Suite(.ownThread) struct OnAGroup {
        @Test(.group(2), arguments: [Loop.frames, .lines, .asyncLines, .asyncFrames], Answers.allCases)
        func everythingThatWasReadIsAnswered(loop: Loop, answers: Answers) throws {
            let handler = Handler(loop: loop, answers: answers, time: .milliseconds(5))
            let served =
                handler.isAsync
                ? listener.serveAsync(on: loops) { try await handler.serveAsync($0) }
                : listener.serve(on: loops) { handler.serve($0) }
            let clients = try (0..<4).map { _ in try Peer(to: listener.localAddress) }
            let answered = Shared(0)
            let ended = clients.map { client in
                elsewhere {
                    try client.send(String(repeating: "x\n", count: 50))
                    while case let count = try client.receive().count, count > 0 {
                        answered.change { $0 += count }
                        try client.send(String(repeating: "x\n", count: count))
                    }
                    client.close()
                }
            }
            // Other threads count, which does not wake this loop.
            while answered.value < 200 { hang(after(.milliseconds(5))) }
            let drained = listener.drain(deadline: .seconds(60))
            try hang(when(fulfilled: ended).asVoid(), timeout: patience)
            let result = try hang(drained, timeout: patience)
            expect(result.aborted == 0 && result.idle == 4, "\(result)")
            expectEqual(answered.value, handler.read.value)
            _ = try hang(served, timeout: patience)
        }
    }

    // MARK: Requests of several frames

    enum Request: CaseIterable { case loopInABody, declaredBefore, declaredWithTheLoop, declaredInAsync }

    /// A `begin` is followed by further lines up to an `end`, which a drain waits for.
    private func serve(_ request: Request) -> Promise<DrainResult> {
        func rest(of connection: Connection) -> Promise<Void> {
            connection.forEachLine { if $0 == "end" { throw StopReading() } }
                .then { connection.write(connection.inputEnd == nil ? "done\n" : "cut\n") }
        }
        switch request {
        case .loopInABody: return listener.serve { connection in connection.forEachLine { _ in rest(of: connection) } }
        case .declaredBefore, .declaredWithTheLoop:
            func next(_ connection: Connection) -> Promise<Void> {
                connection.forEachLine { _ in throw StopReading() }.then { () -> Promise<Void> in
                    if connection.inputEnd != nil { return .value }
                    if request == .declaredWithTheLoop {
                        return connection.deferDrain(until: rest(of: connection)).then { next(connection) }
                    }
                    let (answer, resolver) = Promise<Void>.pending()
                    connection.deferDrain(until: answer)
                    return rest(of: connection).ensure { resolver.fulfill(()) }.then { next(connection) }
                }
            }
            return listener.serve { next($0) }
        case .declaredInAsync:
            func declare(_ answer: Promise<Void>, _ connection: Connection) { connection.deferDrain(until: answer) }
            return listener.serveAsync { (connection: Connection) async throws -> Void in
                for try await _ in connection.lines {
                    let (answer, resolver) = Promise<Void>.pending()
                    declare(answer, connection)
                    for try await line in connection.lines where line == "end" { break }
                    try await connection.write(connection.inputEnd == nil ? "done\n" : "cut\n").value
                    resolver.fulfill(())
                }
            }
        }
    }

    @Test(.listener(.virtual), arguments: Request.allCases) func aRequestOfSeveralFramesIsReadToItsEnd(
        request: Request
    ) throws {
        let served = serve(request)
        let client = try Peer(to: listener.localAddress, sending: "begin\none\n")
        try net.loop.run(until: { net.calls(.receive) > 0 })
        for _ in 0..<5 { try net.loop.turn(.poll) }
        let drained = listener.drain(deadline: .seconds(10))
        for text in ["two\n", "three\nend\nbegin\n"] {
            try client.send(text)
            awaitArrival(of: POLLIN, at: net.ledger.accepted[0])
            hang(after(.milliseconds(50)))
        }
        expectEqual(listener.activeConnections, 0)
        expectEqual(try client.readToEnd(), Array("done\n".utf8))
        client.close()
        expectEqual(hang(drained).idle, 1)
        _ = try? hang(served)
    }

    // MARK: The end of a loop

    enum End: CaseIterable { case peer, stop, drain }

    /// A program can tell whether a next phase follows.
    @Test(
        .listener(.virtual), arguments: [Loop.frames, .lines, .linesWithoutPromises, .chunks, .asyncLines], End.allCases
    )
    func theEndOfALoopSaysWhy(loop: Loop, end: End) throws {
        var ends: [InputEnd?] = []
        func body(_ text: String) throws -> Promise<Void> {
            if text.contains("stop") { throw StopReading() }
            return .value
        }
        let served: Promise<DrainResult>
        if loop == .asyncLines {
            served = listener.serveAsync { connection in
                for try await line in connection.lines where line == "stop" { break }
                ends.append(connection.inputEnd)
            }
        } else {
            served = listener.serve { connection in
                let all: Promise<Void> =
                    switch loop {
                    case .frames: connection.forEachFrame(LineDecoder()) { line, _ in try body(line) }
                    case .lines: connection.forEachLine { try body($0) }
                    case .chunks: connection.forEachChunk { try body(String(utf8: $0)) }
                    default: connection.forEachLine { _ = try body($0) }
                    }
                // A stream of chunks is cut by a drain.
                return all.recover(policy: .allErrors) { _ in .value }.done { ends.append(connection.inputEnd) }
            }
        }
        let client = try Peer(to: listener.localAddress, sending: end == .stop ? "one\nstop\nnext\n" : "one\n")
        try net.loop.run(until: { net.calls(.receive) > 0 })
        try net.loop.turn(.poll)
        if end == .peer { net.end(client) }
        if end == .drain { listener.drain(deadline: .seconds(1)) }
        try net.loop.run(until: { !ends.isEmpty })
        expectEqual(ends, [end == .peer ? .peerEnded : end == .drain ? .drained : nil])
        try listener.end(served, closing: [client])
    }

    /// Every loop that follows one that a drain has ended ends at once, so that a handler without the question does not
    /// wait.
    @Test(.listener(.virtual)) func theNextPhaseOfADrainedConversationIsEmpty() throws {
        var lines: [String] = []
        let served = listener.serve { connection in
            connection.forEachLine {
                lines.append($0); return Promise.value
            }
            .then {
                connection.forEachLine {
                    lines.append("tail: \($0)"); return Promise.value
                }
            }
            .then { connection.write("421\n") }
        }
        let client = try Peer(to: listener.localAddress, sending: "one\n")
        try net.loop.run(until: { lines.count == 1 })
        let drained = listener.drain(deadline: .seconds(10))
        try client.send("two\n")
        hang(after(.milliseconds(1)))
        expectEqual(try client.readToEnd(), Array("421\n".utf8))
        client.close()
        expect(lines == ["one"] || lines == ["one", "two"])
        expectEqual(hang(drained).idle, 1)
        _ = try hang(served)
    }
}

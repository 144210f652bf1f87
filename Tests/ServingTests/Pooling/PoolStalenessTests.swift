@testable import PromisesTestSupport

/// Requests that get a connection which its peer has closed, whatever the body does with it.
struct PoolStalenessTests {
    enum Form: CaseIterable {
        case readLine, receive, read, until, exactly, frame, lines, frames, chunks, twice, recovered, closed, aborted

        /// Sends "again", and reads the answer; `nil` for none.
        func ask(_ connection: Connection) -> Promise<String?> {
            connection.write("again\n").then { answer(connection) }
        }

        private func answer(_ connection: Connection) -> Promise<String?> {
            func text(_ bytes: [UInt8]?) -> String? {
                bytes.flatMap { $0.isEmpty ? nil : String(decoding: $0.filter { $0 != 10 }, as: UTF8.self) }
            }
            var seen: String?
            func take(_ answer: String?) throws {
                seen = answer
                throw StopReading()
            }
            switch self {
            case .readLine: return connection.readLine()
            case .receive: return connection.receive().map(text)
            case .read:
                return connection.read().asPromise().map { if case .bytes(let bytes) = $0 { text(bytes) } else { nil } }
            case .until: return connection.read(until: "\n").map(text)
            case .exactly: return connection.read(exactly: 6).map(text)
            case .frame: return connection.readFrame(DelimiterDecoder("\n")).map(text)
            case .lines: return connection.forEachLine { try take($0) }.map { seen }
            case .frames:
                return connection.forEachFrame(DelimiterDecoder("\n")) { frame, _ in try take(text(frame)) }.map {
                    seen
                }
            case .chunks:
                return connection.forEachChunk { chunk in try take(text(chunk.withUnsafeBytes { Array($0) })) }.map {
                    seen
                }
            case .twice:
                return connection.readLine().then { answer in
                    answer == nil ? connection.readLine() : .value(answer)
                }
            case .recovered: return connection.read(exactly: 6).map(text).recover { _ in .value(nil) }
            case .closed: return connection.readLine().ensure { connection.close() }
            case .aborted: return connection.receive().map(text).ensure { connection.abort() }
            }
        }
    }

    @Test(.network(.virtual), arguments: Form.allCases, [false, true]) func whateverFormReadsTheRequestIsMadeAgain(
        form: Form, resets: Bool
    )
        throws
    {
        let server = try LineServer.forgetful(net, resets: resets)
        let pool = Pool<Connection>()
        try hang(pool.ask("first", server.address))
        let request = pool.with(.address(server.address), isIdempotent: true) { form.ask($0) }
        expectEqual(try hang(request), "again")
        expect(server.lines == ["first", "again", "again"] && server.accepted.count == 2)
        pool.close()
        server.end()
    }

    /// On a new connection, or for a request that must not be repeated, the body's result stands.
    @Test(.network(.virtual), arguments: [false, true]) func noAnswerIsAnAnswerElsewhere(isNew: Bool) throws {
        let server = try LineServer.forgetful(net)
        let pool = Pool<Connection>()
        if !isNew { try hang(pool.ask("first", server.address)) }
        let request = pool.with(.address(server.address), isIdempotent: isNew) { Form.readLine.ask($0) }
        expectEqual(try hang(request), nil)
        expect(server.lines.count { $0 == "again" } == 1 && server.accepted.count == 1)
        expectEqual(pool.counts.all, [0, 0, 0, 0])
        server.end()
    }

    /// The end after an answer, and an end that the body itself caused, are no reason to repeat.
    @Test(.network(.virtual), arguments: ["answered", "closed", "aborted", "unread"]) func anEndThatIsExpected(
        by body: String
    ) throws {
        let server = try LineServer.forgetful(net, answering: body == "answered" ? "bye\n" : "")
        let pool = Pool<Connection>()
        try hang(pool.ask("first", server.address))
        let request = pool.with(.address(server.address), isIdempotent: true) { connection in
            connection.write("again\n").then { () -> Promise<Void> in
                switch body {
                case "answered": return connection.readLine().then { _ in connection.receive() }.asVoid()
                case "closed": return connection.close().asPromise()
                case "aborted": connection.abort()
                default: break
                }
                return .value
            }
        }
        try hang(request)
        net.settle()
        expect(server.lines.count { $0 == "again" } <= 1 && server.accepted.count == 1)
        pool.close()
        server.end()
    }

    /// A filter has its own bytes: an end record is no part of an answer, but a part of a record may be.
    @Test(
        .listener(.virtual),
        arguments: [RecordFilter.record(.end), [], Array(RecordFilter.data([1, 2, 3]).dropLast())])
    func theEndThroughAFilter(last: [UInt8]) throws {
        var accepted = 0
        listener.serve { connection in
            accepted += 1
            return connection.write(RecordFilter.record(.hello, [0x5A])).then { connection.read(exactly: 6) }
                .then { _ in connection.receive() }.then { _ in connection.write(RecordFilter.data([7])) }
                .then { connection.receive() }.then { _ in connection.write(last) }
        }.ignoringErrors()
        let pool = Pool<Connection>(prepare: { connection, _ in connection.filter(RecordFilter()).asVoid() })
        var calls = 0
        func ask() -> Promise<[UInt8]> {
            pool.with(.address(listener.localAddress), isIdempotent: true) { connection in
                calls += 1
                return connection.write("x").then { connection.receive() }
            }
        }
        expectEqual(try hang(ask()), [7])
        let isPart = last.count > 5
        let second = ask()
        if isPart {
            expect(second, failsWith: ConnectionFilterError.truncated)
        } else {
            expectEqual(try hang(second), [7])
        }
        expect(accepted == (isPart ? 1 : 2) && calls == (isPart ? 2 : 3))
        pool.close()
        listener.close()
    }

    /// What the peer has not read is dropped: the next connection need not wait for it.
    @Test(.listener(.virtual, turns: 4000)) func aRequestThatIsNotReadIsMadeAgainAtOnce() throws {
        var accepted: [Connection] = []
        listener.serve { connection in
            accepted.append(connection)
            let isFirst = accepted.count == 1
            return connection.readLine().then { _ in connection.write("1\n") }.then { connection.readLine() }
                .then { _ in isFirst ? connection.shutdownWrite() : .value }.then { after(.seconds(60)) }
        }.ignoringErrors()
        let pool = Pool<Connection>(limits: PoolLimits(perKey: 1))
        try hang(pool.ask("first", listener.localAddress))
        let begin = net.loop.now
        let request = pool.with(.address(listener.localAddress), isIdempotent: true) { connection in
            connection.write("again\n" + String(repeating: "x", count: 10 << 20)).ignoringErrors()
            return connection.readLine()
        }
        expectEqual(try hang(request), "1")
        expect(net.loop.now < begin.advanced(by: .seconds(1)) && accepted.count == 2)
        pool.close()
        for connection in accepted { connection.abort() }
        listener.close()
    }

    /// A repeated request may get a connection that has served another one meanwhile.
    @Test(.network(.virtual)) func aServerThatClosesBehindEachAnswerAnswersAll() throws {
        var answered: [Connection] = []
        server.answer = { line, connection in
            connection.write(line + "\n").get { answered.append(connection) }
        }
        let pool = Pool<Connection>(limits: PoolLimits(perKey: 1))
        let requests = (0..<50).map { _ in
            pool.with(.address(server.address), isIdempotent: true) { connection in
                // The end arrives after the check of the connection.
                for connection in answered { connection.close(linger: .zero) }
                return Form.readLine.ask(connection)
            }
        }
        expectEqual(try hang(when(fulfilled: requests)), Array(repeating: "again", count: 50))
        pool.close()
    }

    /// A pool that takes no requests any more repeats none: the outcome of the body stands.
    @Test(.network(.virtual), arguments: [false, true], [false, true])
    func aClosedPoolKeepsTheOutcome(drains: Bool, isAsync: Bool) throws {
        for recovers in [false, true] {
            let server = try LineServer.forgetful(net, resets: true)
            let pool = Pool<Connection>()
            try hang(pool.ask("first", server.address))
            let answer = server.answer
            server.answer = { line, connection in
                if drains { pool.drain(deadline: .seconds(10)) } else { pool.close() }
                return answer(line, connection)
            }
            func ask(_ connection: Connection) -> Promise<String> {
                let answer = talk("again", connection)
                return recovers ? answer.recover { _ in .value("none") } : answer
            }
            let request =
                isAsync
                ? Promise(on: net.loop) {
                    try await pool.with(.address(server.address), isIdempotent: true) { try await ask($0).value }
                } : pool.with(.address(server.address), isIdempotent: true) { ask($0) }
            let result = Result { try hang(request) }
            if recovers {
                expectEqual(try? result.get(), "none")
            } else {
                #expect(throws: SystemError.self) { try result.get() }
            }
            expectEqual(server.lines, ["first", "again"])
            server.end()
        }
    }
}

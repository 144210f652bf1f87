@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// Requests that get a connection which its peer has closed, whatever the body does with it.
struct PoolStalenessTests {
    enum Form: CaseIterable {
        case line, bytes, chunks, recovered, closed, aborted

        /// Sends "again", and reads the answer; `nil` for none.
        func ask(_ connection: Connection) -> Promise<String?> {
            connection.write("again\n").then { answer(connection) }
        }

        private func answer(_ connection: Connection) -> Promise<String?> {
            func text(_ bytes: [UInt8]) -> String? { String(decoding: bytes.dropLast(), as: UTF8.self) }
            switch self {
            case .line: return connection.readLine()
            case .bytes: return connection.read(exactly: 6).map(text)
            case .chunks:
                var seen: String?
                let chunks = connection.forEachChunk { chunk in
                    seen = text([UInt8](chunk))
                    throw StopReading()
                }
                return chunks.map { seen }
            case .recovered: return connection.read(exactly: 6).map(text).recover { _ in .value(nil) }
            case .closed: return connection.readLine().ensure { connection.close() }
            case .aborted: return connection.readLine().ensure { connection.abort() }
            }
        }
    }

    /// A request that may be repeated, of a function or of a task.
    private func again(
        _ form: Form, _ pool: Pool<Connection>, _ server: LineServer, isAsync: Bool
    ) -> Promise<String?> {
        let key = PoolKey.address(server.address)
        if !isAsync { return pool.with(key, isIdempotent: true) { form.ask($0) } }
        return Promise(on: net.loop) { try await pool.with(key, isIdempotent: true) { try await form.ask($0).value } }
    }

    @Test(.network(.virtual), arguments: Form.allCases, [false, true])
    func whateverFormReadsTheRequestIsMadeAgain(form: Form, isAsync: Bool) throws {
        for resets in [false, true] {
            let server = try LineServer(net)
            server.forget(resets: resets)
            let pool = Pool<Connection>()
            try hang(pool.ask("first", server.address))
            expectEqual(try hang(again(form, pool, server, isAsync: isAsync)), "again")
            expect(server.lines == ["first", "again", "again"] && server.accepted.count == 2)
        }
    }

    /// On a new connection, or for a request that must not be repeated, the body's result stands.
    @Test(.network(.virtual), arguments: [false, true]) func noAnswerIsAnAnswerElsewhere(isNew: Bool) throws {
        server.forget()
        let pool = Pool<Connection>()
        if !isNew { try hang(pool.ask("first", server.address)) }
        let request = pool.with(.address(server.address), isIdempotent: isNew) { Form.line.ask($0) }
        expectEqual(try hang(request), nil)
        expect(server.lines.count { $0 == "again" } == 1 && server.accepted.count == 1)
        expectEqual(pool.counts.all, [0, 0, 0, 0])
    }

    enum Outcome: CaseIterable { case answered, answeredInPart, closed, aborted, unread, thrown, timedOut }

    /// The end after an answer or a part of one, and an end that the body itself caused, are no reason to repeat; nor is
    /// a server that is slow.
    @Test(.network(.virtual), arguments: Outcome.allCases) func aRequestIsNotRepeated(when outcome: Outcome) throws {
        if outcome == .timedOut {
            server.answer = { line, connection in line == "first" ? connection.write("first\n") : .value }
        } else {
            server.forget(answering: outcome == .answered ? "bye\n" : outcome == .answeredInPart ? "b" : "")
        }
        let pool = Pool<Connection>()
        try hang(pool.ask("first", server.address))
        let request = pool.with(.address(server.address), isIdempotent: true) { connection in
            connection.write("again\n").then { () -> Promise<Void> in
                switch outcome {
                case .answered: return connection.readLine().then { _ in connection.receive() }.asVoid()
                case .answeredInPart: return connection.readLine().asVoid()
                case .closed: return connection.close().asPromise()
                case .aborted: connection.abort()
                case .unread: break
                case .thrown: throw Flaw(3)
                case .timedOut:
                    connection.idleTimeout = .seconds(3)
                    return connection.readLine().asVoid()
                }
                return .value
            }
        }
        let error = Result { try hang(request) }.error
        switch outcome {
        case .answeredInPart: expect(error is StreamError)
        case .thrown: expect(error as? Flaw == Flaw(3))
        case .timedOut: expect((error as? SystemError)?.code == ETIMEDOUT)
        case .answered, .closed, .aborted, .unread: expect(error == nil)
        }
        net.settle()
        expect(server.lines.count { $0 == "again" } <= 1 && server.accepted.count == 1)
    }

    @Test(.network(.virtual)) func aServerThatAlwaysGivesUpEndsTheRetries() throws {
        server.answer = { line, connection in
            if line == "first" { return connection.write("first\n") }
            connection.close(linger: .zero)
            return .value
        }
        let pool = Pool<Connection>(limits: PoolLimits(perKey: 4))
        try hang(when(fulfilled: (0..<4).map { _ in pool.ask("first", server.address) }))
        #expect(throws: (any Error).self) { try hang(pool.ask("again", server.address, isIdempotent: true)) }
        // Four idle connections and a new one.
        expectEqual(server.lines.count { $0 == "again" }, 5)
        expectEqual(pool.counts.all, [0, 0, 0, 0])
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
                return Form.line.ask(connection)
            }
        }
        expectEqual(try hang(when(fulfilled: requests)), Array(repeating: "again", count: 50))
    }

    /// A pool that takes no requests any more repeats none: the outcome of the body stands.
    @Test(.network(.virtual), arguments: [false, true], [false, true])
    func aClosedPoolKeepsTheOutcome(drains: Bool, isAsync: Bool) throws {
        for form in [Form.line, .recovered] {
            let server = try LineServer(net)
            server.forget(resets: true)
            let pool = Pool<Connection>()
            try hang(pool.ask("first", server.address))
            let answer = server.answer
            server.answer = { line, connection in
                if drains { pool.drain(deadline: .seconds(10)) } else { pool.close() }
                return answer(line, connection)
            }
            let outcome = Result { try hang(again(form, pool, server, isAsync: isAsync)) }
            if form == .recovered {
                expectEqual(try outcome.get(), nil)
            } else {
                #expect(throws: SystemError.self) { try outcome.get() }
            }
            expectEqual(server.lines, ["first", "again"])
        }
    }
}

@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

struct HandlerErrorTests {
    @Test(.listener) func eachIsReportedAlsoAfterAPauseWithoutConnections() throws {
        let tally = Tally()
        var flaws: [Flaw?] = []
        var count = 0
        let served = listener.serve(onError: { [token = tally.token()] error, _ in
            withExtendedLifetime(token) { flaws.append(error as? Flaw) }
        }) { connection -> Promise<Void> in
            count += 1
            if count.isMultiple(of: 2) { return echo(connection) }
            throw Flaw(count)
        }
        for number in 1...6 {
            let client = try Peer(to: listener.localAddress)
            client.end()
            expect(try hang(elsewhere { try client.readToEnd() }, timeout: patience).isEmpty)
            try net.loop.run(until: { net.ledger.accepted.count == number && listener.activeConnections == 0 })
        }
        expectEqual(flaws, [Flaw(1), Flaw(3), Flaw(5)])
        expectEqual(tally.alive, 1)
        try listener.end(served)
        try net.loop.turn(.poll)
        expect(tally.alive == 0 && listener.activeConnections == 0)
    }

    enum Form: CaseIterable { case promise, async, group, asyncGroup, prepared }

    /// Refuses each frame.
    private struct Picky: FrameDecoder {
        struct Refusal: Error {}
        mutating func decode(_ bytes: RawSpan) throws -> DecodedFrame<Void> { throw Refusal() }
    }

    enum Cause: CaseIterable {
        // The program's.
        case bug, otherConnection
        // The client's.
        case reset, end, halfClose, refusedFrame, refusedByFilter, longLine, silence, slowFrame
        case cancellation

        var report: String? {
            switch self {
            case .bug: "\(Flaw(1))"
            case .otherConnection: "the stream ended after 1 of 2 bytes"
            default: nil
            }
        }

        /// What the client sends.
        var input: String {
            switch self {
            case .longLine: "abc\n"
            case .refusedByFilter: "no record"
            default: "a"
            }
        }

        /// What a handler does until the client has caused its error.
        @Sendable func handle(_ connection: Connection) throws -> Promise<Void> {
            switch self {
            case .bug: throw Flaw(1)
            case .cancellation: throw PromiseError.cancelled
            case .otherConnection:
                let (one, other) = try Connection.pair()
                return other.write("x").then { other.shutdownWrite() }.then { one.read(exactly: 2) }.asVoid()
                    .ensure { [one, other].forEach { $0.close() } }
            case .reset: return connection.readLine().asVoid()
            case .end: return connection.read(exactly: 2).asVoid()
            case .halfClose: return connection.cancelWhenPeerGone { after(.seconds(3600)) }
            case .refusedFrame: return connection.forEachFrame(Picky()) { _, _ in }
            case .refusedByFilter: return connection.filter(RecordFilter()).asVoid()
            case .longLine: return connection.readLine(limit: 2).asVoid()
            case .silence:
                connection.idleTimeout = .milliseconds(1)
                return connection.read(exactly: 2).asVoid()
            case .slowFrame:
                connection.frameTimeouts = FrameTimeouts(frame: .milliseconds(1))
                return connection.readLine().asVoid()
            }
        }
    }

    /// With `onError`, it alone gets the errors; also those that clients cause.
    @Test(.group(2), arguments: Form.allCases, Cause.allCases)
    func aBugIsReportedAndNotWhatAClientCauses(_ form: Form, _ cause: Cause) throws {
        // A line for each case, since they run at the same time.
        let (file, line): (StaticString, UInt) =
            ("Here.swift", UInt(Form.allCases.firstIndex(of: form)! * 100 + Cause.allCases.firstIndex(of: cause)! + 1))
        for isReceived in [false, true] {
            let recorder = LogRecorder { $0.callSite?.description == "Here.swift:\(line)" }
            defer { recorder.stop() }
            let listener = try Listener.bind("127.0.0.1:0")
            let received = Shared(0)
            let onError = isReceived ? { @Sendable (_: any Error, _: Connection) in received.change { $0 += 1 } } : nil
            let awaiting = { @Sendable (connection: Connection) async throws -> Void in
                try await cause.handle(connection).value
            }
            let served =
                switch form {
                case .promise:
                    listener.serve(onError: onError, handler: cause.handle, file: file, line: line)
                case .prepared:
                    listener.serve(
                        ServeOptions(prepare: { connection in
                            firstly { try cause.handle(connection) }.map { connection }
                        }), onError: onError, handler: { _ in Promise.value }, file: file, line: line)
                case .group:
                    listener.serve(on: loops, onError: onError, handler: cause.handle, file: file, line: line)
                case .async: listener.serveAsync(onError: onError, handler: awaiting, file: file, line: line)
                case .asyncGroup:
                    listener.serveAsync(on: loops, onError: onError, handler: awaiting, file: file, line: line)
                }
            let client = try Peer(to: listener.localAddress, sending: cause.input)
            switch cause {
            case .reset:
                try net.loop.run(until: { listener.activeConnections == 1 })
                client.reset()
            case .end, .halfClose: client.end()
            default: break
            }
            if cause != .reset { _ = try hang(elsewhere { client.failureOfReading() }, timeout: patience) }
            try listener.end(served, closing: [client])
            let reports = cause.report.map { ["a handler of the server at Here.swift:\(line) has failed: \($0)"] } ?? []
            expectEqual(recorder.lines, isReceived ? [] : reports)
            expectEqual(received.value, isReceived && cause != .cancellation ? 1 : 0)
        }
    }

    /// A program knows of its own abort; `onError` is for errors that it does not know of.
    @Test(.listener) func anAbortOrACloseByTheProgramIsNoErrorOfTheHandler() throws {
        var connections: [Connection] = []
        var errors: [any Error] = []
        var reads: [any Error] = []
        let served = listener.serve(onError: { error, _ in errors.append(error) }) { connection -> Promise<Void> in
            connections.append(connection)
            return connection.readLine().asVoid().tapError(policy: .allErrors) { reads.append($0) }
        }
        let clients = try (0..<3).map { _ in try Peer(to: listener.localAddress) }
        try net.loop.run(until: { connections.count == 3 })
        connections[0].abort()
        connections[1].close(linger: .zero)
        clients[2].reset()
        try net.loop.run(until: { listener.activeConnections == 0 })
        expectEqual(errors.map { ($0 as? SystemError)?.code }, [ECONNRESET])
        expectEqual(reads.map(\.isCancelled), [true, true, false])
        try listener.end(served)
    }

    /// Bytes that a close could not deliver in time count as failed.
    @Test(.network) func aWriteThatACloseGivesUpHasFailed() throws {
        let (connection, _) = try net.pair()
        net.limitSends(to: 0)
        let write = connection.write("x")
        connection.close(linger: .zero)
        expect(code(write) == ECANCELED && !write.isCancelled)
        let (other, _) = try net.pair()
        let aborted = other.write("x")
        other.abort()
        expect(code(aborted) == ECANCELED && aborted.isCancelled)
    }
}

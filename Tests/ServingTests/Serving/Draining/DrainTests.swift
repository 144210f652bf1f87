@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

struct DrainTests {
    @Test(.network(.virtual)) func idleOnesAreClosedBusyOnesFinishAndStuckOnesAreAborted() throws {
        let port = try ReservedPort()
        let listener = try net.listen("\(port.address)")
        var errors = 0
        let served = listener.serve(onError: { _, _ in errors += 1 }, handler: serveByFirstByte)
        let clients = try net.connectClients("iiibbs", to: listener)
        let begin = net.loop.now
        let drained = listener.drain(deadline: .milliseconds(300))
        port.expectRefusal()
        let again = listener.drain(deadline: .zero)
        hang(after(.milliseconds(110)))
        for client in clients[3..<5] {
            expectEqual(try client.readToEnd(), Array("done".utf8))
            client.close()
        }
        hang(after(.milliseconds(110)))
        for client in clients[..<3] {
            expectEqual(try client.receive(), [])
            client.close()
        }
        let result = hang(drained)
        expectEqual(begin.duration(to: net.loop.now), .milliseconds(300))
        expect((result.idle, result.finished, result.aborted) == (3, 2, 1))
        expectEqual(clients[5].failureOfReading(), ECONNRESET)
        expectEqual(hang(again), result)
        try hang(served)
        expectEqual(errors, 0, "what it ends itself is no error of a handler")
        expectEqual(listener.activeConnections, 0)
        expectEqual(net.loop.nextDeadline, nil)
        try net.loop.run()
    }

    /// Work of a handler that no read shows.
    @Test(.listener(.virtual), arguments: ["lines", "chunks", "pipe", "half a line", "by its own word"])
    func whoMayBeOwedSomethingIsNotIdle(kind: String) throws {
        var others: [Connection] = []
        let served = listener.serve { connection -> Promise<Void> in
            func answerLater() {
                after(.milliseconds(100)).then { connection.write("done") }.ensure { connection.abort() }
                    .cauterize()
            }
            switch kind {
            case "lines": return connection.forEachLine { _ in answerLater() }
            case "chunks": return connection.forEachChunk { _ in answerLater() }
            case "pipe":
                let (near, far) = try Connection.pair()
                others = [near, far]
                far.receive().then { _ in after(.milliseconds(100)) }.then { far.write("done") }
                    .done { others = [] }.cauterize()
                return when(fulfilled: pipe(from: connection, to: near), pipe(from: near, to: connection)).asVoid()
            case "half a line": return connection.forEachLine { _ in connection.write("done") }
            default:
                return connection.forEachChunk { _ -> Promise<Void> in
                    connection.deferDrain(until: after(.milliseconds(100)).then { connection.write("done") })
                        .cauterize()
                    return .value
                }
            }
        }
        let client = try Peer(to: listener.localAddress)
        try client.send(kind == "half a line" ? "question" : "question\n")
        try net.loop.run(until: { net.calls(.receive) > 0 })
        try net.loop.turn(.poll)
        let drained = listener.drain(deadline: .seconds(10))
        hang(after(.milliseconds(50)))
        expectEqual(listener.activeConnections, 1)
        if kind == "half a line" { try client.send("\n") }
        hang(after(.milliseconds(60)))
        expectEqual(try client.receive(upTo: 4), Array("done".utf8))
        client.close()
        _ = hang(drained)
        _ = try? hang(served)
        withExtendedLifetime(others) {}
    }

    @Test(.listener(.virtual), arguments: [true, false]) func anAnswerThatWillNeverBeIsNotWaitedFor(isAbandoned: Bool)
        throws
    {
        var resolver: Resolver<Void>?
        let served = listener.serve { connection -> Promise<Void> in
            let answer = Promise<Void>.pending()
            resolver = answer.resolver
            connection.deferDrain(until: answer.promise).catch(policy: .allErrors) { _ in }
            return connection.forEachChunk { _ -> Promise<Void> in .value }
        }
        let client = try Peer(to: listener.localAddress)
        try net.loop.run(until: { listener.activeConnections == 1 })
        try net.loop.turn(.poll)
        let drained = listener.drain(deadline: .seconds(10))
        hang(after(.seconds(1)))
        expectEqual(listener.activeConnections, 1)
        if !isAbandoned { resolver?.reject(PromiseError.cancelled) }
        resolver = nil
        hang(after(.milliseconds(50)))
        expectEqual(try client.receive(), [])
        client.close()
        expectEqual(hang(drained).idle, 1)
        try hang(served)
    }

    @Test(.listener) func withoutConnectionsItIsOverAtOnce() throws {
        let served = listener.serve { echo($0) }
        let drained = listener.drain(deadline: .seconds(1))
        expectEqual(drained.settledValue.map { [$0.idle, $0.finished, $0.aborted] }, [0, 0, 0])
        expect(served.isFulfilled)
        let other = try net.listen()
        let accepted = other.accept()
        let result = other.drain(deadline: .seconds(1)).settledValue
        expectEqual(result.map { [$0.idle, $0.finished, $0.aborted] }, [0, 0, 0])
        expectEqual(code(accepted), ECANCELED)
    }

    @Test(.listener(.virtual)) func aListenerThatIsClosedAlreadyCanBeDrained() throws {
        let served = listener.serve(handler: serveByFirstByte)
        let clients = try net.connectClients("s", to: listener)
        listener.close()
        let result = hang(listener.drain(deadline: .milliseconds(50)))
        expectEqual(result.aborted, 1)
        expectEqual(clients[0].failureOfReading(), ECONNRESET)
        try hang(served)
    }
}

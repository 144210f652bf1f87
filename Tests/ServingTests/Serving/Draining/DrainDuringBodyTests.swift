@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// While the promise of a body is pending, a drain treats the connection as busy, whatever the body waits for.
struct DrainDuringBodyTests {
    enum Loop: CaseIterable { case frames, lines, chunks }

    /// A request is `n`, after which `ok` is read, where that is possible, or awaited otherwise. The answer is `done`.
    private func serve(_ connection: Connection, _ kind: Loop, _ rest: Promise<Void>) -> Promise<Void> {
        func second() -> Promise<Void> { connection.read(exactly: 2).then { _ in connection.write("done") } }
        return switch kind {
        case .frames: connection.forEachFrame(DelimiterDecoder("\n")) { _, _ in second() }
        case .lines: connection.forEachLine { _ in second() }
        case .chunks: connection.forEachChunk { _ in rest.then { connection.write("done") } }
        }
    }

    @Test(.listener(.virtual), arguments: Loop.allCases) func itIsNotIdle(kind: Loop) throws {
        let (rest, resolver) = Promise<Void>.pending()
        let served = listener.serve { self.serve($0, kind, rest) }
        let client = try Peer(to: listener.localAddress, sending: "n\n")
        try net.loop.run(until: { net.calls(.receive) > 0 })
        try net.loop.turn(.poll)
        let drained = listener.drain(deadline: .seconds(10))
        hang(after(.milliseconds(100)))
        expectEqual(listener.activeConnections, 1)
        try client.send(kind == .chunks ? "" : "ok")
        resolver.fulfill(())
        // Afterwards it waits for another request, and is closed.
        hang(after(.milliseconds(100)))
        expectEqual(listener.activeConnections, 0)
        expectEqual(try client.receive(upTo: 4), Array("done".utf8))
        client.close()
        expectEqual(hang(drained).idle, 1)
        try hang(served)
    }

    /// A loop that was cancelled, failed or was stopped owes nothing any more.
    @Test(.listener(.virtual), arguments: ["cancelled", "rejected", "stopped", "thrown"]) func aLoopThatIsOverIsNot(
        how: String
    ) throws {
        let served = listener.serve { connection -> Promise<Void> in
            let (rest, resolver) = Promise<Void>.pending()
            let all = connection.forEachLine { _ -> Promise<Void> in
                if how == "thrown" { throw StopReading() }
                return rest
            }
            after(.milliseconds(10)).done {
                switch how {
                case "cancelled": all.cancel()
                case "rejected": resolver.reject(SystemError(.receive, EIO))
                default: resolver.reject(StopReading())
                }
            }
            return all.recover(policy: .allErrors) { _ in .value }.then { connection.receive().asVoid() }
        }
        let client = try Peer(to: listener.localAddress, sending: "n\n")
        try net.loop.run(until: { net.calls(.receive) > 0 })
        hang(after(.milliseconds(50)))
        let drained = listener.drain(deadline: .seconds(10))
        hang(after(.milliseconds(250)))
        client.close()
        let result = hang(drained)
        expect(result.idle == 1 && result.aborted == 0)
        try hang(served)
    }
}

@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

@Suite(.ownThread) struct GroupDrainTests {
    /// A server whose connections act as their first byte says: `i` waits for more, `b` answers when `gate` is
    /// fulfilled, `s` never; each first reports that it has begun.
    private func serve(
        _ listener: Listener, on group: LoopGroup, _ gate: Promise<Void>, errors: Shared<[String]> = Shared([])
    ) -> Promise<DrainResult> {
        listener.serve(
            on: group, onError: { error, _ in errors.change { $0.append("\(error)") } },
            handler: { connection -> Promise<Void> in
                connection.receive().then { bytes -> Promise<Void> in
                    let begun = connection.write(bytes)
                    switch bytes.first {
                    case UInt8(ascii: "i"): return begun.then { connection.receive() }.asVoid()
                    case UInt8(ascii: "b"): return begun.then { gate }.then { connection.write("done") }
                    default: return begun.then { endless() }.asVoid()
                    }
                }
            })
    }

    private func clients(_ listener: Listener, _ kinds: String) throws -> [Peer] {
        try kinds.map { kind in
            let client = try Peer(to: listener.localAddress, sending: [kind.asciiValue!])
            expectEqual(try hang(elsewhere { try client.receive(exactly: 1) }, timeout: patience), [kind.asciiValue!])
            return client
        }
    }

    /// True if the server ends the connection before the client does anything.
    private func isEnded(_ client: Peer) throws -> Bool {
        let rest = elsewhere { try client.readToEnd() }
        let isEnded = try hang(rest, timeout: patience).isEmpty
        client.close()
        return isEnded
    }

    @Test(.group(2)) func idleOnesAreClosedBusyOnesFinishAndStuckOnesAreAborted() throws {
        let loop = EventLoop.current
        let port = try ReservedPort()
        let listener = try Listener.bind(port.address)
        let (gate, open) = Promise<Void>.pending()
        let errors = Shared<[String]>([])
        let served = serve(listener, on: loops, gate, errors: errors)
        let clients = try clients(listener, "iiiibbss")
        expectEqual(loops.loads, [4, 4], "of each kind there are some on either")
        let drained = listener.drain(deadline: .seconds(1))
        port.expectRefusal()
        for client in clients[..<4] { expect(try isEnded(client)) }
        expect(drained.isPending)
        open.fulfill()
        for client in clients[4..<6] {
            expectEqual(try reply(of: client), "done")
            client.close()
        }
        let again = listener.drain(deadline: .zero)
        let result = hang(drained)
        expect((result.idle, result.finished, result.aborted) == (4, 2, 2))
        expectEqual(hang(again), result)
        for client in clients[6...] { expectEqual(client.failureOfReading(), ECONNRESET) }
        try hang(served, timeout: patience)
        expectEqual(errors.value, [])
        expect(listener.activeConnections == 0 && loops.loads == [0, 0])
        expectEqual(loop.nextDeadline, nil)
    }

    /// A loop blocked by a handler can neither close nor abort anything.
    @Test(.group(2)) func aLoopThatIsHeldDoesNotHoldUpTheDeadline() throws {
        let served = serve(listener, on: loops, .value)
        let clients = try clients(listener, "ii")
        let (entered, release) = (Gate(), Gate())
        loops[1].submit {
            entered.open()
            release.wait()
        }
        entered.wait()
        let drained = listener.drain(deadline: .seconds(1))
        expect(try isEnded(clients[0]))
        let result = try hang(drained, timeout: patience)
        expect((result.idle, result.finished, result.aborted) == (1, 0, 1))
        expect(served.isPending, "it is there")
        release.open()
        try hang(served, timeout: patience)
        clients[1].close()
    }

    @Test(.group(2)) func aLoopThatEndsMeanwhileTakesItsConnectionsAlong() throws {
        let (gate, open) = Promise<Void>.pending()
        let served = serve(listener, on: loops, gate)
        let clients = try clients(listener, "bb")
        let drained = listener.drain(deadline: .seconds(3600))
        loops[0].stop()
        loops[0].join()
        open.fulfill()
        expectEqual(try reply(of: clients[1]), "done")
        clients[1].close()
        let result = try hang(drained, timeout: patience)
        expect((result.idle, result.finished, result.aborted) == (0, 1, 1))
        try hang(served, timeout: patience)
        clients[0].close()
    }

    @Test func theListenersLoopEndsMeanwhile() throws {
        var drained: Guarantee<DrainResult>?
        var served: Promise<DrainResult>?
        var client: Peer?
        let group = try LoopGroup(loops: 1)
        try EventLoop.withLoop { loop throws in
            let listener = try Listener.bind("127.0.0.1:0")
            served = serve(listener, on: group, .value)
            served?.ignoringErrors()
            client = try clients(listener, "s")[0]
            drained = listener.drain(deadline: .seconds(3600))
        }
        expect(drained?.result != nil)
        expectEqual(served.flatMap { code($0) }, ECANCELED)
        group.stop()
        group.join()
        client?.close()
    }
}

@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// Where a drain ends the connections: loops over frames after a frame, others in a pause.
struct DrainBoundaryTests {
    enum Loop: CaseIterable { case frames, lines, asyncLines }

    /// Answers each line with itself and a `!`, or a `?` while it is drained, and says `bye` after the loop.
    private func serve(_ listener: Listener, _ loop: Loop) -> Promise<DrainResult> {
        func answer(_ line: String, _ connection: Connection) -> Promise<Void> {
            connection.write(line + (connection.isDraining ? "?\n" : "!\n"))
        }
        return switch loop {
        case .frames:
            listener.serve { connection in
                connection.forEachFrame(LineDecoder(limit: 100)) { frame, _ in answer(frame, connection) }
                    .then { connection.write("bye\n") }
            }
        case .lines:
            listener.serve { connection in
                connection.forEachLine { answer($0, connection) }.then { connection.write("bye\n") }
            }
        case .asyncLines:
            listener.serveAsync { connection in
                for try await line in connection.lines { try await answer(line, connection).value }
                try await connection.write("bye\n").value
            }
        }
    }

    private func turn(_ net: Network, while condition: () -> Bool = { true }) throws {
        for _ in 0..<20 where condition() { try net.loop.turn(.poll) }
    }

    @Test(.listener(.virtual), arguments: Loop.allCases) func aLoopEndsBehindWhatHasArrived(loop: Loop) throws {
        let served = serve(listener, loop)
        let clients = try (0..<2).map { _ in try Peer(to: listener.localAddress) }
        for client in clients { try client.send("one\n") }
        try net.loop.run(until: { net.calls(.send) == 2 })
        try net.loop.turn(.poll)
        // One has further requests, the other a part of one.
        try clients[0].send("two\nthree\n")
        try clients[1].send("tw")
        for accepted in net.ledger.accepted { awaitArrival(of: POLLIN, at: accepted) }
        let begin = net.loop.now
        expect(!listener.isDraining)
        let drained = listener.drain(deadline: .seconds(10))
        expect(listener.isDraining)
        try turn(net) { listener.activeConnections > 1 }
        expectEqual(listener.activeConnections, 1)
        try clients[1].send("o\n")
        awaitArrival(of: POLLIN, at: net.ledger.accepted[1])
        try turn(net) { listener.activeConnections > 0 }
        expectEqual(net.loop.now, begin, "at once")
        expectEqual(try clients[0].readToEnd(), Array("one!\ntwo?\nthree?\nbye\n".utf8))
        expectEqual(try clients[1].readToEnd(), Array("one!\ntwo?\nbye\n".utf8))
        for client in clients { client.close() }
        expectEqual(hang(drained).idle, 2)
        try hang(served)
    }

    /// The connection is not idle until the kernel has taken the answer.
    @Test(.listener(.virtual)) func aLoopEndsWhenTheKernelHasTakenTheAnswer() throws {
        let served = listener.serve { connection in
            connection.forEachLine { line -> Promise<Void> in
                connection.write(line + "!\n").cauterize()
                return .value
            }
        }
        let client = try Peer(to: listener.localAddress)
        let budget = net.limitSends(to: 2)
        try client.send("one\n")
        try net.loop.run(until: { net.calls(.send) > 0 })
        let begin = net.loop.now
        let drained = listener.drain(deadline: .seconds(10))
        try turn(net)
        expectEqual(listener.activeConnections, 1)
        budget.remaining = .max
        try turn(net) { listener.activeConnections > 0 }
        expect(net.loop.now == begin && listener.activeConnections == 0)
        expectEqual(try client.readToEnd(), Array("one!\n".utf8))
        client.close()
        expectEqual(hang(drained).idle, 1)
        try hang(served)
    }

    @Test(.listener(.virtual), arguments: Loop.allCases) func theBacklogIsServed(loop: Loop) throws {
        let served = serve(listener, loop)
        let clients = try (0..<3).map { _ in try Peer(to: listener.localAddress) }
        let drained = listener.drain(deadline: .seconds(10))
        hang(after(.milliseconds(100)))
        for client in clients[1...] { try client.send("one\n") }
        for accepted in net.ledger.accepted[1...] { awaitArrival(of: POLLIN, at: accepted) }
        try turn(net) { listener.activeConnections > 1 }
        expectEqual(listener.activeConnections, 1, "it has sent nothing yet")
        hang(after(.milliseconds(120)))
        expectEqual(listener.activeConnections, 0)
        expectEqual(try clients[0].readToEnd(), Array("bye\n".utf8))
        for client in clients[1...] { expectEqual(try client.readToEnd(), Array("one?\nbye\n".utf8)) }
        for client in clients { client.close() }
        expectEqual(hang(drained).idle, 3)
        try hang(served)
    }

    @Test(.inRealTime) func theBacklogOfAServiceManagersSocketIsLeftToTheNextProcess() throws {
        let folder = Folder()
        let address = folder.address("a")
        let manager = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        defer { close(manager) }
        expect(address.withSocketAddress { bind(manager, $0, $1) } == 0 && listen(manager, 8) == 0)
        let passed = ServiceManager.Descriptor(number: dup(manager), name: "echo")
        let listener = try #require(try Listener.inherited(named: nil, [passed]))
        let served = listener.serve { echo($0) }
        let client = try Peer(to: address)
        let result = hang(listener.drain(deadline: .seconds(1)))
        expectEqual(result.idle + result.finished + result.aborted, 0)
        try hang(served)
        let taken = accept(manager, nil, nil)
        expect(taken >= 0)
        close(taken)
        client.close()
    }

    /// Otherwise the result would claim that nothing was lost.
    @Test(.listener(.virtual), arguments: [true, false]) func aHandlerThatFailsOrGoesOnBehindItsLoopIsNotCalledIdle(
        fails: Bool
    ) throws {
        var flaws: [Int?] = []
        let served = listener.serve(onError: { error, _ in flaws.append((error as? Flaw)?.number) }) { connection in
            connection.forEachLine { connection.write($0 + "\n") }.then { () -> Promise<Int> in
                if fails { throw Flaw(7) }
                return endless()
            }
        }
        let client = try Peer(to: listener.localAddress, sending: "one\n")
        try net.loop.run(until: { net.calls(.send) == 1 })
        try net.loop.turn(.poll)
        let result = hang(listener.drain(deadline: .seconds(3)))
        expect(result.aborted == (fails ? 0 : 1) && flaws == (fails ? [7] : []))
        expectEqual(client.failureOfReading(), (fails ? nil : ECONNRESET))
        try hang(served)
    }

    /// A stream is not cut before it pauses; one that never pauses ends in order before the deadline.
    @Test(.listener(.virtual, turns: 4000), arguments: [true, false]) func aStreamEndsInAPauseOrBeforeTheDeadline(
        pauses: Bool
    ) throws {
        let served = listener.serve { echo($0) }
        let client = try Peer(to: listener.localAddress)
        try net.loop.run(until: { listener.activeConnections == 1 })
        let begin = net.loop.now
        let drained = listener.drain(deadline: pauses ? .seconds(10) : .seconds(2))
        var count = 0
        while count < (pauses ? 20 : 200) && listener.activeConnections == 1 {
            try client.send("x")
            awaitArrival(of: POLLIN, at: net.ledger.accepted[0])
            try turn(net) { net.ledger.acceptedAreOpen[0] && net.calls(.send) <= count }
            expectEqual(try client.receive(upTo: 1), [UInt8(ascii: "x")])
            hang(after(pauses ? .milliseconds(100) : .milliseconds(10)))
            count += 1
        }
        if pauses {
            expect(count == 20 && listener.activeConnections == 1)
            hang(after(.milliseconds(120)))
            expectEqual(listener.activeConnections, 0)
        } else {
            expect((160..<170).contains(count))
            expect(begin.duration(to: net.loop.now) < .milliseconds(1700))
        }
        expectEqual(try client.readToEnd(), [])
        client.close()
        expectEqual(hang(drained).idle, 1)
        try hang(served)
    }

    /// Nothing is lost of an answer that the kernel has, however slowly the client reads.
    @Test(.listener(.virtual), arguments: [true, false]) func atTheDeadlineTheKernelDeliversWhatItHas(goesOn: Bool)
        throws
    {
        let answer = pattern(60_000)
        let served = listener.serve { connection in
            connection.receive().then { _ in connection.write(answer) }
                .then { goesOn ? connection.receive().asVoid() : .value }
        }
        let client = try Peer(to: listener.localAddress, receiveBuffer: 4096, sending: Array("x".utf8))
        try net.loop.run(until: { net.calls(.send) > 0 })
        try turn(net)
        let result = hang(listener.drain(deadline: .seconds(1)))
        expectEqual(result.aborted, 0)
        try hang(served)
        expectEqual(try client.readToEnd(), answer)
    }
}

@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// Loops of a group that end while connections are served there.
struct GroupLoopEndTests {
    @Test(.group(2)) func theOthersTakeWhoComesThen() throws {
        let served = listener.serve(on: loops) { echo($0) }
        let clients = try (0..<4).map { _ in try welcome(to: listener) }
        expectEqual(loops.loads, [2, 2])
        // These wait in the backlog when the loop ends.
        let late = try (0..<4).map { _ in try Peer(to: listener.localAddress) }
        loops[0].stop()
        loops[0].join()
        for client in [clients[0], clients[2]] { expectEqual(try reply(of: client), "") }
        for client in [clients[1], clients[3]] + late { expect(try answers(client)) }
        expectEqual(loops.loads, [0, 6])
        expectEqual(listener.activeConnections, 6, "those that ended with the loop are counted no more")
        try listener.end(served, closing: clients + late)
    }

    /// The listener has yet to learn of it.
    @Test(.group(2)) func whoComesThenIsClosed() throws {
        let served = listener.serve(on: loops) { echo($0) }
        let client = try Peer(to: listener.localAddress)
        loops.stop()
        loops.join()
        listener.close(drain: true)
        expectEqual(code(served), ECANCELED)
        expectEqual(try reply(of: client), "")
        expectEqual(listener.activeConnections, 0)
    }

    /// The loop can no longer wait, and ends with the connection in its mailbox.
    @Test(.inRealTime) func aConnectionOnItsWayIsClosed() throws {
        let (isArmed, tables) = (Shared(false), Shared(0))
        let (entered, release) = (Gate(), Gate())
        let group = try LoopGroup(loops: 2, name: "failing") {
            var table = Syscalls()
            let isFirst = tables.change { count in
                defer { count += 1 }
                return count == 0
            }
            let wait = table.epollWait
            table.epollWait = { fd, events, count, timeout in
                guard isFirst && isArmed.value else { return wait(fd, events, count, timeout) }
                entered.open()
                release.wait()
                return -Int(EBADF)
            }
            return table
        }
        let recorder = LogRecorder { if case .loopFailed("failing-1", _) = $0 { true } else { false } }
        defer { recorder.stop() }
        let listener = try Listener.bind("127.0.0.1:0")
        let served = listener.serve(on: group, ServeOptions(maxConnections: 1, balancing: .roundRobin)) { echo($0) }
        isArmed.value = true
        group[0].submit {}
        entered.wait()
        // The first goes to the blocked loop, and no other client may connect meanwhile.
        let clients = try (0..<2).map { _ in try Peer(to: listener.localAddress) }
        try EventLoop.current.run(until: { listener.activeConnections == 1 })
        expectEqual(group.loads, [1, 0])
        release.open()
        expectEqual(try reply(of: clients[0]), "")
        // Its place is free, and the remaining loop takes the next.
        expect(try answers(clients[1]))
        group[0].join()
        expectEqual(group.loads, [0, 1])
        try listener.end(served, closing: clients)
        group.stop()
        group.join()
        expectEqual(recorder.count, 1)
    }

    @Test(.group(2)) func withoutAnyTheListenerEndsAndSaysSo() throws {
        let loop = EventLoop.current
        let port = try ReservedPort()
        let listener = try Listener.bind(port.address)
        let served = listener.serve(on: loops) { echo($0) }
        loops.stop()
        loops.join()
        // No further client is needed for that.
        expectEqual(try rejection(of: served), ECANCELED)
        expect("\(served.error!)".contains("all loops of the group have ended"))
        port.expectRefusal()
        try loop.run()
    }

    @Test(arguments: [false, true]) func theListenersOwnLoopEnds(isClosed: Bool) throws {
        var served: Promise<DrainResult>?
        let group = try LoopGroup(loops: 1)
        var client: Peer?
        try EventLoop.withLoop { loop throws in
            let listener = try Listener.bind("127.0.0.1:0")
            // At its limit it does not wait for clients.
            let service = listener.serve(on: group, ServeOptions(maxConnections: 1)) { echo($0) }
            service.ignoringErrors()
            served = service
            client = try welcome(to: listener)
            if isClosed { listener.close() }
        }
        expectEqual(served.flatMap { code($0) }, ECANCELED)
        // Accepted connections continue.
        try EventLoop.withLoop { _ throws in expect(try answers(client!)) }
        client?.close()
        spin { group.loads == [0] }
        group.stop()
        group.join()
    }
}

/// A listener that is not in the poller when its loop ends: everything that waits for it is still notified.
struct ListenerAtLoopEndTests {
    @Test(arguments: [false, true], [false, true])
    func aConnectionIsRunning(isClosed: Bool, handlerRetainsIt: Bool) throws {
        var served: Promise<DrainResult>?
        weak var remains: Listener?
        try EventLoop.withLoop { loop throws in
            let listener = try Listener.bind("127.0.0.1:0")
            remains = listener
            let retained = handlerRetainsIt ? listener : nil
            var hasStarted = false
            let service = listener.serve(ServeOptions(maxConnections: 1)) { connection in
                hasStarted = true
                withExtendedLifetime(retained) {}
                return connection.read().asVoid()
            }
            service.ignoringErrors()
            served = service
            let client = connect(to: listener.localAddress)
            try loop.run(until: { hasStarted })
            if isClosed { listener.close() }
            withExtendedLifetime(client) {}
        }
        expectEqual(served?.isRejected, true)
        expect(remains == nil)
    }
}

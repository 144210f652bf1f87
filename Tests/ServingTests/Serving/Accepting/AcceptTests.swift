@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

struct AcceptTests {
    @Test(.listener) func severalCallsAreServedInTheirOrder() throws {
        let accepts = (0..<3).map { _ in listener.accept() }
        for number in 0..<3 { _ = try Peer(to: listener.localAddress, sending: [UInt8(number)]) }
        for number in 0..<3 {
            let connection = try hang(accepts[number], timeout: patience)
            expectEqual(try hang(connection.receive(), timeout: patience), [UInt8(number)])
        }
        expectEqual(net.calls(.accept), 3, "no call waits for a fourth")
    }

    @Test(.listener) func withoutAnAcceptClientsWaitAndTheLoopSleeps() throws {
        _ = try (0..<3).map { _ in try Peer(to: listener.localAddress) }
        try hang(listener.accept(), timeout: patience)
        expect(net.turns { net.settle() } <= 4)
        expectEqual(net.calls(.accept), 1)
    }

    @Test(.listener) func closeCancelsWaitingAcceptsAndRefusesLaterOnes() throws {
        let waiting = [listener.accept(), listener.accept()]
        listener.close()
        listener.close(drain: true)
        expectEqual(waiting.map { code($0) }, [ECANCELED, ECANCELED])
        expectEqual(code(listener.accept()), EBADF)
        expectEqual(code(listener.serve { echo($0) }), EBADF)
        expectEqual(net.calls(.close), 1)
    }

    @Test(.network) func acceptAndServeExcludeEachOther() throws {
        let (listener, other) = (try net.listen(), try net.listen())
        let served = listener.serve { echo($0) }
        expectEqual(code(listener.accept()), EBUSY)
        expectEqual(code(listener.serve { echo($0) }), EBUSY)
        let waiting = other.accept()
        expectEqual(code(other.serve { echo($0) }), EBUSY)
        other.close()
        expectEqual(code(waiting), ECANCELED)
        expectEqual(code(other.serve(ServeOptions(maxConnections: 0)) { echo($0) }), EBADF)
        try listener.end(served)
    }

    @Test(.group(1)) func limitsThatMakeNoSenseAreRefused() throws {
        for limit in [0, -1, .min] {
            let options = ServeOptions(maxConnections: limit)
            expectEqual(code(listener.serve(options) { echo($0) }), EINVAL, "\(limit)")
            expectEqual(code(listener.serve(on: loops, options) { echo($0) }), EINVAL, "\(limit)")
        }
        expectEqual(code(listener.serve(ServeOptions(maxLingering: -1)) { echo($0) }), EINVAL)
        listener.close()
        expectEqual(code(listener.serve(on: loops) { echo($0) }), EBADF)
        // None has taken a hold of the loop.
        try EventLoop.current.run()
    }

    @Test(.listener) func serveIsDoneWhenTheLastConnectionIs() throws {
        let served = listener.serve { echo($0) }
        let client = try Peer(to: listener.localAddress)
        try net.loop.run(until: { listener.activeConnections == 1 })
        listener.close()
        net.settle()
        expect(served.isPending)
        try client.send("still served")
        client.end()
        expectEqual(try hang(elsewhere { try client.readToEnd() }, timeout: patience), Array("still served".utf8))
        try hang(served, timeout: patience)
        expectEqual(listener.activeConnections, 0)
    }

    /// With `drain` it takes those that wait; otherwise the kernel resets them.
    @Test(.listener, arguments: [false, true]) func itMayBeClosedInItsOwnHandler(drain: Bool) throws {
        let clients = try (0..<5).map { number in
            let client = try Peer(to: listener.localAddress, sending: [UInt8(number)])
            client.end()
            return client
        }
        var taken = 0
        let served = listener.serve { connection -> Promise<Void> in
            taken += 1
            listener.close(drain: drain)
            return echo(connection)
        }
        try hang(served, timeout: patience)
        expectEqual(taken, drain ? 5 : 1)
        for (number, client) in clients.enumerated() {
            if number < taken {
                expectEqual(try client.readToEnd(), [UInt8(number)])
            } else {
                expectEqual(client.failureOfReading(), ECONNRESET)
            }
        }
    }

    @Test(.listener) func oneTurnTakesAPartOfABurst() throws {
        let served = listener.serve { echo($0) }
        let clients = try (0..<150).map { _ in try Peer(to: listener.localAddress) }
        try net.loop.turn(.poll)
        expectEqual(net.calls(.accept), 64)
        try net.loop.run(until: { listener.activeConnections == 150 })
        try listener.end(served, closing: clients)
    }

    /// A second call, which would find nobody, is saved after a client that came alone; a burst is still taken at once.
    @Test(.listener) func clientsThatComeAloneCostOneCallEach() throws {
        let served = listener.serve { echo($0) }
        var clients: [Peer] = []
        func add(_ count: Int) throws {
            for _ in 0..<count { clients.append(try Peer(to: listener.localAddress)) }
            try net.loop.run(until: { listener.activeConnections == clients.count })
        }
        for _ in 0..<10 { try add(1) }
        // The first and the tenth looked for another one.
        expectEqual(net.calls(.accept), 12)
        try add(30)
        // One in each of eight turns, and then the rest, with a call that finds nobody.
        expectEqual(net.calls(.accept), 12 + 31)
        try add(5)
        expectEqual(net.calls(.accept), 12 + 31 + 6)
        try listener.end(served, closing: clients)
    }

    @Test(.listener) func aClientThatIsGoneAlreadyIsAConnectionThatFails() throws {
        try Peer(to: listener.localAddress).reset()
        let connection = try net.accept(from: listener)
        _ = connection.peerAddress
        _ = connection.localAddress
        expectEqual(try hang(connection.read(), timeout: patience), failed(ECONNRESET))
        expect(connection.close().isFulfilled)
    }

    @Test(.network) func releasingAListenerClosesIt() throws {
        var listener: Listener? = try net.listen()
        let client = try Peer(to: listener!.localAddress)
        listener = nil
        expect(net.ledger.open.isEmpty)
        expectEqual(client.failureOfReading(), ECONNRESET)
    }

    @Test(.network) func aServingListenerNeedsNoReference() throws {
        let address = try {
            let listener = try net.listen()
            listener.serve { echo($0) }.catch { _ in }
            return listener.localAddress
        }()
        net.settle()
        let client = try Peer(to: address, sending: "x")
        expectEqual(try hang(elsewhere { try client.receive() }, timeout: patience), [0x78])
    }

    @Test(.listener) func anErrorThatEndsADrainEndsTheListenerOnce() throws {
        let served = listener.serve { echo($0) }
        net.kernel.accept = { _, _ in -Int(EINVAL) }
        listener.close(drain: true)
        expectEqual(code(served), EINVAL)
        expectEqual(net.calls(.close), 1)
    }
}

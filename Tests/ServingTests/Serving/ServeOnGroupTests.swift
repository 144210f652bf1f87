@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

struct ServeOnGroupTests {
    /// In turn, and then where there is most room.
    @Test(.group(2), arguments: [(LoopGroup.Balancing.leastConnections, [2, 2]), (.roundRobin, [1, 3])])
    func handlersRunOnTheLoops(balancing: LoopGroup.Balancing, expected: [Int]) throws {
        let places = Shared<[String]>([])
        let served = listener.serve(on: loops, ServeOptions(balancing: balancing)) { connection in
            note(places)
            return echo(connection)
        }
        var clients: [Peer] = []
        for number in 1...4 {
            clients.append(try welcome(to: listener))
            expectEqual(listener.activeConnections, number)
        }
        expectEqual(places.value, ["loop-1", "loop-2", "loop-1", "loop-2"])
        expectEqual(loops.loads, [2, 2])
        for index in [2, 0] { clients.remove(at: index).close() }
        spin { loops.loads == [0, 2] }
        clients += try (0..<2).map { _ in try welcome(to: listener) }
        expectEqual(loops.loads, expected)
        try listener.end(served, closing: clients)
        expectEqual(loops.loads, [0, 0])
        expectEqual(listener.activeConnections, 0)
    }

    @Test(.group(1)) func aConnectionIsTheLoopsOwn() throws {
        let folder = Folder()
        let listener = try Listener.bind(["127.0.0.1:0", "unix:\(folder / "a")"])
        let seen = Shared<[String?]>([])
        let served = listener.serve(on: loops) { connection -> Promise<Void> in
            let peer = connection.peerAddress?.description
            seen.change { $0.append(peer) }
            // Handlers of its promises also belong to that thread.
            return connection.readLine().then { line in
                connection.write("\(line ?? "") on \(EventLoop.current.remote.name ?? "")")
            }
        }
        var ports: [String] = []
        for address in listener.localAddresses {
            let client = try Peer(to: address, sending: "me\n")
            expectEqual(try reply(of: client), "me on loop-1")
            if !address.isUnix { ports.append("\(client.localAddress!)") }
            client.close()
        }
        expectEqual(seen.value, [ports[0], nil])
        try listener.end(served)
    }

    @Test(.group(2), arguments: [false, true])
    func closedOrCancelledItServesToTheLastConnection(isCancelled: Bool) throws {
        let port = try ReservedPort()
        let listener = try Listener.bind(port.address)
        let served = listener.serve(on: loops) { echo($0) }
        expectEqual(code(listener.serve(on: loops) { echo($0) }), EBUSY)
        let clients = try (0..<2).map { _ in try welcome(to: listener) }
        if isCancelled { served.cancel() } else { listener.close() }
        expectEqual(served.error?.isCancelled, isCancelled ? true : nil)
        port.expectRefusal()
        expectEqual(listener.activeConnections, 2)
        for client in clients { expect(try answers(client)) }
        // The loop has no work of its own to wait for, and still waits.
        let closing = elsewhere { for client in clients { client.close() } }
        closing.ignoringErrors()
        try EventLoop.current.run()
        expectEqual(listener.activeConnections, 0)
        expectEqual(served.isFulfilled, !isCancelled)
    }

    @Test(.group(1)) func theErrorOfAHandlerIsReportedOnItsLoop() throws {
        let errors = Shared<[String]>([])
        let served = listener.serve(
            on: loops,
            onError: { error, connection in
                let place = EventLoop.current.remote.name ?? ""
                let entry = "\((error as? Flaw)?.number ?? -1) \(place) \(connection.isClosed)"
                errors.change { $0.append(entry) }
            },
            handler: { connection -> Promise<Void> in
                connection.readLine().then { line -> Promise<Void> in
                    switch line {
                    case "cancel": throw PromiseError.cancelled
                    case nil: return .value
                    default: throw Flaw(Int(line ?? "") ?? 0)
                    }
                }
            })
        for text in ["1\n", "cancel\n", "", "2\n"] {
            let client = try Peer(to: listener.localAddress, sending: text)
            client.end()
            expectEqual(try hang(elsewhere { try client.readToEnd() }, timeout: patience), [])
            client.close()
        }
        try listener.end(served)
        expectEqual(errors.value, ["1 loop-1 false", "2 loop-1 false"])
    }

    @Test(.inRealTime) func theGroupIsKeptUntilThenAndNoLonger() throws {
        var group: LoopGroup? = try LoopGroup(loops: 2)
        let remotes = Array(group!)
        let listener = try Listener.bind("127.0.0.1:0")
        let served = listener.serve(on: group!) { echo($0) }
        group = nil
        let client = try welcome(to: listener)
        expect(try answers(client))
        expectEqual(remotes.map(\.hasEnded), [false, false])
        try listener.end(served, closing: [client])
        for remote in remotes { remote.join() }
        withExtendedLifetime(listener) {}
    }

    /// Clients that come and go on four threads, some with a reset, at a listener that is mostly full.
    @Test(.group(3)) func whoeverComesAndGoesIsCounted() throws {
        let address = listener.localAddress
        let tally = Tally()
        let served = listener.serve(on: loops, ServeOptions(maxConnections: 4)) { connection in
            let token = tally.token()
            return echo(connection).ensure { token.use() }
        }
        let rounds = scaled(500)
        let crowd = (0..<6).map { number in
            elsewhere {
                for round in 0..<rounds {
                    let client = try Peer(to: address, sending: "hello")
                    guard try client.receive(exactly: 5) == Array("hello".utf8) else { throw Flaw(round) }
                    if (round + number) % 3 == 0 { client.reset() } else { client.close() }
                }
            }
        }
        try hang(when(fulfilled: crowd), timeout: .seconds(60))
        try listener.end(served)
        expect(tally.peak <= 4 && tally.alive == 0)
        expectEqual(listener.activeConnections, 0)
        expectEqual(loops.loads, [0, 0, 0])
    }
}

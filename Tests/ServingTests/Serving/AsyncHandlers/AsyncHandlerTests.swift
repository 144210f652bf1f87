@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

private actor Counter {
    private(set) var count = 0
    func add() { count += 1 }
}

private actor Resident {
    private let home: LoopRemote
    private var listener: Listener?
    private var visits = 0
    nonisolated var unownedExecutor: UnownedSerialExecutor { home.asUnownedSerialExecutor() }
    init(on home: LoopRemote) { self.home = home }

    func visit() -> Bool {
        visits += 1
        return isCurrent(home)
    }

    func serve() throws -> (SocketAddress, Promise<DrainResult>) {
        let listener = try Listener.bind("127.0.0.1:0")
        self.listener = listener
        let served = listener.serveAsync { connection in
            self.visits += 1
            for try await line in connection.lines { try await connection.write("\(self.visits) \(line)").value }
            self.listener?.close()
        }
        return (listener.localAddress, served)
    }
}

/// An actor that is not on a loop, and serves on the loop of its current thread.
private actor Stranger {
    private var visits = 0

    func serve() throws -> (any Error)? {
        try EventLoop.withLoop { _ in
            let listener = try Listener.bind("127.0.0.1:0")
            return listener.serveAsync { connection in
                self.visits += 1
                try await connection.write("\(self.visits)").value
            }.error
        }
    }
}

@concurrent private func elsewhereOrNot() async {}

private final class Store {
    var places: [Bool] = []
}

@Suite(.ownThread) struct AsyncHandlerTests {
    @Test func theyComeBackToTheLoopFromWhereverTheyHaveWaited() throws {
        let other = try EventLoop.spawn(name: "other")
        try withListener { network, listener in
            let home = network.loop.remote
            let (counter, resident, far) = (Counter(), Resident(on: home), Resident(on: other))
            let store = Store()
            let served = listener.serveAsync { connection in
                store.places.append(isCurrent(home))
                await counter.add()
                store.places.append(isCurrent(home))
                store.places.append(await resident.visit())
                store.places.append(isCurrent(home))
                store.places.append(await !far.visit() || isCurrent(home))
                store.places.append(isCurrent(home))
                await elsewhereOrNot()
                store.places.append(isCurrent(home))
                await Task.yield()
                store.places.append(isCurrent(home))
                try await Promise { await counter.add() }.value
                store.places.append(isCurrent(home))
                async let count = counter.count
                store.places.append(await count == 2)
                store.places.append(isCurrent(home))
                await Task(executorPreference: other) { await counter.add() }.value
                store.places.append(isCurrent(home))
            }
            let client = try Peer(to: listener.localAddress)
            expectEqual(try reply(of: client), "")
            try listener.end(served, closing: [client])
            expectEqual(store.places, Array(repeating: true, count: 12))
        }
        other.stop()
        other.join()
    }

    @Test(.listener) func whatTheyThrowIsReportedAndEndsTheConnectionOnly() throws {
        var errors: [String] = []
        let served = listener.serveAsync(onError: { error, connection in
            errors.append("\(error) \(connection.isClosed)")
        }) { connection in
            switch try await connection.readLine().value {
            case "throw": throw Flaw(7)
            case "cancel": throw CancellationError()
            default: break
            }
        }
        for text in ["throw", "cancel", "return"] {
            let client = try Peer(to: listener.localAddress, sending: "\(text)\n")
            expectEqual(try reply(of: client), "")
            client.close()
        }
        try listener.end(served)
        expectEqual(errors, ["Flaw(number: 7) false"])
        // The task's last job may still be ready.
        try net.loop.run()
    }

    @Test(.listener) func theyCountUntilTheyHaveEnded() throws {
        let (gate, open) = Promise<Void>.pending()
        var begun = 0
        let served = listener.serveAsync(ServeOptions(maxConnections: 1)) { connection in
            begun += 1
            connection.close()
            try await gate.value
        }
        let clients = try (0..<2).map { _ in try Peer(to: listener.localAddress) }
        expectEqual(try reply(of: clients[0]), "")
        expect((begun, listener.activeConnections) == (1, 1), "the handler goes on without its connection")
        open.fulfill()
        expectEqual(try reply(of: clients[1]), "")
        try listener.end(served, closing: clients)
        expectEqual(begun, 2)
    }

    @Test func theLoopStaysAliveForThem() throws {
        let other = try EventLoop.spawn(name: "other")
        try withListener { network, listener in
            let (gate, open) = Promise<Void>.pending()
            var ended = false
            let served = listener.serveAsync { connection in
                listener.close()
                connection.abort()
                try? await gate.value
                // When cancelled, it may still wait for something that cannot be cancelled.
                await Task(executorPreference: other) {}.value
                ended = true
            }
            let client = try Peer(to: listener.localAddress)
            try network.loop.run()
            expect(ended && served.isFulfilled)
            withExtendedLifetime(open) {}
            client.close()
            expectEqual("\(network.loop.keepAliveReport)", "nothing")
        }
        other.stop()
        other.join()
    }

    @Test(.network) func aHandlerMayBelongToAnActorOfTheLoop() throws {
        let resident = Resident(on: net.loop.remote)
        let (address, served) = try resident.assumeIsolated { try $0.serve() }
        let client = try Peer(to: address, sending: "line\n")
        expectEqual(try reply(of: client), "1 line")
        client.close()
        try hang(served, timeout: patience)
    }

    @Test(.group(1)) func aHandlerOfAnotherActorIsRefused() throws {
        let stranger = Stranger()
        let error = try hang(Promise { try await stranger.serve() }, timeout: patience)
        expect("\(error!)".contains("a handler of the actor Stranger, which does not live on the listener's loop"))
        let handler: @MainActor (Connection) async throws -> Void = { _ in }
        let alone = listener.serveAsync(handler: handler)
        expect(alone.error is DispatchError)
        let served = listener.serveAsync(on: loops) { @MainActor (_: Connection) async throws -> Void in }
        guard case .badInput(let text) = served.error as? DispatchError else {
            Issue.record("\(String(describing: served.error))")
            return
        }
        expect(text.hasPrefix("serveAsync(on:) with a handler of the actor MainActor"))
        listener.close()
    }
}

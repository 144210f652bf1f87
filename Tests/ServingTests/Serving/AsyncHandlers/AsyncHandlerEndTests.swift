@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

private actor Log {
    private(set) var lines: [String] = []
    func add(_ line: String) { lines.append(line) }
}

@Suite(.ownThread) struct AsyncHandlerEndTests {
    @Test(.listener) func theDeadlineOfADrainCancelsThem() throws {
        let log = Log()
        var errors: [String] = []
        let served = listener.serveAsync(onError: { error, _ in errors.append("\(error)") }) { connection in
            do {
                try await connection.write("begun").value
                _ = try await firstly { endless() }.value
            } catch {
                // A clean-up that waits for another thread; the connection still belongs to this handler.
                await log.add("\(error is CancellationError) \(Task.isCancelled) \(connection.isClosed)")
                throw Flaw()
            }
        }
        let client = try Peer(to: listener.localAddress)
        expectEqual(try hang(elsewhere { try client.receive(exactly: 5) }, timeout: patience).count, 5)
        let result = hang(listener.drain(deadline: .zero))
        expect((result.idle, result.finished, result.aborted) == (0, 0, 1))
        try hang(served, timeout: patience)
        expectEqual(try hang(Promise { await log.lines }), ["true true true"])
        expectEqual(errors, [], "the drain has ended it")
        expectEqual(client.failureOfReading(), ECONNRESET)
    }

    /// The task has ended, and its connection has not: before the job that closes it, or while it lingers.
    @Test(.listener, arguments: [false, true]) func theDeadlineOfADrainFindsNoTaskToCancel(lingers: Bool) throws {
        var hasEnded = false
        var drained: Guarantee<DrainResult>?
        let served = listener.serveAsync { _ in
            await firstly { after(.zero) }.value
            hasEnded = true
            if !lingers { net.loop.enqueue { drained = listener.drain(deadline: .zero) } }
        }
        let client = try Peer(to: listener.localAddress)
        try net.loop.run(until: { hasEnded && (drained != nil || listener.activeConnections == 0) })
        let result = hang(drained ?? listener.drain(deadline: .zero))
        expectEqual(result.idle + result.finished + result.aborted, 1)
        try hang(served, timeout: patience)
        client.close()
    }

    @Test(.listener, arguments: ["abort", "its own abort", "close"])
    func anAbortCancelsThemAndACloseDoesNot(how: String) throws {
        let (gate, open) = Promise<Void>.pending()
        var connections: [Connection] = []
        var ends: [String] = []
        let served = listener.serveAsync { connection in
            connections.append(connection)
            if how == "its own abort" { connection.abort() }
            do { try await gate.value } catch { ends.append("\(type(of: error))") }
            ends.append("\(Task.isCancelled)")
            _ = try await connection.write("too late").value
            ends.append("written")
        }
        let client = try Peer(to: listener.localAddress)
        try net.loop.run(until: { connections.count == 1 })
        if how == "abort" { connections[0].abort() }
        if how == "close" { connections[0].close() }
        open.fulfill()
        try listener.end(served, closing: [client])
        expectEqual(ends, how == "close" ? ["false"] : ["CancellationError", "true"])
    }

    @Test(.listener, arguments: ["reset", "limit", "abort"]) func afterItsOwnCloseOnlyAnAbortCancelsOne(how: String)
        throws
    {
        var begun = false
        var ends: [String] = []
        let served = listener.serveAsync { connection in
            let closed = firstly { connection.closed }
            let written = connection.write(how == "limit" ? Array(repeating: 1, count: 32 << 20) : [])
            if how == "limit" { connection.close(linger: .zero) } else { connection.close() }
            if how == "abort" { connection.abort() }
            begun = true
            let end = await closed.value
            await Task.yield()
            ends.append("\(end)")
            ends.append("\(Task.isCancelled)")
            _ = try? await written.value
            listener.close()
        }
        let client = try Peer(to: listener.localAddress)
        try net.loop.run(until: { begun })
        if how == "reset" { client.reset() }
        try hang(served, timeout: patience)
        if how != "reset" { client.close() }
        expectEqual(ends.first?.hasPrefix(how == "reset" ? "failed" : "aborted"), true, "\(ends)")
        expectEqual(ends.last, (how == "abort" ? "true" : "false"))
    }

    /// The thread continues, and may use the handler's objects.
    @Test(.inLoop) func whenALoopOfWithLoopEndsTheyGoOnOnItsThread() throws {
        var ends: [String] = []
        let here = pthread_self()
        let outer = EventLoop.current
        let client = try EventLoop.withLoop { _ -> Peer in
            let listener = try Listener.bind("127.0.0.1:0")
            var begun = 0
            listener.serveAsync { connection in
                do {
                    begun += 1
                    try await connection.write("begun").value
                    for try await _ in connection.chunks {}
                    ends.append("no error")
                } catch {
                    ends.append("\(isHere(here)) \(Task.isCancelled) \((error as? SystemError)?.code ?? 0)")
                    do { try await connection.write("x").value } catch { ends.append("nothing is written") }
                }
            }.ignoringErrors()
            let client = try Peer(to: listener.localAddress)
            try EventLoop.current.run(until: { begun == 1 })
            return client
        }
        // On another thread the handler could run now.
        for _ in 0..<100 { sched_yield() }
        expectEqual(ends, [])
        // The tasks reach the loop from another thread.
        let hold = outer.hold()
        try outer.run(until: { ends.count == 2 })
        hold.cancel()
        expect(ends.first?.hasPrefix("true true") == true && ends.last == "nothing is written", "\(ends)")
        client.close()
    }
}

private func isHere(_ thread: pthread_t) -> Bool { pthread_equal(thread, pthread_self()) != 0 }

@Suite(.ownThread) struct AsyncHandlersAtLoopEndTests {
    /// They have nothing on the loop that would notify them.
    @Test(.inLoop, arguments: ["close", "detach"]) func theEndOfALoopCancelsThoseWithoutAConnection(how: String) throws
    {
        var ends: [String] = []
        let outer = EventLoop.current
        try EventLoop.withLoop { loop in
            let listener = try Listener.bind("127.0.0.1:0")
            var begun = false
            listener.serveAsync { connection in
                let closed = firstly { connection.closed }
                if how == "close" { connection.close() } else { _ = Glibc.close(try connection.detach()) }
                _ = await closed.value
                begun = true
                do { _ = try await firstly { endless() }.value } catch { ends.append("\(type(of: error))") }
                ends.append("\(Task.isCancelled)")
            }.ignoringErrors()
            let client = try Peer(to: listener.localAddress)
            client.close()
            try loop.run(until: { begun })
        }
        // The tasks reach the loop from another thread.
        let hold = outer.hold()
        try outer.run(until: { ends.count == 2 })
        hold.cancel()
        expectEqual(ends, ["CancellationError", "true"])
    }

    /// The handlers of such a loop continue on a separate thread, and may use their captures.
    @Test(.group(1)) func aLoopOfAGroupReleasesWhatItsHandlersUseBeforeTheyGoOn() throws {
        let tally = Tally()
        let (promise, resolver) = Promise<Void>.pending()
        let served = listener.serveAsync(on: loops) { connection in
            leaveHandler(on: promise, tally.token())
            try await connection.write("x").value
            _ = try await firstly { endless() }.value
        }
        let client = try Peer(to: listener.localAddress)
        expectEqual(try hang(elsewhere { try client.receive(exactly: 1) }, timeout: patience).count, 1)
        loops.stop()
        loops.join()
        expectEqual(tally.alive, 0)
        resolver.fulfill()
        expectEqual(try rejection(of: served), ECANCELED)
        client.close()
    }

    @Test(.group(2)) func serveWaitsForNoneOfALoopThatHasEnded() throws {
        let (gate, open) = Guarantee<Void>.pending()
        let ends = Shared<[String]>([])
        let served = listener.serveAsync(on: loops, ServeOptions(balancing: .roundRobin)) { connection in
            do {
                try await connection.write("x").value
                for try await _ in connection.chunks {}
            } catch {
                await gate.value
                ends.change { $0.append("\(Task.isCancelled)") }
            }
        }
        let clients = try (0..<2).map { _ in try Peer(to: listener.localAddress) }
        for client in clients {
            expectEqual(try hang(elsewhere { try client.receive(exactly: 1) }, timeout: patience).count, 1)
        }
        loops[0].stop()
        loops[0].join()
        listener.close()
        for client in clients { client.close() }
        try hang(served, timeout: patience)
        expectEqual(listener.activeConnections, 0)
        expectEqual(ends.value, [])
        open(())
        while ends.value == [] { sched_yield() }
        expectEqual(ends.value, ["true"])
    }
}

private func leaveHandler(on promise: Promise<Void>, _ token: Tally.Token) { promise.done { token.use() }.cauterize() }

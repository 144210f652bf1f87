import Glibc
import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

/// Async handlers, and the objects that they use, when their loop ends.
@Suite(.ownThread) struct AsyncHandlersAtLoopEndTests {
    /// They have nothing on the loop that would notify them.
    @Test(arguments: ["close", "detach"]) func theEndOfALoopCancelsThoseWithoutAConnection(how: String) throws {
        var ends: [String] = []
        try inLoop { outer in
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
    }

    /// The handlers of such a loop continue on a separate thread, and may use their captures.
    @Test func aLoopOfAGroupReleasesWhatItsHandlersUseBeforeTheyGoOn() throws {
        let tally = Tally()
        try withGroup(1) { _, group in
            let listener = try Listener.bind("127.0.0.1:0")
            let (promise, resolver) = Promise<Void>.pending()
            let served = listener.serveAsync(on: group) { connection in
                leaveHandler(on: promise, tally.token())
                try await connection.write("x").value
                _ = try await firstly { endless() }.value
            }
            let client = try Peer(to: listener.localAddress)
            let begun = elsewhere { try client.receive(exactly: 1) }
            expectEqual(try hang(begun, timeout: patience).count, 1)
            group.stop()
            group.join()
            expectEqual(tally.alive, 0)
            resolver.fulfill()
            expectEqual(try rejection(of: served), ECANCELED)
            client.close()
        }
    }

    @Test func serveWaitsForNoneOfALoopThatHasEnded() throws {
        try withGroup(2) { _, group in
            let listener = try Listener.bind("127.0.0.1:0")
            let (gate, open) = Guarantee<Void>.pending()
            let ends = Shared<[String]>([])
            let served = listener.serveAsync(on: group, ServeOptions(balancing: .roundRobin)) { connection in
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
                let begun = elsewhere { try client.receive(exactly: 1) }
                expectEqual(try hang(begun, timeout: patience).count, 1)
            }
            group[0].stop()
            group[0].join()
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
}

private func leaveHandler(on promise: Promise<Void>, _ token: Tally.Token) { promise.done { token.use() }.cauterize() }

@testable import PromisesTestSupport

extension ServeUntilStoppedTests {
    @Test func asyncHandlersAreDrainedAndThenCancelled() throws {
        try withSignals { net in
            let listener = try net.listen()
            var ends: [String] = []
            let served = listener.serveAsync(ServeOptions(stopSignals: Self.signals, drainTimeout: .seconds(3600))) {
                connection in
                let kind = try await connection.receive(upTo: 1).value
                do {
                    switch kind.first {
                    case UInt8(ascii: "i"): _ = try await connection.receive().value
                    case UInt8(ascii: "b"):
                        await firstly { after(.milliseconds(100)) }.value
                        try await connection.write("done").value
                    default: _ = try await firstly { endless() }.value
                    }
                    ends.append("done")
                } catch {
                    ends.append(Task.isCancelled ? "cancelled" : "closed")
                }
            }
            let clients = try net.connectClients("ibs", to: listener)
            raise(SIGCONT)
            clients[1].end()
            hang(after(.seconds(1)))
            try expectEnd(of: clients[0], net)
            expectEqual(try clients[1].readToEnd(), Array("done".utf8))
            expect(served.isPending && listener.activeConnections == 1)
            raise(SIGPWR)
            expectEqual(try counts(hang(served)), [1, 1, 1])
            expectEqual(clients[2].failureOfReading(), ECONNRESET)
            expectEqual(ends, ["done", "closed", "cancelled"])
            expect(!net.loop.isAlive)
        }
    }
}

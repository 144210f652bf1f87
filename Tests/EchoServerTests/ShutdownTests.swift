@testable import PromisesTestSupport

struct ShutdownTests {
    @Test func whatWasAcceptedIsEchoedToTheLastByte() throws {
        let server = try ServerProcess.serving()
        let clients = try (0..<10).map { _ in try Peer(to: server.address) }
        // No more than the kernel takes from a client at once.
        let bytes = randomBytes(30_000)
        for client in clients { try client.send(bytes) }
        server.signal(SIGTERM)
        for client in clients {
            expectEqual(try client.readToEnd(), bytes)
            client.end()
        }
        let totals = try server.readToEnd().output
        // A slow server accepts the last clients after the first ones have ended.
        expect(totals.hasPrefix("totals: 0 open, 10 connections (peak "))
        expect(totals.contains(", 0 failed), 300000 bytes, "))
        expectEqual(try server.waitForExit(), .code(0))
    }

    /// Nor does a hang-up of its terminal: there is nothing to reload.
    @Test func aHangUpSignalEndsNothing() throws {
        let server = try ServerProcess.serving("--drain-timeout", "1m")
        let client = try Peer.stalled(at: server.address)
        server.signal(SIGHUP)
        expect(try Peer(to: server.address).echoes("hello"))
        server.signal(SIGTERM)
        try server.awaitDraining()
        server.signal(SIGHUP)
        client.end()
        expectEqual(client.failureOfReading(), nil)
        expectEqual(try server.waitForExit(), .code(0))
    }

    @Test func anIdleClientIsEndedAtOnce() throws {
        let server = try ServerProcess.serving("--drain-timeout", "1m")
        let client = try Peer(to: server.address)
        expect(try client.echoes("hello"))
        server.signal(SIGTERM)
        expectEqual(try client.receive(), [])
        client.end()
        expect(try server.readToEnd().output.hasPrefix("totals: 0 open, 1 connections (peak 1, 0 failed), 5 bytes, "))
        expectEqual(try server.waitForExit(), .code(0))
    }

    @Test(arguments: [SIGTERM, SIGINT]) func withNothingToDoItEndsAtOnce(signal: CInt) throws {
        let server = try ServerProcess.serving("--drain-timeout", "1m")
        server.signal(signal)
        let rest = try server.readToEnd()
        expect(rest.output.hasPrefix("totals: 0 open, 0 connections (peak 0, 0 failed), 0 bytes, "))
        expectEqual(rest.errors, "")
        expectEqual(try server.waitForExit(), .code(0))
    }

    @Test(arguments: [[SIGTERM, SIGTERM], [SIGINT, SIGINT], [SIGTERM, SIGINT]])
    func theSecondSignalEndsItAtOnce(signals: [CInt]) throws {
        let server = try ServerProcess.serving("--drain-timeout", "1m")
        let client = try Peer.stalled(at: server.address)
        server.signal(signals[0])
        try server.awaitDraining()
        #expect(client.waits(for: POLLIN, 0))
        server.signalAgain(signals[1])
        #expect(try server.waitForExit() == .code(128 + signals[1]))
    }

    @Test(arguments: ["0", "100ms"]) func theDrainTimeoutResetsThoseThatAreLeft(timeout: String) throws {
        let server = try ServerProcess.serving("--drain-timeout", timeout)
        let client = try Peer.stalled(at: server.address)
        server.signal(SIGTERM)
        let totals = try server.readToEnd().output
        expectEqual(client.failureOfReading(), ECONNRESET)
        expect(totals.hasPrefix("totals: 0 open, 1 connections (peak 1, 1 failed), "))
        expectEqual(try server.waitForExit(), .code(0))
    }

    @Test func theDrainTimeoutAlsoEndsAStuckWrite() throws {
        let server = try ServerProcess.serving("--drain-timeout", "100ms")
        let client = try Peer(to: server.address, receiveBuffer: 65536)
        let chunk = randomBytes(1 << 20)
        while try client.send(chunk, patience: 100) == chunk.count {}
        server.signal(SIGTERM)
        expectEqual(try server.waitForExit(), .code(0))
    }

    /// Another process may take the number in between, hence the tries.
    @Test func theAddressIsFreeAgainAfterwards() throws {
        for attempt in 1...3 {
            let first = try ServerProcess.serving("--drain-timeout", "0")
            let address = first.address
            let client = try Peer(to: address)
            expect(try client.echoes("hello"))
            // The server ends first, so that the port is in TIME_WAIT on its side.
            try client.leave()
            _ = try first.terminate()
            do {
                let second = try ServerProcess.serving("--listen", "\(address)")
                expectEqual(second.address, address)
                expect(try Peer(to: address).echoes("again"))
                _ = try second.terminate()
                return
            } catch { if attempt == 3 { throw error } }
        }
    }
}

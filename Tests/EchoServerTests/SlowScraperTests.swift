@testable import PromisesTestSupport
@testable import ReactorIOTestSupport
@testable import echo_server

/// The endpoint by itself, in virtual time.
struct SlowScraperTests {
    private func withEndpoint(_ body: (MetricsEndpoint, VirtualClock) throws -> Void) throws {
        try withVirtualTime { (clock: VirtualClock) in
            let endpoint = try MetricsEndpoint(.loopback(port: 0)) { .value("text\n") }
            endpoint.serve { Issue.record("\($0)") }
            try body(endpoint, clock)
            endpoint.close()
            hang(after(.seconds(60)))
        }
    }

    @Test func noClientKeepsAPlaceForLong() throws {
        try withEndpoint { endpoint, clock in
            // For each place one client that sends nothing, or only half a request.
            let slow = try (0..<MetricsEndpoint.maxConnections).map { number in
                let client = try Peer(to: endpoint.address)
                if number % 2 == 0 { try client.send(Array("GET /metrics HT".utf8)) }
                return client
            }
            let next = try Peer(to: endpoint.address)
            try next.send(Array("GET /metrics HTTP/1.1\r\n\r\n".utf8))
            hang(after(MetricsEndpoint.timeLimit - .milliseconds(1)))
            expect(!next.waits(for: POLLIN, 0))
            // They are answered, and have the same time again to leave.
            hang(after(MetricsEndpoint.timeLimit + .seconds(1)))
            for client in slow { expectEqual(try Answer(client.receive()).status, "408 Request Timeout") }
            expectEqual(try Answer(next.receive()).body, "text\n")
            endpoint.close()
            hang(after(.seconds(60)))
            expect(clock.now.nanoseconds < 120_000_000_000)
        }
    }

    @Test func clientsThatHaveTheirAnswerTakeNoPlace() throws {
        try withEndpoint { endpoint, clock in
            let begin = clock.now
            let slow = try (0..<2 * MetricsEndpoint.maxConnections).map { _ in
                let client = try Peer(to: endpoint.address)
                try client.send(Array("GET / HTTP/1.1\r\n\r\n".utf8))
                return client
            }
            let next = try Peer(to: endpoint.address)
            try next.send(Array("GET /metrics HTTP/1.1\r\n\r\n".utf8))
            try EventLoop.current.run(until: { next.waits(for: POLLIN, 0) })
            expectEqual(clock.now, begin)
            expectEqual(try Answer(next.receive()).body, "text\n")
            for client in slow { expectEqual(try Answer(client.receive()).status, "404 Not Found") }
        }
    }
}

import Glibc
import Promises
import Reactor
import Testing

@testable import echo_server

/// The endpoint by itself, in virtual time.
@Suite struct SlowScrapers {
    @Test func nobodyKeepsAPlaceForLong() throws {
        try withVirtualTime { (clock: VirtualClock) in
            let endpoint = try MetricsEndpoint(.loopback(port: 0)) { .value("text\n") }
            endpoint.serve { Issue.record("\($0)") }
            // One that says nothing, or only half of it, for each place.
            let slow = try (0..<MetricsEndpoint.maxConnections).map { number in
                let client = try Client(to: endpoint.address)
                if number % 2 == 0 { try client.send(Array("GET /metrics HT".utf8)) }
                return client
            }
            let next = try Client(to: endpoint.address)
            try next.send(Array("GET /metrics HTTP/1.1\r\n\r\n".utf8))
            hang(after(MetricsEndpoint.patience - .milliseconds(1)))
            #expect(!next.waits(for: POLLIN, 0))
            // They are told, and have as long again to go.
            hang(after(MetricsEndpoint.patience + .seconds(1)))
            for client in slow { #expect(try Answer(client.receive()).status == "408 Request Timeout") }
            #expect(try Answer(next.receive()).body == "text\n")
            endpoint.close()
            hang(after(.seconds(60)))
            #expect(clock.now.nanoseconds < 120_000_000_000)
        }
    }
}

import Glibc
import Promises
import Reactor
import SimulatedNetwork
import TestSupport
import Testing

@testable import echo_server

/// A thousand clients of the shipped echo server: each sends something every few minutes, and now and then nothing for longer than
/// the server allows.
struct DayTests {
    /// `SIMULATION_HOURS`, as in the step `simulation`, says how long. An hour takes unoptimised code some seconds.
    private static let hours = environmentNumber("SIMULATION_HOURS").map(Int64.init)

    @Test(.enabled(if: hours != nil)) func hoursOfAThousandClients() throws {
        let hours = Self.hours ?? 1
        try withSimulatedNetwork { network in
            let server = network.host("server"), client = network.host("clients")
            network.link(client, server).latency = .milliseconds(1) ... .milliseconds(40)
            let echo = try server.run {
                var options = Options()
                options.addresses = [try SocketAddress("0.0.0.0:7")]
                options.idleTimeout = .seconds(600)
                let echo = try EchoServer(options, DescriptorLimit(initial: 20_000, current: 20_000))
                echo.serve().cauterize()
                return echo
            }
            let end = LoopInstant(nanoseconds: hours * 3_600_000_000_000)
            var dice = SeededRandom(seed: 1)
            var (messages, timeouts) = (0, 0)
            func live() -> Promise<Void> {
                connect(to: "server:7").then { connection in talk(connection).ensure { connection.close() } }
                    .then { network.now < end ? live() : .value }
            }
            func talk(_ connection: Connection) -> Promise<Void> {
                if dice.happens(0.02) { return beSilent(connection) }
                return after(.seconds(Int64(30 + dice.below(500)))).then { connection.write("hello") }
                    .then { connection.read(exactly: 5) }
                    .then { _ in
                        messages += 1
                        return network.now < end ? talk(connection) : .value
                    }
            }
            func beSilent(_ connection: Connection) -> Promise<Void> {
                let began = network.now
                return connection.read().asPromise().done { _ in
                    timeouts += 1
                    // From the last message on, with the time that the server's end takes.
                    let time = began.duration(to: network.now)
                    expect(time > .milliseconds(599_900) && time < .milliseconds(600_100), "\(time)")
                }
            }
            let lives = client.run { (0..<1000).map { _ in live() } }
            try hang(when(fulfilled: lives).asVoid())
            expect(messages > Int(hours) * 10_000 && timeouts > Int(hours) * 100, "\(messages), \(timeouts)")
            expectEqual(server.run { echo.listeners.count }, 1)
            let result = hang(server.run { echo.listeners[0].drain(deadline: .seconds(5)) })
            expectEqual(result.aborted, 0)
            expectEqual(server.openDescriptors + client.openDescriptors, 0)
        }
    }
}

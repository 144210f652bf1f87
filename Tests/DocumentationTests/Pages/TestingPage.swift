// Made by .ci/snippets.py from docs/guides/testing.md; do not edit.
// swift-format-ignore-file
import Promises
import Reactor
import SimulatedNetwork
import Testing
import XCTest

// docs/guides/testing.md: Swift Testing
@Suite struct Doubling {
    @Test func aHandlerRunsLater() throws {
        let (promise, resolver) = Promise<Int>.pending()
        let doubled = promise.map { $0 * 2 }
        resolver.fulfill(21)
        #expect(doubled.isPending)                        // never inside fulfill
        #expect(try hang(doubled, timeout: .seconds(2)) == 42)
    }
}

// docs/guides/testing.md: XCTest
final class DoublingTests: XCTestCase {
    override func invokeTest() { EventLoop.withLoop { _ in super.invokeTest() } }

    func testAHandlerRunsLater() throws {
        let (promise, resolver) = Promise<Int>.pending()
        let doubled = promise.map { $0 * 2 }
        resolver.fulfill(21)
        XCTAssertTrue(doubled.isPending)
        XCTAssertEqual(try hang(doubled, timeout: .seconds(2)), 42)
    }
}

// docs/guides/testing.md: Virtual time
@Suite struct Testing3 {
    @Test func triesForAnHour() throws {
        try withVirtualTime { clock in
            var minutes: [Int64] = []
            let answer = retry(
                maxAttempts: 8, delay: .exponential(from: .seconds(60), cap: .seconds(1200), jitter: .none)
            ) { attempt -> Promise<String> in
                minutes.append(clock.now.nanoseconds / 60_000_000_000)
                return attempt < 8 ? Promise(error: NotYet()) : .value("at last")
            }
            let text = try hang(answer)
            #expect(text == "at last")
            #expect(minutes == [0, 1, 3, 7, 15, 31, 51, 71])
        }
    }
}

// docs/guides/testing.md: A network in the test
@Suite struct Testing4 {
    @Test func aClientSurvivesAPartition() throws {
        try withSimulatedNetwork(seed: 7) { network in
            let server = network.host("server"), client = network.host("client")
            network.link(client, server).latency = .milliseconds(3) ... .milliseconds(9)
            try server.run {
                try Listener.bind("0.0.0.0:7000").serve { connection in
                    connection.forEachLine { connection.write("\($0)!\n") }
                }.cauterize()
            }
            let connection = try hang(client.run { connect(to: "server:7000") }, timeout: .seconds(1))
            network.partition(client, server, for: .seconds(40))
            let answer = client.run { connection.write("hello\n").then { connection.readLine() } }
            let text = try hang(answer, timeout: .seconds(60))
            #expect(text == "hello!")
        }
    }
}

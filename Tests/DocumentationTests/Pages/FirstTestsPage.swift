// Made by .ci/snippets.py from docs/start/first-tests.md; do not edit.
// swift-format-ignore-file
import Promises
import Reactor
import SimulatedNetwork
import Testing

// docs/start/first-tests.md: The cache
/// Keeps prices for a minute. Callers who ask for one price at the same time share one request.
public final class PriceCache {
    private var entries: [String: (price: Promise<Int>, expires: LoopInstant)] = [:]
    private let request: (String) -> Promise<Int>

    /// - Parameter request: asks the slow source; the tests pass one of their own.
    public init(request: @escaping (String) -> Promise<Int>) { self.request = request }

    public func price(of fruit: String) -> Promise<Int> {
        let now = EventLoop.current.now
        if let entry = entries[fruit], entry.expires > now, !entry.price.isRejected {
            return entry.price.map { $0 }
        }
        let price = request(fruit)
        entries[fruit] = (price, now + .seconds(60))
        return price.map { $0 }
    }
}

// docs/start/first-tests.md: The tests
@Suite struct PriceCacheTests {
    struct SourceIsDown: Error {}

    @Test func callersAtTheSameTimeShareARequest() throws {
        try withVirtualTime { clock in
            var requests = 0
            let cache = PriceCache { fruit in
                requests += 1
                return after(.seconds(30)).map { fruit.count }
            }
            let callers = (1...3).map { _ in cache.price(of: "pear") }
            let prices = try hang(when(fulfilled: callers), timeout: .seconds(60))
            #expect(prices == [4, 4, 4])
            #expect(requests == 1)
            #expect(clock.now.nanoseconds == 30_000_000_000)
        }
    }

    @Test func aPriceIsForgottenAfterAMinute() throws {
        try withVirtualTime { clock in
            var answers = [4, 5]
            let cache = PriceCache { _ in .value(answers.removeFirst()) }
            var prices = [try hang(cache.price(of: "pear"), timeout: .seconds(1))]
            clock.advance(by: .seconds(59))
            prices.append(try hang(cache.price(of: "pear"), timeout: .seconds(1)))
            clock.advance(by: .seconds(1))
            prices.append(try hang(cache.price(of: "pear"), timeout: .seconds(1)))
            #expect(prices == [4, 4, 5])
        }
    }

    @Test func aFailureReachesAllCallersAndIsNotKept() throws {
        try withVirtualTime {
            var requests: [Resolver<Int>] = []
            let cache = PriceCache { _ in Promise { requests.append($0) } }
            let callers = (1...2).map { _ in cache.price(of: "pear") }
            requests[0].reject(SourceIsDown())
            for caller in callers {
                #expect(throws: SourceIsDown.self) { try hang(caller, timeout: .seconds(1)) }
            }
            let next = cache.price(of: "pear")
            requests[1].fulfill(4)
            let price = try hang(next, timeout: .seconds(1))
            #expect(price == 4)
        }
    }
}

// docs/start/first-tests.md: A server, its client, and a network that fails
@Suite struct FirstTests3 {
    @Test func anAnswerComesAfterAPartition() throws {
        try withSimulatedNetwork(seed: 1) { network in
            let server = network.host("server"), client = network.host("client")
            network.link(client, server).latency = .milliseconds(20) ... .milliseconds(40)
            try server.run { try Listener.bind("0.0.0.0:7000").serve { answerLines($0) }.cauterize() }

            let connection = try hang(client.run { connect(to: "server:7000") }, timeout: .seconds(1))
            network.partition(client, server, for: .seconds(30))
            let answer = client.run { connection.write("pear\n").then { connection.readLine() } }
            let text = try hang(answer, timeout: .seconds(31))
            #expect(text != nil)
        }
    }
}

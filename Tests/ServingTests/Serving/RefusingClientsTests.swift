import Glibc
import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

/// Clients that come while the process has no descriptor left, and a listener that refuses them.
@Suite struct RefusingClientsTests {
    /// The most descriptors that the loop may have open.
    private final class Limit {
        var descriptors = Int.max
    }

    private func limit(_ net: Network) -> Limit {
        let (limit, real, ledger) = (Limit(), net.kernel, net.ledger)
        net.kernel.accept = { ledger.open.count < limit.descriptors ? real.accept($0, $1) : -Int(EMFILE) }
        net.kernel.eventCreate = { ledger.open.count < limit.descriptors ? real.eventCreate() : -Int(EMFILE) }
        return limit
    }

    private func sees(_ client: Peer, _ bytes: [UInt8]) throws {
        let end = elsewhere { try client.receive() }
        #expect(try hang(end, timeout: patience) == bytes)
    }

    @Test(.enabled(if: hasIPv6, "there is no IPv6 loopback address"))
    func theyAreToldAndThoseThatComeLaterAreServed() throws {
        try withNetwork { net in
            let limit = limit(net)
            let listener = try Listener.bind(["127.0.0.1:0", "[::1]:0"])
            listener.refusesWithoutDescriptors = true
            let served = listener.serve { echo($0) }
            try net.loop.turn(.poll)
            limit.descriptors = net.ledger.open.count
            let lines = try logged {
                let refused = try (0..<6).map { try Peer(to: listener.localAddresses[$0 % 2]) }
                for client in refused { try sees(client, []) }
                #expect(listener.refusedConnections == 6 && listener.activeConnections == 0)
            }
            #expect(lines.count == 1)
            limit.descriptors += 1
            let client = try Peer(to: listener.localAddress)
            try client.send("x")
            try sees(client, [0x78])
            client.close()
            listener.close()
            try hang(served, timeout: patience)
            #expect(listener.refusedConnections == 6)
        }
    }

    @Test func withoutTheReserveTheyWaitUntilThereIsADescriptor() throws {
        try withNetwork(clock: VirtualClock()) { net in
            let limit = limit(net)
            let listener = try net.listen()
            let served = listener.serve { echo($0) }
            try net.loop.turn(.poll)
            limit.descriptors = net.ledger.open.count
            listener.refusesWithoutDescriptors = true
            let client = try Peer(to: listener.localAddress)
            net.settle(.seconds(1))
            #expect(listener.activeConnections == 0 && listener.refusedConnections == 0)
            limit.descriptors += 2
            try net.loop.run(until: { listener.activeConnections == 1 })
            // The reserve has the other one.
            let late = try Peer(to: listener.localAddress)
            try net.loop.run(until: { listener.refusedConnections == 1 })
            #expect(try late.receive() == [])
            listener.refusesWithoutDescriptors = false
            let waiting = try Peer(to: listener.localAddress)
            try net.loop.run(until: { listener.activeConnections == 2 })
            listener.close()
            client.close()
            waiting.close()
            try hang(served)
        }
    }

    @Test func aListenerThatIsReleasedLeavesNoReserveBehind() throws {
        try withNetwork { net in
            let before = net.ledger.open
            try { try net.listen().refusesWithoutDescriptors = true }()
            #expect(net.ledger.open == before)
        }
    }
}

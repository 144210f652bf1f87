#if TLS
@testable import SimulatedNetwork

/// TLS on a network that cuts its records anywhere, and that breaks.
struct SimulatedNetworkTests {
    @Test func linesComeBackOrTheirLossIsReported() throws {
        let server = try TLSServer(serverConfiguration())
        let client = try TLSClient(clientConfiguration())
        let finished = Shared(0)
        try forEachSeed(1...8) { network in
            let near = network.host("near"), far = network.host("far")
            network.setName("far.example.test", .addresses(far.addresses))
            let link = network.link(near, far)
            link.latency = .zero ... .milliseconds(Int64(network.seed % 3) * 20)
            link.cut = [.whole, .everyByte, .random, .segments(1448)][Int(network.seed % 4)]
            (near.faults.shortCounts, far.faults.shortCounts) = (0.2, 0.2)
            let listener = try far.run { try Listener.bind("0.0.0.0:443") }
            far.run {
                listener.serve(.tls(server), onError: { _, _ in }) { connection in
                    connection.forEachLine { line in connection.write(line + "\n") }
                }.cauterize()
            }
            /// Ends in order, each line having come back, or fails.
            func converse(_ lines: Int) -> Promise<Void> {
                connect(to: "far.example.test:443", tls: client).then { connection in
                    forEach(0..<lines) { number -> Promise<Void> in
                        let text = String(repeating: "\(number)", count: 1 + number * 150)
                        return connection.write(text + "\n").then { connection.readLine() }
                            .done { expectEqual($0, text) }.then { after(.milliseconds(100)).asPromise() }
                    }
                    .then { connection.shutdownWrite() }.then { connection.receive() }.done { expectEqual($0, []) }
                    .ensure { connection.close() }
                }
            }
            func hasSucceeded(_ sessions: [Promise<Void>]) throws -> Int {
                try hang(when(resolved: sessions), timeout: .seconds(2000)).count { (try? $0.get()) != nil }
            }
            let harmed = near.run { (0..<5).map { number in after(.milliseconds(number * 90)).then { converse(4) } } }
            network.run(for: .milliseconds(Int64(network.seed % 7) * 100))
            if network.seed % 2 == 0 { network.reset(near, far) }
            network.partition(near, far, for: .seconds(Int64(network.seed % 5) * 10))
            let count = try hasSucceeded(harmed)
            finished.change { $0 += count }
            // Nothing fails any more.
            expectEqual(try hasSucceeded(near.run { (0..<3).map { _ in converse(3) } }), 3)
            hang(far.run { listener.drain(deadline: .seconds(5)) })
            network.run(for: .seconds(60))
            expectEqual(near.process.openFiles + far.process.openFiles, 0)
        }
        expect(finished.value > 12)
    }
}
#endif

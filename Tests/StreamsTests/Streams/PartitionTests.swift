import Glibc
import Promises
import Reactor
import SimulatedNetwork
import TestSupport
import Testing

@testable import PromisesTestSupport

/// The network goes away under connections, and comes back or does not.
@Suite struct PartitionTests {
    /// The error that rejects `promise`, and the time until then.
    private func fate<T>(of promise: Promise<T>, _ network: VirtualNetwork) -> (error: SystemError?, time: Duration) {
        let began = network.now
        hang(promise.asVoid().recover { _ in .value })
        return (promise.error as? SystemError, began.duration(to: network.now))
    }

    // MARK: It comes back

    @Test func whatIsUnderWayArrivesWholeWhenItComesBack() throws {
        try withSimulatedPair { link in
            let bytes = pattern(8 << 20)
            let echoing = echo(link.far).ensure { link.far.close() }
            let writing = link.near.write(bytes).then { link.near.shutdownWrite() }
            let reading = readToEnd(link.near)
            for mark in [1 << 18, 1 << 21] {
                while link.near.bytesReceived <= mark { link.network.run(for: .milliseconds(1)) }
                link.cut()
                link.network.run(for: .seconds(600))
                expect(reading.isPending && link.near.bytesReceived < bytes.count)
                link.mend()
            }
            expectEqual(try hang(reading), bytes)
            try hang(writing)
            try hang(echoing)
        }
    }

    @Test func aConnectThatBeganBeforeItCameBackSucceeds() throws {
        try withSimulatedPair { link in
            link.cut()
            let connecting = link.nearHost.run { connect(to: "far:7", timeout: patience) }
            link.network.run(for: .seconds(50))
            expect(connecting.isPending)
            link.mend()
            try hang(try hang(connecting).write("late"))
        }
    }

    @Test func aPeerThatHasGivenUpResetsWhenItComesBack() throws {
        try withSimulatedPair { link in
            link.cut()
            link.near.abort()
            let reading = link.far.receive()
            link.network.run(for: .seconds(60))
            expect(reading.isPending, "nothing has told it")
            link.mend()
            expectEqual(fate(of: reading, link.network).error?.code, ECONNRESET)
        }
    }

    // MARK: It does not

    @Test func theUserTimeOutEndsWhatIsSentAndNotAnswered() throws {
        try withSimulatedPair([.set(.userTimeout, to: .seconds(1))]) { link in
            link.cut()
            let reading = link.near.receive()
            // More than the kernel takes.
            let (error, time) = fate(of: link.near.write(pattern(16 << 20)), link.network)
            expectEqual(error?.code, ETIMEDOUT)
            // From the last acknowledgement on.
            expect(time >= .seconds(1) && time < .milliseconds(1010), "\(time)")
            expectEqual(fate(of: reading, link.network).error?.code, ETIMEDOUT)
        }
    }

    @Test func theIdleTimeOutEndsASilentConnection() throws {
        try withSimulatedPair { link in
            link.near.idleTimeout = .milliseconds(300)
            link.cut()
            let (error, time) = fate(of: link.near.receive(), link.network)
            expect(error == SystemError(.receive, ETIMEDOUT))
            expectEqual(error?.detail?.contains("idle"), true)
            expectEqual(time, .milliseconds(300))
            // The other side knows nothing of it, and has its own limit.
            link.far.idleTimeout = .milliseconds(50)
            expectEqual(fate(of: link.far.receive(), link.network).error?.code, ETIMEDOUT)
        }
    }

    @Test func aConnectEndsWithItsTimeOutOrWithTheKernels() throws {
        try withSimulatedPair { link in
            link.cut()
            let address = link.farHost.addresses[0]
            let limited = link.nearHost.run { connect(to: address, timeout: .milliseconds(200)) }
            expectThrows(PromiseError.timedOut) { try hang(limited, timeout: .milliseconds(201)) }
            let several = link.nearHost.run { connect(to: [address, address], timeout: .milliseconds(600)) }
            expectThrows(PromiseError.timedOut) { try hang(several, timeout: .milliseconds(601)) }
            let (error, time) = fate(of: link.nearHost.run { connect(to: address) }, link.network)
            expect(error == SystemError(.connect, ETIMEDOUT) && time == .seconds(127), "\(time)")
        }
    }

    @Test func aConnectToAnAddressThatNoMachineHasEndsAsTheNetworkSays() throws {
        try withSimulatedPair { link in
            let connecting = link.nearHost.run { connect(to: "10.99.0.1:9") }
            expectEqual(fate(of: connecting, link.network).error?.code, EHOSTUNREACH)
        }
    }

    @Test func closingDoesNotWaitForAPeerThatIsGone() throws {
        try withSimulatedPair { link in
            link.cut()
            let writing = link.near.write(pattern(16 << 20))
            let began = link.network.now
            hang(link.near.close(linger: .milliseconds(300)))
            expectEqual(began.duration(to: link.network.now), .milliseconds(300))
            expectEqual(fate(of: writing, link.network).error?.code, ECANCELED)
        }
    }

    @Test func drainingEndsAtItsDeadlineAndSaysSo() throws {
        try withSimulatedNetwork { network in
            let server = network.host("server"), host = network.host("client")
            let listener = try server.run { try Listener.bind("0.0.0.0:7") }
            let served = server.run { listener.serve(onError: { _, _ in }) { echo($0) } }
            let clients = try (0..<3).map { _ in try hang(host.run { connect(to: "server:7") }) }
            for client in clients {
                try hang(client.write("x"))
                expectEqual(try hang(client.receive()), [0x78])
            }
            // The first does not read: until all buffers on the way are full, and the server owes it echoes.
            clients[0].write(pattern(16 << 20)).ignoringErrors()
            network.run(for: .seconds(1))
            network.partition(server, host)
            let began = network.now
            let result = hang(server.run { listener.drain(deadline: .milliseconds(500)) })
            expectEqual(began.duration(to: network.now), .milliseconds(500))
            expectEqual([result.idle, result.finished, result.aborted], [2, 0, 1])
            try hang(served)
            for client in clients { client.abort() }
        }
    }

    private func expectThrows(_ error: PromiseError, _ body: () throws -> Connection) {
        #expect(throws: error) { try body() }
    }
}

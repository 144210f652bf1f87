import SimulatedNetwork

@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// The network goes away under connections, and comes back or does not.
struct PartitionTests {
    private func fate<T>(of promise: Promise<T>, _ network: VirtualNetwork) -> (error: SystemError?, time: Duration) {
        let began = network.now
        hang(promise.asVoid().recover { _ in .value })
        return (promise.error as? SystemError, began.duration(to: network.now))
    }

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
            expect(reading.isPending, "nothing has notified it")
            link.mend()
            expectEqual(fate(of: reading, link.network).error?.code, ECONNRESET)
        }
    }

    @Test func theUserTimeOutEndsWhatIsSentAndNotAnswered() throws {
        try withSimulatedPair([.set(tcpOption(TCP_USER_TIMEOUT), to: 1000)]) { link in
            link.cut()
            let reading = link.near.receive()
            let (error, time) = fate(of: link.near.write(pattern(16 << 20)), link.network)
            expectEqual(error?.code, ETIMEDOUT)
            // From the last acknowledgement on.
            expect(time >= .seconds(1) && time < .milliseconds(1010), "\(time)")
            expectEqual(fate(of: reading, link.network).error?.code, ETIMEDOUT)
        }
    }

    @Test func aConnectToAnAddressThatNoMachineHasEndsAsTheNetworkSays() throws {
        try withSimulatedPair { link in
            let connecting = link.nearHost.run { connect(to: "10.99.0.1:9") }
            expectEqual(fate(of: connecting, link.network).error?.code, EHOSTUNREACH)
        }
    }
}

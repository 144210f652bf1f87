import Glibc
import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

/// The network goes away under connections, and comes back or does not: between two namespaces, with the kernel's own TCP and its
/// own clocks, which no virtual one moves. Lower bounds of time are checked, upper ones only by the patience of `hang`.
@Suite(.ownThread, .enabled(if: NetworkNamespaces.areAvailable, "\(NetworkNamespaces.obstacle ?? "")"))
struct PartitionTests {
    /// A connection from the near side, which is under test, to the far side.
    private struct Link {
        let net: Network
        let namespaces: NetworkNamespaces
        let near: Connection
        let far: Connection
    }

    /// Lost packets are sent again after pauses that double: generous.
    private let patience: Duration = .seconds(60)

    private func withNamespaces(_ body: (Network, NetworkNamespaces) throws -> Void) throws {
        let namespaces = try NetworkNamespaces()
        try withNetwork(turns: 100_000) { net in try body(net, namespaces) }
        withExtendedLifetime(namespaces) {}
    }

    /// With `options` on the near side.
    private func withLink(_ options: [SocketSetting] = [], _ body: (Link) throws -> Void) throws {
        try withNamespaces { net, namespaces in
            let listener = try namespaces.atFarSide { try net.listen("\(NetworkNamespaces.far):0") }
            let connecting = connect(to: listener.localAddress, timeout: patience, options: options)
            let far = try hang(listener.accept(), timeout: patience)
            listener.close()
            let near = try hang(connecting, timeout: patience)
            try hang(near.write("hello"), timeout: patience)
            expectEqual(try hang(far.receive(), timeout: patience), Array("hello".utf8))
            try body(Link(net: net, namespaces: namespaces, near: near, far: far))
            near.abort()
            far.abort()
        }
    }

    /// With what `promise` is rejected, and how long that takes.
    private func fate<T>(
        of promise: Promise<T>, since began: LoopInstant, _ net: Network
    ) throws -> (error: (any Error)?, time: Duration) {
        try hang(promise.asVoid().recover(policy: .allErrors) { _ in .value }, timeout: patience)
        return (promise.error, began.duration(to: net.loop.now))
    }

    // MARK: It comes back

    @Test func whatIsUnderWayArrivesWholeWhenItComesBack() throws {
        try withLink { link in
            let bytes = pattern(8 << 20)
            let echoing = echo(link.far).ensure { link.far.close() }
            let writing = link.near.write(bytes).then { link.near.shutdownWrite() }
            let reading = readToEnd(link.near)
            for mark in [1 << 18, 1 << 21] {
                expect(try link.net.loop.run { link.near.bytesReceived > mark })
                try link.namespaces.cutTheCable()
                link.net.settle(.milliseconds(200))
                expect(reading.isPending && link.near.bytesReceived < bytes.count)
                try link.namespaces.mendTheCable()
            }
            expectEqual(try hang(reading, timeout: patience), bytes)
            try hang(writing, timeout: patience)
            try hang(echoing, timeout: patience)
        }
    }

    @Test func aConnectThatBeganBeforeItCameBackSucceeds() throws {
        try withNamespaces { net, namespaces in
            let listener = try namespaces.atFarSide { try net.listen("\(NetworkNamespaces.far):0") }
            try namespaces.cutTheCable()
            let connecting = connect(to: listener.localAddress, timeout: patience)
            net.settle(.milliseconds(50))
            expect(connecting.isPending)
            try namespaces.mendTheCable()
            let far = try hang(listener.accept(), timeout: patience)
            let near = try hang(connecting, timeout: patience)
            try hang(near.write("late"), timeout: patience)
            expectEqual(try hang(far.receive(), timeout: patience), Array("late".utf8))
            listener.close()
        }
    }

    /// One side has given up meanwhile: the other is told when it speaks.
    @Test func aPeerThatHasGivenUpResetsWhenItComesBack() throws {
        try withLink { link in
            try link.namespaces.cutTheCable()
            link.near.abort()
            // The reset is sent once, into the void.
            link.net.settle(.milliseconds(20))
            try link.namespaces.mendTheCable()
            let reading = link.far.receive()
            link.net.settle(.milliseconds(50))
            expect(reading.isPending, "nothing has told it")
            link.far.write("hello?").cauterize()
            expectEqual(try code(of: reading, link.net), ECONNRESET)
        }
    }

    // MARK: It does not

    @Test func theUserTimeOutEndsWhatIsSentAndNotAnswered() throws {
        try withLink([.set(.userTimeout, to: .seconds(1))]) { link in
            try link.namespaces.cutTheCable()
            let began = link.net.loop.now
            let reading = link.near.receive()
            // More than the kernel takes.
            let writing = link.near.write(pattern(16 << 20))
            let (error, time) = try fate(of: writing, since: began, link.net)
            // Of whichever call is first to be told.
            expectEqual((error as? SystemError)?.code, ETIMEDOUT)
            expect(time >= .milliseconds(900))
            expectEqual(try code(of: reading, link.net), ETIMEDOUT)
        }
    }

    @Test func keepAliveEndsASilentConnection() throws {
        let options: [SocketSetting] = [
            .set(.keepAlive, to: true), .set(.keepAliveIdle, to: .seconds(1)),
            .set(.keepAliveInterval, to: .seconds(1)),
            .set(.keepAliveCount, to: 1),
        ]
        try withLink(options) { link in
            let began = link.net.loop.now
            try link.namespaces.cutTheCable()
            let (error, time) = try fate(of: link.near.receive(), since: began, link.net)
            expect(error as? SystemError == SystemError(.receive, ETIMEDOUT))
            expect(time >= .milliseconds(1900))
        }
    }

    @Test func theIdleTimeOutEndsASilentConnection() throws {
        try withLink { link in
            let began = link.net.loop.now
            link.near.idleTimeout = .milliseconds(300)
            try link.namespaces.cutTheCable()
            let (error, time) = try fate(of: link.near.receive(), since: began, link.net)
            expect(error as? SystemError == SystemError(.receive, ETIMEDOUT))
            expectEqual((error as? SystemError)?.detail?.contains("idle"), true)
            expect(time >= .milliseconds(300))
            // The other side knows of nothing, and has its own.
            link.far.idleTimeout = .milliseconds(50)
            expectEqual(try code(of: link.far.receive(), link.net), ETIMEDOUT)
        }
    }

    @Test func aConnectEndsWithItsTimeOutOrWithTheKernels() throws {
        try withNamespaces { net, namespaces in
            try namespaces.cutTheCable()
            let address = try SocketAddress("\(NetworkNamespaces.far):9")
            let began = net.loop.now
            let limited = connect(to: address, timeout: .milliseconds(200))
            // The kernel's limit, which it checks a second later, when it would send the first packet again: by default it gives
            // up after six times and two minutes.
            let unlimited = connect(to: address, options: [.set(.userTimeout, to: .milliseconds(500))])
            let several = connect(to: [address, address], timeout: .milliseconds(600))
            let (error, time) = try fate(of: limited, since: began, net)
            expect(error as? PromiseError == .timedOut)
            expect(time >= .milliseconds(200))
            expect(try fate(of: several, since: began, net).error as? PromiseError == .timedOut)
            let last = try fate(of: unlimited, since: began, net).error
            expect(last as? SystemError == SystemError(.connect, ETIMEDOUT))
        }
    }

    /// What the network says is told: here the kernel itself, which finds no machine of that address.
    @Test func aConnectToAnAddressThatNoMachineHasEndsAsTheNetworkSays() throws {
        try withNamespaces { net, namespaces in
            try namespaces.resolveImpatiently()
            let connecting = connect(to: try SocketAddress("\(NetworkNamespaces.nowhere):9"))
            expectEqual(try code(of: connecting, net), EHOSTUNREACH)
        }
    }

    @Test func closingDoesNotWaitForAPeerThatIsGone() throws {
        try withLink { link in
            try link.namespaces.cutTheCable()
            let writing = link.near.write(pattern(16 << 20))
            let began = link.net.loop.now
            hang(link.near.close(linger: .milliseconds(300)))
            expect(began.duration(to: link.net.loop.now) >= .milliseconds(300))
            expectEqual(try code(of: writing, link.net), ECANCELED)
        }
    }

    @Test func drainingEndsAtItsDeadlineAndSaysSo() throws {
        try withNamespaces { net, namespaces in
            let listener = try net.listen("\(NetworkNamespaces.near):0")
            var serving: [Connection] = []
            let served = listener.serve(onError: { _, _ in }) { connection -> Promise<Void> in
                serving.append(connection)
                return echo(connection)
            }
            let connecting = (0..<3).map { _ in
                namespaces.atFarSide { connect(to: listener.localAddress, timeout: patience) }
            }
            let clients = try connecting.map { try hang($0, timeout: patience) }
            for client in clients {
                try hang(client.write("x"), timeout: patience)
                expectEqual(try hang(client.receive(), timeout: patience), [0x78])
            }
            // The first does not read: until all buffers on the way are full, and it is owed what it has sent.
            let sending = clients[0].write(pattern(16 << 20))
            sending.catch(policy: .allErrors) { _ in }
            var sent = -1
            while sent != clients[0].bytesSent || serving.allSatisfy({ $0.queuedBytes == 0 }) {
                sent = clients[0].bytesSent
                net.settle(.milliseconds(100))
            }
            try namespaces.cutTheCable()
            let result = try hang(listener.drain(deadline: .milliseconds(500)), timeout: patience)
            expect(result.aborted == 1 && result.idle == 2)
            try hang(served, timeout: patience)
            for client in clients { client.abort() }
        }
    }

    private func code<T>(of promise: Promise<T>, _ net: Network) throws -> CInt? {
        (try fate(of: promise, since: net.loop.now, net).error as? SystemError)?.code
    }
}

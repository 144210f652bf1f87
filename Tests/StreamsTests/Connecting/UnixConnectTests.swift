import Glibc
import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

/// Connecting to a Unix socket: the kernel does not wait for room in a full backlog.
@Suite struct UnixConnectTests {
    @Test func aFullBacklogIsTriedAgainUntilThereIsRoom() throws {
        let folder = Folder()
        let clock = VirtualClock()
        try withNetwork(clock: clock) { net in
            let listener = try net.listen("unix:\(folder / "a")", backlog: 0)
            let filler = try Peer(to: listener.localAddress)
            let attempt = connect(to: listener.localAddress, timeout: patience)
            net.settle(.milliseconds(500))
            expect(attempt.isPending)
            expect(net.calls(.connect) < 20)
            let first = listener.accept()
            let client = try hang(attempt)
            try hang(first)
            let server = try hang(listener.accept())
            try hang(client.write("x"))
            expectEqual(try hang(server.receive()), [0x78])
            filler.close()
        }
    }

    @Test func withATimeOutItEndsThere() throws {
        let folder = Folder()
        let clock = VirtualClock()
        try withNetwork(clock: clock) { net in
            let listener = try net.listen("unix:\(folder / "a")", backlog: 0)
            let filler = try Peer(to: listener.localAddress)
            let begin = clock.now
            #expect(throws: PromiseError.timedOut) {
                try hang(connect(to: listener.localAddress, timeout: .milliseconds(100)))
            }
            expectEqual(begin.duration(to: clock.now), .milliseconds(100))
            expect(net.ledger.open.count <= 4, "the listener, and the loop's own")
            let closes = net.calls(.close)
            net.settle(.seconds(1))
            expectEqual(net.calls(.close), closes)
            filler.close()
        }
    }

    @Test func withoutOneItEndsAfterTwoMinutes() throws {
        let folder = Folder()
        let clock = VirtualClock()
        try withNetwork(clock: clock, turns: 10_000) { net in
            let listener = try net.listen("unix:\(folder / "a")", backlog: 0)
            let filler = try Peer(to: listener.localAddress)
            #expect(throws: SystemError(.connect, EAGAIN)) { try hang(connect(to: listener.localAddress)) }
            expect(clock.now >= LoopInstant(nanoseconds: 120_000_000_000))
            filler.close()
        }
    }

    @Test func cancelledWhileItWaitsItIsTriedNoMore() throws {
        let folder = Folder()
        try withNetwork(clock: VirtualClock()) { net in
            let listener = try net.listen("unix:\(folder / "a")", backlog: 0)
            let filler = try Peer(to: listener.localAddress)
            let attempt = connect(to: listener.localAddress)
            net.settle(.milliseconds(10))
            attempt.cancel()
            expectEqual(attempt.error?.isCancelled, true)
            let tries = net.calls(.connect)
            net.settle(.seconds(1))
            expectEqual(net.calls(.connect), tries)
            expectEqual(net.loop.nextDeadline, nil)
            filler.close()
        }
    }

    @Test func theLoopEndsWhileItWaits() throws {
        let folder = Folder()
        var attempt: Promise<Connection>?
        try withNetwork(clock: VirtualClock()) { net in
            let listener = try net.listen("unix:\(folder / "a")", backlog: 0)
            let filler = try Peer(to: listener.localAddress)
            attempt = connect(to: listener.localAddress, timeout: .seconds(3))
            net.settle(.milliseconds(10))
            expectEqual(attempt?.isPending, true)
            filler.close()
        }
        expectEqual(attempt.flatMap { code($0) }, ECANCELED)
    }

    @Test func whatItMakesIsNotTakenForTCP() throws {
        let folder = Folder()
        try withNetwork { net in
            let listeners = [try net.listen("unix:\(folder / "a")"), try net.listen()]
            for (listener, expected) in zip(listeners, [0, 1]) {
                let calls = net.calls(.setSocketOption)
                let client = try hang(connect(to: listener.localAddress), timeout: patience)
                expectEqual(net.calls(.setSocketOption) - calls, expected, "\(listener.localAddress)")
                expectEqual(client.peerAddress, listener.localAddress)
            }
        }
    }

    @Test func withoutAListenerItFails() throws {
        let folder = Folder()
        folder.leaveStaleSocket("stale")
        try withNetwork { net in
            expectEqual(code(connect(to: folder.address("stale"))), ECONNREFUSED)
            expectEqual(code(connect(to: folder.address("nothing"))), ENOENT)
            expectEqual(code(connect(to: "unix:@reactor-nobody-\(getpid())")), ECONNREFUSED)
        }
    }
}

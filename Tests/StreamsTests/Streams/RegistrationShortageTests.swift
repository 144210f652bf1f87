import CLinux

@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// epoll has no room for a registration: `ENOSPC`, which other processes of the user can cause, or `ENOMEM`. Everything
/// that waits for readiness keeps waiting, and the registration is made later. In virtual time.
struct RegistrationShortageTests {
    /// A client that waits at the limit makes the listener deregister; the end of the first one registers it again.
    @Test(.listener(.virtual), arguments: [ENOMEM, ENOSPC]) func aListenerAtItsLimitIsRegisteredLater(code: CInt) throws
    {
        let socket = try #require(net.ledger.open.max())
        let served = listener.serve(ServeOptions(maxConnections: 1)) { echo($0) }
        let clients = try (0..<2).map { _ in try Peer(to: listener.localAddress) }
        try net.loop.run(until: { listener.activeConnections == 1 })
        awaitArrival(of: POLLIN, at: socket)
        try net.loop.turn(.poll)

        let room = net.refuseRegistrations(of: socket, code)
        clients[0].close()
        awaitArrival(of: POLLIN, at: net.ledger.accepted[0])
        let lines = logged { net.settle(.milliseconds(520)) }
        expect(room.refusals >= 5 && room.refusals <= 7)
        expectEqual(lines.count, 1)
        expectEqual(lines.first?.contains("cannot watch a descriptor for now: epoll_ctl descriptor \(socket)"), true)
        expect(served.isPending && listener.activeConnections == 0)

        room.isLacking = false
        let resumed = net.loop.now
        try net.loop.run(until: { listener.activeConnections == 1 })
        expect(resumed.duration(to: net.loop.now) <= .milliseconds(100))
        clients[1].close()
        try listener.end(served)
    }

    @Test(.listener(.virtual)) func aListenerThatIsClosedMeanwhileLetsTheLoopEnd() throws {
        _ = net.refuseRegistrations(of: try #require(net.ledger.open.max()), ENOSPC)
        let accepted = listener.accept()
        listener.close()
        expectEqual(code(accepted), ECANCELED)
        try net.loop.run()
        expectEqual(net.loop.now, LoopInstant(nanoseconds: 0))
    }

    @Test(.pair(.virtual)) func aConnectionReadsAndWritesLater() throws {
        let fd = try #require(net.ledger.accepted.first)
        let room = net.refuseRegistrations(of: fd, ENOSPC)
        let read = connection.read()
        let real = net.kernel.send
        net.kernel.send = { _, _, _ in -Int(EAGAIN) }
        let write = connection.write("x")
        net.kernel.send = real
        try peer.send("y")
        awaitArrival(of: POLLIN, at: fd)
        net.settle(.milliseconds(150))
        expect(read.isPending && write.isPending)
        expect(room.refusals <= 3)
        room.isLacking = false
        try hang(write)
        expectEqual(hang(read), .bytes([0x79]))
        expectEqual(try peer.receive(), [0x78])
    }

    @Test(.network(.virtual)) func aDatagramSocketReceivesLater() throws {
        let socket = try DatagramSocket.bind("127.0.0.1:0")
        let fd = try #require(net.ledger.open.max())
        let room = net.refuseRegistrations(of: fd, ENOMEM)
        var seen = 0
        let done = socket.forEachPacket { _, _ in seen += 1 }
        try hang(socket.send([1], to: socket.localAddress))
        net.settle(.milliseconds(150))
        expect(seen == 0 && done.isPending)
        room.isLacking = false
        try net.loop.run(until: { seen == 1 })
        socket.close()
        expectEqual(code(done), ECANCELED)
    }

    @Test(.listener(.virtual)) func aConnectIsDecidedLater() throws {
        let real = net.kernel
        var refusals = 2
        net.kernel.epollControl = {
            guard $1 == EPOLL_CTL_ADD, refusals > 0 else { return real.epollControl($0, $1, $2, $3) }
            refusals -= 1
            return -Int(ENOSPC)
        }
        let connection = try hang(connect(to: listener.localAddress))
        expectEqual(refusals, 0)
        connection.abort()
        listener.close()
    }
}

private final class Room {
    var isLacking = true
    var refusals = 0
}

extension Network {
    /// From now on epoll refuses to register `fd`.
    fileprivate func refuseRegistrations(of fd: CInt, _ code: CInt) -> Room {
        let room = Room()
        let real = kernel.epollControl
        kernel.epollControl = {
            guard $1 == EPOLL_CTL_ADD || $1 == EPOLL_CTL_MOD, $2 == fd, room.isLacking else {
                return real($0, $1, $2, $3)
            }
            room.refusals += 1
            return -Int(code)
        }
        return room
    }
}

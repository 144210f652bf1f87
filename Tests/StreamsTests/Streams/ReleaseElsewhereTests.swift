@testable import PromisesTestSupport

/// The last reference to an object of a loop may be released on another thread, as by an actor or a task. The object is
/// still torn down on the loop's own.
struct ReleaseElsewhereTests {
    /// Carries the last reference to another thread.
    // @unchecked: its content is used by one thread after the other.
    private final class Parcel<Content>: @unchecked Sendable {
        var content: Content?
        init(_ make: () throws -> Content) rethrows { content = try make() }
    }

    /// The caller must keep no reference to the new object.
    private func releaseElsewhere<Content>(_ make: () throws -> Content) rethrows {
        let parcel = try Parcel(make)
        TestThread.run { parcel.content = nil }
    }

    /// The socket of a connection, not a later one with its number.
    private struct OpenSocket {
        let fd: CInt
        let inode: ino_t?
        let closed: Guarantee<ConnectionEnd>

        init(of connection: Connection) {
            fd = CInt(String(connection.description.filter(\.isNumber))) ?? -1
            inode = Self.inode(of: fd)
            closed = connection.closed
        }

        var isOpen: Bool { inode != nil && Self.inode(of: fd) == inode }

        private static func inode(of fd: CInt) -> ino_t? {
            var status = stat()
            return fstat(fd, &status) == 0 ? status.st_ino : nil
        }
    }

    /// Retries as long as a test waits: a child that another test is starting has all sockets until it executes its
    /// program.
    private func soon(_ body: () throws -> Bool) rethrows -> Bool {
        let end = ContinuousClock.now + patience
        while ContinuousClock.now < end {
            if try body() { return true }
            sched_yield()
        }
        return false
    }

    @Test(.inLoop) func aConnection() throws {
        let loop = EventLoop.current
        let (there, socket) = try pairWithOneReleased()
        expect(socket.isOpen, "it is closed on the loop's thread")
        expect(there.receive(), gives: [])
        expect(!socket.isOpen && socket.closed.settledValue == .closed)
        there.close()
        try loop.run()
        expectEqual(loop.now.nanoseconds, 0, "its timer has gone with it")
    }

    /// The timer of a limit outlives the read that set it.
    @Test(.inLoop) func aConnectionWithTheTimerOfALimit() throws {
        let loop = EventLoop.current
        var there: Connection?
        try releaseElsewhere { () throws -> Connection in
            let (one, other) = try Connection.pair()
            one.frameTimeouts = FrameTimeouts(idle: .seconds(5), frame: .seconds(5))
            let line = one.readLine()
            try hang(other.write("line\n"))
            expectEqual(try hang(line), "line")
            there = other
            return one
        }
        hang(after(.seconds(10)))
        let other = try #require(there)
        expect(other.receive(), gives: [])
        other.close()
        try loop.run()
    }

    @Test func aConnectionWhoseIdleTimeoutHasPassedWhenTheLoopComesToIt() throws {
        let clock = VirtualClock()
        try EventLoop.withLoop(clock: clock) { loop throws in
            let (there, socket) = try pairWithOneReleased()
            clock.advance(by: .seconds(20))
            expect(there.receive(), gives: [])
            expect(!socket.isOpen)
            there.close()
            try loop.run()
        }
    }

    private func pairWithOneReleased() throws -> (Connection, OpenSocket) {
        var (there, socket): (Connection?, OpenSocket?) = (nil, nil)
        try releaseElsewhere { () throws -> Connection in
            let (one, other) = try Connection.pair()
            one.idleTimeout = .seconds(5)
            (there, socket) = (other, OpenSocket(of: one))
            return one
        }
        return (there!, socket!)
    }

    @Test func aConnectionOfALoopThatHasEnded() throws {
        var socket: OpenSocket?
        try releaseElsewhere { () throws -> Connection in
            try EventLoop.withLoop { _ throws in
                let (one, other) = try Connection.pair()
                one.idleTimeout = .seconds(5)
                other.close()
                socket = OpenSocket(of: one)
                return one
            }
        }
        expect(socket?.inode != nil && socket?.isOpen == false)
    }

    @Test(.inRealTime) func aConnectionOfALoopThatEndsBeforeItComesToIt() throws {
        let (there, socket) = try pairWithOneReleased()
        expect(socket.isOpen)
        withExtendedLifetime(there) {}
    }

    @Test(.inRealTime) func aListener() throws {
        let loop = EventLoop.current
        var address: SocketAddress?
        try releaseElsewhere { () throws -> Listener in
            let listener = try Listener.bind("127.0.0.1:0")
            address = listener.localAddress
            return listener
        }
        while loop.isReady { try loop.turn(.poll) }
        expect(
            soon {
                do {
                    _ = try Peer(to: address!)
                    return false
                } catch { return (error as? SystemError)?.code == ECONNREFUSED }
            })
    }

    @Test(.inRealTime) func aDatagramSocket() throws {
        let loop = EventLoop.current
        var address: SocketAddress?
        try releaseElsewhere { () throws -> DatagramSocket in
            let socket = try DatagramSocket.bind("127.0.0.1:0")
            address = socket.localAddress
            return socket
        }
        while loop.isReady { try loop.turn(.poll) }
        expect(
            try soon {
                do {
                    try DatagramSocket.bind("\(address!)").close()
                    return true
                } catch let error as SystemError where error.code == EADDRINUSE { return false }
            })
    }

    @Test(.inRealTime) func aHold() throws {
        let loop = EventLoop.current
        releaseElsewhere { loop.hold() }
        // It is still held, perhaps by another one at the same address.
        let other = loop.hold()
        try loop.turn(.poll)
        expect(loop.isAlive)
        other.cancel()
        expect(!loop.isAlive)
        try loop.run()
    }

    @Test(.inRealTime) func aSequenceOfSignals() throws {
        let loop = EventLoop.current
        // Watched by no other test: actions are process-wide.
        let unusual: CInt = 61
        try releaseElsewhere { try signals(unusual) }
        var action = sigaction()
        sigaction(unusual, nil, &action)
        expect(action.sa_flags & SA_RESTART != 0, "it is watched until the loop comes to it")
        while loop.isReady { try loop.turn(.poll) }
        sigaction(unusual, nil, &action)
        expectEqual(action.sa_flags & SA_RESTART, 0)
        expect(!loop.isAlive)
    }

    /// An actor's objects are released where its last reference is.
    @Test(.ownThread) func whatAnActorOfALoopHolds() throws {
        let worker = try EventLoop.spawn(name: "worker")
        for _ in 0..<scaled(200) {
            EventLoop.withLoop { _ in
                let opened = Promise {
                    let room = Room(on: worker)
                    try await room.open()
                }
                expect(opened.map { true }, gives: true)
            }
        }
        worker.stop()
        worker.join()
    }

    private actor Room {
        private let home: LoopRemote
        private var connection: Connection?
        nonisolated var unownedExecutor: UnownedSerialExecutor { home.asUnownedSerialExecutor() }

        init(on home: LoopRemote) { self.home = home }

        func open() throws { connection = try pair() }

        private func pair() throws -> Connection {
            let (here, there) = try Connection.pair()
            there.close()
            return here
        }
    }
}

import Glibc
import Promises
import Reactor
import Testing

/// The last reference to what belongs to a loop may go on another thread, as that of an actor's or a task's does. It is put in
/// order on the loop's own all the same.
@Suite struct ReleaseElsewhereTests {
    /// Carries the last reference to another thread.
    // @unchecked: what is in it is used by one thread after the other.
    private final class Parcel<Content>: @unchecked Sendable {
        var content: Content?
        init(_ make: () throws -> Content) rethrows { content = try make() }
    }

    /// Nobody here may refer to what is made.
    private func letGoElsewhere<Content>(_ make: () throws -> Content) rethrows {
        let parcel = try Parcel(make)
        Strand.run { parcel.content = nil }
    }

    private func descriptor(of connection: Connection) -> CInt {
        let text = connection.description
        return CInt(String(text.filter(\.isNumber))) ?? -1
    }

    private func isOpen(_ fd: CInt) -> Bool { fcntl(fd, F_GETFD) >= 0 }

    @Test func aConnection() throws {
        try inLoop { loop throws in
            let (there, number) = try pairWithOneLetGo()
            #expect(isOpen(number), "it is closed on the loop's thread")
            expect(there.receive(), gives: [])
            #expect(!isOpen(number))
            there.close()
            try loop.run()
            #expect(loop.now.nanoseconds == 0, "its timer has gone with it")
        }
    }

    private func pairWithOneLetGo() throws -> (Connection, CInt) {
        var (there, number): (Connection?, CInt) = (nil, -1)
        try letGoElsewhere { () throws -> Connection in
            let (one, other) = try Connection.pair()
            one.idleTimeout = .seconds(5)
            (there, number) = (other, descriptor(of: one))
            return one
        }
        return (there!, number)
    }

    @Test func aConnectionOfALoopThatHasEnded() throws {
        var number: CInt = -1
        try letGoElsewhere { () throws -> Connection in
            try EventLoop.withLoop { _ throws in
                let (one, other) = try Connection.pair()
                other.close()
                number = descriptor(of: one)
                return one
            }
        }
        #expect(number >= 0 && !isOpen(number))
    }

    @Test func aConnectionOfALoopThatEndsBeforeItComesToIt() throws {
        try EventLoop.withLoop { _ throws in
            let (there, number) = try pairWithOneLetGo()
            #expect(isOpen(number))
            withExtendedLifetime(there) {}
        }
    }

    @Test func aListener() throws {
        try EventLoop.withLoop { loop throws in
            var address: SocketAddress?
            try letGoElsewhere { () throws -> Listener in
                let listener = try Listener.bind("127.0.0.1:0")
                address = listener.localAddress
                return listener
            }
            while loop.isReady { try loop.turn(.poll) }
            #expect(throws: SystemError(.connect, ECONNREFUSED)) { try Peer(to: address!) }
        }
    }

    @Test func aDatagramSocket() throws {
        try EventLoop.withLoop { loop throws in
            var address: SocketAddress?
            try letGoElsewhere { () throws -> DatagramSocket in
                let socket = try DatagramSocket.bind("127.0.0.1:0")
                address = socket.localAddress
                return socket
            }
            while loop.isReady { try loop.turn(.poll) }
            let again = try DatagramSocket.bind("\(address!)")
            again.close()
        }
    }

    @Test func aHold() throws {
        try EventLoop.withLoop { loop throws in
            letGoElsewhere { loop.hold() }
            // It is still held, by one that comes at the same address perhaps.
            let other = loop.hold()
            try loop.turn(.poll)
            #expect(loop.isAlive)
            other.release()
            #expect(!loop.isAlive)
            try loop.run()
        }
    }

    @Test func aSequenceOfSignals() throws {
        try EventLoop.withLoop { loop throws in
            // Which no other test watches: actions are the process's.
            let unusual: CInt = 61
            try letGoElsewhere { try signals(unusual) }
            var action = sigaction()
            sigaction(unusual, nil, &action)
            #expect(action.sa_flags & SA_RESTART != 0, "it is watched until the loop comes to it")
            while loop.isReady { try loop.turn(.poll) }
            sigaction(unusual, nil, &action)
            #expect(action.sa_flags & SA_RESTART == 0)
            #expect(!loop.isAlive)
        }
    }

    /// What an actor holds goes wherever the last reference to the actor does.
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
        private let home: EventLoop.Remote
        private var connection: Connection?
        nonisolated var unownedExecutor: UnownedSerialExecutor { home.asUnownedSerialExecutor() }

        init(on home: EventLoop.Remote) { self.home = home }

        func open() throws { connection = try pair() }

        private func pair() throws -> Connection {
            let (here, there) = try Connection.pair()
            there.close()
            return here
        }
    }
}

import Promises
import Reactor
import ReactorIO

/// An actor that lives on a loop, with connections of that loop, which are not Sendable.
actor ChatRoom {
    private let home: LoopRemote
    nonisolated var unownedExecutor: UnownedSerialExecutor { home.asUnownedSerialExecutor() }

    private var members: [Connection] = []
    private(set) var lines = 0

    init(on home: LoopRemote) { self.home = home }

    /// Synchronous: operators, and calls that begin something on the loop, are available here.
    private func open() throws -> Listener { try Listener.bind("127.0.0.1:0") }

    private func tell(_ line: String) {
        for member in members { member.write(line + "\n").cauterize() }
    }

    /// Serves one client, and returns what it sent.
    func serveOne(_ ready: @Sendable (SocketAddress) -> Void) async throws -> Int {
        let listener = try open()
        defer { listener.close() }
        ready(listener.localAddress)
        for try await member in listener.connections {
            members.append(member)
            for try await line in member.lines {
                lines += 1
                tell("\(lines): \(line)")
            }
            member.close()
            break
        }
        return lines
    }
}

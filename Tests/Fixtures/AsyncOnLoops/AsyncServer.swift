import Promises
import Reactor
import ReactorIO

/// State shared by the connections of a loop. `nonisolated`: see MainActorByDefault.swift.
nonisolated final class Guestbook {
    var guests = 0
    var lines: [String] = []

    /// Belongs to no actor, and runs wherever its caller runs.
    nonisolated(nonsending) func serve(_ connection: Connection, _ hall: Hall) async throws {
        guests += 1
        for try await line in connection.lines {
            lines.append(line)
            let number = await hall.count(line)
            try await connection.write("\(number) \(lines.count) \(line)\n").value
        }
    }
}

/// State shared by all loops.
actor Hall {
    private var lines = 0

    func count(_ line: String) -> Int {
        lines += 1
        return lines
    }
}

/// A handler on one loop uses objects of the thread: a non-Sendable class, its methods, local variables.
final class OneLoopServer {
    private let guestbook = Guestbook()
    private let hall = Hall()

    func serve(_ listener: Listener) -> Promise<DrainResult> {
        var begun = 0
        return listener.serveAsync(onError: { error, connection in print("\(connection): \(error)") }) { connection in
            begun += 1
            connection.idleTimeout = .seconds(60)
            try await self.guestbook.serve(connection, self.hall)
            if begun == 1 { listener.close() }
        }
    }

    var report: String { "\(guestbook.guests) guests, \(guestbook.lines.count) lines" }
}

/// Handlers on several loops: each loop has its own guestbook.
func serve(_ listener: Listener, on group: LoopGroup, _ guestbooks: LoopLocal<Guestbook>) -> Promise<DrainResult> {
    let hall = Hall()
    return listener.serveAsync(on: group) { connection in
        try await guestbooks.value(for: connection).serve(connection, hall)
    }
}

/// And a promise handler with the same value.
func servePromises(_ listener: Listener, on group: LoopGroup, _ guestbooks: LoopLocal<Guestbook>) -> Promise<
    DrainResult
> {
    listener.serve(on: group) { connection in
        let guestbook = guestbooks.value(for: connection)
        guestbook.guests += 1
        return connection.forEachLine { line in
            guestbook.lines.append(line)
            return connection.write("\(guestbook.lines.count) \(line)\n")
        }
    }
}

func guests(_ group: LoopGroup, _ guestbooks: LoopLocal<Guestbook>) -> Guarantee<Int> {
    group.collect(guestbooks) { $0.guests }.map { answers in answers.compactMap { try? $0.get() }.reduce(0, +) }
}

/// A connected client, which says one line and returns the answer.
func ask(_ address: SocketAddress, _ line: String) -> Promise<String?> {
    connect(to: address).then { client in
        client.write(line + "\n").then { client.readLine() }.ensure { client.close() }
    }
}

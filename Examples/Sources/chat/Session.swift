import Promises
import Reactor

/// The conversation with one client, from its first line to its last.
final class Session {
    private let connection: Connection
    private let members: LocalMembers
    private let hall: Hall
    private let limits: Limits
    private var name = ""
    private var room = "lobby"

    init(_ connection: Connection, _ members: LocalMembers, _ hall: Hall, _ limits: Limits) {
        self.connection = connection
        self.members = members
        self.hall = hall
        self.limits = limits
    }

    /// Returns when the client has left, and throws when its connection has failed. Either way the others are told.
    func run() async throws {
        connection.idleTimeout = limits.idle
        connection.writeQueueLimit = limits.queue
        name = await hall.enter()
        do {
            try await answer("you are \(name) in \(room); /nick NAME, /join ROOM, /quit")
            await enterRoom()
            for try await line in connection.lines(limit: limits.line) {
                if try await !handle(line) { break }
            }
        } catch {
            await leave()
            switch error as? StreamError {
            case .limitExceeded, .notUTF8: try await answer("a line has at most \(limits.line) bytes of UTF-8; bye")
            default: throw error
            }
            return
        }
        await leave()
    }

    /// - Returns: whether the conversation goes on.
    private func handle(_ line: String) async throws -> Bool {
        guard line.hasPrefix("/") else {
            if !line.isEmpty { await hall.say("\(name): \(withoutControls(line))", in: room) }
            return true
        }
        let words = line.split(separator: " ").map(String.init)
        switch (words.first, words.count) {
        case ("/nick", 2): try await rename(to: words[1])
        case ("/join", 2): try await join(words[1])
        case ("/quit", 1): return false
        default: try await answer("/nick NAME, /join ROOM, /quit")
        }
        return true
    }

    private func rename(to new: String) async throws {
        guard isName(new) else { return try await answer("a name has 1 to \(limits.name) letters and digits") }
        guard await hall.rename(name, to: new) else { return try await answer("\(new) is taken") }
        await hall.say("* \(name) is now \(new)", in: room)
        name = new
    }

    private func join(_ new: String) async throws {
        guard isName(new) else { return try await answer("a room has 1 to \(limits.name) letters and digits") }
        await leaveRoom()
        room = new
        await enterRoom()
    }

    private func enterRoom() async {
        members.add(connection, to: room)
        await hall.say("* \(name) has joined \(room)", in: room)
    }

    private func leaveRoom() async {
        members.remove(connection, from: room)
        await hall.say("* \(name) has left \(room)", in: room)
    }

    private func leave() async {
        members.remove(connection, from: room)
        await hall.leave(name, from: room)
    }

    /// Sends a line to this client only, and waits until it has left.
    private func answer(_ text: String) async throws { try await connection.write("* \(text)\n").value }

    /// Replaces control characters except tabs: escape sequences would act on the terminals of the others.
    private func withoutControls(_ line: String) -> String {
        let scalars = line.unicodeScalars.map { scalar in
            scalar.properties.generalCategory == .control && scalar != "\t" ? "\u{FFFD}" : scalar
        }
        return String(String.UnicodeScalarView(scalars))
    }

    private func isName(_ word: String) -> Bool {
        1...limits.name ~= word.utf8.count
            && word.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                    UInt8(ascii: "A")...UInt8(ascii: "Z"):
                    true
                default: false
                }
            }
    }
}

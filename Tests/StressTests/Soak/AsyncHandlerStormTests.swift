@testable import PromisesTestSupport

/// Async handlers on two loops, with clients on a third, which send one line after the other and disconnect now and
/// then. The handlers await their clients, an actor that is not on a loop, and the threads of `Promise { … }`.
///
/// A fixed number of lines in each run; `STORM_LINES=500000` sends that many, for
/// `swift test --sanitize=thread --filter AsyncHandlerStorm`.
@Suite(.serialized, .ownThread) struct AsyncHandlerStormTests {
    @Test func everyLineIsAnsweredOnTheLoopOfItsConnection() throws {
        let lines = environmentNumber("STORM_LINES") ?? scaled(20_000)
        let hall = Hall()
        try withGroup(2) { _, group in
            let listener = try Listener.bind("127.0.0.1:0")
            let books = LoopLocal { Book() }
            let served = listener.serveAsync(on: group) { connection in
                let book = books.value(for: connection)
                defer { book.left += 1 }
                for try await line in connection.lines {
                    book.lines += 1
                    if book.lines % 3 == 0 { await hall.enter() }
                    if book.lines % 64 == 0 { try await Promise { await hall.enter() }.value }
                    // Unsynchronised, so the sanitizer reports it if two threads access it.
                    book.last = line
                    if nameOfLoop() != book.name { book.strays += 1 }
                    try await connection.write(line + "\n").value
                }
            }
            let clients = 16
            let all = (0..<clients).map { client in
                Self.talk(to: listener.localAddress, client, lines: lines / clients)
            }
            let answered = try hang(when(fulfilled: all)).reduce(0, +)
            expectEqual(answered, lines / clients * clients)
            listener.close()
            try hang(served, timeout: .seconds(60))
            let totals = hang(group.collect(books) { [$0.lines, $0.left, $0.strays] }).compactMap { try? $0.get() }
            expectEqual(totals.map { $0[0] }.reduce(0, +), answered)
            expect(totals.allSatisfy { $0[0] > 0 && $0[2] == 0 })
            let connections = (lines / clients + Self.linesOfConnection - 1) / Self.linesOfConnection * clients
            expectEqual(totals.map { $0[1] }.reduce(0, +), connections)
        }
    }

    /// Sends `lines`, each after the answer to the previous one, and opens a new connection after a number of them.
    private static func talk(to address: SocketAddress, _ client: Int, lines: Int) -> Promise<Int> {
        guard lines > 0 else { return .value(0) }
        let count = min(lines, linesOfConnection)
        return connect(to: address).then { connection -> Promise<Int> in
            var answered = 0
            return repeatWhile {
                let line = "\(client) \(answered)"
                return connection.write(line + "\n").then { connection.readLine() }.map { answer in
                    guard answer == line else { throw Flaw(client) }
                    answered += 1
                    return answered < count
                }
            }.ensure { connection.close() }.map { answered }
        }.then { answered in talk(to: address, client, lines: lines - count).map { $0 + answered } }
    }

    static var linesOfConnection: Int { 500 }
}

private final class Book {
    var lines = 0
    var left = 0
    var strays = 0
    var last = ""
    let name = nameOfLoop()
}

private actor Hall {
    private var visits = 0
    func enter() { visits += 1 }
}

private func nameOfLoop() -> String { EventLoop.current.remote.name ?? "?" }

// Made by .ci/snippets.py from docs/guides/async-on-a-loop.md; do not edit.
// swift-format-ignore-file
import Promises
import Reactor

// docs/guides/async-on-a-loop.md: A body
extension Snippets {
    static func asyncOnALoop1() throws {
        var names: [String] = []                                  // need not be Sendable
        try EventLoop.current.run {
            let (here, there) = try { try Connection.pair() }()
            try await there.write("ada\nbob\n").value
            there.close()
            for try await name in here.lines { names.append(name) }
            here.close()
        }
        assert(names == ["ada", "bob"])
        _ = names
    }
}

// docs/guides/async-on-a-loop.md: Actors
extension Snippets {
    static func asyncOnALoop2() throws {
        actor Ledger {
            private let home: LoopRemote
            private var lines: [String] = []
            nonisolated var unownedExecutor: UnownedSerialExecutor { home.asUnownedSerialExecutor() }

            init(on home: LoopRemote) { self.home = home }

            func add(_ line: String) { lines.append(line) }
            var count: Int { lines.count }
        }

        let ledger = Ledger(on: EventLoop.current.remote)
        after(.milliseconds(1)).done {
            ledger.assumeIsolated { $0.add("from a handler of the loop") }      // no await: it is the same thread
        }
        let count = try hang(
            Promise {
                await ledger.add("from a task")
                return await ledger.count
            })
        assert(count >= 1)
        _ = ledger
        _ = count
    }
}

// docs/guides/async-on-a-loop.md: Actors
extension Snippets {
    static func asyncOnALoop3() throws {
        actor Room {
            private let home: LoopRemote
            private var members: [ObjectIdentifier: Connection] = [:]
            nonisolated var unownedExecutor: UnownedSerialExecutor { home.asUnownedSerialExecutor() }

            init(on home: LoopRemote) { self.home = home }

            private func listen() throws -> Listener { try Listener.bind("127.0.0.1:0") }

            func serve() async throws {
                let listener = try listen()
                for try await connection in listener.connections {
                    members[ObjectIdentifier(connection)] = connection
                    Task { await talk(ObjectIdentifier(connection)) }
                }
            }

            private func talk(_ id: ObjectIdentifier) async {
                guard let connection = members[id] else { return }
                do {
                    for try await line in connection.lines { say(line, from: connection) }
                } catch {
                    print(error)
                }
                members[id] = nil
                connection.close()
            }

            private func say(_ line: String, from sender: Connection) {
                broadcast("\(line)\n".utf8, to: members.values.lazy.filter { $0 !== sender }, overflow: .abort)
            }
        }
    }
}

// docs/guides/async-on-a-loop.md: Sequences
extension Snippets {
    static func asyncOnALoop4() throws {
        let (here, there) = try Connection.pair()
        there.write("one\ntwo\n").then { there.shutdownWrite() }.cauterize()
        let heard = try EventLoop.current.run {
            var heard: [String] = []
            for try await line in here.lines { heard.append(line) }
            return heard
        }
        assert(heard == ["one", "two"])
        _ = here
        _ = there
        _ = heard
    }
}

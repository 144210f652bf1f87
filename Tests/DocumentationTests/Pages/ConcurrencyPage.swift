// Made by .ci/snippets.py from docs/guides/concurrency.md; do not edit.
// swift-format-ignore-file
import Promises
import Reactor

// docs/guides/concurrency.md: From promises to async functions
extension Snippets {
    static func concurrency1() throws {
        func total(_ prices: [Promise<Int>]) async throws -> Int {
            var total = 0
            for price in prices { total += try await price.value }
            return total
        }

        let sum = try EventLoop.current.run { try await total([.value(1), .value(2)]) }
        assert(sum == 3)
        _ = sum
    }
}

// docs/guides/concurrency.md: From async functions to promises
extension Snippets {
    static func concurrency2() throws {
        @Sendable func ask() async throws -> Int { 42 }

        let answer = Promise { try await ask() }
        answer.done { number in assert(number == 42) }.cauterize()
        try EventLoop.current.run()
        _ = answer
    }
}

// docs/guides/concurrency.md: Async handlers
extension Snippets {
    static func concurrency3() throws {
        final class Guestbook {                                   // need not be Sendable
            var lines: [String] = []
        }

        actor Censor {
            func accepts(_ line: String) -> Bool { !line.isEmpty }
        }

        let guestbook = Guestbook()
        let censor = Censor()
        let listener = try Listener.bind("127.0.0.1:0")
        let served = listener.serve(onError: { error, connection in print("\(connection): \(error)") }) { connection in
            for try await line in connection.lines {
                guard await censor.accepts(line) else { continue }            // and back on the loop
                guestbook.lines.append(line)
                try await connection.write("\(guestbook.lines.count)\n").value
            }
        }

        let asking = connect(to: listener.localAddress).then { client in
            client.write("hello\n").then { client.readLine() }.ensure { client.close() }
        }
        let answer = try hang(asking)
        assert(answer == "1")
        listener.close()
        try hang(served)
        assert(guestbook.lines == ["hello"])
        _ = guestbook
        _ = censor
        _ = listener
        _ = served
        _ = asking
        _ = answer
    }
}

// docs/guides/concurrency.md: A body
extension Snippets {
    static func concurrency4() throws {
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

// docs/guides/concurrency.md: Actors
extension Snippets {
    static func concurrency5() throws {
        actor Ledger {
            private let home: EventLoop.Remote
            private var lines: [String] = []
            nonisolated var unownedExecutor: UnownedSerialExecutor { home.asUnownedSerialExecutor() }

            init(on home: EventLoop.Remote) { self.home = home }

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

// docs/guides/concurrency.md: Actors
extension Snippets {
    static func concurrency6() throws {
        actor Room {
            private let home: EventLoop.Remote
            private var members: [ObjectIdentifier: Connection] = [:]
            nonisolated var unownedExecutor: UnownedSerialExecutor { home.asUnownedSerialExecutor() }

            init(on home: EventLoop.Remote) { self.home = home }

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
                for member in members.values where member !== sender { member.write(line + "\n").cauterize() }
            }
        }
    }
}

// docs/guides/concurrency.md: Sequences
extension Snippets {
    static func concurrency7() throws {
        var heard = 0
        let everyMillisecond = ticks(every: .milliseconds(1))
        try EventLoop.current.run {
            for try await _ in everyMillisecond {
                heard += 1
                if heard == 3 { break }
            }
        }
        assert(heard == 3)
        _ = heard
        _ = everyMillisecond
    }
}

// docs/guides/concurrency.md: Threads of others
extension Snippets {
    static func concurrency8() throws {
        let (reply, resolver) = Promise<Int>.pending()
        let worker = try EventLoop.spawn(name: "worker")           // or any other thread
        worker.submit { resolver.fulfill(42) }
        let number = try hang(reply)
        assert(number == 42)
        worker.stop()
        worker.join()
        _ = reply
        _ = resolver
        _ = worker
        _ = number
    }
}

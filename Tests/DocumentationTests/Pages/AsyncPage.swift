// Made by .ci/snippets.py from docs/guides/async.md; do not edit.
// swift-format-ignore-file
import Promises
import Reactor

// docs/guides/async.md: Await a promise
extension Snippets {
    static func async1() throws {
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

// docs/guides/async.md: A promise of async work
extension Snippets {
    static func async2() throws {
        @Sendable func ask() async throws -> Int { 42 }

        let answer = Promise { try await ask() }
        answer.done { number in assert(number == 42) }.cauterize()
        try EventLoop.current.run()                               // waits for the task
        _ = answer
    }
}

// docs/guides/async.md: A promise of async work
extension Snippets {
    static func async3() throws {
        final class Journal { var lines: [String] = [] }          // need not be Sendable
        let journal = Journal()
        let promise = Promise(on: .current) { journal.lines.append(try await Promise.value("line").value) }
        try hang(promise)
        assert(journal.lines == ["line"])
        _ = journal
        _ = promise
    }
}

// docs/guides/async.md: Async handlers
extension Snippets {
    static func async4() throws {
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

// docs/guides/async.md: A body on the loop
extension Snippets {
    static func async5() throws {
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

// docs/guides/async.md: Actors
extension Snippets {
    static func async6() throws {
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

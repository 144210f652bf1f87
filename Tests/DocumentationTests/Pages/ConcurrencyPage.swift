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

// docs/guides/concurrency.md: From async functions to promises
extension Snippets {
    static func concurrency3() throws {
        final class Journal { var lines: [String] = [] }
        let journal = Journal()
        let promise = Promise(on: .current) { journal.lines.append(try await Promise.value("line").value) }
        try hang(promise)
        assert(journal.lines == ["line"])
        _ = journal
        _ = promise
    }
}

// docs/guides/concurrency.md: Async handlers
extension Snippets {
    static func concurrency4() throws {
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

// docs/guides/concurrency.md: Threads of others
extension Snippets {
    static func concurrency5() throws {
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

// Made by .ci/snippets.py from docs/guides/threads.md; do not edit.
// swift-format-ignore-file
import Promises
import Reactor

// docs/guides/threads.md: Other threads
extension Snippets {
    static func threads1() throws {
        let remote = EventLoop.current.remote                  // Sendable
        let posted = remote.submit { print("on the loop's thread") }
        let answer = hang(Guarantee(on: remote) { 6 * 7 })
        assert(posted && answer == 42)
        let worker = try EventLoop.spawn(name: "worker")
        let sum = hang(Guarantee(on: worker) { (1...10).reduce(0, +) })
        assert(sum == 55)
        worker.stop()
        hang(worker.ended)
        assert(worker.hasEnded && !worker.submit {})
        _ = remote
        _ = posted
        _ = answer
        _ = worker
        _ = sum
    }
}

// docs/guides/threads.md: Thread pools
extension Snippets {
    static func threads2() throws {
        let total = Promise.value(1...1_000).map(on: .shared) { numbers in numbers.reduce(0, +) }
        let product = Guarantee(on: .shared) { 6 * 7 }
        let both = try hang(when(fulfilled: total, product))
        assert(both == (500_500, 42))
        _ = total
        _ = product
        _ = both
    }
}

// docs/guides/threads.md: Actors and tasks
extension Snippets {
    static func threads3() throws {
        actor Ledger {
            private let home: LoopRemote
            private var total = 0
            nonisolated var unownedExecutor: UnownedSerialExecutor { home.asUnownedSerialExecutor() }

            init(on home: LoopRemote) { self.home = home }

            func add(_ amount: Int) -> Int {
                total += amount
                return total
            }
        }

        let ledger = Ledger(on: EventLoop.current.remote)
        let balance = try hang(Promise { await ledger.add(5) })   // counted by the loop
        assert(balance == 5)
        _ = ledger
        _ = balance
    }
}

// docs/guides/threads.md: Files
extension Snippets {
    static func threads4() throws {
        let path = temporaryFolder + "/settings"
        let written = writeFile("colour=blue\n", to: path, .atomically)
        let bytes = try hang(written.then { readFile(path, limit: 1 << 20) })
        assert(bytes == Array("colour=blue\n".utf8))
        _ = path
        _ = written
        _ = bytes
    }
}

// docs/guides/threads.md: Children
extension Snippets {
    static func threads5() throws {
        let sorted = ChildProcess.run("sort", ["-r"], input: Array("a\nb\n".utf8))
        let output = try hang(sorted)
        assert(output.status.isSuccess && output.text == "b\na\n")
        _ = sorted
        _ = output
    }
}

// Made by .ci/snippets.py from docs/guides/threads.md; do not edit.
// swift-format-ignore-file
import Promises
import Reactor

// docs/guides/threads.md: Another loop or thread
extension Snippets {
    static func threads1() throws {
        let remote = EventLoop.current.remote                  // Sendable
        let posted = remote.submit { print("on the loop's thread") }
        let answer = hang(Guarantee(on: remote) { 6 * 7 })
        assert(posted && answer == 42)

        let worker = try EventLoop.spawn(name: "worker")       // a thread with a loop
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
        let pool = try ThreadPool(name: "sums", threads: 2)
        let sum = Guarantee(on: pool) { (1...1000).reduce(0, +) }         // over there
        let product = Promise.value(6).map(on: .shared) { $0 * 7 }
        var here = 0
        try hang(when(fulfilled: sum, product).done { sum, product in here = sum + product })
        assert(here == 500_542)
        _ = pool
        _ = sum
        _ = product
        _ = here
    }
}

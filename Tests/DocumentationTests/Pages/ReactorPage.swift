// Made by .ci/snippets.py from docs/guides/reactor.md; do not edit.
// swift-format-ignore-file
import Glibc
import Promises
import Reactor

// docs/guides/reactor.md: The event loop
extension Snippets {
    static func reactor1() throws {
    }
}

// docs/guides/reactor.md: A turn
extension Snippets {
    static func reactor2() throws {
        let loop = EventLoop.current
        var order: [String] = []
        loop.schedule(after: .zero) { order.append("timer") }
        loop.enqueue {
            order.append("job")
            loop.enqueue { order.append("its own job") }
        }
        order.append("the line below")
        try loop.turn(.poll)
        assert(order == ["the line below", "job", "its own job", "timer"])
        _ = loop
        _ = order
    }
}

// docs/guides/reactor.md: Timers
extension Snippets {
    static func reactor3() throws {
        let loop = EventLoop.current
        var log: [String] = []
        loop.schedule(after: .seconds(2)) { log.append("second") }
        loop.schedule(after: .seconds(2)) { log.append("third") }
        let early = loop.schedule(at: loop.now + .seconds(1)) { log.append("first") }
        let never = loop.schedule(after: .seconds(1)) { log.append("never") }
        let moved = loop.schedule(after: .milliseconds(1)) { log.append("fourth") }
        assert(early.isActive && never.cancel() && !never.cancel())
        moved.reschedule(at: loop.now + .seconds(3))

        var ticks = 0
        var heart: EventLoop.Timer?
        heart = loop.schedule(every: .seconds(10)) {
            ticks += 1
            if ticks == 3 { heart?.cancel() }
        }
        try loop.run()
        assert(log == ["first", "second", "third", "fourth"])
        assert(loop.now == LoopInstant(nanoseconds: 30_000_000_000))
        _ = loop
        _ = log
        _ = early
        _ = never
        _ = moved
        _ = ticks
        _ = heart
    }
}

// docs/guides/reactor.md: Watches
extension Snippets {
    static func reactor4() throws {
        let loop = EventLoop.current
        let (reader, writer) = try openPipe()                  // pipe2(2), non-blocking
        var heard: [UInt8] = []
        let watch = try loop.watch(reader, for: .reading) { ready in
            heard += bytes(of: reader)                         // read(2)
        }
        put("x", into: writer)
        try loop.run(until: { !heard.isEmpty })
        assert(heard == Array("x".utf8))
        watch.cancel()                                         // first this,
        close(reader)                                          // then that
        close(writer)
        _ = loop
        _ = reader
        _ = writer
        _ = heard
        _ = watch
    }
}

// docs/guides/reactor.md: Signals
extension Snippets {
    static func reactor5() throws {
        let loop = EventLoop.current
        var resizings = 0
        let watch = try loop.onSignal(SIGWINCH) { resizings += 1 }
        kill(getpid(), SIGWINCH)
        try loop.run(until: { resizings > 0 })
        assert(resizings == 1)
        watch.cancel()                                         // the previous action is back
        _ = loop
        _ = resizings
        _ = watch
    }
}

// docs/guides/reactor.md: Other threads
extension Snippets {
    static func reactor6() throws {
        let remote = EventLoop.current.remote                  // Sendable
        let posted = remote.submit { print("on the loop's thread") }
        let answer = hang(remote.async(.promise) { 6 * 7 })
        assert(posted && answer == 42)
        let worker = try EventLoop.spawn(name: "worker")
        let sum = hang(worker.async(.promise) { (1...10).reduce(0, +) })
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

// docs/guides/reactor.md: Thread pools
extension Snippets {
    static func reactor7() throws {
        let total = Promise.value(1...1_000).map(on: .shared) { numbers in numbers.reduce(0, +) }
        let product = ThreadPool.shared.async(.promise) { 6 * 7 }
        let both = try hang(when(fulfilled: total, product))
        assert(both == (500_500, 42))
        _ = total
        _ = product
        _ = both
    }
}

// docs/guides/reactor.md: Actors and tasks
extension Snippets {
    static func reactor8() throws {
        actor Ledger {
            private let home: EventLoop.Remote
            private var total = 0
            nonisolated var unownedExecutor: UnownedSerialExecutor { home.asUnownedSerialExecutor() }

            init(on home: EventLoop.Remote) { self.home = home }

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

// docs/guides/reactor.md: Files
extension Snippets {
    static func reactor9() throws {
        let path = temporaryFolder + "/settings"
        let written = writeFile("colour=blue\n", to: path, .atomically)
        let bytes = try hang(written.then { readFile(path, limit: 1 << 20) })
        assert(bytes == Array("colour=blue\n".utf8))
        _ = path
        _ = written
        _ = bytes
    }
}

// docs/guides/reactor.md: Children
extension Snippets {
    static func reactor10() throws {
        let sorted = ChildProcess.run("sort", ["-r"], input: Array("a\nb\n".utf8))
        let output = try hang(sorted)
        assert(output.status.isSuccess && output.text == "b\na\n")
        _ = sorted
        _ = output
    }
}

// docs/guides/reactor.md: Handles
extension Snippets {
    static func reactor11() throws {
        let loop = EventLoop.current
        let handles: [any LoopHandle] = [loop.schedule(every: .seconds(1)) {}, loop.beforeWaiting {}, loop.hold()]
        assert(handles.allSatisfy { $0.isActive } && loop.isAlive)
        for handle in handles { handle.cancel() }
        assert(!handles.contains { $0.isActive } && !loop.isAlive)
        assert(!handles[0].cancel())
        _ = loop
        _ = handles
    }
}

// docs/guides/reactor.md: What keeps it alive
extension Snippets {
    static func reactor12() throws {
        let loop = EventLoop.current
        let statistics = loop.schedule(every: .seconds(60)) { print("a minute") }
        assert(loop.isAlive)
        statistics.unref()
        assert(!loop.isAlive)
        let hold = loop.hold()
        assert(loop.keepAliveReasons.description.contains("hold at "))
        hold.cancel()
        try loop.run()                                         // returns at once
        statistics.cancel()
        _ = loop
        _ = statistics
        _ = hold
    }
}

// docs/guides/reactor.md: Hooks
extension Snippets {
    static func reactor13() throws {
        let loop = EventLoop.current
        var batch: [String] = []
        var flushed: [[String]] = []
        let hook = loop.beforeWaiting {
            if batch.isEmpty { return }
            flushed.append(batch)
            batch = []
        }
        loop.enqueue { batch.append("a") }
        loop.enqueue { batch.append("b") }
        loop.schedule(after: .seconds(1)) { batch.append("c") }
        loop.schedule(after: .seconds(2)) {}
        try loop.run()
        hook.cancel()
        assert(flushed == [["a", "b"], ["c"]])
        _ = loop
        _ = batch
        _ = flushed
        _ = hook
    }
}

// docs/guides/reactor.md: Metrics
extension Snippets {
    static func reactor14() throws {
        let loop = EventLoop.current
        loop.measuresTurns = true                              // for timeWaiting and longestTurn
        loop.schedule(after: .seconds(1)) { loop.enqueue {} }
        try loop.run()
        let metrics = loop.metrics
        assert(metrics.timersFired == 1 && metrics.jobs >= 1 && metrics.timers == 0)
        assert(metrics.timeWaiting == .seconds(1))
        let page = metrics.prometheusText(labels: ["loop": "main"])
        assert(page.contains("reactor_timers_fired_total{loop=\"main\"} 1"))
        assert(metrics.measured == [.waits, .turns])           // no longest_handler_seconds
        _ = loop
        _ = metrics
        _ = page
    }
}

// docs/guides/reactor.md: Virtual time
extension Snippets {
    static func reactor15() throws {
        withVirtualTime {
            let loop = EventLoop.current
            hang(after(.seconds(3600)))
            assert(loop.now == LoopInstant(nanoseconds: 3_600_000_000_000))
        }
    }
}

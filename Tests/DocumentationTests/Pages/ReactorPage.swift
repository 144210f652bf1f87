// Made by .ci/snippets.py from docs/guides/reactor.md; do not edit.
// swift-format-ignore-file
import Glibc
import Promises
import Reactor

// docs/guides/reactor.md: A turn
extension Snippets {
    static func reactor1() throws {
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
    static func reactor2() throws {
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
    static func reactor3() throws {
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
    static func reactor4() throws {
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

// docs/guides/reactor.md: What keeps it alive
extension Snippets {
    static func reactor5() throws {
        let loop = EventLoop.current
        let statistics = loop.schedule(every: .seconds(60)) { print("a minute") }
        assert(loop.isAlive)
        statistics.unref()
        assert(!loop.isAlive)
        let hold = loop.hold()
        assert(loop.keepAliveReasons.contains("hold at "))
        hold.cancel()
        try loop.run()                                         // returns at once
        statistics.cancel()
        _ = loop
        _ = statistics
        _ = hold
    }
}

import Exploring

@testable import Reactor

// What an observer reads of a loop that goes on.
let observing: [Scenario] = [
    Scenario("a handler begins beside an observer") {
        let probe = LoopProbe()
        let (outer, inner) = (CallSite(file: "Outer.swift", line: 7), CallSite(file: "Inner.swift", line: 9))
        thread {
            guard let running = probe.running else { return }
            let isOuter = running.kind == .timer && running.callSite == outer && running.descriptor == nil
            let isInner = running.kind == .watch && running.callSite == inner && running.descriptor == 3
            check(isOuter || isInner, "\(running)")
            check(running.began == (isOuter ? 1 : 2), "\(running)")
        }
        let none = probe.handlerBegins(.timer, outer, -1, at: 1)
        let first = probe.handlerBegins(.watch, inner, 3, at: 2)
        probe.handlerDidEnd(first)
        probe.handlerDidEnd(none)
    }
]

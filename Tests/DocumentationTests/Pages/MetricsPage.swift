// Made by .ci/snippets.py from docs/reference/metrics.md; do not edit.
// swift-format-ignore-file
import Promises
import Reactor

// docs/reference/metrics.md: Metrics
extension Snippets {
    static func metrics1() throws {
        let loop = EventLoop.current
        loop.measured = .turns                                 // for timeWaiting and longestTurn
        loop.schedule(after: .seconds(1)) { loop.enqueue {} }
        try loop.run()
        let metrics = loop.metrics
        assert(metrics.timersFired == 1 && metrics.jobs >= 1 && metrics.timers == 0)
        assert(metrics.timeWaiting == .seconds(1))
        let page = metrics.prometheusText(labels: ["loop": "main"])
        assert(page.contains("reactor_timers_fired_total{loop=\"main\"} 1"))
        assert(metrics.longestHandler == nil)                  // not measured, so not in the text
        let both = LoopMetrics.prometheusText(of: [("main", metrics), ("worker", metrics)])
        assert(both.contains("reactor_timers_fired_total{loop=\"worker\"} 1"))
        _ = loop
        _ = metrics
        _ = page
        _ = both
    }
}

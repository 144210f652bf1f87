import Metrics
import MetricsTestKit
import Promises
import Reactor
import ReactorIO
import ReactorMetrics
import Testing

/// Reports to swift-metrics, by its test kit.
@Suite struct MetricsReportTests {
    @Test func aLoopIsReportedAtItsIntervals() throws {
        let metrics = TestMetrics()
        let clock = VirtualClock()
        try EventLoop.withLoop(clock: clock) { loop in
            let report = MetricsReport(every: .seconds(10), factory: metrics)
            report.add(loop, name: "main")
            #expect(!loop.isAlive, "a report keeps no loop alive")
            hang(after(.seconds(25)))
            let turns = try metrics.expectCounter("reactor_turns_total", [("loop", "main")])
            #expect(turns.values.count == 2 && turns.totalValue > 0 && turns.totalValue <= loop.metrics.turns)
            report.recordNow()
            #expect(turns.totalValue == loop.metrics.turns, "by what has been added")
            let (one, other) = try Connection.pair()
            report.recordNow()
            let calls = try metrics.expectCounter(
                "reactor_system_calls_total", [("call", SystemCall.socketPair.description), ("loop", "main")])
            #expect(calls.totalValue == 1)
            one.abort()
            other.abort()
            let timers = try metrics.expectGauge("reactor_timers", [("loop", "main")])
            #expect(timers.lastValue == Double(loop.metrics.timers))
            #expect(report.isActive && report.cancel() && !report.isActive && !report.cancel())
            hang(after(.seconds(25)))
            #expect(turns.values.count == 4)
        }
    }

    @Test func groupsPoolsAndListenersAreReported() throws {
        let metrics = TestMetrics()
        let group = try LoopGroup(loops: 2, name: "worker")
        try EventLoop.withLoop { loop in
            let report = MetricsReport(every: .seconds(3600), factory: metrics)
            report.add(group, name: "worker")
            report.add(ThreadPool.shared, name: "shared")
            let listener = try Listener.bind("127.0.0.1:0")
            report.add(listener, name: "echo")
            let connections = Pool<Connection>()
            report.add(connections, name: "clients")
            let served = listener.serve { $0.forEachChunk { _ in } }
            let client = try hang(connect(to: listener.localAddress))
            try loop.run(until: { listener.activeConnections == 1 })
            report.recordNow()
            // The loops of the group answer by mail.
            _ = hang(group.collect { true })
            try loop.run(until: {
                (try? metrics.expectGauge("reactor_descriptors", [("loop", "worker-1")])) != nil
            })
            let active = try metrics.expectGauge("reactor_active_connections", [("listener", "echo")])
            #expect(active.lastValue == 1)
            let limit = try metrics.expectGauge("reactor_pool_threads", [("pool", "shared")])
            #expect(limit.lastValue != nil)
            _ = try metrics.expectGauge("reactor_pool_resources_open", [("pool", "clients")])
            client.close()
            listener.close()
            try hang(served)
        }
        group.stop()
        group.join()
    }

    @Test func aReleasedReportHasEnded() throws {
        let metrics = TestMetrics()
        EventLoop.withLoop(clock: VirtualClock()) { loop in
            do { MetricsReport(every: .seconds(1), factory: metrics).add(loop, name: "main") }
            hang(after(.seconds(5)))
            #expect(metrics.counters.isEmpty && loop.metrics.timers == 0)
        }
    }
}

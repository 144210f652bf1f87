/// Metrics in the text format of Prometheus.
struct PrometheusTextTests {
    private func metrics(_ body: (EventLoop) throws -> Void) rethrows -> LoopMetrics {
        try EventLoop.withLoop(clock: VirtualClock()) { loop in
            try body(loop)
            return loop.metrics
        }
    }

    private var fresh: LoopMetrics { metrics { _ in } }

    /// `EchoServerTests` reads the text as strictly as the format's documentation allows.
    @Test func everyFamilyHasItsHelpAndItsTypeBeforeItsSamples() throws {
        let text = try metrics { loop in
            loop.measured = .handlers
            loop.slowHandlerThreshold = .seconds(1)
            loop.enqueue {}
            loop.schedule(after: .seconds(1)) {}
            let pipe = Ends.pipe()
            let watch = try loop.watch(pipe.near, for: .reading) { _ in }
            try loop.turn(.poll)
            watch.cancel()
        }.prometheusText()
        let lines = text.split(separator: "\n")
        expectEqual(lines.count { $0.hasPrefix("# TYPE ") }, 17)
        expectEqual(lines.count { $0.hasPrefix("# HELP ") }, 17)
        for (name, kind, value) in [
            ("jobs_total", "counter", 1), ("timers", "gauge", 1), ("external_work", "gauge", 0),
        ] {
            let index = try #require(lines.firstIndex(of: "# TYPE reactor_\(name) \(kind)"))
            expect(lines[index - 1].hasPrefix("# HELP reactor_\(name) "))
            expectEqual(lines[index + 1], "reactor_\(name) \(value)")
        }
        expect(text.hasSuffix("\n") && text.contains("\nreactor_system_calls_total{call=\"epoll_ctl\"} 4\n"))
    }

    @Test func secondsAreTheUnitAndExact() throws {
        let clock = VirtualClock()
        try EventLoop.withLoop(clock: clock) { loop in
            loop.measured = .handlers
            loop.schedule(after: .nanoseconds(3_000_000_070)) { clock.advance(by: .milliseconds(250)) }
            try loop.run()
            let text = loop.metrics.prometheusText()
            expect(text.contains("\nreactor_waiting_seconds_total 3.00000007\n"))
            expect(text.contains("\nreactor_longest_handler_seconds 0.25\n"))
        }
    }

    private static let timed = ["waiting_seconds_total", "longest_turn_seconds", "longest_handler_seconds"]

    /// A zero for a time that is not measured would mean a loop that never waits, and a permanent alarm.
    @Test(
        .inLoop,
        arguments: [
            (.nothing, false, []),
            (.turns, false, ["waiting_seconds_total", "longest_turn_seconds"]),
            (.handlers, false, timed),
            (.nothing, true, ["longest_handler_seconds", "slow_handlers_total"]),
            (.handlers, true, timed + ["slow_handlers_total"]),
        ] as [(LoopMetrics.Measured, Bool, [String])])
    func whatIsNotMeasuredIsLeftOut(measured: LoopMetrics.Measured, slowOnes: Bool, there: [String]) throws {
        let loop = EventLoop.current
        loop.measured = measured
        loop.slowHandlerThreshold = slowOnes ? .seconds(1) : nil
        loop.schedule(after: .seconds(1)) {}
        try loop.run()
        let text = loop.metrics.prometheusText()
        for name in Self.timed + ["slow_handlers_total"] {
            let mentions = text.contains(" reactor_\(name) ")
            expectEqual(mentions, there.contains(name), "\(name)")
        }
    }

    @Test func labelsAreEscapedAndSortedAndNamesMended() {
        let text = fresh.prometheusText(prefix: "my app:1", labels: ["loop": "a\"b\\c\nd", "8th-try": "é"])
        expect(text.contains("\nmy_app:1_turns_total{_8th_try=\"é\",loop=\"a\\\"b\\\\c\\nd\"} 0\n"))
        expect(fresh.prometheusText(prefix: "").hasPrefix("# HELP __turns_total "))
        expect(fresh.prometheusText(prefix: "9x").hasPrefix("# HELP _9x_turns_total "))
    }

    @Test func theLabelOfACallStandsBesideOnesOwn() throws {
        let text = try metrics { loop in
            let pipe = Ends.pipe()
            try loop.watch(pipe.near, for: .reading) { _ in }.cancel()
        }.prometheusText(labels: ["loop": "main", "call": "mine"])
        expect(text.contains("reactor_system_calls_total{call=\"epoll_create1\",loop=\"main\"} 1\n"))
        expect(text.contains("reactor_turns_total{call=\"mine\",loop=\"main\"} 0\n"))
    }

    @Test func severalLoopsAreOneText() throws {
        var loops: [(name: String, metrics: LoopMetrics)] = []
        for name in ["a", "b"] {
            EventLoop.withLoop { loop in
                loop.measured = name == "b" ? .turns : .nothing
                loops.append((name, loop.metrics))
            }
        }
        let lines = LoopMetrics.prometheusText(of: loops, labels: ["host": "x"]).split(separator: "\n")
        let index = try #require(lines.firstIndex(of: "# TYPE reactor_turns_total counter"))
        expectEqual(
            lines[(index + 1)...].prefix(2),
            ["reactor_turns_total{host=\"x\",loop=\"a\"} 0", "reactor_turns_total{host=\"x\",loop=\"b\"} 0"])
        let heads = lines.filter { $0.hasPrefix("#") }
        expectEqual(Set(heads).count, heads.count, "nothing is said twice")
        let waits = lines.filter { $0.hasPrefix("reactor_waiting_seconds_total") }
        expectEqual(waits, ["reactor_waiting_seconds_total{host=\"x\",loop=\"b\"} 0.0"])
        expectEqual(LoopMetrics.prometheusText(of: []), "")
    }

    @Test func aPoolHasOneToo() throws {
        let pool = try ThreadPool(name: "text", threads: 3, queueLimit: 9)
        let done = Counter()
        try pool.dispatch { done.add() }
        pool.shutDown()
        let text = pool.metrics.prometheusText(labels: ["pool": "text"])
        expect(text.contains("pool_jobs_completed_total{pool=\"text\"} 1\n"))
        expect(text.contains("# TYPE pool_threads gauge\npool_threads{pool=\"text\"} 1\n"))
        expect(text.contains("pool_jobs_queued_limit{pool=\"text\"} 9\n"))
    }
}

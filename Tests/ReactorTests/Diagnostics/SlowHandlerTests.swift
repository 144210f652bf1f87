extension ProcessWide {
    /// Handlers that block their loop for long.
    struct SlowHandlerTests {
        private let clock = VirtualClock()

        /// The reports while `body` has a loop with that threshold.
        private func reports(
            over threshold: Duration? = .milliseconds(10), taking milliseconds: Int = 0,
            _ body: (EventLoop) throws -> Void
        ) rethrows -> [SlowHandler] {
            let reports = SharedList<SlowHandler>()
            let handler = ReportHandler<LoopEvent> { [clock = Alone(clock)] in
                guard case .slowHandler(let slow, _) = $0 else { return }
                reports.append(slow)
                clock.value.advance(by: .milliseconds(milliseconds))
            }
            let before = LoopEvent.handler.withLock { current in
                defer { current = handler }
                return current
            }
            defer { LoopEvent.handler.withLock { $0 = before } }
            try EventLoop.withLoop(clock: clock) { loop in
                loop.slowHandlerThreshold = threshold
                try body(loop)
            }
            return reports.value
        }

        private func work(_ milliseconds: Int) { clock.advance(by: .milliseconds(milliseconds)) }

        @Test func jobsTimersWatchesSignalsAndHooksAreReportedWithTheirLines() throws {
            let pipe = Ends.pipe()
            var line: UInt = 0
            var all = sigset_t()
            sigemptyset(&all)
            sigaddset(&all, SIGUSR1)
            var found = sigset_t()
            pthread_sigmask(SIG_UNBLOCK, &all, &found)
            defer { pthread_sigmask(SIG_SETMASK, &found, nil) }
            let reports = try reports { loop in
                line = #line
                loop.enqueue { work(11) }
                loop.remote.submit { [clock = Alone(clock)] in clock.value.advance(by: .milliseconds(12)) }
                loop.schedule(after: .zero) { work(13) }
                let watch = try loop.watch(pipe.near, for: .reading) { _ in
                    take(from: pipe.near)
                    work(14)
                }
                put(into: pipe.far)
                for _ in 0..<3 { try loop.turn(.poll) }
                watch.cancel()
                let signal = try loop.onSignal(SIGUSR1) { work(15) }
                raise(SIGUSR1)
                try loop.turn(.poll)
                signal.cancel()
                loop.beforeWaiting { work(16) }.unlessCancelled()
                loop.schedule(after: .seconds(1)) {}
                try loop.run()
            }
            expectEqual(reports.map(\.kind), [.job, .job, .watch, .timer, .signal, .hook])
            expectEqual(reports.map(\.duration), [11, 12, 14, 13, 15, 16].map { .milliseconds($0) })
            expectEqual(reports.map { $0.callSite?.line }, [1, 2, 4, 3, 11, 15].map { UInt32(line) + $0 })
            expect(reports[0].description.hasPrefix("a job at ReactorTests/SlowHandlerTests.swift:"))
            expect(reports[0].description.hasSuffix(" held the loop for 0.011 seconds"))
        }

        @Test func aTimerThatWasStartedBeforeTheMeasurementHasNoLine() throws {
            let reports = try reports(over: nil) { loop in
                loop.schedule(after: .seconds(1)) { work(12) }
                loop.slowHandlerThreshold = .milliseconds(10)
                try loop.run()
            }
            expectEqual(reports.map(\.kind), [.timer])
            expectEqual(reports.map(\.duration), [.milliseconds(12)])
            expectEqual(reports.map { $0.callSite?.line }, [nil])
        }

        @Test func whatIsQuickerThanTheThresholdIsNot() throws {
            let reports = try reports { loop in
                for _ in 0..<20 { loop.enqueue { work(9) } }
                loop.enqueue { work(10) }
                try loop.run()
                expectEqual(loop.metrics.slowHandlers, 1)
            }
            expectEqual(reports.map(\.duration), [.milliseconds(10)])
        }

        @Test func withoutAThresholdNothingIsMeasured() throws {
            let reports = try reports(over: nil) { loop in
                expectEqual(loop.slowHandlerThreshold, nil)
                loop.enqueue { work(1000) }
                loop.schedule(after: .zero) { work(1000) }
                try loop.run()
                expectEqual(loop.metrics.longestHandler, nil)
                loop.slowHandlerThreshold = .milliseconds(1)
                expectEqual(loop.slowHandlerThreshold, .milliseconds(1))
                loop.slowHandlerThreshold = nil
                loop.enqueue { work(1000) }
                try loop.run()
                expectEqual(loop.metrics.slowHandlers, nil)
            }
            expect(reports.isEmpty)
        }

        @Test func aHandlerThatSetsTheThresholdIsMeasuredFromThereOn() throws {
            var line: UInt32 = 0
            let reports = try reports(over: nil) { loop in
                loop.enqueue {
                    work(500)
                    loop.slowHandlerThreshold = .milliseconds(10)
                    work(5)
                }
                line = #line + 1
                loop.enqueue { work(20) }
                try loop.run()
            }
            expectEqual(reports.map(\.duration), [.milliseconds(20)])
            expectEqual(reports.map(\.callSite?.line), [line], "a job's line is always known")
        }

        @Test func theTimeOfAReportIsNoHandlers() throws {
            let reports = try reports(taking: 50) { loop in
                loop.enqueue { work(11) }
                loop.enqueue { work(1) }
                try loop.run()
            }
            expectEqual(reports.map(\.duration), [.milliseconds(11)])
        }

        @Test func turnsThatAHandlerMakesAreNotItsTime() throws {
            let reports = try reports { loop in
                loop.enqueue {
                    work(6)
                    var fired = false
                    loop.schedule(after: .seconds(10)) {
                        work(15)
                        fired = true
                    }
                    _ = try! loop.run { fired }
                    work(7)
                }
                try loop.run()
            }
            expectEqual(reports.map(\.kind), [.timer, .job])
            expectEqual(reports.map(\.duration), [.milliseconds(15), .milliseconds(13)])
        }
    }
}

/// Carries a reference in a closure for other threads, which this thread runs.
// @unchecked: the test has one thread.
private struct Alone<Value>: @unchecked Sendable {
    let value: Value
    init(_ value: Value) { self.value = value }
}

extension EventLoop.Watch {
    fileprivate func unlessCancelled() {}
}
